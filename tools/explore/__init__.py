"""`weft explore` steps through a program and its pipeline: one session, and its front ends for terminals, lines and
MCP."""
