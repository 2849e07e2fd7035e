"""What every room may use: errors and their rendering, source locations, targets."""
