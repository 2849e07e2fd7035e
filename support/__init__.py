"""Errors, source locations, targets and other parts shared by all packages."""
