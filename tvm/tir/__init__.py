"""`tvm.tir`: block-loop functions, schedules, expressions."""

from typing import Any

from weft.frontends.script.tir import abs, ceildiv, likely
from weft.support.user_functions import intrinsics
from weft.texpr import math as _math
from weft.texpr.expr import Cast, Const, Expr, IterVar, Var, cast_to, checked_dtype
from weft.texpr.math import *  # pyright: ignore[reportAssignmentType] (call_intrin is another one here)
from weft.texpr.reductions import all, any, max, min, sum
from weft.tvm.absent import named
from weft.tvm.ir.op import CallEffectKind, call_pure_extern, short

_PLACES = {
    **dict.fromkeys(("IndexMap", "PrimFunc", "TensorIntrin"), "weft.tvm.tir.function"),
    **dict.fromkeys(("Schedule", "Trace"), "weft.tvm.tir.schedule"),
    **{name: "weft.tvm" for name in ("dlight", "meta_schedule")},
}
PrimExpr = Expr
Select = _math.select


def call_intrin(dtype: str, func_name: str, *args: Any) -> Expr:
    """Call a declared intrinsic (`tvm.ir.register_op_attr`) or `tir.exp` etc."""
    name = short(func_name)
    function = getattr(_math, name, None)
    if name not in intrinsics() and callable(function):
        return cast_to(function(*args), checked_dtype(dtype))
    return _math.call_intrin(dtype, name, *args)


op = call_intrin
__all__ = [
    "CallEffectKind", "Cast", "Const", "Expr", "IterVar", "PrimExpr", "Select", "Var", "abs", "all", "any",
    "call_intrin", "call_pure_extern", "ceildiv", "likely", "max", "min", "op", "sum", *_PLACES,
]  # fmt: skip  # pyright: ignore[reportUnsupportedDunderAll]
__all__ += _math.__all__  # pyright: ignore[reportUnknownVariableType]
__getattr__ = named(__name__, _PLACES)
