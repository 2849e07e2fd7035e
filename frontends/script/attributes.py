"""Annotations and attributes: Python values <-> IR attributes. What Python has no value for is written as MLIR text."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import cast

from xdsl.context import Context
from xdsl.dialects import affine, arith, builtin, func, math, memref, ptr, scf
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
from xdsl.ir import Attribute, Operation
from xdsl.utils.exceptions import ParseError, VerifyException

from weft.dialects.low import LOW
from weft.dialects.sched import SCHED
from weft.dialects.tir import TIR
from weft.support.bits_parser import BitsParser
from weft.support.errors import CompileError
from weft.support.names import string_text
from weft.texpr.expr import Const


class AttributeText(str):
    """The MLIR text of an attribute: `T.attr("1 : i8")`."""

    __slots__ = ()


@cache
def context() -> Context:
    """The dialects that may stand in modules of block loops."""
    found = Context()
    for dialect in (
        builtin.Builtin,
        affine.Affine,
        arith.Arith,
        func.Func,
        math.Math,
        memref.MemRef,
        ptr.Ptr,
        scf.Scf,
        LOW,
        SCHED,
        TIR,
    ):
        found.load_dialect(dialect)
    return found


def to_attribute(value: object) -> Attribute:
    """A Python value as an attribute: integers are i64, floats f64. Raises CompileError for what is none."""
    match value:
        case AttributeText():
            return parse_attribute(value)
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
        case Const():
            return to_attribute(bool(value.value) if value.dtype == "bool" else value.value)
        case None:
            return UnitAttr()
        case list() | tuple():
            return ArrayAttr([to_attribute(item) for item in cast("list[object]", value)])
        case dict():
            return DictionaryAttr(to_attributes(cast("dict[object, object]", value)))
        case _:
            raise CompileError(
                f"an attribute is a number, text, a list or a dict, got a value of type {type(value).__name__}"
            )


def to_attributes(values: dict[object, object]) -> dict[str, Attribute]:
    """A dict as named attributes. Raises CompileError for names that are no strings."""
    named: dict[str, Attribute] = {}
    for name, value in values.items():
        if not isinstance(name, str) or not name:
            got = repr(name) if isinstance(name, str) else f"a value of type {type(name).__name__}"
            raise CompileError(f"names of attributes are strings, got {got}")
        named[name] = to_attribute(value)
    return named


def parse_attribute(text: str) -> Attribute:
    """The attribute or type that MLIR text spells. Raises CompileError."""
    try:
        parser = BitsParser(context(), text)
        attribute = parser.parse_attribute()
        if parser.pos < len(text.rstrip()):
            raise CompileError(f"`{text}` has more than one attribute")
    except (ParseError, VerifyException, ValueError) as failure:
        raise CompileError(f"`{text}` is no attribute: {str(failure).strip().splitlines()[-1].strip()}") from None
    return attribute


def parse_operations(text: str) -> list[Operation]:
    """The operations that MLIR text spells, in no module. Raises CompileError."""
    try:
        module = BitsParser(context(), text).parse_module()
    except (ParseError, VerifyException, ValueError) as failure:
        raise CompileError(f"these are no operations: {str(failure).strip().splitlines()[-1].strip()}") from None
    ops = list(module.ops)
    for op in ops:
        op.detach()
    return ops


def operations_text(op: Operation) -> list[str]:
    """The lines of the call of `I.mlir` that reads back as `op`."""
    return ['I.mlir(r"""', *str(op).splitlines(), '""")']  # quotes in strings of MLIR are escaped


def attribute_text(attribute: Attribute) -> str:
    """The Python expression that reads back as `attribute`."""
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
            return f"[{', '.join(attribute_text(item) for item in attribute)}]"
        case DictionaryAttr():
            return attributes_text(attribute.data)
        case _:
            return f"T.attr({string_text(str(attribute))})"


def attributes_text(attributes: Mapping[str, Attribute]) -> str:
    """The Python dict that reads back as named attributes."""
    items = (f"{string_text(name)}: {attribute_text(value)}" for name, value in attributes.items())
    return f"{{{', '.join(items)}}}"
