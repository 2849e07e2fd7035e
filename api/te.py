"""Tensor expressions: tensors defined by the expression of an element.

A = te.placeholder((128, 128), "float32", name="A")
B = te.placeholder((128, 128), "float32", name="B")
k = te.reduce_axis((0, 128), name="k")
Y = te.compute((128, 128), lambda i, j: te.sum(A[i, k] * B[k, j], axis=k), name="Y")
C = te.compute((128, 128), lambda i, j: te.max(Y[i, j], 0.0), name="C")
module = te.create_func([A, B, C], name="mm_relu")
"""

from importlib import import_module
from typing import TYPE_CHECKING

from weft.frontends.create_func import create_func, create_prim_func
from weft.frontends.stage_schedule import Stage, StageSchedule, create_schedule, thread_axis
from weft.texpr.buffers import decl_buffer
from weft.texpr.expr import Expr, IterVar, Var
from weft.texpr.function import create_te_func
from weft.texpr.math import (
    abs,
    acos,
    acosh,
    asin,
    asinh,
    atan,
    atan2,
    atanh,
    call_intrin,
    cast,
    cbrt,
    ceil,
    clz,
    const,
    cos,
    cosh,
    ctz,
    equal,
    erf,
    exp,
    exp2,
    expm1,
    floor,
    floordiv,
    floormod,
    if_then_else,
    infinity,
    isfinite,
    isinf,
    isnan,
    log,
    log1p,
    log2,
    log10,
    logical_and,
    logical_not,
    logical_or,
    max_value,
    min_value,
    nearbyint,
    not_equal,
    popcount,
    pow,
    power,
    round,
    rsqrt,
    select,
    sigmoid,
    sin,
    sinh,
    sqrt,
    tan,
    tanh,
    trunc,
    truncdiv,
    truncmod,
)
from weft.texpr.reductions import all, any, argmax, argmin, comm_reducer, max, min, prod, reduce_axis, sum
from weft.texpr.tensor import Tensor, compute, placeholder, size_var, var

if TYPE_CHECKING:
    from weft.texpr import ops

__all__ = [
    "Expr",
    "IterVar",
    "Stage",
    "StageSchedule",
    "Tensor",
    "Var",
    "abs",
    "acos",
    "acosh",
    "all",
    "any",
    "argmax",
    "argmin",
    "asin",
    "asinh",
    "atan",
    "atan2",
    "atanh",
    "call_intrin",
    "cast",
    "cbrt",
    "ceil",
    "clz",
    "comm_reducer",
    "compute",
    "const",
    "cos",
    "cosh",
    "create_func",
    "create_prim_func",
    "create_schedule",
    "create_te_func",
    "ctz",
    "decl_buffer",
    "equal",
    "erf",
    "exp",
    "exp2",
    "expm1",
    "floor",
    "floordiv",
    "floormod",
    "if_then_else",
    "infinity",
    "isfinite",
    "isinf",
    "isnan",
    "log",
    "log1p",
    "log2",
    "log10",
    "logical_and",
    "logical_not",
    "logical_or",
    "max",
    "max_value",
    "min",
    "min_value",
    "nearbyint",
    "not_equal",
    "ops",
    "placeholder",
    "popcount",
    "pow",
    "power",
    "prod",
    "reduce_axis",
    "round",
    "rsqrt",
    "select",
    "sigmoid",
    "sin",
    "sinh",
    "size_var",
    "sqrt",
    "sum",
    "tan",
    "tanh",
    "thread_axis",
    "trunc",
    "truncdiv",
    "truncmod",
    "var",
]


def __getattr__(name: str) -> object:
    if name == "ops":  # many modules, imported when they are first used
        return import_module("weft.texpr.ops")
    raise AttributeError(f"module 'weft.te' has no attribute '{name}'")
