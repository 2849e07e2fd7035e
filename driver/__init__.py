"""From files and text to modules, and from modules to libraries: what `weft.build` and the commands share."""
