"""`weft explore`: one session, and its front ends for terminals, lines and MCP."""
