"""Converters of elementwise operators, with PyTorch's promotion of element types."""

from __future__ import annotations

from itertools import product
from math import pi
from typing import Any

from weft.frontends.graph_builder import Value, const
from weft.frontends.torch.converters import Conversion, Converter, Scalar, apply, cast_to, register
from weft.frontends.torch.library import torch
from weft.frontends.torch.spelled import NARROW, applied
from weft.frontends.torch.symbols import UnsupportedError, torch_dtype


@register("aten.add.Tensor", "aten.add.Scalar")
def _add(cx: Conversion, x: Value, y: Value | Scalar, alpha: Scalar) -> Value:
    if cx.dtype == "bool":
        return applied(cx, "logical_or", x, y)
    return applied(cx, "add", x, _scaled(cx, y, alpha))


@register("aten.sub.Tensor", "aten.sub.Scalar")
def _subtract(cx: Conversion, x: Value, y: Value | Scalar, alpha: Scalar) -> Value:
    return applied(cx, "subtract", x, _scaled(cx, y, alpha))


@register("aten.rsub.Tensor", "aten.rsub.Scalar")
def _rsub(cx: Conversion, x: Value, y: Value | Scalar, alpha: Scalar) -> Value:
    return applied(cx, "subtract", y, _scaled(cx, x, alpha))


def _scaled(cx: Conversion, y: Value | Scalar, alpha: Scalar) -> Value | Scalar:
    return y if alpha == 1 else applied(cx, "multiply", y, alpha)


@register("aten.mul.Tensor", "aten.mul.Scalar")
def _multiply(cx: Conversion, x: Value, y: Value | Scalar) -> Value:
    return applied(cx, "logical_and" if cx.dtype == "bool" else "multiply", x, y)


@register("aten.div.Tensor_mode", "aten.div.Scalar_mode", "aten.true_divide.Tensor", "aten.true_divide.Scalar")
def _divide(cx: Conversion, x: Value, y: Value | Scalar, rounding_mode: str | None = None) -> Value:
    if rounding_mode is None:
        return applied(cx, "divide", x, y)
    if rounding_mode == "trunc" and cx.dtype in NARROW:  # the quotient rounded to 16 bits may be an integer
        return apply("trunc", apply("divide", cx.operand(x, cx.dtype), cx.operand(y, cx.dtype)))
    return applied(cx, f"{rounding_mode}_divide", x, y)


@register("aten.floor_divide.default")
def _floor_divide(cx: Conversion, x: Value, y: Value | Scalar) -> Value:
    return applied(cx, "floor_divide", x, y)


@register("aten.pow.Tensor_Tensor", "aten.pow.Tensor_Scalar", "aten.pow.Scalar")
def _pow(cx: Conversion, x: Value | Scalar, y: Value | Scalar) -> Value:
    if isinstance(x, Value) and isinstance(y, int | float):
        base = cast_to(x, cx.dtype)
        if y == 2:
            return apply("square", base)
        if y in (1, 0.5, -0.5, -1) and (y == 1 or "float" in cx.dtype):
            return base if y == 1 else apply({0.5: "sqrt", -0.5: "rsqrt", -1: "reciprocal"}[y], base)
        if "float" not in cx.dtype and y < 0:
            raise UnsupportedError(f"integers to the power of {y}")
    return applied(cx, "power", x, y)


@register("aten.clamp.default", "aten.clamp.Tensor", "aten.clamp_min.default", "aten.clamp_min.Tensor")
@register("aten.hardtanh.default")
def _clamp(cx: Conversion, x: Value, least: Value | Scalar | None, most: Value | Scalar | None = None) -> Value:
    numbers = [n for n in (least, most) if n is not None]
    if all(type(n) in (int, float) for n in numbers) and "float" in cx.dtype and cx.dtype not in NARROW:
        return apply("clip", cast_to(x, cx.dtype), least, most)
    found = x
    for name, bound in (("maximum", least), ("minimum", most)):
        if bound is not None:
            found = applied(cx, name, found, bound)
    return found


@register("aten.clamp_max.default", "aten.clamp_max.Tensor")
def _clamp_max(cx: Conversion, x: Value, most: Value | Scalar) -> Value:
    return _clamp(cx, x, None, most)


@register("aten.isnan.default", "aten.isinf.default")
def _isnan(cx: Conversion, x: Value) -> Value:
    name = cx.name.split(".")[1]
    return apply(name, x) if "float" in x.dtype else apply("full", x.shape, False, dtype="bool")


@register("aten.signbit.default")
def _signbit(cx: Conversion, x: Value) -> Value:
    return apply("signbit", x)


@register("aten.where.self")
def _where(cx: Conversion, condition: Value, x: Value, y: Value) -> Value:
    return apply("where", cast_to(condition, "bool"), cast_to(x, cx.dtype), cast_to(y, cx.dtype))


@register("aten.masked_fill.Scalar", "aten.masked_fill.Tensor")
def _masked_fill(cx: Conversion, x: Value, mask: Value, value: Value | Scalar) -> Value:
    return apply("where", mask, cx.operand(value, cx.dtype), x)


@register("aten._to_copy.default", "prims.convert_element_type.default")
def _to_copy(cx: Conversion, x: Value, dtype: str | None) -> Value:
    return cast_to(x, cx.dtype)


@register("aten.prelu.default", "aten._prelu_kernel.default")
def _prelu(cx: Conversion, x: Value, slope: Value) -> Value:
    if slope.ndim == 1 and x.ndim > 1 and slope.shape[0] != 1:
        slope = apply("reshape", slope, (slope.shape[0], *[1] * (x.ndim - 2)))
    return apply("prelu", x, slope)


@register("aten.nan_to_num.default")
def _nan_to_num(cx: Conversion, x: Value, nan: float | None, posinf: float | None, neginf: float | None) -> Value:
    if "float" not in x.dtype:
        return x
    limits: Any = torch.finfo(torch_dtype(x.dtype))
    high, low = (limit if n is None else n for n, limit in ((posinf, limits.max), (neginf, limits.min)))
    return apply("nan_to_num", x, float(nan or 0), float(high), float(low))


@register("aten.fill.Scalar", "aten.fill.Tensor")
def _fill(cx: Conversion, x: Value, value: Value | Scalar) -> Value:
    return apply("broadcast_to", cx.operand(value, cx.dtype), x.shape)


@register("aten.copy.default")
def _copy(cx: Conversion, x: Value, source: Value, *_: object) -> Value:
    found = cast_to(source, x.dtype)
    return found if found.shape == x.shape else apply("broadcast_to", found, x.shape)


def _polynomial(kind: str, *, shifted: bool) -> Converter:
    def convert(cx: Conversion, x: Value | Scalar, degree: Value | Scalar) -> Value:
        return applied(cx, "orthogonal_polynomial", x, degree, kind=kind, shifted=shifted)

    return convert


for _family, _members in (("chebyshev", "tuvw"), ("hermite", ("h", "he")), ("laguerre", "l"), ("legendre", "p")):
    for _member, _shift in product(_members, ("", "shifted_") if _family == "chebyshev" else ("",)):
        _name = f"aten.special_{_shift}{_family}_polynomial_{_member}"
        _converter = _polynomial(f"{_family}_{_member}", shifted=bool(_shift))
        register(f"{_name}.default", f"{_name}.x_scalar", f"{_name}.n_scalar")(_converter)


@register("aten.angle.default")
def _angle(cx: Conversion, x: Value) -> Value:
    """The angle of a real number is 0 or pi."""
    wide = cast_to(x, cx.dtype)
    found = apply("where", apply("less", wide, const(0.0, cx.dtype)), const(pi, cx.dtype), const(0.0, cx.dtype))
    return apply("where", apply("isnan", wide), wide, found)
