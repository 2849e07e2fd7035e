"""Partition of a loop into consecutive loops."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.dialects.builtin import StringAttr
from xdsl.ir import Operation
from xdsl.rewriter import InsertPoint, Rewriter

from weft.analysis.accesses import Context, range_of
from weft.analysis.block_scopes import bindings_of, child_blocks, function_of
from weft.analysis.index import Index
from weft.dialects.tir import BlockOp, ForOp
from weft.dialects.tir_kinds import PART_OF, IterKind
from weft.dialects.traversal import copy_of
from weft.passes.index_builders import detached_ops
from weft.passes.schedule.nest_builders import empty_copy, replace_loop_value
from weft.passes.schedule.primitive import Plan
from weft.passes.schedule.split import inferred_factor
from weft.passes.schedule.trial_application import RecheckedPrimitive
from weft.support.errors import Violation
from weft.support.names import free_name


@dataclass(frozen=True)
class LoopPartitionPlan(Plan):
    loop: ForOp
    lengths: tuple[int, ...]

    def rewrite(self) -> tuple[Operation, ...]:
        loop = self.loop
        blocks = [op for op in function_of(loop).walk() if isinstance(op, BlockOp)]
        labels = {block.label for block in blocks}
        groups = {group.data for block in blocks if isinstance(group := block.attributes.get(PART_OF), StringAttr)}
        partitioned = _partitioned_blocks(loop)
        for block in partitioned:
            if PART_OF not in block.attributes:
                group = free_name(block.label, groups)
                groups.add(group)
                block.attributes[PART_OF] = StringAttr(group)
        whole = {block.label for block in loop.walk() if isinstance(block, BlockOp)} - {b.label for b in partitioned}
        parts: list[ForOp] = []
        start = 0
        for at, length in enumerate(self.lengths):
            part = _part(loop, at, start, length)
            Rewriter.insert_op(part, InsertPoint.before(loop))
            _separate_groups(part, whole, groups)
            for op in part.walk():
                if isinstance(op, BlockOp):
                    op.block_name = StringAttr(free_name(f"{op.label}_{part.induction_variable.name_hint}", labels))
                    labels.add(op.label)
            for block in child_blocks(part):
                _drop_idle_init(block)
            parts.append(part)
            start += length
        Rewriter.erase_op(loop)
        return tuple(parts)


def _partitioned_blocks(loop: ForOp) -> list[BlockOp]:
    """Blocks whose domain the parts cover together, including nested ones whose bindings depend on the loop through
    enclosing blocks."""
    own = child_blocks(loop)
    return [
        block
        for block in loop.walk()
        if isinstance(block, BlockOp)
        and (
            block in own
            or any(i.depends_on([loop.induction_variable]) for i in Context.around(block).resolve_map(block))
        )
    ]


def _separate_groups(part: ForOp, labels: set[str], groups: set[str]) -> None:
    """Each copy of the loop covers the domains of the blocks `labels`."""
    renamed: dict[str, StringAttr] = {}
    for block in part.walk():
        group = block.attributes.get(PART_OF)
        if isinstance(block, BlockOp) and block.label in labels and isinstance(group, StringAttr):
            if group.data not in renamed:
                renamed[group.data] = StringAttr(free_name(group.data, groups))
                groups.add(renamed[group.data].data)
            block.attributes[PART_OF] = renamed[group.data]


def _part(loop: ForOp, at: int, start: int, length: int) -> ForOp:
    copy = copy_of(loop)
    part = empty_copy(loop, length, f"{loop.induction_variable.name_hint or 'i'}{at}")
    part.body.block.add_ops(detached_ops(copy.body.block))
    value = Index.of(part.induction_variable) + start
    replace_loop_value(copy.induction_variable, value, part.body.block)
    copy.erase()
    return part


def _drop_idle_init(block: BlockOp) -> None:
    """If a reduce iterator is never 0 in this part, the init runs in an earlier one."""
    if block.init is None:
        return
    bindings = bindings_of(block)
    for index, kind in zip(bindings, block.kinds, strict=True):
        low = index.range(range_of)[0]
        if kind is IterKind.REDUCE and low is not None and low > 0:
            Rewriter.erase_op(block.init)
            return


@dataclass(frozen=True)
class LoopPartition(RecheckedPrimitive):
    """Partition a loop into consecutive loops, each with the number of iterations that its factor gives. At most one
    factor (0) is inferred, and a last loop has the remaining iterations.

    Requirements:
    1. the loop is serial
    2. at most one factor is inferred and the others are positive
    3. the extent is static and the factors add up to no more
    4. loops that run in parallel stay independent: no temporary that is private to each iteration is used in several
       copies of the loop

    Every instance runs once and in its old order, without guards. Blocks are copied: the part of "C" in loop %i0 is
    `C_i0`. `tir.part_of` names the group of blocks that cover a domain together. The init of a reduction stays in the
    parts in which it runs.

    ```mlir
    tir.for %i in 128 { tir.block "C" iters(%v: spatial<128>) = [%i] {...} }
    // loop_partition %i {factors = [2, 0]}
    tir.for %i0 in 2 { tir.block "C_i0" iters(%v: spatial<128>) = [%i0] attributes {tir.part_of = "C"} {...} }
    tir.for %i1 in 126 { tir.block "C_i1" iters(%v: spatial<128>) = [%i1 + 2] attributes {tir.part_of = "C"} {...} }
    ```
    """

    loop: ForOp
    factors: tuple[int, ...]

    def draft(self) -> LoopPartitionPlan:
        inferred = inferred_factor(self, self.loop, self.factors)
        extent, known = self.loop.extent, sum(self.factors)
        if not isinstance(extent, int):
            detail = "the extent is only known at run time"
            self.refuse(3, Violation(detail, legal="split the loop by a constant first"), self.loop)
        lengths = list(self.factors)
        if inferred is not None:
            lengths[inferred] = extent - known
        elif known < extent:
            lengths.append(extent - known)
        if sum(lengths) != extent or min(lengths) < 1:
            detail = f"factors {list(self.factors)} add up to {known}, the loop runs {extent} times"
            room = f"no more than {extent}"
            if inferred is not None:
                room = f"less than {extent}, so that the inferred one is at least 1"
            self.refuse(3, Violation(detail, legal=f"factors that add up to {room}"), self.loop)
        return LoopPartitionPlan(self.loop, tuple(lengths))
