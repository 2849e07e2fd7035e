"""Schedules as data, and estimates of their cost."""
