"""Passes between weft and the dialects of upstream MLIR."""
