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
from weft.support.errors import did_you_mean
from weft.texpr import math as _math
from weft.texpr.buffers import decl_buffer
from weft.texpr.expr import Expr, IterVar, Var
from weft.texpr.function import create_te_func
from weft.texpr.math import *
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
    "all",
    "any",
    "argmax",
    "argmin",
    "comm_reducer",
    "compute",
    "create_func",
    "create_prim_func",
    "create_schedule",
    "create_te_func",
    "decl_buffer",
    "max",
    "min",
    "ops",
    "placeholder",
    "prod",
    "reduce_axis",
    "size_var",
    "sum",
    "thread_axis",
    "var",
]
__all__ += _math.__all__  # pyright: ignore[reportUnknownVariableType]
Tensor.operators = (lambda: import_module("weft.texpr.ops").__all__,)


def __getattr__(name: str) -> object:
    if name == "ops":  # many modules, imported when they are first used
        return import_module("weft.texpr.ops")
    if not name.startswith("_") and hasattr(import_module("weft.texpr.ops"), name):
        raise AttributeError(f"module 'weft.te' has no attribute '{name}': the operator on tensors is te.ops.{name}")
    known: list[str] = [*__all__]
    if not name.startswith("_"):
        known += [f"ops.{operator}" for operator in import_module("weft.texpr.ops").__all__]
    raise AttributeError(f"module 'weft.te' has no attribute '{name}'{did_you_mean(name, known)}")
