"""Delta debugging of programs: edits that make them smaller, and the questions whether they still show a fault."""
