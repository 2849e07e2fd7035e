"""Ops of upstream MLIR dialects that xDSL 0.74 lacks."""
