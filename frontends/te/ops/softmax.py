"""softmax and log_softmax, in stages that schedules can see."""

from __future__ import annotations

from weft.frontends.te import math
from weft.frontends.te.expr import Expr
from weft.frontends.te.ops.arguments import checked_axes, compute, floating, sum_dtype
from weft.frontends.te.ops.reductions import reduction
from weft.frontends.te.reductions import max as greatest
from weft.frontends.te.reductions import sum as sum_over
from weft.frontends.te.tensor import Tensor

__all__ = ["softmax"]


def softmax(data: Tensor, axis: int = -1, *, name: str = "softmax") -> Tensor:
    """exp(x) / sum(exp(x)) along an axis, over x less its maximum, so that nothing overflows.

    Four stages: `<name>_max`, `<name>_exp`, `<name>_sum`, `<name>`; each exponential is computed once. Floats of 16
    bits are computed in float32. Raises CompileError for what holds no floats.

    Dtypes: floats.
    Equals: `torch.softmax(data, axis)`.
    """
    source = floating(data, "softmax: data")
    (along,) = checked_axes("softmax", axis, source.ndim)
    wide = sum_dtype(source.dtype)

    def others(indices: tuple[Expr, ...]) -> tuple[Expr, ...]:
        return indices[:along] + indices[along + 1 :]

    top = reduction(source, [along], lambda x, k: greatest(x, axis=k), f"{name}_max")
    powers = compute(
        source.shape, lambda *i: math.exp(source(*i).astype(wide) - top(*others(i)).astype(wide)), f"{name}_exp"
    )
    total = reduction(powers, [along], lambda x, k: sum_over(x, axis=k), f"{name}_sum")
    return compute(source.shape, lambda *i: (powers(*i) / total(*others(i))).astype(source.dtype), name)
