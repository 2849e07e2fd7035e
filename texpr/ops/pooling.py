"""Pools: the greatest, the mean or the sum of each window."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Protocol

from weft.support.argument_types import shown
from weft.texpr.dtypes import is_float, least
from weft.texpr.expr import Expr
from weft.texpr.math import cast
from weft.texpr.ops.arguments import compute, integers, is_one_of, numeric, ranked, sum_dtype
from weft.texpr.ops.extents import is_same, simplified
from weft.texpr.ops.layouts import Laid, checked_layout
from weft.texpr.ops.reductions import float_of
from weft.texpr.ops.windows import LETTERS, Window, windows
from weft.texpr.places import error
from weft.texpr.reductions import max as greatest
from weft.texpr.reductions import min as least_of
from weft.texpr.reductions import reduce_axis
from weft.texpr.reductions import sum as sum_over
from weft.texpr.shapes import Extent
from weft.texpr.tensor import Tensor

__all__ = [
    "avg_pool1d",
    "avg_pool2d",
    "avg_pool3d",
    "max_pool1d",
    "max_pool2d",
    "max_pool3d",
    "sum_pool1d",
    "sum_pool2d",
    "sum_pool3d",
]

_KINDS = ("avg", "max", "sum")


def pooled_data(what: str, data: Tensor, kind: str, layout: str | None, *ranks: int) -> Laid:
    """Data for a pool. Raises CompileError for kinds, dtypes, ranks and layouts that it has not."""
    if not is_one_of(kind, _KINDS):
        raise error(f"{what}: pool_type is one of {', '.join(_KINDS)}, got {shown(kind)}")
    source = ranked(numeric(data, f"{what}: data"), f"{what}: data", *ranks)
    if kind == "avg" and not is_float(source.dtype):
        raise error(f"{what}: means are of floats, {source.name} is {source.dtype}: use te.ops.cast")
    letters = "NC" + LETTERS[source.ndim - 2]
    return Laid(source, checked_layout(f"{what}: layout", layout or letters, letters))


def lowest(dtype: str) -> float:
    """What no element is less than."""
    return -float("inf") if is_float(dtype) else least(dtype)


def _pool(
    what: str,
    kind: str,
    data: Tensor,
    kernel: int | Sequence[int],
    strides: int | Sequence[int] | None,
    padding: object,
    dilation: int | Sequence[int],
    ceil_mode: bool,
    count_include_pad: bool,
    layout: str | None,
    rank: int,
    name: str,
) -> Tensor:
    source = pooled_data(what, data, kind, layout, rank + 2)
    letters, dtype = LETTERS[rank], source.tensor.dtype
    sizes = integers(kernel, f"{what}: kernel", rank, least=1)
    extents = [source.extent(c) for c in letters]
    steps = sizes if strides is None else strides
    given = windows(what, sizes, steps, padding, dilation, extents)
    moving = {
        c: _lengthened(what, window, extent) if ceil_mode else window
        for c, window, extent in zip(letters, given, extents, strict=True)
    }
    shape = {c: source.extent(c) for c in "NC"}
    shape |= {c: window.positions(source.extent(c), what) for c, window in moving.items()}
    border = source.padded(moving, lowest(dtype) if kind == "max" else 0, f"{name}_pad")
    offsets = {c: reduce_axis((0, window.size), f"r{c.lower()}") for c, window in moving.items()}
    wide = dtype if kind == "max" else sum_dtype(dtype)
    limits = {
        c: (0, extent + window.before + window.after) if count_include_pad else (window.before, extent + window.before)
        for c, window, extent in zip(letters, given, extents, strict=True)
    }

    def element(*indices: Expr) -> Expr:
        at = dict(zip(source.layout, indices, strict=True))
        places = {c: window.index(at[c], offsets[c]) for c, window in moving.items()}
        value = border.at({**at, **places}).astype(wide)
        over = list(offsets.values())
        if kind == "max":
            return greatest(value, axis=over)
        total = sum_over(value, axis=over)
        if kind == "avg":
            counts = [_count(window, at[c], *limits[c], source.extent(c)) for c, window in moving.items()]
            total = total / float_of_product(counts, wide)
        return total.astype(dtype)

    return compute([shape[c] for c in source.layout], element, name, [c.lower() for c in source.layout])


def float_of_product(counts: Sequence[int | Expr], dtype: str) -> Expr:
    """The product of integers as a float."""
    result: Expr | None = None
    number = 1
    for count in counts:
        if isinstance(count, int):
            number *= count
        else:
            result = count if result is None else result * count
    if result is None:
        return float_of(number, dtype)
    return cast(result if number == 1 else result * number, dtype)


def _lengthened(what: str, window: Window, extent: Extent) -> Window:
    """A window whose border after the axis lets one more window start, where it starts within the axis or before."""
    padded = simplified(extent + (window.before + window.after))
    if not isinstance(padded, int) or not isinstance(extent, int) or not isinstance(window.span, int):
        raise error(f"{what}: ceil_mode needs numbers for extents, got {extent}")
    if padded < window.span:
        return window
    more = -(-(padded - window.span) // window.stride)
    if more * window.stride >= extent + window.before:
        more -= 1
    return replace(window, after=max(window.after, more * window.stride + window.span - extent - window.before))


def _count(window: Window, position: Expr, low: Extent, high: Extent, extent: Extent) -> int | Expr:
    """How many elements of the window at `position` are from `low` up to but without `high` in the padded axis."""
    whole = simplified(extent + (window.before + window.after))
    if isinstance(window.size, int) and is_same(low, 0) and is_same(high, whole):
        return window.size
    start, gap = position * window.stride, window.dilation
    end = least_of((high - start + (gap - 1)) // gap, window.size)
    if is_same(low, 0):
        return greatest(end, 1)
    return greatest(end - greatest((low - start + (gap - 1)) // gap, 0), 1)


class Pool(Protocol):
    """A pool over 1, 2 or 3 axes in space."""

    def __call__(
        self,
        data: Tensor,
        kernel: int | Sequence[int],
        strides: int | Sequence[int] | None = None,
        padding: object = 0,
        dilation: int | Sequence[int] = 1,
        ceil_mode: bool = False,
        layout: str | None = None,
        *,
        name: str | None = None,
    ) -> Tensor: ...


class AveragePool(Protocol):
    """A pool of means over 1, 2 or 3 axes in space."""

    def __call__(
        self,
        data: Tensor,
        kernel: int | Sequence[int],
        strides: int | Sequence[int] | None = None,
        padding: object = 0,
        dilation: int | Sequence[int] = 1,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
        layout: str | None = None,
        *,
        name: str | None = None,
    ) -> Tensor: ...


_ARGUMENTS = """`strides` are those of the kernel unless given, padding is as in `conv2d`. With `ceil_mode` a last
window starts within the axis or its border before, and may end behind the border. Layouts are orders of the letters."""


def _pool_function(kind: str, rank: int, doc: str, dtypes: str, equals: str) -> Pool:
    label = f"{kind}_pool{rank}d"

    def apply(
        data: Tensor,
        kernel: int | Sequence[int],
        strides: int | Sequence[int] | None = None,
        padding: object = 0,
        dilation: int | Sequence[int] = 1,
        ceil_mode: bool = False,
        layout: str | None = None,
        *,
        name: str | None = None,
    ) -> Tensor:
        arguments = data, kernel, strides, padding, dilation, ceil_mode, True, layout
        return _pool(label, kind, *arguments, rank, label if name is None else name)

    apply.__name__ = apply.__qualname__ = label
    apply.__doc__ = f"{doc}\n\n{_ARGUMENTS}\n\nDtypes: {dtypes}.\nEquals: `{equals}`."
    return apply


def _average_pool(rank: int) -> AveragePool:
    label = f"avg_pool{rank}d"

    def apply(
        data: Tensor,
        kernel: int | Sequence[int],
        strides: int | Sequence[int] | None = None,
        padding: object = 0,
        dilation: int | Sequence[int] = 1,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
        layout: str | None = None,
        *,
        name: str | None = None,
    ) -> Tensor:
        arguments = data, kernel, strides, padding, dilation, ceil_mode, count_include_pad, layout
        return _pool(label, "avg", *arguments, rank, label if name is None else name)

    apply.__name__ = apply.__qualname__ = label
    apply.__doc__ = (
        f"The mean of each window of data (N, C, {', '.join(LETTERS[rank])}).\n\n{_ARGUMENTS} A mean counts the border "
        "(not what `ceil_mode` adds to it)\nunless `count_include_pad=False`.\n\nDtypes: floats.\n"
        f"Equals: `torch.nn.functional.{label}(data, kernel, strides, padding, ceil_mode, count_include_pad)`."
    )
    return apply


def _max_pool(rank: int) -> Pool:
    doc = f"The greatest element of each window of data (N, C, {', '.join(LETTERS[rank])}); NaN wins, the border never."
    call = f"torch.nn.functional.max_pool{rank}d(data, kernel, strides, padding, dilation, ceil_mode)"
    return _pool_function("max", rank, doc, "numbers", call)


def _sum_pool(rank: int) -> Pool:
    doc = f"The sum of each window of data (N, C, {', '.join(LETTERS[rank])}). Integers wrap."
    call = f"{'*'.join(['kernel'] * rank)} * torch.nn.functional.avg_pool{rank}d(data, kernel, strides, padding)"
    return _pool_function("sum", rank, doc, "numbers", call)


max_pool1d = _max_pool(1)
max_pool2d = _max_pool(2)
max_pool3d = _max_pool(3)
avg_pool1d = _average_pool(1)
avg_pool2d = _average_pool(2)
avg_pool3d = _average_pool(3)
sum_pool1d = _sum_pool(1)
sum_pool2d = _sum_pool(2)
sum_pool3d = _sum_pool(3)
