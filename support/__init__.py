"""Used by all rooms: errors and their rendering, source locations, targets."""
