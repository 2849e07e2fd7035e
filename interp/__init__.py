"""Reference semantics of each dialect on NumPy values.

`interpreter` runs functions, `compare` compares modules and validates passes, `arguments` generates inputs, and
`registry` describes how a dialect defines the semantics of its ops.
"""
