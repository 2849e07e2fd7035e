"""Passes on the level where all targets meet."""
