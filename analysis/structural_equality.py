"""Are two modules the same program up to the names of values? And where do they first differ?

Scalar constants compare by value wherever they are used; where and how often they are written says nothing.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, MutableMapping

from xdsl.dialects.arith import ConstantOp
from xdsl.dialects.builtin import FloatAttr, IntegerAttr
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue

from weft.support.argument_types import checked
from weft.support.locations import render_operation


class Difference(Exception):
    """The first place where two programs differ: a message, and the op on each side where there is one."""

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
    """Whether two programs are equal up to the names of SSA values, source locations and places of constants."""
    return first_difference(left, right) is None


@checked
def assert_structural_equal(left: Operation, right: Operation) -> None:
    """Raise `AssertionError` with the first difference and its place when two programs are not equal."""
    difference = first_difference(left, right)
    if difference is not None:
        raise AssertionError(f"the programs differ: {difference}")


def first_difference(left: Operation, right: Operation) -> Difference | None:
    """The first difference in program order, or None when the programs are equal."""
    try:
        compare_ops(left, right, {})
    except Difference as difference:
        return difference
    return None


def scalar_constant(value: SSAValue) -> Attribute | None:
    """The number or bool that a value is, if it is a scalar constant."""
    owner = value.owner
    if isinstance(owner, ConstantOp) and isinstance(owner.value, IntegerAttr | FloatAttr):
        return owner.value
    return None


def _same_operand(left: SSAValue, right: SSAValue, values: Mapping[SSAValue, SSAValue]) -> bool:
    a, b = scalar_constant(left), scalar_constant(right)
    if isinstance(a, FloatAttr) and isinstance(b, FloatAttr):  # in Python -0.0 equals 0.0, and NaN not itself
        x, y = a.value.data, b.value.data
        same = math.copysign(1.0, x) == math.copysign(1.0, y) and (x == y or (math.isnan(x) and math.isnan(y)))
        return a.type == b.type and same
    if a is not None or b is not None:
        return a == b
    return values.get(left, left) is right


def compare_headers(left: Operation, right: Operation, values: MutableMapping[SSAValue, SSAValue]) -> None:
    """Raise the `Difference` of two ops whose regions are not looked at; `values` maps left ones to right ones, and
    gets those that the ops define."""
    if left.name != right.name:
        raise Difference(f"{left.name} against {right.name}", left, right)
    _compare_attributes("property", left.properties, right.properties, left, right)
    _compare_attributes("attribute", left.attributes, right.attributes, left, right)
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
    """As `compare_headers`, regions included."""
    compare_headers(left, right, values)
    if len(left.regions) != len(right.regions):
        raise Difference(f"{len(left.regions)} regions against {len(right.regions)}", left, right)
    for a, b in zip(left.regions, right.regions, strict=True):
        _compare_regions(a, b, left, right, values)


def _compare_attributes(
    what: str,
    left: Mapping[str, Attribute],
    right: Mapping[str, Attribute],
    left_op: Operation,
    right_op: Operation,
) -> None:
    for name in sorted(left.keys() | right.keys()):
        a, b = left.get(name), right.get(name)
        if a != b:
            shown = ["none" if value is None else str(value) for value in (a, b)]
            raise Difference(f"{what} '{name}' is {shown[0]} against {shown[1]}", left_op, right_op)


def _compare_regions(
    left: Region, right: Region, left_op: Operation, right_op: Operation, values: MutableMapping[SSAValue, SSAValue]
) -> None:
    if len(left.blocks) != len(right.blocks):
        raise Difference("a region differs in its number of blocks", left_op, right_op)
    for a, b in zip(left.blocks, right.blocks, strict=True):
        if [v.type for v in a.args] != [v.type for v in b.args]:
            raise Difference("the body arguments differ in number or type", left_op, right_op)
        values.update(zip(a.args, b.args, strict=True))
        _compare_bodies(a, b, left_op, right_op, values)


def _compare_bodies(
    left: Block, right: Block, left_op: Operation, right_op: Operation, values: MutableMapping[SSAValue, SSAValue]
) -> None:
    a, b = _skip_constants(left.first_op), _skip_constants(right.first_op)
    while a is not None and b is not None:
        compare_ops(a, b, values)
        a, b = _skip_constants(a.next_op), _skip_constants(b.next_op)
    if a is not None or b is not None:
        side = "left" if a is not None else "right"
        raise Difference(f"only the {side} program has another operation here", a, b)


def _skip_constants(op: Operation | None) -> Operation | None:
    """`op`, or the first after it that is no scalar constant."""
    while op is not None and op.results and scalar_constant(op.results[0]) is not None:
        op = op.next_op
    return op
