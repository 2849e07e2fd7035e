"""Passes on tensor expressions."""
