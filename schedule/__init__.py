"""The Python `Schedule`, traces, sampling and default schedules."""
