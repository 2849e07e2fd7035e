"""`tvm.topi.nn`: operators of networks."""

from __future__ import annotations

from weft.texpr import ops
from weft.texpr.ops import *
from weft.texpr.tensor import Tensor
from weft.tvm.absent import refuses


def dense(data: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """`data @ weight.T + bias`."""
    return ops.dense(data, weight, bias)


__all__ = [*ops.__all__]  # pyright: ignore[reportUnsupportedDunderAll]
__getattr__ = refuses(__name__)
