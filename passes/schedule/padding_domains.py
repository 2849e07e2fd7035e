"""Iterators whose domain is padded together with the loop that they are bound to."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import DYNAMIC_INDEX, DenseArrayBase, IntegerAttr, i32, i64
from xdsl.ir import Operation, SSAValue
from xdsl.pattern_rewriter import PatternRewriter
from xdsl.rewriter import InsertPoint

from weft.analysis.index import Index
from weft.analysis.structure import child_towards, function_of
from weft.dialects.effects import only_computes
from weft.dialects.tir import BlockOp, ForOp
from weft.dialects.tir_kinds import LoopKind
from weft.passes.index_ops import materialize


def own_loops(block: BlockOp) -> list[ForOp]:
    """The loops around a block that hold nothing else, outermost first."""
    found: list[ForOp] = []
    child: Operation = block
    parent = block.parent_op()
    while isinstance(parent, ForOp) and all(op is child or only_computes(op) for op in parent.body.block.ops):
        found.append(parent)
        child, parent = parent, parent.parent_op()
    return found[::-1]


def why_no_loop_of_its_own(block: BlockOp, position: int) -> str | None:
    """Why an iterator is not bound to a loop that holds only the block, has the iterator's extent, and is used for
    nothing else: None when it is."""
    name = f"%{block.iter_vars[position].name_hint or position}"
    loop = loop_of(block, position)
    if loop is None:
        return f"iterator {name} is not bound to a single loop"
    shown = f"%{loop.induction_variable.name_hint or '?'}"
    if loop not in own_loops(block):
        return f"loop {shown} of iterator {name} holds more than the block"
    if Index.of(loop.extent) != Index.of(block.extents[position]):
        return f"loop {shown} and iterator {name} differ in extent"
    others = [index for at, index in enumerate(bindings_of(block)) if at != position]
    if loop.induction_variable.get_user_of_unique_use() is not block or any(
        index.depends_on([loop.induction_variable]) for index in others
    ):
        return f"loop {shown} is used for more than iterator {name}"
    if loop.kind.data is LoopKind.THREAD_BINDING:
        return f"loop {shown} is bound to a thread axis"
    return None


def bindings_of(block: BlockOp) -> tuple[Index, ...]:
    return Index.of_map(block.bindings.data, block.binding_operands)


def loop_of(block: BlockOp, position: int) -> ForOp | None:
    """The loop whose value an iterator is."""
    value = bindings_of(block)[position].single_value
    owner = None if value is None else value.owner.parent_op()
    return owner if isinstance(owner, ForOp) else None


def set_loop_extent(loop: ForOp, extent: int | SSAValue) -> None:
    """Let a loop run so often."""
    loop.static_extent = IntegerAttr(extent, i64) if isinstance(extent, int) else None
    loop.operands = [] if isinstance(extent, int) else [extent]


def set_extents(block: BlockOp, extents: Sequence[int | SSAValue]) -> None:
    """Give the iterators of a block other domains."""
    bindings, guards = tuple(block.binding_operands), tuple(block.guard_operands)
    values = [extent for extent in extents if not isinstance(extent, int)]
    static = [extent if isinstance(extent, int) else DYNAMIC_INDEX for extent in extents]
    block.static_extents = DenseArrayBase.from_list(i64, static)
    block.operands = (*values, *bindings, *guards)
    block.properties["operandSegmentSizes"] = DenseArrayBase.from_list(i32, [len(values), len(bindings), len(guards)])


def extent_value(rewriter: PatternRewriter, index: Index, at: Operation) -> int | SSAValue:
    """An extent as a number, or as a value that is computed at the top level of the function, before `at`."""
    if index.is_constant:
        return index.constant
    value, operations = materialize(index)
    for op in operations:
        op.location = at.location
    rewriter.insert(operations, InsertPoint.before(child_towards(function_of(at), at)))
    return value
