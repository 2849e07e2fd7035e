"""Sizes and element types of PyTorch as extents and element types of graphs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial, reduce
from typing import Any, Final

from weft.dialects.graph_shapes import (
    Extent,
    KnownExtent,
    Shape,
    add,
    choose_size,
    divide,
    multiply,
    show_shape,
    substitute,
    symbol,
)
from weft.frontends.torch.library import torch
from weft.texpr import math
from weft.texpr import reductions as te
from weft.texpr.tensor import compute

DTYPES: Final[Mapping[Any, str]] = {
    getattr(torch, name): name
    for name in (
        "bool",
        "float16",
        "bfloat16",
        "float32",
        "float64",
        "int8",
        "int16",
        "int32",
        "int64",
        "uint8",
        "uint16",
        "uint32",
        "uint64",
        "float8_e4m3fn",
        "float8_e5m2",
        "float8_e4m3fnuz",
        "float8_e5m2fnuz",
        "float8_e8m0fnu",
    )
}
"""Maps element types of PyTorch to those of graphs."""
_PARTS: Final[Mapping[Any, str]] = {torch.complex64: "float32", torch.complex128: "float64"}
"""Maps complex element types to those of their parts."""


class UnsupportedError(Exception):
    """Raised for a part of a model that graphs cannot represent; the message has the reason."""


@dataclass(frozen=True)
class TensorMeta:
    """The type of a tensor of a program, as PyTorch states it."""

    shape: Shape
    dtype: str
    """The element type, that of the parts if the tensor is complex."""
    is_complex: bool = False

    def __str__(self) -> str:
        return f"{self.dtype}{show_shape(self.shape)}"


def dtype_name(dtype: object) -> str:
    """Raises `UnsupportedError` for an element type that graphs lack, such as complex numbers."""
    name = DTYPES.get(dtype)
    if name is None:
        raise UnsupportedError(f"elements of type {str(dtype).removeprefix('torch.')}")
    return name


def torch_dtype(name: str) -> Any:
    return getattr(torch, name)


def meta_of(value: Any, equal: Mapping[str, KnownExtent]) -> TensorMeta:
    """The type of a (fake) tensor, with symbols replaced by the extents in `equal`. Raises `UnsupportedError` for an
    element type that graphs lack."""
    return TensorMeta(tuple(extent_of(size, equal) for size in value.shape), dtype_name(value.dtype))


def order_in_memory(value: Any, equal: Mapping[str, KnownExtent]) -> tuple[int, ...] | None:
    """The axes of a dense (fake) tensor in the order of memory, largest stride first; None if this is the order of the
    shape, and for a tensor that is not dense. Symbolic strides are recognised only for a contiguous tensor,
    channels_last, and a transposed matrix."""
    shape, strides = ([extent_of(number, equal) for number in numbers] for numbers in (value.shape, value.stride()))
    axes = tuple(range(len(shape)))
    if 0 in shape or None in shape:
        return None

    def is_dense(order: Sequence[int]) -> bool:
        expected: Extent = 1
        for axis in reversed(order):
            if shape[axis] != 1 and strides[axis] != expected:
                return False
            expected = multiply(expected, shape[axis])
        return True

    orders = [axes, (*axes[:1], *axes[2:], *axes[1:2]), (*axes[:-2], *axes[:-3:-1])]
    numbers = [stride for stride in strides if isinstance(stride, int)]
    if len(numbers) == len(axes):
        orders.append(tuple(sorted(axes, key=lambda axis: -numbers[axis])))
    found = next(filter(is_dense, orders), axes)
    return None if found == axes else found


def result_meta(value: Any, equal: Mapping[str, KnownExtent]) -> TensorMeta:
    part = _PARTS.get(value.dtype)
    if part is None:
        return meta_of(value, equal)
    return TensorMeta(tuple(extent_of(size, equal) for size in value.shape), part, is_complex=True)


def extent_of(size: Any, equal: Mapping[str, KnownExtent]) -> Extent:
    """Symbols are replaced by the extents in `equal`; None for an expression that extents cannot represent."""
    return substitute(_extent(size.node.expr), equal) if isinstance(size, torch.SymInt) else int(size)


def _extent(expr: Any) -> Extent:
    if expr.is_Integer:
        return int(expr)
    if expr.is_Symbol:
        return symbol(str(expr))
    if type(expr).__name__ in _ROUNDED:
        numerator, denominator = _quotient(expr.args[0])
        if type(expr).__name__ == "CeilToInt":
            numerator = add(numerator, denominator - 1)
        return divide("floordiv", numerator, denominator)
    parts = [part for part in map(_extent, expr.args) if part is not None]
    kind = type(expr).__name__
    if len(parts) < len(expr.args):
        return None
    if expr.is_Add:
        return reduce(add, parts)
    if expr.is_Mul:
        return reduce(multiply, parts)
    if kind in ("FloorDiv", "CleanDiv"):
        return divide("floordiv", *parts)
    if kind in ("Mod", "PythonMod"):
        return divide("mod", *parts)
    if kind in ("Max", "Min"):
        return reduce(partial(choose_size, "max" if kind == "Max" else "min"), parts)
    if kind in ("Pow", "PowByNatural") and isinstance(parts[1], int) and parts[1] > 0:
        return reduce(multiply, [parts[0]] * parts[1])
    return None


def ratio(number: float) -> tuple[int, int]:
    """Numerator and denominator. Raises `UnsupportedError` if products with sizes may be rounded."""
    found = Fraction(number)
    if found.denominator > _LARGEST_DENOMINATOR:
        raise UnsupportedError(f"a size that is computed with {number}")
    return found.numerator, found.denominator


_LARGEST_DENOMINATOR: Final = 1 << 16
_ROUNDED: Final = ("TruncToInt", "FloorToInt", "CeilToInt")


def _quotient(expr: Any) -> tuple[Extent, int]:
    kind = type(expr).__name__
    if expr.is_Float:
        return ratio(float(expr))
    if kind == "ToFloat":
        return _extent(expr.args[0]), 1
    if kind == "IntTrueDiv" and expr.args[1].is_Integer:
        return _extent(expr.args[0]), int(expr.args[1])
    if expr.is_Mul or kind == "FloatMul":
        return reduce(lambda a, b: (multiply(a[0], b[0]), a[1] * b[1]), map(_quotient, expr.args))
    return (_extent(expr), 1) if expr.is_integer else (None, 1)


_BINARY: Final[Mapping[str, Callable[[Any, Any], Any]]] = {
    "Add": lambda x, y: x + y,
    "Mul": lambda x, y: x * y,
    "FloorDiv": lambda x, y: x // y,
    "CleanDiv": lambda x, y: x // y,
    "Mod": lambda x, y: x % y,
    "PythonMod": lambda x, y: x % y,
    "IntTrueDiv": lambda x, y: math.cast(x, "float64") / math.cast(y, "float64"),
    "FloatTrueDiv": lambda x, y: math.cast(x, "float64") / math.cast(y, "float64"),
    "FloatPow": math.pow,
    "Pow": math.pow,
    "PowByNatural": math.pow,
    "Max": te.max,
    "Min": te.min,
    "Equality": math.equal,
    "Unequality": math.not_equal,
    "StrictLessThan": lambda x, y: x < y,
    "LessThan": lambda x, y: x <= y,
    "StrictGreaterThan": lambda x, y: x > y,
    "GreaterThan": lambda x, y: x >= y,
}
_UNARY: Final[Mapping[str, Callable[[Any], Any]]] = {
    "ToFloat": lambda x: math.cast(x, "float64"),
    "TruncToInt": lambda x: math.cast(x, "int64"),
    "FloorToInt": lambda x: math.cast(math.floor(x), "int64"),
    "CeilToInt": lambda x: math.cast(math.ceil(x), "int64"),
    "Not": math.logical_not,
    **{f"OpaqueUnaryFn_{name}": getattr(math, name) for name in ("sqrt", "exp", "log", "log2", "sin", "cos", "tanh")},
}


def symbols_of(number: Any) -> list[str]:
    return sorted(map(str, number.node.expr.free_symbols))


def number_of(number: Any, *sizes: Any) -> Any:
    """A tensor of rank 0: int64, float64 or bool. `sizes` are the values of its symbols, in the order of `symbols_of`.
    Raises `UnsupportedError` for functions that tensor expressions lack."""
    values = dict(zip(symbols_of(number), sizes, strict=True))

    def element(expr: Any) -> Any:
        if expr.is_Symbol:
            return values[str(expr)]
        if expr.is_Integer:
            return int(expr)
        if expr.is_number:
            return math.const(float(expr), "float64")
        kind, parts = type(expr).__name__, [element(part) for part in expr.args]
        if kind in _BINARY:
            return reduce(_BINARY[kind], parts)
        if kind in _UNARY:
            return _UNARY[kind](parts[0])
        raise UnsupportedError(f"a size computed by {kind}")

    return compute((), lambda: element(number.node.expr) + 0, name="size")
