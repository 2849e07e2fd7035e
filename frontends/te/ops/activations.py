"""Activation functions of neural networks, element by element."""

from __future__ import annotations

from weft.frontends.te.ops.arguments import compute, constant, numeric
from weft.frontends.te.reductions import max as greater
from weft.frontends.te.tensor import Tensor

__all__ = ["relu"]


def relu(data: Tensor, *, name: str = "relu") -> Tensor:
    """The greater of x and 0; NaN stays.

    Dtypes: numbers.
    Equals: `np.maximum(data, 0)`.
    """
    source = numeric(data, "relu: data")
    return compute(source.shape, lambda *i: greater(source(*i), constant(0, source.dtype)), name)
