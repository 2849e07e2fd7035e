"""Loops of StableHLO over the rows of tensors, as JAX emits for `lax.scan` and `lax.map`.

Source: jax/_src/lax/control_flow/loops.py. Loops count from 0; dynamic slices and updates access row `i` or `n - i -
1`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import cast

from xdsl.dialects.builtin import DYNAMIC_INDEX, IntegerType, TensorType
from xdsl.ir import Attribute, Block, BlockArgument, Operation, OpResult, SSAValue

from weft.dialects.stablehlo import CompareOp, DenseConstantOp, TensorOp, WhileOp


@dataclass(frozen=True)
class Row:
    source: SSAValue
    value: SSAValue
    is_reversed: bool


@dataclass(frozen=True)
class Stack:
    """A carried tensor of which each step writes a row, and reads none."""

    place: int
    """Index among the carried values."""
    value: SSAValue
    is_reversed: bool


@dataclass
class Scan:
    """A loop whose number of steps is known before it runs."""

    counter: int
    """Index among the carried values."""
    bound: SSAValue
    """The number of steps."""
    rows: list[Row] = field(default_factory=list[Row])
    stacks: list[Stack] = field(default_factory=list[Stack])

    @property
    def hidden(self) -> frozenset[int]:
        return frozenset({self.counter, *(stack.place for stack in self.stacks)})


def scan_of(op: WhileOp) -> Scan | None:
    """None for other loops. Requires that each step changes all carried values."""
    test = cast("Operation", op.cond.block.last_op).operands[0].owner
    if not isinstance(test, CompareOp) or test.comparison_direction.data != "LT":
        return None
    variable, bound = test.operands
    if variable not in op.cond.block.args or _is_inside(bound, op.cond.block):
        return None
    place = cast("BlockArgument", variable).index
    counter, end = op.body.block.args[place], cast("Operation", op.body.block.last_op)
    following = end.operands[place].owner
    adds = isinstance(following, TensorOp) and following.name == "stablehlo.add" and following.operands[0] is counter
    if not adds or _number(op.inputs[place]) != 0 or _number(cast("Operation", following).operands[1]) != 1:
        return None
    scan = Scan(place, bound)
    for inner in op.body.block.ops:
        row = _row(inner, op, counter, bound)
        if row is not None:
            scan.rows.append(row)
    for other, value in enumerate(end.operands):
        stack = _stack(other, value, op, counter, bound)
        if stack is not None:
            scan.stacks.append(stack)
    return scan


def _is_inside(value: SSAValue, block: Block) -> bool:
    owner = value.owner
    return owner is block if isinstance(owner, Block) else owner.parent is block


def _number(value: SSAValue) -> int | None:
    if (
        isinstance(value, OpResult)
        and isinstance(value.op, DenseConstantOp)
        and not _shape(value)
        and _is_integer(value)
    ):
        return int(cast("int", next(iter(value.op.value.get_values()))))
    return None


def _is_integer(value: SSAValue) -> bool:
    return isinstance(cast("TensorType[Attribute]", value.type).element_type, IntegerType)


def _shape(value: SSAValue) -> Sequence[int]:
    return tuple(cast("TensorType[Attribute]", value.type).get_shape())


def _is_reversed(index: SSAValue, counter: SSAValue, bound: SSAValue) -> bool | None:
    """True for `n - i - 1`, False for `i`, else None."""
    if index is counter:
        return False
    outer = index.owner
    if isinstance(outer, TensorOp) and outer.name == "stablehlo.subtract" and _number(outer.operands[1]) == 1:
        inner = outer.operands[0].owner
        if isinstance(inner, TensorOp) and inner.name == "stablehlo.subtract":
            is_same = inner.operands[0] is bound or (
                _number(bound) is not None and _number(inner.operands[0]) == _number(bound)
            )
            return True if is_same and inner.operands[1] is counter else None
    return None


def _direction(starts: Sequence[SSAValue], counter: SSAValue, bound: SSAValue) -> bool | None:
    if not starts or any(_number(start) != 0 for start in starts[1:]):
        return None
    return _is_reversed(starts[0], counter, bound)


def _lone_use(value: SSAValue) -> Operation | None:
    uses = list(value.uses)
    return uses[0].operation if len(uses) == 1 else None


def _row(op: Operation, loop: WhileOp, counter: SSAValue, bound: SSAValue) -> Row | None:
    """The row that a dynamic slice and a reshape read."""
    if op.name != "stablehlo.dynamic_slice" or _is_inside(op.operands[0], loop.body.block):
        return None
    direction = _direction(op.operands[1:], counter, bound)
    follower = _lone_use(op.results[0])
    if direction is None or follower is None or follower.name != "stablehlo.reshape":
        return None
    shape, part, row = map(_shape, (op.operands[0], op.results[0], follower.results[0]))
    if DYNAMIC_INDEX in shape[1:] or tuple(part) != (1, *shape[1:]) or tuple(row) != tuple(shape[1:]):
        return None
    if follower.parent is not loop.body.block or not _covers(shape[0], bound):
        return None
    return Row(op.operands[0], follower.results[0], direction)


def _covers(extent: int, bound: SSAValue) -> bool:
    """Whether a tensor has a row for each step; symbolic extents are compared later."""
    return (number := _number(bound)) == extent or (extent == DYNAMIC_INDEX and number is None)


def _stack(place: int, value: SSAValue, loop: WhileOp, counter: SSAValue, bound: SSAValue) -> Stack | None:
    """The tensor of which a dynamic update writes a row."""
    op, argument = value.owner, loop.body.block.args[place]
    if not isinstance(op, TensorOp) or op.name != "stablehlo.dynamic_update_slice" or op.operands[0] is not argument:
        return None
    if _lone_use(argument) is not op or _lone_use(value) is not loop.body.block.last_op:
        return None
    direction = _direction(op.operands[2:], counter, bound)
    update = op.operands[1].owner
    if direction is None or not isinstance(update, TensorOp) or len(update.operands) != 1:
        return None
    row, shape = update.operands[0], _shape(argument)
    is_row = update.name == "stablehlo.reshape" or (
        update.name == "stablehlo.broadcast_in_dim" and update.keyword("dims") == tuple(range(1, len(shape)))
    )
    if not is_row or tuple(_shape(row)) != tuple(shape[1:]) or DYNAMIC_INDEX in shape[1:]:
        return None
    return Stack(place, row, direction) if _covers(shape[0], bound) else None
