"""Converters of order statistics, running extrema, and searches in sorted tensors."""

from __future__ import annotations

from typing import cast

from weft.dialects.graph_shapes import KnownExtent
from weft.frontends.graph_builder import Value, const
from weft.frontends.torch.converters import Conversion, Converter, Scalar, apply, cast_to, known, register
from weft.frontends.torch.spelled import applied
from weft.frontends.torch.symbols import UnsupportedError
from weft.texpr.expr import Expr
from weft.texpr.math import if_then_else
from weft.texpr.tensor import Tensor, compute


def _flat(x: Value, dim: int | None) -> tuple[Value, int]:
    """The tensor, of rank 1 or more, and an axis; flat if none is given."""
    if dim is None or not x.ndim:
        return apply("reshape", x, (-1,)), 0
    return x, dim % x.ndim


def _is_nan(x: Value) -> Value | None:
    return apply("isnan", x) if "float" in x.dtype else None


def _running(name: str) -> Converter:
    """Running extrema and the indices at which they occur last."""

    def convert(cx: Conversion, x: Value, dim: int) -> tuple[Value, Value]:
        source, axis = _flat(cast_to(x, "uint8") if x.dtype == "bool" else x, dim)
        values = apply(name, source, axis=axis)
        reached, nan = apply("equal", source, values), _is_nan(source)
        if nan is not None:
            reached = apply("logical_or", reached, nan)
        extent = source.shape[axis]
        line = apply("reshape", apply("iota", (extent,)), tuple(-1 if a == axis else 1 for a in range(source.ndim)))
        places = apply("cummax", apply("where", reached, line, const(0, "int64")), axis=axis)
        return apply("reshape", cast_to(values, x.dtype), x.shape), apply("reshape", places, x.shape)

    return convert


register("aten.cummax.default")(_running("cummax"))
register("aten.cummin.default")(_running("cummin"))


@register("aten.logcumsumexp.default")
def _logcumsumexp(cx: Conversion, x: Value, dim: int) -> Value:
    source, axis = _flat(x, dim)
    return apply("reshape", apply("logcumsumexp", source, axis=axis), x.shape)


def _kth(source: Value, k: KnownExtent, axis: int) -> tuple[Value, Value]:
    values, places = apply("topk", source, k, axis=axis, largest=False)
    begin = {"begin": [k - 1], "end": [k], "axes": [axis]}
    return apply("strided_slice", values, **begin), apply("strided_slice", places, **begin)


def _shaped(cx: Conversion, *values: Value) -> tuple[Value, ...]:
    return tuple(
        value if value.shape == meta.shape else apply("reshape", value, meta.shape)
        for value, meta in zip(values, cx.results, strict=True)
    )


@register("aten.kthvalue.default")
def _kthvalue(cx: Conversion, x: Value, k: int, dim: int, keepdim: bool) -> tuple[Value, ...]:
    source, axis = _flat(x, dim)
    return _shaped(cx, *_kth(source, k, axis))


def _median(x: Value, dim: int | None, *, skips_nan: bool) -> tuple[Value, Value]:
    """A NaN is the median of data that contain it, unless it is skipped."""
    source, axis = _flat(x, dim)
    extent = known(source.shape)[axis]
    nan = _is_nan(source)
    if nan is None or not skips_nan:
        value, place = _kth(source, (extent + 1) // 2, axis)
        if nan is None:
            return value, place
        has_nan = apply("any", nan, axis=[axis], keepdims=True)
        first = apply("argmax", cast_to(nan, "int32"), axis=axis, keepdims=True)
        return apply("where", has_nan, const(float("nan"), x.dtype), value), apply("where", has_nan, first, place)
    count = apply("sum", cast_to(apply("logical_not", nan), "int64"), axis=[axis], keepdims=True)
    place_in_order = apply("maximum", apply("floor_divide", apply("subtract", count, 1), 2), 0)
    order = apply("argsort", source, axis=axis)
    place = apply("take_along_axis", order, place_in_order, axis=axis)
    return apply("take_along_axis", source, place, axis=axis), place


@register("aten.median.default")
def _median_of_all(cx: Conversion, x: Value) -> Value:
    return apply("reshape", _median(x, None, skips_nan=False)[0], ())


@register("aten.nanmedian.default")
def _nanmedian_of_all(cx: Conversion, x: Value) -> Value:
    return apply("reshape", _median(x, None, skips_nan=True)[0], ())


@register("aten.median.dim")
def _median_along(cx: Conversion, x: Value, dim: int, keepdim: bool) -> tuple[Value, ...]:
    return _shaped(cx, *_median(x, dim, skips_nan=False))


@register("aten.nanmedian.dim")
def _nanmedian_along(cx: Conversion, x: Value, dim: int, keepdim: bool) -> tuple[Value, ...]:
    return _shaped(cx, *_median(x, dim, skips_nan=True))


@register("aten.mode.default")
def _mode(cx: Conversion, x: Value, dim: int, keepdim: bool) -> tuple[Value, ...]:
    source, axis = _flat(cast_to(x, "uint8") if x.dtype == "bool" else x, dim)
    values, places = apply("mode", source, axis=axis)
    return _shaped(cx, cast_to(values, x.dtype), places)


@register("aten.frexp.Tensor")
def _frexp(cx: Conversion, x: Value) -> tuple[Value, Value]:
    return apply("frexp", x)


@register("aten.searchsorted.Tensor", "aten.searchsorted.Scalar")
def _searchsorted(
    cx: Conversion,
    line: Value,
    values: Value | Scalar,
    *,
    out_int32: bool,
    right: bool,
    side: str | None = None,
    sorter: Value | None = None,
) -> Value:
    if line.ndim != 1:
        raise UnsupportedError("a sorted tensor of rank 2 or more")
    if sorter is not None:
        line = apply("take", line, sorter, axis=0)
    line = cast_to(line, "uint8") if line.dtype == "bool" else line
    sought = values if isinstance(values, Value) else cx.number(values, line.dtype)
    where = side or ("right" if right else "left")
    return apply("searchsorted", line, cast_to(sought, line.dtype), side=where, dtype=cx.dtype)


@register("aten.bucketize.Tensor", "aten.bucketize.Scalar")
def _bucketize(cx: Conversion, values: Value | Scalar, line: Value, *, out_int32: bool, right: bool) -> Value:
    return _searchsorted(cx, line, values, out_int32=out_int32, right=right)


@register("aten.fmax.default", "aten.fmin.default")
def _of_numbers(cx: Conversion, x: Value, y: Value) -> Value:
    """The maximum or minimum of two elements; a NaN yields the other one."""
    name = "maximum" if cx.name.split(".")[1] == "fmax" else "minimum"
    found = applied(cx, name, x, y)
    if "float" not in cx.dtype:
        return found
    one, other = cast_to(x, cx.dtype), cast_to(y, cx.dtype)
    found = apply("where", apply("isnan", one), other, apply("where", apply("isnan", other), one, found))
    return cast("Value", found)


@register("aten.hypot.default")
def _hypot(cx: Conversion, x: Value, y: Value) -> Value:
    """Scale by the larger magnitude, whose square may overflow."""
    one, other = (apply("abs", cast_to(value, cx.dtype)) for value in (x, y))
    most, least = apply("maximum", one, other), apply("minimum", one, other)
    is_end = apply("logical_or", apply("equal", most, 0.0), apply("isinf", most))
    ratio = apply("divide", least, apply("where", is_end, const(1.0, cx.dtype), most))
    found = apply("multiply", most, apply("sqrt", apply("add", apply("square", ratio), 1.0)))
    return cast("Value", apply("where", is_end, most, found))


@register("aten.diagonal_scatter.default")
def _diagonal_scatter(cx: Conversion, x: Value, source: Value, offset: int, dim1: int, dim2: int) -> Value:
    first, second = dim1 % x.ndim, dim2 % x.ndim

    def scattered(data: Tensor, diagonal: Tensor) -> Tensor:
        def element(*at: Expr) -> Expr:
            rest = [index for axis, index in enumerate(at) if axis not in (first, second)]
            place = at[first] + min(offset, 0)
            on_diagonal = (at[second] - at[first] == offset) & (place >= 0)
            return if_then_else(on_diagonal, diagonal(*rest, place), data(*at))

        return compute(data.shape, element, name="diagonal_scatter")

    return cast("Value", cx.te(scattered, x, source))


@register("aten.view.dtype")
def _view_dtype(cx: Conversion, x: Value, dtype: str) -> Value:
    if x.dtype == cx.dtype:
        return x
    if "bool" in (x.dtype, cx.dtype) or x.shape != cx.shape:
        raise UnsupportedError(f"the bits of {x.dtype} as {cx.dtype}: types of one width, and no bools, are supported")
    return apply("bitcast", x, dtype=cx.dtype)


@register("aten.lcm.default")
def _lcm(cx: Conversion, x: Value, y: Value) -> Value:
    one, other = cast_to(x, cx.dtype), cast_to(y, cx.dtype)
    divisor = apply("gcd", one, other)
    product = apply("multiply", apply("trunc_divide", one, divisor), other)
    return apply("abs", product) if cx.dtype.startswith("int") else product
