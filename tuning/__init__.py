"""Schedules found by search: the database of records, measuring in child processes, and evolutionary search."""
