"""A third-party package: fixed-point numbers, a clipping operation, a table in memory, and their passes."""
