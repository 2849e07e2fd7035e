"""Loading, calling and timing compiled code."""
