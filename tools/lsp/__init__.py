"""The language server `weft-lsp`."""
