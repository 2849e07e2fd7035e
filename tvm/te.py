"""`tvm.te`: `weft.te`, and TVM's functions on it."""

from collections.abc import Sequence

from weft.frontends.create_func import create_func
from weft.frontends.stage_schedule import Stage
from weft.frontends.stage_schedule import StageSchedule as Schedule
from weft.te import *  # pyright: ignore[reportAssignmentType] (create_prim_func is another one here)
from weft.te import __all__ as _all  # pyright: ignore[reportUnknownVariableType]
from weft.texpr.expr import Var
from weft.texpr.tensor import ComputeOp, PlaceholderOp, Tensor
from weft.tvm.absent import refuses
from weft.tvm.tir.function import PrimFunc


def create_prim_func(ops: Sequence[Tensor | Var], index_dtype_override: str | None = None) -> PrimFunc:
    """Indices are narrowed if safe."""
    del index_dtype_override
    return PrimFunc.of(create_func(ops))


__all__ = ["ComputeOp", "PlaceholderOp", "Schedule", "Stage", "create_prim_func"]
__all__ += _all  # pyright: ignore[reportUnknownVariableType, reportUnsupportedDunderAll]
__getattr__ = refuses(__name__)
