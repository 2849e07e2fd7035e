"""Shared by all packages: errors and their rendering, source locations, targets."""
