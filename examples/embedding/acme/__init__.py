"""A package of a stranger to weft: fixed-point numbers, a clipping operation, a table in memory, and their passes."""
