"""IR to IR, one pass a file, grouped by level."""
