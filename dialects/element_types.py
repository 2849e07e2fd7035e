"""Element types: the names that NumPy has for them, and what they take in memory."""

from __future__ import annotations

import math
from typing import Final

from xdsl.dialects.builtin import (
    AnyFloat,
    BFloat16Type,
    FixedBitwidthType,
    IndexType,
    IntegerType,
    bf16,
    f16,
    f32,
    f64,
    i1,
)
from xdsl.ir import Attribute

from weft.support.argument_types import checked
from weft.support.errors import CompileError, did_you_mean

TYPES: Final[dict[str, IntegerType | AnyFloat]] = {
    "bool": i1,
    "int8": IntegerType(8),
    "int16": IntegerType(16),
    "int32": IntegerType(32),
    "int64": IntegerType(64),
    "float16": f16,
    "bfloat16": bf16,
    "float32": f32,
    "float64": f64,
}
"""Name -> type, for all types that buffers of programs have. Integers are signed and wrap."""
_NAMES: Final[dict[Attribute, str]] = {type_: name for name, type_ in TYPES.items()}
_registered: dict[type[Attribute], str] = {}
"""Types of other dialects -> the type of the elements of their arrays."""


@checked
def register_element_type(type_: type[Attribute], dtype: str, *, override: bool = False) -> None:
    """Let arrays of a NumPy type be the buffers whose elements have a type of another dialect.

        weft.register_element_type(FixedType, "int16")

    The interpreter runs functions over such buffers then, and `--validate` compares them; operations on the
    elements get and give numbers of `dtype` (`register_operation(..., meaning=...)`). A pass of the user replaces
    the type before the low level. Raises `CompileError` for a type that weft knows, for an unknown `dtype`, and for
    a type that is registered when `override` is not given.
    """
    if dtype not in TYPES:
        raise CompileError(f"{type_.name} has elements of an unknown type '{dtype}'{did_you_mean(dtype, TYPES)}")
    if type_ in map(type, _NAMES):
        raise CompileError(f"{type_.name} is a type that weft knows")
    if type_ in _registered and not override:
        raise CompileError(f"{type_.name} is registered already; override=True replaces it")
    _registered[type_] = dtype


def unregister_element_type(type_: type[Attribute]) -> None:
    """Forget a registered type. Raises `CompileError` when it is not registered."""
    if _registered.pop(type_, None) is None:
        raise CompileError(f"{type_.name} is not registered")


def array_name(type_: Attribute) -> str | None:
    """The name of the type that elements of arrays have for an element type, None where no array has such elements."""
    return _NAMES.get(type_) or _registered.get(type(type_))


def element_name(type_: Attribute) -> str | None:
    """The name of an element type, None for other types."""
    return _NAMES.get(type_)


def bytes_of(element: Attribute) -> int:
    """Bytes that one element takes in memory."""
    if isinstance(element, IndexType):
        return 8
    if isinstance(element, BFloat16Type):
        return 2
    return max(1, element.bitwidth // 8) if isinstance(element, FixedBitwidthType) else 8


def least(type_: Attribute) -> float | int:
    """The least value of a float, or of a signed integer or index."""
    return -math.inf if isinstance(type_, AnyFloat) else -(1 << (_width(type_) - 1))


def greatest(type_: Attribute) -> float | int:
    """The greatest value of a float, or of a signed integer or index."""
    return math.inf if isinstance(type_, AnyFloat) else (1 << (_width(type_) - 1)) - 1


def _width(type_: Attribute) -> int:
    return type_.width.data if isinstance(type_, IntegerType) else 64
