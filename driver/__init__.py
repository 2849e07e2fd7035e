"""From files and text to modules, and from modules to libraries."""
