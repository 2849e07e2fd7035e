"""The language server `weft-lsp`: the index of a file, and the answers to editors."""
