"""Schedules found by search: database of records, measuring in child processes, evolutionary search."""
