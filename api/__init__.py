"""weft, a tensor compiler whose every stage is textual, verified SSA IR on xDSL."""

from importlib.metadata import version

__version__ = version("weft")
