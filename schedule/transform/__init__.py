"""Transform scripts of MLIR, applied by schedule primitives."""
