"""`tvm.topi` and `tvm.topi.nn`, the same here: operators of `weft.te.ops`, with NumPy's names."""

import sys

from weft.texpr import ops
from weft.texpr.ops import *  # pyright: ignore[reportAssignmentType] (full is another one here)
from weft.texpr.tensor import Tensor
from weft.tvm.absent import refuses

nn = sys.modules[__name__]


def full(shape: object, dtype: str, fill_value: float) -> Tensor:
    return ops.full(shape, fill_value, dtype)


__all__ = [*ops.__all__, "full", "nn"]  # pyright: ignore[reportUnsupportedDunderAll]
__getattr__ = refuses(__name__)
