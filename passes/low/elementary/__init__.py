"""Elementary functions as polynomial code."""
