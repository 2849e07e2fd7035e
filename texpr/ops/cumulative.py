"""Cumulative sums, products and extrema along an axis.

Along a static extent, parallel prefix scans: log2(n) passes combine elements at distances 1, 2, 4, ... (Hillis and
Steele 1986), n log n work, rounding errors grow with log n. Along a symbolic extent, sequential statements, which
combine groups of elements of the last axis first.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from weft.dialects.te import Combiner, identity_of
from weft.texpr.expr import BinaryKind, Expr, binary, type_of
from weft.texpr.extern import Result, Statements, Written, extern
from weft.texpr.math import const, exp, if_then_else, isinf, log
from weft.texpr.ops.arguments import checked_axis, compute, floating, numeric, result_dtype, sum_dtype
from weft.texpr.ops.elementwise import cast as converted
from weft.texpr.ops.transforms import flatten
from weft.texpr.reductions import reduce_axis, sum
from weft.texpr.tensor import Tensor

__all__ = ["cummax", "cummin", "cumprod", "cumsum", "logcumsumexp"]


def _scan(
    kind: BinaryKind,
    data: Tensor,
    axis: int | None,
    dtype: object,
    exclusive: bool,
    reverse: bool,
    name: str,
) -> Tensor:
    """Combine elements with all before, or after if `reverse`; `exclusive` of themselves."""
    what = _NAMES[kind]
    source = numeric(data, f"{what}: data")
    if axis is None:
        source, along = flatten(source, name=f"{name}_flat"), 0
    else:
        along = checked_axis(what, axis, source.ndim)
    extent = source.shape[along]
    result = result_dtype(dtype, source.dtype)
    wide = sum_dtype(result)
    if not isinstance(extent, int):
        found = _in_order(kind, source, along, wide, exclusive, reverse, name if wide == result else f"{name}_wide")
        return found if wide == result else converted(found, result, name=name)
    found = converted(source, wide, name=f"{name}_cast") if source.dtype != wide else source

    def shifted(tensor: Tensor, step: int, combine: Callable[[Expr, Expr], Expr], label: str) -> Tensor:
        def element(*indices: Expr) -> Expr:
            at = indices[along]
            there = tensor(*indices[:along], at + step if reverse else at - step, *indices[along + 1 :])
            inside = at < extent - step if reverse else at >= step
            (neutral,) = identity_of(_COMBINERS[kind], [type_of(wide)])
            return combine(tensor(*indices), if_then_else(inside, there, const(neutral, wide)))

        return compute(tensor.shape, element, label)

    if exclusive:
        found = shifted(found, 1, lambda _, moved: moved, f"{name}_shift")
    steps = [1 << power for power in range(extent.bit_length()) if 1 << power < extent]
    last = steps[-1] if steps and wide == result else None
    for step in steps:
        label = name if step == last else f"{name}_by{step}"
        found = shifted(found, step, lambda own, moved: binary(kind, own, moved), label)
    return found if last else converted(found, result, name=name)


def _in_order(
    kind: BinaryKind, source: Tensor, along: int, dtype: str, exclusive: bool, reverse: bool, name: str
) -> Tensor:
    (neutral,) = identity_of(_COMBINERS[kind], [type_of(dtype)])
    if along == source.ndim - 1:
        return _in_groups(kind, source, const(neutral, dtype), exclusive, reverse, name)

    def combine(before: Sequence[Expr], here: Sequence[Expr]) -> list[Expr]:
        return [binary(kind, before[0], here[0].astype(dtype))]

    first = [const(neutral, dtype)] if exclusive else None
    return accumulated(combine, [source], along, dtypes=[dtype], first=first, reverse=reverse, name=name)[0]


_GROUP = 8
"""Elements that are combined before they are combined with those of previous groups. Each element waits for the
previous one otherwise, and each group for the previous group."""


def _in_groups(kind: BinaryKind, source: Tensor, neutral: Expr, exclusive: bool, reverse: bool, name: str) -> Tensor:
    """Scan along the last axis, of any extent."""
    extent = source.shape[-1]

    def write(code: Statements, outer: Sequence[Expr], result: Written, total: Written) -> None:
        def scan(start: Expr, count: int) -> None:
            before, own = total.load(*outer), list[Expr]()
            for at in range(count):
                place = extent - 1 - (start + at) if reverse else start + at
                element = source(*outer, place).astype(neutral.dtype)
                own.append(binary(kind, own[-1], element) if own else element)
                value = own[-1] if not exclusive else own[-2] if at else None
                result.store(before if value is None else binary(kind, before, value), *outer, place)
            total.store(binary(kind, before, own[-1]), *outer)

        total.store(neutral, *outer)
        with code.loop(extent // _GROUP, "group") as group:
            scan(group * _GROUP, _GROUP)
        with code.loop(extent % _GROUP, "k") as k:
            scan(extent // _GROUP * _GROUP + k, 1)

    results = [
        Result(source.shape, neutral.dtype, name),
        Result(source.shape[:-1], neutral.dtype, f"{name}_total"),
    ]
    return extern(source.shape[:-1], results, [source], write, name)[0]


def accumulated(
    combine: Callable[[Sequence[Expr], Sequence[Expr]], Sequence[Expr]],
    sources: Sequence[Tensor],
    along: int,
    *,
    name: str,
    reverse: bool = False,
    dtypes: Sequence[str] | None = None,
    first: Sequence[Expr] | None = None,
) -> tuple[Tensor, ...]:
    """Combine elements of tensors of one shape with previous results along an axis, reversed if `reverse`. With
    `first`, results start with it and combine previous elements.

    `combine` takes previous results and elements; `dtypes` of results are by default the sources'. A sequential loop
    along the axis encloses inner axes.
    """
    shape = sources[0].shape
    extent, inner = shape[along], shape[along + 1 :]
    kinds = [source.dtype for source in sources] if dtypes is None else dtypes

    def write(code: Statements, outer: Sequence[Expr], *results: Written) -> None:
        names = [f"d{d}" for d in range(len(inner))]

        def put(at: Expr, last: Expr | None, rest: Sequence[Expr]) -> None:
            place = extent - 1 - at if reverse else at
            before = place if last is None else extent - 1 - last if reverse else last
            if last is not None:
                elements = [source(*outer, place if first is None else before, *rest) for source in sources]
                values = combine([result.load(*outer, before, *rest) for result in results], elements)
            elif first is not None:
                values = first
            else:
                values = [source(*outer, place, *rest).astype(d) for source, d in zip(sources, kinds, strict=True)]
            for result, value in zip(results, values, strict=True):
                result.store(value, *outer, place, *rest)

        with code.loop(extent, "k") as k:
            with code.when(k == 0), code.loops(inner, names) as rest:
                put(k, None, rest)
            with code.when(k > 0), code.loops(inner, names) as rest:
                put(k, k - 1, rest)

    labels = [name] if len(sources) == 1 else [f"{name}{at}" for at in range(len(sources))]
    made = [Result(shape, dtype, label) for dtype, label in zip(kinds, labels, strict=True)]
    return extern(shape[:along], made, sources, write, name)


_COMBINERS = {
    BinaryKind.ADD: Combiner.SUM,
    BinaryKind.MUL: Combiner.PROD,
    BinaryKind.MAX: Combiner.MAX,
    BinaryKind.MIN: Combiner.MIN,
}
_NAMES = {
    BinaryKind.ADD: "cumsum",
    BinaryKind.MUL: "cumprod",
    BinaryKind.MAX: "cummax",
    BinaryKind.MIN: "cummin",
}


def cumsum(
    data: Tensor,
    axis: int | None = None,
    dtype: object = None,
    exclusive: bool = False,
    reverse: bool = False,
    *,
    name: str = "cumsum",
) -> Tensor:
    """Cumulative sums along an axis; without an axis, of the flattened data.

    `exclusive` excludes the element itself, `reverse` sums from the end.

    Dtypes: numbers.
    Equals: `np.cumsum(data, axis, dtype or data.dtype)`; ONNX CumSum.
    """
    return _scan(BinaryKind.ADD, data, axis, dtype, exclusive, reverse, name)


def cumprod(
    data: Tensor,
    axis: int | None = None,
    dtype: object = None,
    exclusive: bool = False,
    reverse: bool = False,
    *,
    name: str = "cumprod",
) -> Tensor:
    """Cumulative products, see `cumsum`.

    Dtypes: numbers.
    Equals: `np.cumprod(data, axis, dtype or data.dtype)`.
    """
    return _scan(BinaryKind.MUL, data, axis, dtype, exclusive, reverse, name)


def cummax(data: Tensor, axis: int | None = None, reverse: bool = False, *, name: str = "cummax") -> Tensor:
    """Cumulative maxima, see `cumsum`; NaN propagates.

    Dtypes: numbers.
    Equals: `np.maximum.accumulate(data, axis)`.
    """
    return _scan(BinaryKind.MAX, data, axis, None, False, reverse, name)


def cummin(data: Tensor, axis: int | None = None, reverse: bool = False, *, name: str = "cummin") -> Tensor:
    """Cumulative minima, see `cumsum`; NaN propagates.

    Dtypes: numbers.
    Equals: `np.minimum.accumulate(data, axis)`.
    """
    return _scan(BinaryKind.MIN, data, axis, None, False, reverse, name)


def logcumsumexp(data: Tensor, axis: int = -1, *, name: str = "logcumsumexp") -> Tensor:
    """Logarithms of cumulative sums of exponentials, without overflow: of differences to the maximum.

    Dtypes: floats.
    Equals: `np.logaddexp.accumulate(data, axis)`.
    """
    source = floating(data, "logcumsumexp: data")
    along = checked_axis("logcumsumexp", axis, source.ndim)
    wide = sum_dtype(source.dtype)
    most = cummax(source, along, name=f"{name}_max")
    over = reduce_axis((0, source.shape[along]), "k")

    def total(*indices: Expr) -> Expr:
        top = most(*indices).astype(wide)
        # equal infinities have the difference NaN
        term = source(*indices[:along], over, *indices[along + 1 :]).astype(wide)
        power = if_then_else(isinf(top), if_then_else(term == top, const(1.0, wide), const(0.0, wide)), exp(term - top))
        return sum(if_then_else(over <= indices[along], power, const(0.0, wide)), axis=[over])

    sums = compute(source.shape, total, f"{name}_sum")
    return compute(source.shape, lambda *i: (log(sums(*i)) + most(*i).astype(wide)).astype(source.dtype), name)
