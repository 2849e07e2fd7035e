"""Command-line tools and weft's xDSL universe."""
