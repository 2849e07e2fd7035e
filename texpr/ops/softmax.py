"""softmax and log_softmax, in stages that schedules can see."""

from __future__ import annotations

from weft.texpr import math
from weft.texpr.expr import Expr
from weft.texpr.ops.arguments import checked_axis, compute, floating, sum_dtype
from weft.texpr.ops.reductions import merged, reduce_axes, reduction
from weft.texpr.reductions import max as greatest
from weft.texpr.reductions import sum as sum_over
from weft.texpr.tensor import Tensor

__all__ = ["log_softmax", "softmax"]


def _others(indices: tuple[Expr, ...], along: int) -> tuple[Expr, ...]:
    return indices[:along] + indices[along + 1 :]


def softmax(data: Tensor, axis: int = -1, *, name: str = "softmax") -> Tensor:
    """exp(x) / sum(exp(x)) along an axis, over x less its maximum, so that nothing overflows.

    Four stages: `<name>_max`, `<name>_exp`, `<name>_sum`, `<name>`; each exponential is computed once. Floats of 16
    bits are computed in float32.

    Dtypes: floats.
    Equals: `torch.softmax(data, axis)`.
    """
    source = floating(data, "softmax: data")
    along = checked_axis("softmax", axis, source.ndim)
    wide = sum_dtype(source.dtype)
    top = reduction(source, [along], lambda x, k: greatest(x, axis=k), f"{name}_max")

    def power(*indices: Expr) -> Expr:
        return math.exp(source(*indices).astype(wide) - top(*_others(indices, along)).astype(wide))

    powers = compute(source.shape, power, f"{name}_exp")
    total = reduction(powers, [along], lambda x, k: sum_over(x, axis=k), f"{name}_sum")

    def share(*indices: Expr) -> Expr:
        # One division a row: the total is at least 1, or NaN.
        return (powers(*indices) * (1.0 / total(*_others(indices, along)))).astype(source.dtype)

    return compute(source.shape, share, name)


def log_softmax(data: Tensor, axis: int = -1, *, name: str = "log_softmax") -> Tensor:
    """The logarithm of `softmax`: x - max - log(sum(exp(x - max))).

    Four stages: `<name>_max`, `<name>_sum` of the exponentials, `<name>_log` of the sums, `<name>`. Floats of 16 bits
    are computed in float32.

    Dtypes: floats.
    Equals: `torch.log_softmax(data, axis)`.
    """
    source = floating(data, "log_softmax: data")
    along = checked_axis("log_softmax", axis, source.ndim)
    wide = sum_dtype(source.dtype)
    top = reduction(source, [along], lambda x, k: greatest(x, axis=k), f"{name}_max")
    over = reduce_axes(source.shape, [along])

    def total_of_powers(*kept: Expr) -> Expr:
        value = source(*merged(kept, over, source.ndim)).astype(wide)
        return sum_over(math.exp(value - top(*kept).astype(wide)), axis=list(over.values()))

    total = compute(top.shape, total_of_powers, f"{name}_sum")
    logs = compute(top.shape, lambda *kept: math.log(total(*kept)), f"{name}_log")

    def element(*indices: Expr) -> Expr:
        kept = _others(indices, along)
        return (source(*indices).astype(wide) - top(*kept).astype(wide) - logs(*kept)).astype(source.dtype)

    return compute(source.shape, element, name)
