"""Reports of programs and of searches."""
