"""Dominance of operands over the place to which an operation moves.

`hoist` moves constants and temporaries of static shape to the start of the function.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence

from xdsl.dialects import arith, memref
from xdsl.ir import Block, Operation, SSAValue
from xdsl.rewriter import InsertPoint

from weft.analysis.block_scopes import ancestors, function_of, preceding
from weft.analysis.index import Index
from weft.dialects.tir import BlockOp, ForOp
from weft.dialects.traversal import captured_values
from weft.passes.index_builders import insert_at_start
from weft.passes.schedule.primitive import value_text


def not_dominating(values: Iterable[SSAValue], place: InsertPoint) -> list[SSAValue]:
    values = list(values)
    following: dict[Block | None, Operation | None] = {}
    """Each block around the place -> the op in it that follows."""
    block, op = place.block, place.insert_before
    while True:
        following[block] = op
        op = block.parent_op()
        if op is None or op.parent is None:
            break
        block = op.parent
    owners = {value.owner for value in values}
    known = {owner for owner in owners if isinstance(owner, Block) and owner in following}
    by_home: dict[Block | None, set[Operation]] = defaultdict(set)
    for owner in owners:
        if isinstance(owner, Operation) and owner.parent in following:
            by_home[owner.parent].add(owner)
    for home, operations in by_home.items():
        known |= preceding(operations, following[home])
    return [value for value in values if value.owner not in known]


def values_outside(
    block: BlockOp, loops: Sequence[ForOp], indices: Iterable[Index], more: Iterable[int | SSAValue]
) -> tuple[SSAValue, ...]:
    """Values that a copy of a block, in copies of loops, uses from outside."""
    own = {*block.iter_vars, *(loop.induction_variable for loop in loops)}
    used = [*(value for index in indices for value in index.values()), *more, *(loop.extent for loop in loops)]
    return tuple(value for value in dict.fromkeys(used) if not isinstance(value, int) and value not in own)


def values_of_block(block: BlockOp) -> list[SSAValue]:
    return [*block.extent_operands, *captured_values(block)]


def _can_be_hoisted(value: SSAValue) -> bool:
    owner = value.owner
    return isinstance(owner, arith.ConstantOp) or (isinstance(owner, memref.AllocOp) and not owner.operands)


def why_not_dominating(values: Iterable[SSAValue], place: InsertPoint) -> str | None:
    """The reason holds even after `hoist`."""
    for value in not_dominating(values, place):
        if not _can_be_hoisted(value):
            return f"it uses {value_text(value)}, which is not known there"
    return None


def hoist(values: Iterable[SSAValue], place: InsertPoint) -> None:
    for value in not_dominating(values, place):
        owner = value.owner
        if isinstance(owner, Operation) and _can_be_hoisted(value):
            entry = function_of(owner).body.blocks[0]
            owner.detach()
            insert_at_start(entry, owner)


def outermost_place(loop: Operation, index: Index) -> InsertPoint:
    """The outermost place at which `index` can be computed; keeps the nest perfect."""
    place = InsertPoint.before(loop)
    for parent in ancestors(loop):
        if not isinstance(parent, ForOp):
            break
        further = InsertPoint.before(parent)
        if not_dominating(index.values(), further):
            break
        place = further
    return place
