"""Pools: the maximum, mean or sum of each window."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Concatenate, ParamSpec

from weft.dialects.element_types import least
from weft.support.argument_types import shown
from weft.texpr import reductions as te
from weft.texpr.expr import Expr, IterVar, as_expr, error, is_float, type_of
from weft.texpr.math import abs as absolute
from weft.texpr.math import cast, const, if_then_else, max_value, pow, select, sqrt
from weft.texpr.ops.arguments import (
    check_nonempty,
    compute,
    floating,
    integers,
    is_one_of,
    numeric,
    ranked,
    sum_dtype,
    variant,
)
from weft.texpr.ops.convolution import LETTERS, KernelWindow, Laid, checked_layout, windows
from weft.texpr.ops.reductions import float_of
from weft.texpr.shapes import Extent, is_same, simplified
from weft.texpr.tensor import Tensor, computed

__all__ = ["adaptive_max_pool_with_indices", "adaptive_pool", "global_pool", "lp_pool", "max_pool_with_indices"]
__all__ += ["avg_pool1d", "avg_pool2d", "avg_pool3d"]
__all__ += ["max_pool1d", "max_pool2d", "max_pool3d"]
__all__ += ["sum_pool1d", "sum_pool2d", "sum_pool3d"]

P = ParamSpec("P")

_KINDS = ("avg", "max", "sum")


def pooled_data(what: str, data: Tensor, kind: str, layout: str | None, *ranks: int) -> Laid:
    if not is_one_of(kind, _KINDS):
        raise error(f"{what}: pool_type is one of {', '.join(_KINDS)}, got {shown(kind)}")
    is_packed = isinstance(layout, str) and layout.endswith("c")
    source = ranked(numeric(data, f"{what}: data"), f"{what}: data", *(rank + is_packed for rank in ranks))
    if kind == "avg" and not is_float(source.dtype):
        raise error(f"{what}: means are of floats, {source.name} is {source.dtype}: use te.ops.cast")
    letters = "NC" + LETTERS[source.ndim - 2 - is_packed]
    return Laid(source, checked_layout(f"{what}: layout", layout or letters, letters, "c"))


def _pool(
    of: tuple[str, int],
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
    kind, rank = of
    what = f"{kind}_pool{rank}d"
    name = what if name is None else name
    source = pooled_data(what, data, kind, layout, rank + 2)
    letters, dtype = LETTERS[rank], source.tensor.dtype
    extents = [source.extent(c) for c in letters]
    given, moving = _windows(what, source, kernel, strides, padding, dilation, ceil_mode)
    shape = _shape(what, source, moving)
    border = source.padded(moving, least(type_of(dtype)) if kind == "max" else 0, f"{name}_pad")
    offsets = {c: te.reduce_axis((0, window.size), f"r{c.lower()}") for c, window in moving.items()}
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
            return te.max(value, axis=over)
        total = te.sum(value, axis=over)
        if kind == "avg":
            counts = [_count(window, at[c], *limits[c], source.extent(c)) for c, window in moving.items()]
            total = total / float_of_product(counts, wide)
        return total.astype(dtype)

    return compute([shape[c] for c in source.layout], element, name, source.names)


def _windows(
    what: str, source: Laid, kernel: object, strides: object, padding: object, dilation: object, ceil_mode: bool
) -> tuple[tuple[KernelWindow, ...], dict[str, KernelWindow]]:
    letters = source.space
    sizes = integers(kernel, f"{what}: kernel", len(letters), least=1)
    extents = [source.extent(c) for c in letters]
    given = windows(what, sizes, sizes if strides is None else strides, padding, dilation, extents)
    moving = {
        c: _lengthened(window, extent) if ceil_mode else window
        for c, window, extent in zip(letters, given, extents, strict=True)
    }
    return given, moving


def _shape(what: str, source: Laid, moving: Mapping[str, KernelWindow]) -> dict[str, Extent]:
    space = {c: window.positions(source.extent(c), what) for c, window in moving.items()}
    return {**{c: source.extent(c) for c in source.layout}, **space}


def float_of_product(counts: Sequence[int | Expr], dtype: str) -> Expr:
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


def _lengthened(window: KernelWindow, extent: Extent) -> KernelWindow:
    """A window padded for one more position, if that starts in the axis or the padding before."""
    stride, reach = window.stride, as_expr(extent) + window.before
    padded, span = simplified(reach + window.after), window.span
    if isinstance(padded, int) and isinstance(span, int) and padded < span:
        return window
    more = te.min((as_expr(padded) - span + (stride - 1)) // stride, (reach - 1) // stride)
    return replace(window, after=simplified(te.max(more * stride + span - reach, window.after)))


def _count(window: KernelWindow, position: Expr, low: Extent, high: Extent, extent: Extent) -> int | Expr:
    whole = simplified(extent + (window.before + window.after))
    if isinstance(window.size, int) and is_same(low, 0) and is_same(high, whole):
        return window.size
    start, gap = position * window.stride, window.dilation
    end = te.min((high - start + (gap - 1)) // gap, window.size)
    if is_same(low, 0):
        return te.max(end, 1)
    return te.max(end - te.max((low - start + (gap - 1)) // gap, 0), 1)


def _pool_with_border(
    of: tuple[str, int],
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
    return _pool(of, data, kernel, strides, padding, dilation, ceil_mode, True, layout, name=name)


_ARGUMENTS = """`strides` are by default the extents of the kernel, padding is as in `conv2d`. With `ceil_mode`, the
last window starts within the axis or the padding before it, and may end after the padding. Layouts are permutations of
the letters, with a trailing c for packed channels."""


def _operator(template: Callable[Concatenate[tuple[str, int], P], Tensor], kind: str, rank: int) -> Callable[P, Tensor]:
    label, torch = f"{kind}_pool{rank}d", "torch.nn.functional"
    each = f"of each window of data (N, C, {', '.join(LETTERS[rank])})"
    doc, more, equals = {
        "max": (
            f"The maximum {each}; NaN propagates, padding is ignored.",
            "\n\nDtypes: numbers.",
            f"{torch}.{label}(data, kernel, strides, padding, dilation, ceil_mode)",
        ),
        "avg": (
            f"The mean {each}.",
            " A mean includes padding\n(except the padding added by `ceil_mode`) unless `count_include_pad=False`."
            "\n\nDtypes: floats.",
            f"{torch}.{label}(data, kernel, strides, padding, ceil_mode, count_include_pad)",
        ),
        "sum": (
            f"The sum {each}. Integers wrap.",
            "\n\nDtypes: numbers.",
            f"{'*'.join(['kernel'] * rank)} * {torch}.avg_pool{rank}d(data, kernel, strides, padding)",
        ),
    }[kind]
    return variant(template, (kind, rank), label, f"{doc}\n\n{_ARGUMENTS}{more}\nEquals: `{equals}`.", name=None)


max_pool1d = _operator(_pool_with_border, "max", 1)
max_pool2d = _operator(_pool_with_border, "max", 2)
max_pool3d = _operator(_pool_with_border, "max", 3)
avg_pool1d = _operator(_pool, "avg", 1)
avg_pool2d = _operator(_pool, "avg", 2)
avg_pool3d = _operator(_pool, "avg", 3)
sum_pool1d = _operator(_pool_with_border, "sum", 1)
sum_pool2d = _operator(_pool_with_border, "sum", 2)
sum_pool3d = _operator(_pool_with_border, "sum", 3)


def lp_pool(
    data: Tensor,
    kernel: int | Sequence[int],
    strides: int | Sequence[int] | None = None,
    padding: object = 0,
    dilation: int | Sequence[int] = 1,
    ceil_mode: bool = False,
    p: float = 2.0,
    layout: str | None = None,
    *,
    name: str = "lp_pool",
) -> Tensor:
    """The p-norm of each window of data (N, C, ...), 1 to 3 spatial axes: sum(abs(x)^p)^(1 / p).

    Arguments as in `max_pool2d`. Stages: `<name>_power`, those of the pool `<name>_sum`, `<name>`; 16-bit floats use
    float32. Raises CompileError for a p of 0.

    Dtypes: floats.
    Equals: `torch.nn.functional.lp_pool2d(data, p, kernel, strides, ceil_mode)` and its like; ONNX LpPool.
    """
    source = floating(ranked(data, "lp_pool: data", 3, 4, 5), "lp_pool: data")
    if p == 0:
        raise error("lp_pool: p must not be 0")
    wide = sum_dtype(source.dtype)

    def power(*i: Expr) -> Expr:
        value = source(*i).astype(wide)
        return value * value if p == 2 else pow(absolute(value), float(p))

    powers = compute(source.shape, power, f"{name}_power")
    kind = ("sum", source.ndim - 2)
    rest = (kernel, strides, padding, dilation, ceil_mode, True, layout)
    sums = _pool(kind, powers, *rest, name=f"{name}_sum")

    def root(*i: Expr) -> Expr:
        value = sums(*i)
        return (sqrt(value) if p == 2 else pow(value, 1.0 / p)).astype(source.dtype)

    return compute(sums.shape, root, name)


def max_pool_with_indices(
    data: Tensor,
    kernel: int | Sequence[int],
    strides: int | Sequence[int] | None = None,
    padding: object = 0,
    dilation: int | Sequence[int] = 1,
    ceil_mode: bool = False,
    layout: str | None = None,
    *,
    name: str = "max_pool",
) -> tuple[Tensor, Tensor]:
    """The maximum of each window of data (N, C, ...), 1 to 3 spatial axes, and its row-major index in its plane as
    int64, the first of equal ones. NaN propagates. Arguments as in `max_pool2d`.

    Results: `<name>_values`, `<name>_indices`.

    Dtypes: numbers.
    Equals: `torch.nn.functional.max_pool2d(data, kernel, strides, padding, dilation, ceil_mode, True)` and its like.
    """
    what = "max_pool_with_indices"
    source = pooled_data(what, data, "max", layout, 3, 4, 5)
    _, moving = _windows(what, source, kernel, strides, padding, dilation, ceil_mode)
    shape = _shape(what, source, moving)
    offsets = {c: te.reduce_axis((0, window.size), f"r{c.lower()}") for c, window in moving.items()}
    low = const(least(type_of(source.tensor.dtype)), source.tensor.dtype)

    def element(*indices: Expr) -> tuple[Expr, Expr]:
        at = dict(zip(source.layout, indices, strict=True))
        places = {c: window.index(at[c], offsets[c]) - window.before for c, window in moving.items()}
        flat: Expr | None = None
        inside: list[Expr] = []
        for c, place in places.items():
            inside += [place >= 0, place < source.extent(c)]
            flat = place if flat is None else flat * source.extent(c) + place
        is_there = te.all(*inside)
        value = if_then_else(is_there, source.at({**at, **places}), low)
        # The border follows equal elements.
        place = select(is_there, flat if flat is not None else 0, max_value("int64"))
        return te.argmax(value, list(offsets.values()), place=place)

    letters = source.names
    found: tuple[Tensor, Tensor] = computed(tuple(shape[c] for c in source.layout), letters, element, name)
    found[0].name, found[1].name = f"{name}_values", f"{name}_indices"
    return found


@dataclass(frozen=True)
class _Parts:
    """Uneven parts of an axis overlap by one element."""

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

    def place(self, position: Expr, offset: Expr) -> Expr:
        """An index in range, even after the end of a shorter part."""
        place = offset + self.start(position)
        return place if self.even or isinstance(self.extent, int) else te.min(place, self.extent - 1)

    def size(self, position: Expr) -> Extent:
        if self.even:
            return self.longest
        return ((position + 1) * self.extent + (self.count - 1)) // self.count - self.start(position)


def _parts(extent: Extent, count: int) -> _Parts:
    if count == 1:
        return _Parts(extent, 1, extent)
    if not isinstance(extent, int):
        return _Parts(extent, count, simplified((extent + (count - 2)) // count + 1))
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
    """The mean (avg), maximum (max) or sum of parts of the 1 to 3 spatial axes of data (N, C, ...).

    Part i of n is [floor(i * extent / n), ceil((i + 1) * extent / n)). Raises CompileError for empty axes.

    Dtypes: numbers; floats for means.
    Equals: `torch.nn.functional.adaptive_avg_pool2d(data, output_size)` and its like.
    """
    what = "adaptive_pool"
    source = pooled_data(what, data, pool_type, layout, 3, 4, 5)
    letters = source.space
    sizes = integers(output_size, f"{what}: output_size", len(letters), least=1)
    extents = [source.extent(c) for c in letters]
    check_nonempty(what, source.tensor, [source.layout.index(c) for c in letters])
    parts = {c: _parts(extent, size) for c, extent, size in zip(letters, extents, sizes, strict=True)}
    offsets = {c: te.reduce_axis((0, part.longest), f"r{c.lower()}") for c, part in parts.items()}
    dtype = source.tensor.dtype
    wide = dtype if pool_type == "max" else sum_dtype(dtype)
    shape = {**{c: source.extent(c) for c in source.layout}, **dict(zip(letters, sizes, strict=True))}

    def element(*indices: Expr) -> Expr:
        at = dict(zip(source.layout, indices, strict=True))
        places = {c: part.place(at[c], offsets[c]) for c, part in parts.items()}
        value = source.at({**at, **places}).astype(wide)
        inside = [offsets[c] < part.size(at[c]) for c, part in parts.items() if not part.even]
        combine: Callable[..., Expr] = te.max if pool_type == "max" else te.sum
        over: list[IterVar] = list(offsets.values())
        result = combine(value, axis=over, where=te.all(*inside) if inside else None)
        if pool_type == "avg":
            result = result / float_of_product([part.size(at[c]) for c, part in parts.items()], wide)
        return result.astype(dtype)

    return compute([shape[c] for c in source.layout], element, name, source.names)


def global_pool(
    data: Tensor, pool_type: str = "avg", layout: str | None = None, *, name: str = "global_pool"
) -> Tensor:
    """The mean (avg), maximum (max) or sum per channel of data (N, C, ...), with spatial axes of extent 1.

    Dtypes: numbers; floats for means.
    Equals: `np.mean(data, axes_in_space, keepdims=True)` and its like.
    """
    return adaptive_pool(data, 1, pool_type, layout, name=name)


def adaptive_max_pool_with_indices(
    data: Tensor, output_size: int | Sequence[int], layout: str | None = None, *, name: str = "adaptive_max_pool"
) -> tuple[Tensor, Tensor]:
    """The maximum of each part, as in `adaptive_pool`, and its row-major index in its plane as int64, the first of
    equal ones. NaN propagates.

    Results: `<name>_values`, `<name>_indices`.

    Dtypes: numbers.
    Equals: `torch.nn.functional.adaptive_max_pool2d(data, output_size, True)` and its like.
    """
    what = "adaptive_max_pool_with_indices"
    source = pooled_data(what, data, "max", layout, 3, 4, 5)
    letters = source.space
    sizes = integers(output_size, f"{what}: output_size", len(letters), least=1)
    check_nonempty(what, source.tensor, [source.layout.index(c) for c in letters])
    parts = {c: _parts(source.extent(c), size) for c, size in zip(letters, sizes, strict=True)}
    offsets = {c: te.reduce_axis((0, part.longest), f"r{c.lower()}") for c, part in parts.items()}
    shape = {**{c: source.extent(c) for c in source.layout}, **dict(zip(letters, sizes, strict=True))}
    low = const(least(type_of(source.tensor.dtype)), source.tensor.dtype)

    def element(*indices: Expr) -> tuple[Expr, Expr]:
        at = dict(zip(source.layout, indices, strict=True))
        places = {c: part.place(at[c], offsets[c]) for c, part in parts.items()}
        flat: Expr | int = 0
        for c, place in places.items():
            flat = flat * source.extent(c) + place
        value, place = source.at({**at, **places}), as_expr(flat)
        inside = [offsets[c] < part.size(at[c]) for c, part in parts.items() if not part.even]
        if inside:
            is_there = te.all(*inside)
            # a shorter part cannot be read to the longest length
            value, place = if_then_else(is_there, value, low), select(is_there, place, max_value("int64"))
        return te.argmax(value, list(offsets.values()), place=place)

    found: tuple[Tensor, Tensor] = computed(tuple(shape[c] for c in source.layout), source.names, element, name)
    found[0].name, found[1].name = f"{name}_values", f"{name}_indices"
    return found
