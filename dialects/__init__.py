"""The IR of weft: one dialect a file, one level of abstraction a dialect."""
