"""`tvm.script`: Python source to modules and functions, and back."""

from weft.frontends.script.show import show
from weft.tvm.absent import named

_PLACES = {
    **dict.fromkeys(("from_source", "ir_module", "parse"), "weft.tvm.script.reader"),
    **dict.fromkeys(("ir", "relax", "tir", "tirx"), ""),
}
__all__ = ["show", *_PLACES]  # pyright: ignore[reportUnsupportedDunderAll]
__getattr__ = named(__name__, _PLACES)
