"""Compiled programs as files, and libraries loaded back."""
