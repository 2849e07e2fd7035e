"""`tvm.tir`: functions of block loops, their schedules, and expressions."""

from __future__ import annotations

from typing import Any

from weft.frontends.script import tir as _words
from weft.support.user_functions import intrinsics
from weft.texpr import math as _math
from weft.texpr.expr import Cast, Const, Expr, IterVar, Select, Var, as_expr, cast_to, checked_dtype
from weft.texpr.math import *  # pyright: ignore[reportAssignmentType] (call_intrin is another one here)
from weft.texpr.math import const, logical_and, logical_or
from weft.texpr.reductions import max, min, sum
from weft.tvm.absent import refuses
from weft.tvm.ir.op import CallEffectKind, call_pure_extern, short
from weft.tvm.tir.function import PrimFunc, TensorIntrin
from weft.tvm.tir.schedule import Schedule

PrimExpr = Expr
abs, ceildiv, likely = _words.abs, _words.ceildiv, _words.likely


def all(*conditions: Any) -> Expr:
    """Whether all conditions hold."""
    found = as_expr(conditions[0])
    for condition in conditions[1:]:
        found = logical_and(found, condition)
    return found


def any(*conditions: Any) -> Expr:
    """Whether one of the conditions holds."""
    found = as_expr(conditions[0])
    for condition in conditions[1:]:
        found = logical_or(found, condition)
    return found


def op(dtype: str, name: str, *args: Any) -> Expr:
    """A call of an intrinsic."""
    return call_intrin(dtype, name, *args)


def call_intrin(dtype: str, func_name: str, *args: Any) -> Expr:
    """A call of a declared intrinsic (`tvm.ir.register_op_attr`), or of a function of expressions: `tir.exp`."""
    name = short(func_name)
    function = getattr(_math, name, None)
    if name not in intrinsics() and callable(function):
        return cast_to(function(*args), checked_dtype(dtype))
    return _math.call_intrin(dtype, name, *args)


__all__ = [
    "CallEffectKind", "Cast", "Const", "Expr", "IterVar", "PrimExpr", "PrimFunc", "Schedule", "Select", "TensorIntrin",
    "Var", "abs", "all", "any", "call_intrin", "call_pure_extern", "ceildiv", "const", "likely", "max", "min", "op",
    "sum",
]  # fmt: skip
__all__ += _math.__all__  # pyright: ignore[reportUnknownVariableType]
__getattr__ = refuses(__name__)
