"""Reference semantics of each dialect on NumPy values."""
