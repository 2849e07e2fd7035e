"""Passes on block loops."""
