"""Structural equality of two programs up to names of SSA values and locations, and their first difference.

Scalar constants compare by value at their uses; their number and position do not matter.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, MutableMapping
from itertools import zip_longest

from xdsl.dialects.arith import ConstantOp
from xdsl.dialects.builtin import FloatAttr, IntegerAttr
from xdsl.ir import Attribute, Block, Operation, SSAValue

from weft.support.argument_types import checked
from weft.support.locations import render_operation


class Difference(Exception):
    """The first difference, and the op on each side if any."""

    def __init__(self, message: str, left: Operation | None, right: Operation | None) -> None:
        super().__init__(message)
        self.message = message
        self.left = left
        self.right = right

    def __str__(self) -> str:
        lines = [self.message]
        for side, op in (("left", self.left), ("right", self.right)):
            if op is not None:
                lines.append(f"{side}:\n{render_operation(op)}")
        return "\n".join(lines)


@checked
def structural_equal(left: Operation, right: Operation) -> bool:
    return first_difference(left, right) is None


@checked
def assert_structural_equal(left: Operation, right: Operation) -> None:
    difference = first_difference(left, right)
    if difference is not None:
        raise AssertionError(f"the programs differ: {difference}")


def first_difference(left: Operation, right: Operation) -> Difference | None:
    try:
        compare_ops(left, right, {})
    except Difference as difference:
        return difference
    return None


def scalar_constant(value: SSAValue) -> Attribute | None:
    owner = value.owner
    if isinstance(owner, ConstantOp) and isinstance(owner.value, IntegerAttr | FloatAttr):
        return owner.value
    return None


def _same_operand(left: SSAValue, right: SSAValue, values: Mapping[SSAValue, SSAValue]) -> bool:
    a, b = scalar_constant(left), scalar_constant(right)
    if isinstance(a, FloatAttr) and isinstance(b, FloatAttr):  # in Python -0.0 equals 0.0, and NaN differs from itself
        x, y = a.value.data, b.value.data
        same = math.copysign(1.0, x) == math.copysign(1.0, y) and (x == y or (math.isnan(x) and math.isnan(y)))
        return a.type == b.type and same
    if a is not None or b is not None:
        return a == b
    return values.get(left, left) is right


def compare_headers(left: Operation, right: Operation, values: MutableMapping[SSAValue, SSAValue]) -> None:
    """Raise the `Difference` of two ops, without regions. Adds the results to `values`, left -> right."""
    if left.name != right.name:
        raise Difference(f"{left.name} against {right.name}", left, right)
    stated = (("property", left.properties, right.properties), ("attribute", left.attributes, right.attributes))
    for what, ours, theirs in stated:
        for name in sorted(ours.keys() | theirs.keys()):
            a, b = ours.get(name, "none"), theirs.get(name, "none")
            if a != b:
                raise Difference(f"{what} '{name}' is {a} against {b}", left, right)
    if len(left.operands) != len(right.operands):
        raise Difference(f"{len(left.operands)} operands against {len(right.operands)}", left, right)
    for position, (a, b) in enumerate(zip(left.operands, right.operands, strict=True)):
        if not _same_operand(a, b, values):
            names = [_shown(v) for v in (a, b)]
            raise Difference(f"operand {position} is {names[0]} against {names[1]}", left, right)
    if [r.type for r in left.results] != [r.type for r in right.results]:
        types = [", ".join(str(r.type) for r in op.results) or "nothing" for op in (left, right)]
        raise Difference(f"gives {types[0]} against {types[1]}", left, right)
    values.update(zip(left.results, right.results, strict=True))


def _shown(value: SSAValue) -> str:
    number = scalar_constant(value)
    if number is not None:
        return str(number)
    return f"%{value.name_hint}" if value.name_hint else "another value"


def compare_ops(left: Operation, right: Operation, values: MutableMapping[SSAValue, SSAValue]) -> None:
    compare_headers(left, right, values)
    if len(left.regions) != len(right.regions):
        raise Difference(f"{len(left.regions)} regions against {len(right.regions)}", left, right)
    for ours, theirs in zip(left.regions, right.regions, strict=True):
        if len(ours.blocks) != len(theirs.blocks):
            raise Difference("a region differs in its number of blocks", left, right)
        for block, other in zip(ours.blocks, theirs.blocks, strict=True):
            if [v.type for v in block.args] != [v.type for v in other.args]:
                raise Difference("the body arguments differ in number or type", left, right)
            values.update(zip(block.args, other.args, strict=True))
            for a, b in zip_longest(compared_ops(block), compared_ops(other)):
                if a is None or b is None:
                    side = "left" if b is None else "right"
                    raise Difference(f"only the {side} program has another operation here", a, b)
                compare_ops(a, b, values)


def compared_ops(block: Block) -> Iterator[Operation]:
    return (op for op in block.ops if not op.results or scalar_constant(op.results[0]) is None)
