"""Ops that the script language has no other form for: `x = T.op("arith.divui", a, b, results=["i32"])`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from xdsl.ir import Attribute, Operation, SSAValue, TypeAttribute
from xdsl.utils.exceptions import VerifyException

from weft.frontends.script.attributes import attributes_text, context, parse_attribute, to_attributes
from weft.support.errors import CompileError
from weft.support.names import string_text


def generic_op(
    name: str,
    operands: Sequence[SSAValue],
    *,
    results: object = (),
    properties: object = None,
    attributes: object = None,
) -> Operation:
    """The op called `name`; types of results as MLIR text, properties and attributes as Python values.

    Raises CompileError for unknown ops, for ops with regions or successors, and where the op does not verify.
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
    op = op_class.create(
        operands=operands,
        result_types=types,
        properties=_named(properties, "properties"),
        attributes=_named(attributes, "attributes"),
    )
    try:
        op.verify()
    except VerifyException as failure:
        raise CompileError(f"{name}: {str(failure).strip().splitlines()[-1].strip()}") from None
    return op


def _named(value: object, what: str) -> dict[str, Attribute]:
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise CompileError(f"{what} are a dict, got {value!r}")
    return to_attributes(cast("dict[object, object]", value))


def clone_generic(op: Operation, operands: Sequence[SSAValue]) -> Operation:
    """What reading the text of `generic_text` makes. Raises CompileError for ops with regions."""
    if op.regions or op.successors:
        raise CompileError.at(op, f"{op.name} has no form in scripts")
    return type(op).create(
        operands=operands,
        result_types=[result.type for result in op.results],
        properties=dict(op.properties),
        attributes=dict(op.attributes),
    )


def generic_text(op: Operation, operands: Sequence[str]) -> str:
    """The call that `generic_op` makes into an op equal to `op`. Raises CompileError for ops with regions."""
    if op.regions or op.successors:
        raise CompileError.at(op, f"{op.name} has no form in scripts")
    parts = [string_text(op.name), *operands]
    if op.results:
        types = ", ".join(string_text(str(result.type)) for result in op.results)
        parts.append(f"results=[{types}]")
    if op.properties:
        parts.append(f"properties={attributes_text(op.properties)}")
    if op.attributes:
        parts.append(f"attributes={attributes_text(op.attributes)}")
    return f"T.op({', '.join(parts)})"
