"""Attributes and annotations as Python values, and ops by name.

Attributes without a Python value are MLIR text, `T.attr("1 : i8")`; ops without a form in the language are `T.op`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import cast

from xdsl.context import Context
from xdsl.dialects import affine, arith, builtin, func, math, memref, ptr, scf, vector
from xdsl.dialects.builtin import DictionaryAttr
from xdsl.ir import Attribute, Operation, SSAValue, TypeAttribute
from xdsl.utils.exceptions import ParseError, VerifyException

from weft.dialects.attribute_values import attribute_of, attributes_of, python_text
from weft.dialects.low import LOW
from weft.dialects.sched import SCHED
from weft.dialects.tir import TIR
from weft.support.bits_parser import BitsParser
from weft.support.errors import CompileError
from weft.support.names import string_text
from weft.texpr.expr import Const


class AttributeText(str):
    __slots__ = ()


@cache
def context() -> Context:
    found = Context()
    upstream = (
        builtin.Builtin,
        affine.Affine,
        arith.Arith,
        func.Func,
        math.Math,
        memref.MemRef,
        ptr.Ptr,
        scf.Scf,
        vector.Vector,
    )
    for dialect in (*upstream, LOW, SCHED, TIR):
        found.load_dialect(dialect)
    return found


def to_attribute(value: object) -> Attribute:
    """Integers are i64, floats f64. Raises CompileError for other types."""
    return attribute_of(value, _of_script)


def to_attributes(values: Mapping[object, object]) -> dict[str, Attribute]:
    """Raises CompileError for names that are not strings."""
    return attributes_of(values, _of_script)


def _of_script(value: object) -> Attribute | None:
    match value:
        case AttributeText():
            return parse_attribute(value)
        case Const():
            return to_attribute(bool(value.value) if value.dtype == "bool" else value.value)
        case _:
            return None


def last_line(failure: Exception) -> str:
    """xDSL's messages quote text before the last line."""
    return str(failure).strip().splitlines()[-1].strip()


def parse_attribute(text: str) -> Attribute:
    """Parse MLIR text. Raises CompileError."""
    try:
        parser = BitsParser(context(), text)
        attribute = parser.parse_attribute()
        if parser.pos < len(text.rstrip()):
            raise CompileError(f"`{text}` has more than one attribute")
    except (ParseError, VerifyException, ValueError) as failure:
        raise CompileError(f"`{text}` is not an attribute: {last_line(failure)}") from None
    return attribute


def parse_operations(text: str) -> list[Operation]:
    """Parse MLIR text without a module. Raises CompileError."""
    try:
        module = BitsParser(context(), text).parse_module()
    except (ParseError, VerifyException, ValueError) as failure:
        raise CompileError(f"these are not operations: {last_line(failure)}") from None
    ops = list(module.ops)
    for op in ops:
        op.detach()
    return ops


def operations_text(op: Operation) -> list[str]:
    """An `I.mlir` call that reads back as `op`."""
    return ['I.mlir(r"""', *str(op).splitlines(), '""")']  # quotes in MLIR strings are escaped


def attribute_text(attribute: Attribute) -> str:
    return python_text(attribute, lambda other: f"T.attr({string_text(str(other))})")


def attributes_text(attributes: Mapping[str, Attribute]) -> str:
    return attribute_text(DictionaryAttr(attributes))


def generic_op(
    name: str,
    operands: Sequence[SSAValue],
    *,
    results: object = (),
    properties: object = None,
    attributes: object = None,
) -> Operation:
    """Types of results are MLIR text, properties and attributes Python values.

    Raises CompileError for unknown ops, and for properties and attributes that scripts cannot express. The op is
    verified with the module, because its parent may matter.
    """
    op_class = context().get_optional_op(name)
    if op_class is None:
        raise CompileError(f"there is no operation '{name}' in scripts")
    if not isinstance(results, list | tuple):
        raise CompileError(f'results are a list of types, ["f32"], got {results!r}')
    types: list[Attribute] = []
    for text in cast("Sequence[object]", results):
        type = parse_attribute(text) if isinstance(text, str) else None
        if not isinstance(type, TypeAttribute):
            raise CompileError(f"the type of a result is the text of a type, got {text!r}")
        types.append(type)
    return op_class.create(
        operands=operands,
        result_types=types,
        properties=_named(properties, "properties"),
        attributes=_named(attributes, "attributes"),
    )


def _named(value: object, what: str) -> dict[str, Attribute]:
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise CompileError(f"{what} are a dict, got {value!r}")
    return to_attributes(cast("dict[object, object]", value))


def generic_text(op: Operation, operands: Sequence[str]) -> str:
    parts = [string_text(op.name), *operands]
    if op.results:
        types = ", ".join(string_text(str(result.type)) for result in op.results)
        parts.append(f"results=[{types}]")
    if op.properties:
        parts.append(f"properties={attributes_text(op.properties)}")
    if op.attributes:
        parts.append(f"attributes={attributes_text(op.attributes)}")
    return f"T.op({', '.join(parts)})"
