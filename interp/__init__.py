"""Reference semantics of each dialect on NumPy values.

`interpreter` runs functions, `compare` validates passes, and `registry` describes how a dialect defines its ops.
"""
