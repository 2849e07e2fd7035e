"""Code generation from the low level, without transformations of the IR."""
