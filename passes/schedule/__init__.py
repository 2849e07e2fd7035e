"""Schedule primitives: a checked plan and the rewrite that applies it."""
