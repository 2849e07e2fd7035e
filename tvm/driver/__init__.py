"""`tvm.driver`: `build`, `lower`, and the commands of `tvmc`."""

from weft.tvm.absent import refuses
from weft.tvm.driver.build_module import build, compile, lower

__all__ = ["build", "compile", "lower"]
__getattr__ = refuses(__name__)
