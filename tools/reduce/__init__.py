"""Delta debugging of programs."""
