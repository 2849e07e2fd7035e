"""From files and text to modules, and from modules to libraries: shared by `weft.build` and the commands."""
