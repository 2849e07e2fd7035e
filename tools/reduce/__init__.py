"""Delta debugging of programs: edits that make them smaller, and tests whether a fault remains."""
