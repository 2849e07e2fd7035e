"""The IR of weft: one dialect a file."""
