"""`tvm.script`: modules and functions read from Python source, and printed as such."""

from weft.frontends.script.show import show
from weft.tvm.absent import refuses
from weft.tvm.script import ir, relax, tir
from weft.tvm.script.reader import from_source, ir_module

parse = from_source

__all__ = ["from_source", "ir", "ir_module", "parse", "relax", "show", "tir"]
__getattr__ = refuses(__name__)
