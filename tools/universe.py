"""What weft adds to xDSL's tools: found through the `xdsl.universe` entry point."""

from xdsl.universe import Universe

WEFT_UNIVERSE = Universe()
