"""cumsum: sums of all that comes before."""

from __future__ import annotations

from weft.texpr.expr import Expr
from weft.texpr.math import if_then_else
from weft.texpr.ops.arguments import checked_axis, compute, constant, numeric, result_dtype, sum_dtype
from weft.texpr.ops.transforms import flatten
from weft.texpr.ops.unary import cast
from weft.texpr.places import error
from weft.texpr.tensor import Tensor

__all__ = ["cumsum"]


def cumsum(
    data: Tensor, axis: int | None = None, dtype: object = None, exclusive: bool = False, *, name: str = "cumsum"
) -> Tensor:
    """The sums of each element and all before it along an axis (without itself if `exclusive`); flat without an axis.

    Tensor expressions have no loop that carries a sum, so this takes log2(n) passes over the data: each adds what
    stands 1, 2, 4, ... places before (Hillis and Steele 1986). The work is n log n, all of it parallel, and rounding
    errors grow with log n. Floats of 16 bits are summed in float32. Raises CompileError for a symbolic extent, whose
    number of passes is not known.

    Dtypes: numbers.
    Equals: `np.cumsum(data, axis, dtype or data.dtype)`.
    """
    source = numeric(data, "cumsum: data")
    if axis is None:
        source, along = flatten(source, name=f"{name}_flat"), 0
    else:
        along = checked_axis("cumsum", axis, source.ndim)
    extent = source.shape[along]
    if not isinstance(extent, int):
        raise error(f"cumsum: axis {along} of {source.name} has the symbolic extent {extent}: give it a number")
    result = result_dtype(dtype, source.dtype)
    sums = cast(source, sum_dtype(result), name=f"{name}_cast") if source.dtype != sum_dtype(result) else source
    if exclusive:
        sums = _shifted(sums, along, 1, None, f"{name}_shift")
    steps = [1 << power for power in range(max(extent - 1, 0).bit_length())]
    last = steps[-1] if steps and sums.dtype == result else None
    for step in steps:
        sums = _shifted(sums, along, step, sums, name if step == last else f"{name}_by{step}")
    return sums if last else cast(sums, result, name=name)


def _shifted(source: Tensor, along: int, step: int, added: Tensor | None, name: str) -> Tensor:
    """`source` moved up by `step` along an axis, over zeros; plus `added`."""

    def element(*indices: Expr) -> Expr:
        place = indices[along] - step
        moved = source(*indices[:along], place, *indices[along + 1 :])
        value = if_then_else(indices[along] >= step, moved, constant(0, source.dtype))
        return value if added is None else added(*indices) + value

    return compute(source.shape, element, name)
