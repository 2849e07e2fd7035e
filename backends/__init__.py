"""Code generation from the low level, without IR transformations."""
