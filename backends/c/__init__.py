"""The C target: C99 with a header and no dependencies."""
