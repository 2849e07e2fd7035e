"""LLVM's spelling of types and constants of `low`, as values and in memory.

| low | value | in memory |
|---|---|---|
| `index` | `i64` | `i64` |
| `i1` | `i1` | `i8`, 0 or 1 |
| `i8` `i16` `i32` `i64` | the same | the same |
| `f16` `f32` `f64` | `half` `float` `double` | the same |
| `bf16` | `i16`, its bits; `bfloat` as parameter or result of a function | `i16` |
| `vector<8xT>` | `<8 x T>` | `<8 x memory of T>` |
| `memref<...xT>` | `ptr` | |

Floating-point constants are short exact decimals, or bits: of a double for `float` and `double`, of a half after `0xH`
for `half`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Final

from xdsl.dialects.builtin import VectorType

from weft.backends.low_modules import flat_buffer, lane_count, scalar_name
from weft.support.errors import CompileError
from weft.support.narrow_floats import float_to_bits

if TYPE_CHECKING:
    from collections.abc import Sequence

    from xdsl.ir import Attribute, Operation


@dataclass(frozen=True)
class ValueType:
    """A scalar (`lanes` 0) or a vector of `lanes` scalars."""

    element: str
    """LLVM type of a scalar, such as `i32` or `float`, as a parameter or result of functions."""
    scalar: str
    """LLVM type of a scalar value; `i16` for `bfloat`."""
    lanes: int
    bits: int
    is_float: bool
    text: str
    """LLVM type of a value."""
    memory: str
    """LLVM type in memory; `i8` for `i1`."""
    suffix: str
    """The type in names of intrinsics, such as `v8f32`."""

    @property
    def bytes(self) -> int:
        """Bytes in memory, also the alignment."""
        return max(self.bits, 8) // 8

    def of(self, element: str) -> ValueType:
        return value_type(element, self.lanes)

    def splat(self, text: str) -> str:
        return f"splat ({self.scalar} {text})" if self.lanes else text

    def typed(self, text: str) -> str:
        return f"{self.text} {text}"


_SCALARS: Final = {
    **{f"i{bits}": (bits, False, f"i{bits}") for bits in (1, 8, 16, 32, 64)},
    "half": (16, True, "f16"),
    "bfloat": (16, True, "i16"),
    "float": (32, True, "f32"),
    "double": (64, True, "f64"),
    "ptr": (64, False, "p0"),
}


@cache
def value_type(element: str, lanes: int, /) -> ValueType:
    """The unique type; a scalar if `lanes` is 0."""
    bits, is_float, suffix = _SCALARS[element]
    scalar = "i16" if element == "bfloat" else element
    memory = "i8" if element == "i1" else scalar
    if not lanes:
        return ValueType(element, scalar, 0, bits, is_float, scalar, memory, suffix)
    text, memory = (f"<{lanes} x {one}>" for one in (scalar, memory))
    return ValueType(element, scalar, lanes, bits, is_float, text, memory, f"v{lanes}{suffix}")


I64: Final = value_type("i64", 0)
_NAMES: Final = {"index": "i64", "f16": "half", "bf16": "bfloat", "f32": "float", "f64": "double"}
"""Scalar type of low -> its LLVM type, if the names differ."""


class TypeTable:
    """Types are keyed by object: hashing an attribute costs microseconds, and the module keeps them alive."""

    def __init__(self) -> None:
        self._types: dict[int, ValueType] = {}

    def of(self, type_: Attribute, op: Operation) -> ValueType:
        """Raises `CompileError` for types that are not legal at low level."""
        found = self._types.get(id(type_))
        if found is None:
            found = self._types[id(type_)] = _convert(type_, op)
        return found

    def buffer(self, type_: Attribute, op: Operation) -> tuple[ValueType, int | None]:
        """Element type and static length. Raises `CompileError` unless the memref is flat."""
        element, length = flat_buffer(type_, op)
        return self.of(element, op), length


def _convert(type_: Attribute, op: Operation) -> ValueType:
    element = type_.element_type if isinstance(type_, VectorType) else type_
    name = scalar_name(element)
    if name is None:
        raise CompileError.at(
            op,
            f"type {element} is not supported by the llvm backend "
            "(it has i1, i8, i16, i32, i64, index, f16, bf16, f32, f64 and vectors of them)",
        )
    return value_type(_NAMES.get(name, name), lane_count(type_, op))


def lane_list(lanes: Sequence[int]) -> str:
    """Negative lanes are poison."""
    return f"<{len(lanes)} x i32> <{', '.join('i32 poison' if lane < 0 else f'i32 {lane}' for lane in lanes)}>"


def float_text(value: float, element: str) -> str:
    """`element` can represent the value."""
    if element == "bfloat":
        return str(float_to_bits(value, "bfloat16") & 0xFFFF)
    negative_zero = value == 0.0 and math.copysign(1.0, value) < 0
    if abs(value) <= 256.0 and (value * 16.0).is_integer() and not negative_zero:
        return repr(value)
    if element == "half":
        return f"0xH{float_to_bits(value, 'float16') & 0xFFFF:04X}"
    return f"0x{float_to_bits(value, 'float64') & (1 << 64) - 1:016X}"


def scalar_text(value: float, element: str) -> str:
    if element == "i1":
        return "true" if value else "false"
    if element[0] == "i":
        return str(int(value))
    return float_text(float(value), element)


def vector_text(values: Sequence[float], type_: ValueType) -> str:
    texts = [scalar_text(value, type_.element) for value in values]
    if texts.count(texts[0]) == len(texts):
        return type_.splat(texts[0])
    return f"<{', '.join(f'{type_.scalar} {text}' for text in texts)}>"


def byte_text(data: bytes) -> str:
    """The literal `c"\\41\\00"`."""
    return 'c"\\' + data.hex("\\").upper() + '"' if any(data) else "zeroinitializer"
