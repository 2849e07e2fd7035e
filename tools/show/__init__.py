"""Reports of programs and of searches: plain data, rendered as an HTML page or as text."""
