"""Conversions between attributes and Python values or text."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import cast

from xdsl.dialects.builtin import (
    ArrayAttr,
    DictionaryAttr,
    FloatAttr,
    IntegerAttr,
    StringAttr,
    UnitAttr,
    f64,
    i1,
    i64,
)
from xdsl.ir import Attribute

from weft.support.errors import CompileError
from weft.support.names import string_text


def attribute_of(value: object, special: Callable[[object], Attribute | None] = lambda value: None) -> Attribute:
    """The attribute of a Python value: `4 : i64`, `true`, `"text"`, `0.5 : f64`, `[1, 2]`, `{unroll = 16}`.

    `special` returns attributes of other values, or None. Raises `CompileError` for values without an attribute.
    """
    given = special(value)
    if given is not None:
        return given
    match value:
        case Attribute():
            return value
        case bool():
            return IntegerAttr(int(value), i1)
        case int():
            if not -(1 << 63) <= value < 1 << 63:
                raise CompileError(f"{value} does not fit 64 bits")
            return IntegerAttr(value, i64)
        case float():
            return FloatAttr(value, f64)
        case str():
            return StringAttr(value)
        case None:
            return UnitAttr()
        case list() | tuple():
            return ArrayAttr([attribute_of(item, special) for item in cast("Sequence[object]", value)])
        case Mapping():
            return DictionaryAttr(attributes_of(cast("Mapping[object, object]", value), special))
        case _:
            kind = type(value).__name__
            raise CompileError(f"an attribute is a number, text, a list or a dict, got a value of type {kind}")


def attributes_of(
    values: Mapping[object, object], special: Callable[[object], Attribute | None] = lambda value: None
) -> dict[str, Attribute]:
    """Raises `CompileError` for names that are not strings."""
    named: dict[str, Attribute] = {}
    for name, value in values.items():
        if not isinstance(name, str) or not name:
            got = repr(name) if isinstance(name, str) else f"a value of type {type(name).__name__}"
            raise CompileError(f"names of attributes are strings, got {got}")
        named[name] = attribute_of(value, special)
    return named


def value_of(attribute: Attribute) -> object:
    """Returns other attributes unchanged."""
    match attribute:
        case IntegerAttr() if attribute.type == i1:
            return bool(attribute.value.data)
        case IntegerAttr() | FloatAttr():
            return attribute.value.data
        case StringAttr():
            return attribute.data
        case ArrayAttr():
            return [value_of(item) for item in attribute.data]
        case DictionaryAttr():
            return {name: value_of(item) for name, item in attribute.data.items()}
        case _:
            return attribute


def python_text(attribute: Attribute, other: Callable[[Attribute], str]) -> str:
    """The inverse of `attribute_of`; `other` handles attributes without a Python value."""
    match attribute:
        case IntegerAttr() if attribute.type == i1:
            return str(attribute.value.data != 0)
        case IntegerAttr() if attribute.type == i64:
            return str(attribute.value.data)
        case FloatAttr() if attribute.type == f64 and abs(attribute.value.data) < float("inf"):
            return repr(attribute.value.data)
        case StringAttr():
            return string_text(attribute.data)
        case UnitAttr():
            return "None"
        case ArrayAttr():
            return f"[{', '.join(python_text(item, other) for item in attribute)}]"
        case DictionaryAttr():
            items = (f"{string_text(name)}: {python_text(item, other)}" for name, item in attribute.data.items())
            return f"{{{', '.join(items)}}}"
        case _:
            return other(attribute)
