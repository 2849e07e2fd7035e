"""Compiled programs as files: objects, shared libraries and headers for C, and libraries loaded back."""
