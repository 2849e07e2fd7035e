"""Emitters over the low level; they print or build, they never transform."""
