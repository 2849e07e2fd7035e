"""Converters of operators that are other names of functions of `te.ops` (`weft.texpr.spellings`)."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

from weft.frontends.graph_builder import Value, operator_type
from weft.frontends.onnx.known_tensors import Item
from weft.frontends.onnx.node import Node
from weft.frontends.onnx.operators import ops
from weft.frontends.onnx.parameters import attribute
from weft.frontends.onnx.registry import Converter, converts
from weft.texpr.spellings import Spelling, spellings


def operands_of(node: Node) -> list[Value]:
    """Before opset 7, the second operand of arithmetic may be aligned with inner axes of the first one."""
    found = node.values()
    if not (node.declares_attribute("broadcast") and node.flag("broadcast", False)):
        return found
    left, right = found
    axis = node.axis("axis", left.ndim) if node.has_attribute("axis") else left.ndim - right.ndim
    after = left.ndim - axis - right.ndim
    if after < 0:
        raise node.refuse(f"attribute 'axis' = {axis} leaves no {right.ndim} axes")
    return [left, ops.expand_dims(right, [right.ndim + d for d in range(after)]) if after else right]


def _spelled(name: str, spelling: Spelling) -> Converter:
    kind, apply = operator_type(name), getattr(ops, name)
    annotations = {name: str(kind.SIGNATURE.parameters[name].annotation) for name in spelling.parameters}
    roles = [role.name for role in kind.ROLES]

    def convert(node: Node) -> Item | Sequence[Item]:
        options = {
            parameter: attribute(node, its, annotations[parameter])
            for parameter, its in spelling.parameters.items()
            if node.declares_attribute(its)
        }
        values = operands_of(node)
        if kind.ROLES[0].is_variadic:
            return apply(values, **options, **spelling.fixed)
        if node.is_variadic:
            return reduce(apply, values)
        return apply(**dict(zip(roles, values, strict=False)), **options, **spelling.fixed)

    return convert


for _name, (_operator, _spelling) in spellings("onnx").items():
    converts(_name, since=_spelling.since)(_spelled(_operator, _spelling))
