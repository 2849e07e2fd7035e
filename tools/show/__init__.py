"""Reports of programs and of searches: collected as plain data, rendered as one HTML page or as text."""
