"""Converters of reductions, cumulative sums and sorting."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf

from weft.dialects.graph_shapes import KnownExtent
from weft.frontends.graph_builder import Value, const
from weft.frontends.torch.converters import Conversion, Converter, Scalar, apply, cast_to, register
from weft.frontends.torch.spelled import axes_of
from weft.frontends.torch.symbols import UnsupportedError
from weft.texpr.expr import Expr
from weft.texpr.math import const as const_expr
from weft.texpr.reductions import comm_reducer, reduce_axis
from weft.texpr.tensor import Tensor, compute


def _lone(x: Value, dim: int | None) -> tuple[Value, int]:
    """Rank 0 becomes rank 1, and the tensor is flat if no axis is given."""
    if dim is None or x.ndim == 0:
        return apply("reshape", x, (-1,)), 0
    return x, dim % x.ndim


def _extreme_and_place(name: str) -> Converter:
    def convert(cx: Conversion, x: Value, dim: int, keepdim: bool = False) -> tuple[Value, Value]:
        source, axis = _lone(cast_to(x, "uint8") if x.dtype == "bool" else x, dim)
        shape = cx.shape
        place = apply(f"arg{name}", source, axis=axis, keepdims=keepdim)
        value = apply(name, source, axis=axis, keepdims=keepdim)
        values = cast_to(value, x.dtype)
        return (values, place) if x.ndim else (apply("reshape", values, shape), apply("reshape", place, shape))

    return convert


register("aten.max.dim")(_extreme_and_place("max"))
register("aten.min.dim")(_extreme_and_place("min"))


@register("aten.var.correction")
def _var(cx: Conversion, x: Value, dim: Sequence[int] | None, *, correction: Scalar | None, keepdim: bool) -> Value:
    ddof = 1 if correction is None else correction
    if not isinstance(ddof, int | float):
        raise UnsupportedError("a correction that is computed")
    return apply("var", x, axis=axes_of(x, dim), keepdims=keepdim, ddof=int(ddof) if ddof == int(ddof) else ddof)


@register("aten.var.dim")
def _var_dim(cx: Conversion, x: Value, dim: Sequence[int] | None, unbiased: bool, keepdim: bool) -> Value:
    return _var(cx, x, dim, correction=int(unbiased), keepdim=keepdim)


@register("aten.var_mean.correction")
def _var_mean(
    cx: Conversion, x: Value, dim: Sequence[int] | None, *, correction: Scalar | None, keepdim: bool
) -> tuple[Value, Value]:
    mean = apply("mean", x, axis=axes_of(x, dim), keepdims=keepdim)
    return _var(cx, x, dim, correction=correction, keepdim=keepdim), mean


@register("aten.sort.default", "aten.sort.stable")
def _sort(cx: Conversion, x: Value, dim: int, descending: bool, *, stable: bool | None = None) -> tuple[Value, Value]:
    source = cast_to(x, "uint8") if x.dtype == "bool" else x
    if not x.ndim:
        return x, const(0, "int64")
    axis = dim % x.ndim
    order = apply("argsort", source, axis=axis, descending=descending)
    return apply("take_along_axis", x, order, axis=axis), order


@register("aten.topk.default")
def _topk(cx: Conversion, x: Value, k: KnownExtent, dim: int, largest: bool, ordered: bool) -> tuple[Value, Value]:
    source, axis = _lone(x, dim)
    values, places = apply("topk", source, k, axis=axis, largest=largest)
    return (values, places) if x.ndim else (apply("reshape", values, ()), apply("reshape", places, ()))


def _distance(cx: Conversion, x: Value, y: Value, p: float) -> Value:
    """(..., m, k) and (..., n, k) give (..., m, n)."""
    rows, columns = apply("expand_dims", x, x.ndim - 1), apply("expand_dims", y, y.ndim - 2)
    return apply("vector_norm", apply("subtract", rows, columns), axis=[len(cx.shape)], ord=inf if p == inf else p)


@register("aten._cdist_forward.default")
def _cdist(cx: Conversion, x: Value, y: Value, p: float, compute_mode: int | None) -> Value:
    return _distance(cx, x, y, p)


@register("aten._pdist_forward.default")
def _pdist(cx: Conversion, x: Value, p: float) -> Value:
    count = x.shape[0]
    if not isinstance(count, int):
        raise UnsupportedError("a symbolic number of rows")
    pairs = [(i, j) for i in range(count) for j in range(i + 1, count)]
    first, second = (apply("take", x, const([pair[at] for pair in pairs], "int64"), axis=0) for at in (0, 1))
    return apply("vector_norm", apply("subtract", first, second), axis=[1], ord=inf if p == inf else p)


@register("aten.segment_reduce.default")
def _segment_reduce(
    cx: Conversion,
    x: Value,
    reduce: str,
    *,
    lengths: Value | None,
    indices: Value | None,
    offsets: Value | None,
    axis: int,
    unsafe: bool,
    initial: Scalar | None,
) -> Value:
    """Each segment is a reduction of the whole axis with the other elements masked."""
    along, extent = axis % x.ndim, x.shape[axis]
    if indices is None and lengths is not None:
        ends = apply("cumsum", cast_to(lengths, "int64"), axis=along)
        begins = apply("subtract", ends, cast_to(lengths, "int64"))
    elif indices is None and offsets is not None:
        places, cut = cast_to(offsets, "int64"), {"axes": [along]}
        begins = apply("strided_slice", places, begin=[0], end=[-1], **cut)
        ends = apply("strided_slice", places, begin=[1], end=[None], **cut)
    else:
        raise UnsupportedError("segments by indices")
    # (lead, segments, 1, ...) against (lead, 1, elements, ...)
    rest = [1] * (x.ndim - along)
    begins, ends = (apply("reshape", value, (*value.shape, *rest)) for value in (begins, ends))
    line = apply("reshape", apply("iota", (extent,)), (extent, *rest[1:]))
    inside = apply("logical_and", apply("greater_equal", line, begins), apply("less", line, ends))
    neutral = {"sum": 0.0, "mean": 0.0, "prod": 1.0, "max": -inf, "min": inf}[reduce]
    start = neutral if initial is None or not isinstance(initial, int | float) else float(initial)
    masked = apply("where", inside, apply("expand_dims", x, along), const(neutral, x.dtype))
    found = apply({"mean": "sum"}.get(reduce, reduce), masked, axis=[along + 1])
    count = cast_to(apply("subtract", ends, begins), x.dtype)
    count = apply("reshape", count, (*count.shape[: along + 1], *rest[1:]))
    begun = const(start, x.dtype)
    if reduce == "mean":
        total = apply("add", found, begun)  # PyTorch divides the initial value too
        mean = apply("divide", total, apply("maximum", count, const(1.0, x.dtype)))
        empty = const(float("nan") if initial is None else start, x.dtype)
        return apply("where", apply("equal", count, const(0.0, x.dtype)), empty, mean)
    combine = {"sum": "add", "prod": "multiply", "max": "maximum", "min": "minimum"}[reduce]
    return apply(combine, found, begun)


@register("aten.hash_tensor.default")
def _hash(cx: Conversion, x: Value, dim: Sequence[int], *, keepdim: bool, mode: int) -> Value:
    """The exclusive or of elements as 64 bits; floats contribute the bits of float64."""
    bits = apply("bitcast", cast_to(x, "float64"), "uint64") if "float" in x.dtype else cast_to(x, "uint64")
    if not x.ndim:
        return bits
    axes = [axis % x.ndim for axis in dim] or list(range(x.ndim))
    rest = [axis for axis in range(x.ndim) if axis not in axes]
    found = cx.te(_exclusive_or, apply("transpose", bits, [*rest, *axes]), len(rest))
    return apply("reshape", found, cx.shape)


def _exclusive_or(data: Tensor, rank: int) -> Tensor:
    """Along the axes from `rank` on."""

    def both(one: Expr, other: Expr) -> Expr:
        return one ^ other

    def identity(dtype: str) -> Expr:
        return const_expr(0, dtype)

    combine = comm_reducer(both, identity, name="xor")
    axes = [reduce_axis((0, extent), f"r{at}") for at, extent in enumerate(data.shape[rank:])]
    return compute(data.shape[:rank], lambda *i: combine(data(*i, *axes), axis=axes), name="hash")
