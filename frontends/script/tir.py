"""The namespace that scripts call `T`: `from weft.script import tir as T`."""

from weft.frontends.script.decorators import prim_func
from weft.frontends.script.words import *

__all__ = ["prim_func"]
