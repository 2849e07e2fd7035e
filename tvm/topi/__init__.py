"""`tvm.topi`: the operators of `weft.te.ops`, which are named as NumPy has them."""

from __future__ import annotations

from weft.texpr import ops
from weft.texpr.ops import *  # pyright: ignore[reportAssignmentType] (full is another one here)
from weft.texpr.tensor import Tensor
from weft.tvm.absent import refuses
from weft.tvm.topi import nn


def full(shape: object, dtype: str, fill_value: float) -> Tensor:
    """A tensor of one number."""
    return ops.full(shape, fill_value, dtype)


def identity(x: Tensor) -> Tensor:
    """A copy."""
    from weft.texpr.tensor import compute

    return compute(x.shape, x, f"{x.name}_copy")


__all__ = [*ops.__all__, "full", "identity", "nn"]  # pyright: ignore[reportUnsupportedDunderAll]
__getattr__ = refuses(__name__)
