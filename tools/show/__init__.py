"""Reports of programs and of searches: collected as plain data, rendered as an HTML page or as text."""
