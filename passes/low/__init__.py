"""Passes on the level that all targets share."""
