"""Analyses of the IR, which do not change it."""
