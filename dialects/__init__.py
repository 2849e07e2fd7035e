"""The IR of weft: one dialect per level of abstraction."""
