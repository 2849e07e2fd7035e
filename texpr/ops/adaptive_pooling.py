"""Pools whose windows divide axes into a given number of parts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from weft.texpr.expr import Expr, IterVar
from weft.texpr.ops.arguments import compute, integers, sum_dtype
from weft.texpr.ops.pooling import float_of_product, pooled_data
from weft.texpr.ops.windows import LETTERS
from weft.texpr.places import error
from weft.texpr.reductions import all as all_of
from weft.texpr.reductions import max as greatest
from weft.texpr.reductions import reduce_axis
from weft.texpr.reductions import sum as sum_over
from weft.texpr.shapes import Extent
from weft.texpr.tensor import Tensor

__all__ = ["adaptive_pool", "global_pool"]


@dataclass(frozen=True)
class _Parts:
    """An axis in parts; those that do not come out even overlap by one element."""

    extent: Extent
    count: int
    longest: Extent

    @property
    def even(self) -> bool:
        return self.count == 1 or (isinstance(self.extent, int) and self.extent % self.count == 0)

    def start(self, position: Expr) -> Expr | int:
        if self.count == 1:
            return 0
        return position * self.longest if self.even else position * self.extent // self.count

    def size(self, position: Expr) -> Extent:
        if self.even:
            return self.longest
        return ((position + 1) * self.extent + (self.count - 1)) // self.count - self.start(position)


def _parts(what: str, extent: Extent, count: int) -> _Parts:
    if count == 1:
        return _Parts(extent, 1, extent)
    if not isinstance(extent, int):
        raise error(f"{what}: an axis of symbolic extent {extent} becomes 1 element, not {count}")
    ends = [-(-(part + 1) * extent // count) for part in range(count)]
    return _Parts(extent, count, max(end - part * extent // count for part, end in enumerate(ends)))


def adaptive_pool(
    data: Tensor,
    output_size: int | Sequence[int],
    pool_type: str = "avg",
    layout: str | None = None,
    *,
    name: str = "adaptive_pool",
) -> Tensor:
    """The mean (avg), greatest (max) or sum of parts of the axes in space of data (N, C, ...), of 1 to 3 such axes.

    Part i of n goes from floor(i * extent / n) to ceil((i + 1) * extent / n). Raises CompileError for empty axes, and
    for symbolic ones in more than one part.

    Dtypes: numbers; floats for means.
    Equals: `torch.nn.functional.adaptive_avg_pool2d(data, output_size)` and its like.
    """
    what = "adaptive_pool"
    source = pooled_data(what, data, pool_type, layout, 3, 4, 5)
    letters = LETTERS[source.tensor.ndim - 2]
    sizes = integers(output_size, f"{what}: output_size", len(letters), least=1)
    extents = [source.extent(c) for c in letters]
    for extent in extents:
        if isinstance(extent, int) and extent == 0:
            raise error(f"{what}: an axis of {source.tensor.name} has no elements")
    parts = {c: _parts(what, extent, size) for c, extent, size in zip(letters, extents, sizes, strict=True)}
    offsets = {c: reduce_axis((0, part.longest), f"r{c.lower()}") for c, part in parts.items()}
    dtype = source.tensor.dtype
    wide = dtype if pool_type == "max" else sum_dtype(dtype)
    shape: dict[str, Extent] = {
        "N": source.extent("N"),
        "C": source.extent("C"),
        **dict(zip(letters, sizes, strict=True)),
    }

    def element(*indices: Expr) -> Expr:
        at = dict(zip(source.layout, indices, strict=True))
        places = {c: offsets[c] + part.start(at[c]) for c, part in parts.items()}
        value = source.at({**at, **places}).astype(wide)
        inside = [offsets[c] < part.size(at[c]) for c, part in parts.items() if not part.even]
        combine: Callable[..., Expr] = greatest if pool_type == "max" else sum_over
        over: list[IterVar] = list(offsets.values())
        result = combine(value, axis=over, where=all_of(*inside) if inside else None)
        if pool_type == "avg":
            result = result / float_of_product([part.size(at[c]) for c, part in parts.items()], wide)
        return result.astype(dtype)

    return compute([shape[c] for c in source.layout], element, name, [c.lower() for c in source.layout])


def global_pool(
    data: Tensor, pool_type: str = "avg", layout: str | None = None, *, name: str = "global_pool"
) -> Tensor:
    """The mean (avg), greatest (max) or sum of each channel of data (N, C, ...), whose axes in space become 1.

    Dtypes: numbers; floats for means.
    Equals: `np.mean(data, axes_in_space, keepdims=True)` and its like.
    """
    return adaptive_pool(data, 1, pool_type, layout, name=name)
