"""`weft explore`: a program and its pipeline, step by step: one session, and its terminal, REPL and MCP front ends."""
