"""Converters of operators that work element by element, with PyTorch's promotion of element types."""

from __future__ import annotations

from functools import lru_cache
from math import inf
from typing import Any, Final

from weft.frontends.graph_builder import Value, const
from weft.frontends.torch.converters import Conversion, Converter, Scalar, apply, cast_to, register
from weft.frontends.torch.library import torch
from weft.frontends.torch.symbols import UnsupportedError, dtype_name, torch_dtype

NARROW: Final = ("float16", "bfloat16")
"""Elements beside which PyTorch computes with numbers in float32."""

# Of floats; integers become floats first.
_OF_FLOATS: Final = "acos acosh asin asinh atan atanh cos cosh erf exp exp2 expm1 log log10 log1p log2 reciprocal"
_OF_FLOATS_TOO: Final = "rsqrt sigmoid sin sinh sqrt tan tanh mish silu hardsigmoid hardswish"
# Of the elements as they are.
_OF_NUMBERS: Final = "abs neg:negative square relu"
_TO_INTEGERS: Final = "ceil floor round trunc"


def _pairs(text: str) -> list[tuple[str, str]]:
    """Names in ATen and in graphs: `neg:negative`."""
    return [(name, other or name) for name, _, other in (word.partition(":") for word in text.split())]


def _of_floats(name: str) -> Converter:
    def convert(cx: Conversion, x: Value) -> Value:
        return apply(name, cast_to(x, cx.dtype))

    return convert


def _of_numbers(name: str, unchanged: tuple[str, ...]) -> Converter:
    """`unchanged`: kinds of elements that the function leaves as they are."""

    def convert(cx: Conversion, x: Value) -> Value:
        return x if x.dtype.startswith(unchanged) else apply(name, x)

    return convert


for _aten, _name in _pairs(f"{_OF_FLOATS} {_OF_FLOATS_TOO}"):
    register(f"aten.{_aten}.default")(_of_floats(_name))
for _aten, _name in _pairs(_OF_NUMBERS):
    register(f"aten.{_aten}.default")(_of_numbers(_name, ("bool", "uint") if _aten in ("abs", "relu") else ("bool",)))
for _aten, _name in _pairs(_TO_INTEGERS):
    register(f"aten.{_aten}.default")(_of_numbers(_name, ("int", "uint", "bool")))


@register("aten.sign.default", "aten.sgn.default")
def _sign(cx: Conversion, x: Value) -> Value:
    return x if x.dtype == "bool" else apply("sign", x, keep_nan=False)


@lru_cache(maxsize=4096)
def _promoted(x: tuple[str, bool] | type, y: tuple[str, bool] | type) -> str:
    """The element type that PyTorch computes two operands in: element types and whether the rank is 0, or classes of
    numbers."""
    one, other = (
        torch.empty(() if kind[1] else (1,), dtype=torch_dtype(kind[0]), device="meta")
        if isinstance(kind, tuple)
        else kind(1)
        for kind in (x, y)
    )
    return dtype_name(torch.result_type(one, other))


def _kind(value: Value | Scalar) -> tuple[str, bool] | type:
    if isinstance(value, Value):
        return value.dtype, value.ndim == 0
    return type(value) if isinstance(value, bool | int | float) else int


def promoted(x: Value | Scalar, y: Value | Scalar) -> str:
    """The element type that PyTorch computes two operands in."""
    return _promoted(_kind(x), _kind(y))


def applied(cx: Conversion, name: str, dtype: str, *values: Value | Scalar) -> Value:
    """An operator of graphs on operands of one element type; in float32 for narrow floats beside numbers."""
    narrow = dtype in NARROW and not all(isinstance(value, Value) for value in values)
    wide = "float32" if narrow else dtype
    result = apply(name, *(cx.operand(value, wide) for value in values))
    return cast_to(result, dtype) if narrow and result.dtype == wide else result


def _arithmetic(name: str) -> Converter:
    def convert(cx: Conversion, x: Value | Scalar, y: Value | Scalar, alpha: Scalar = 1) -> Value:
        if alpha != 1:
            y = applied(cx, "multiply", cx.dtype, y, alpha)
        return applied(cx, name, cx.dtype, x, y)

    return convert


def _multiply(cx: Conversion, x: Value, y: Value | Scalar) -> Value:
    return applied(cx, "logical_and" if cx.dtype == "bool" else "multiply", cx.dtype, x, y)


def _add(cx: Conversion, x: Value, y: Value | Scalar, alpha: Scalar = 1) -> Value:
    if cx.dtype == "bool":
        return applied(cx, "logical_or", "bool", x, y)
    return _arithmetic("add")(cx, x, y, alpha)


for _kind_of_other in ("Tensor", "Scalar"):
    register(f"aten.add.{_kind_of_other}")(_add)
    register(f"aten.sub.{_kind_of_other}")(_arithmetic("subtract"))
    register(f"aten.mul.{_kind_of_other}")(_multiply)


@register("aten.rsub.Tensor", "aten.rsub.Scalar")
def _rsub(cx: Conversion, x: Value, y: Value | Scalar, alpha: Scalar = 1) -> Value:
    return _arithmetic("subtract")(cx, y, x, alpha)


def _compared(name: str) -> Converter:
    def convert(cx: Conversion, x: Value, y: Value | Scalar) -> Value:
        dtype = promoted(x, y)
        if dtype == "bool" and name not in ("equal", "not_equal"):
            dtype = "uint8"
        return apply(name, cx.operand(x, dtype), cx.operand(y, dtype))

    return convert


for _aten, _name in _pairs("eq:equal ne:not_equal lt:less le:less_equal gt:greater ge:greater_equal"):
    register(f"aten.{_aten}.Tensor", f"aten.{_aten}.Scalar")(_compared(_name))


def _logical(name: str) -> Converter:
    def convert(cx: Conversion, *values: Value) -> Value:
        return apply(name, *(cast_to(value, "bool") for value in values))

    return convert


for _name in ("logical_and", "logical_or", "logical_xor", "logical_not"):
    register(f"aten.{_name}.default")(_logical(_name))


def _bitwise(name: str) -> Converter:
    def convert(cx: Conversion, *values: Value | Scalar) -> Value:
        return apply(
            f"{'logical' if cx.dtype == 'bool' else 'bitwise'}_{name}", *(cx.operand(v, cx.dtype) for v in values)
        )

    return convert


for _name in ("and", "or", "xor"):
    register(f"aten.bitwise_{_name}.Tensor", f"aten.bitwise_{_name}.Scalar")(_bitwise(_name))
register("aten.bitwise_not.default")(_bitwise("not"))


@register("aten.bitwise_left_shift.Tensor", "aten.bitwise_left_shift.Tensor_Scalar")
@register("aten.__lshift__.Tensor", "aten.__lshift__.Scalar")
def _left_shift(cx: Conversion, x: Value, y: Value | Scalar) -> Value:
    return applied(cx, "left_shift", cx.dtype, x, y)


@register("aten.bitwise_right_shift.Tensor", "aten.bitwise_right_shift.Tensor_Scalar")
@register("aten.__rshift__.Tensor", "aten.__rshift__.Scalar")
def _right_shift(cx: Conversion, x: Value, y: Value | Scalar) -> Value:
    return applied(cx, "right_shift", cx.dtype, x, y)


@register("aten.div.Tensor", "aten.div.Scalar")
def _div(cx: Conversion, x: Value, y: Value | Scalar) -> Value:
    return applied(cx, "divide", cx.dtype, x, y)


@register("aten.div.Tensor_mode", "aten.div.Scalar_mode")
def _div_mode(cx: Conversion, x: Value, y: Value | Scalar, rounding_mode: str | None) -> Value:
    if rounding_mode is None:
        return _div(cx, x, y)
    if rounding_mode == "trunc" and cx.dtype in NARROW:  # of the quotient in 16 bits, which may be a whole number
        return apply("trunc", _rounding_numbers("divide")(cx, x, y))
    return _rounding_numbers(f"{rounding_mode}_divide")(cx, x, y)


@register("aten.floor_divide.default")
def _floor_divide(cx: Conversion, x: Value, y: Value | Scalar) -> Value:
    return _div_mode(cx, x, y, rounding_mode="floor")


def _rounding_numbers(name: str) -> Converter:
    """An operator before which PyTorch rounds numbers to the elements, of 16 bits too."""

    def convert(cx: Conversion, x: Value | Scalar, y: Value | Scalar) -> Value:
        return apply(name, cx.operand(x, cx.dtype), cx.operand(y, cx.dtype))

    return convert


_REMAINDERS: Final = ("aten.remainder.Tensor", "aten.remainder.Scalar", "aten.remainder.Scalar_Tensor")
register(*_REMAINDERS)(_rounding_numbers("floor_mod"))
register("aten.fmod.Tensor", "aten.fmod.Scalar")(_rounding_numbers("trunc_mod"))
register("aten.copysign.Tensor", "aten.copysign.Scalar")(_rounding_numbers("copysign"))


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
    return applied(cx, "power", cx.dtype, x, y)


@register("aten.maximum.default")
def _maximum(cx: Conversion, x: Value, y: Value) -> Value:
    return applied(cx, "maximum", cx.dtype, x, y)


@register("aten.minimum.default")
def _minimum(cx: Conversion, x: Value, y: Value) -> Value:
    return applied(cx, "minimum", cx.dtype, x, y)


@register("aten.atan2.default")
def _atan2(cx: Conversion, y: Value, x: Value) -> Value:
    return applied(cx, "atan2", cx.dtype, y, x)


@register("aten.logaddexp.default")
def _logaddexp(cx: Conversion, x: Value, y: Value) -> Value:
    return applied(cx, "logaddexp", cx.dtype, x, y)


@register("aten.clamp.default", "aten.clamp.Tensor")
def _clamp(cx: Conversion, x: Value, least: Value | Scalar | None = None, most: Value | Scalar | None = None) -> Value:
    numbers = [n for n in (least, most) if n is not None]
    if all(type(n) in (int, float) for n in numbers) and "float" in cx.dtype and cx.dtype not in NARROW:
        return apply("clip", cast_to(x, cx.dtype), least, most)
    found = x
    for name, bound in (("maximum", least), ("minimum", most)):
        if bound is not None:
            found = applied(cx, name, cx.dtype, found, bound)
    return found


@register("aten.clamp_min.default", "aten.clamp_min.Tensor")
def _clamp_min(cx: Conversion, x: Value, least: Value | Scalar) -> Value:
    return _clamp(cx, x, least)


@register("aten.clamp_max.default", "aten.clamp_max.Tensor")
def _clamp_max(cx: Conversion, x: Value, most: Value | Scalar) -> Value:
    return _clamp(cx, x, None, most)


@register("aten.hardtanh.default")
def _hardtanh(cx: Conversion, x: Value, least: Scalar, most: Scalar) -> Value:
    return _clamp(cx, x, least, most)


@register("aten.isnan.default")
def _isnan(cx: Conversion, x: Value) -> Value:
    return apply("isnan", x) if "float" in x.dtype else apply("full", x.shape, False, dtype="bool")


@register("aten.isinf.default")
def _isinf(cx: Conversion, x: Value) -> Value:
    return apply("isinf", x) if "float" in x.dtype else apply("full", x.shape, False, dtype="bool")


@register("aten.where.self")
def _where(cx: Conversion, condition: Value, x: Value, y: Value) -> Value:
    return apply("where", cast_to(condition, "bool"), cast_to(x, cx.dtype), cast_to(y, cx.dtype))


@register("aten.masked_fill.Scalar", "aten.masked_fill.Tensor")
def _masked_fill(cx: Conversion, x: Value, mask: Value, value: Value | Scalar) -> Value:
    return apply("where", mask, cx.operand(value, cx.dtype), x)


@register("aten.round.decimals")
def _round_decimals(cx: Conversion, x: Value, *, decimals: int) -> Value:
    if "float" not in x.dtype:
        return x
    scale = 10.0 ** abs(decimals)
    there, back = ("multiply", "divide") if decimals >= 0 else ("divide", "multiply")
    return applied(cx, back, cx.dtype, apply("round", applied(cx, there, cx.dtype, x, scale)), scale)


@register("aten._to_copy.default")
def _to_copy(cx: Conversion, x: Value, *, dtype: str | None = None) -> Value:
    return cast_to(x, cx.dtype)


@register("aten.gelu.default")
def _gelu(cx: Conversion, x: Value, *, approximate: str) -> Value:
    return apply("gelu", x, approximate=approximate)


@register("aten.elu.default")
def _elu(cx: Conversion, x: Value, alpha: float, scale: float, input_scale: float) -> Value:
    if scale == input_scale == 1:
        return apply("elu", x, alpha=float(alpha))
    negative = apply("multiply", apply("expm1", apply("multiply", x, float(input_scale))), float(alpha))
    chosen = apply("where", apply("greater", x, const(0, x.dtype)), x, negative)
    return apply("multiply", chosen, float(scale))


@register("aten.celu.default")
def _celu(cx: Conversion, x: Value, alpha: float) -> Value:
    return apply("celu", x, alpha=float(alpha))


@register("aten.leaky_relu.default")
def _leaky_relu(cx: Conversion, x: Value, slope: float) -> Value:
    return apply("leaky_relu", x, alpha=float(slope))


@register("aten.softplus.default")
def _softplus(cx: Conversion, x: Value, beta: float, threshold: float) -> Value:
    scaled = x if beta == 1 else apply("multiply", x, float(beta))
    soft = apply("softplus", scaled)
    soft = soft if beta == 1 else apply("divide", soft, float(beta))
    return apply("where", apply("greater", scaled, const(threshold, x.dtype)), x, soft)


@register("aten.log_sigmoid.default")
def _log_sigmoid(cx: Conversion, x: Value) -> Value:
    return apply("log_sigmoid", x)


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
    values = (
        ("isnan", nan or 0.0),
        (inf, limits.max if posinf is None else posinf),
        (-inf, limits.min if neginf is None else neginf),
    )
    found = x
    for case, value in values:
        chosen = apply("isnan", x) if case == "isnan" else apply("equal", x, const(case, x.dtype))
        found = apply("where", chosen, const(value, x.dtype), found)
    return found


@register("aten.fill.Scalar", "aten.fill.Tensor")
def _fill(cx: Conversion, x: Value, value: Value | Scalar) -> Value:
    return apply("broadcast_to", cx.operand(value, cx.dtype), x.shape)


@register("aten.copy.default")
def _copy(cx: Conversion, x: Value, source: Value, *_: object) -> Value:
    found = cast_to(source, x.dtype)
    return found if found.shape == x.shape else apply("broadcast_to", found, x.shape)
