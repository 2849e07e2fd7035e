"""The language server `weft-lsp`: what it knows of a file, and the answers to editors."""
