"""Statements of loop nests as `tir.block`s: each store with its computation, over the loops around it.

    tir.for %i in 8 {                                  tir.for %i in 8 {
      %a = memref.load %A[%i]                    ->      tir.block "B" iters(%vi: spatial<8>) = [%i] {
      memref.store %a, %B[%i]                              %a = memref.load %A[%vi]  memref.store %a, %B[%vi]

Operands are recomputed in the block. If an op in between may have written what they read, the statements up to there
become one block, or, if impossible, the value is kept in a temporary.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.dialects import affine, memref, scf
from xdsl.dialects.builtin import IndexType, MemRefType
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Block, BlockArgument, Operation, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from weft.analysis.block_scopes import ancestors, bindings_of, child_blocks, guards_of, precedes, stored_buffer
from weft.analysis.index import Index
from weft.dialects.aliasing import may_overlap
from weft.dialects.effects import effects_of, op_name, touches_memory, underlying
from weft.dialects.tir import BlockOp, ForOp
from weft.dialects.tir_kinds import REDUCE, SPATIAL
from weft.dialects.traversal import captured_values, copy_of, operations_in, operations_of
from weft.passes.convert.loop_normalization import LoopNormalization, only_reads
from weft.passes.index_builders import detached_ops, if_around, insert_before, replace_operands, result_before
from weft.passes.schedule.nest_builders import new_block, set_guards
from weft.support.errors import CompileError, InternalError
from weft.support.names import new_name


@dataclass
class _Statement:
    members: list[Operation]
    loops: list[ForOp]
    """The loops around it, outermost first."""


class StatementBlocks:
    def __init__(self, function: FuncOp, loops: LoopNormalization) -> None:
        self._function = function
        self._top = function.body.block
        self._normalized = loops
        self._labels = {op.label for op in operations_in(function) if isinstance(op, BlockOp)}
        self._kept: dict[Operation, Operation] = {}
        """Maps a store to a temporary to the op whose result it keeps."""

    def run(self) -> None:
        self._sink_conditions(self._top)
        # Terminates, because no op is kept twice: nothing is between an op and the stores that keep its results, and
        # only these stores write to the temporaries.
        while not self._find_statements():
            pass
        nests = [(block, self._loops_around(block)) for block in child_blocks(self._function)]
        for statement in self._statements:
            self._build(statement)
        for block, loops in nests:
            _adopt(block, loops)
        _erase_unused(self._top)

    def _loops_around(self, op: Operation) -> list[ForOp]:
        return [parent for parent in ancestors(op) if isinstance(parent, ForOp) and self._is_open(parent)][::-1]

    # Conditions

    def _sink_conditions(self, block: Block) -> None:
        """Move conditions into loops, and give each statement its own."""
        for op in list(block.ops):
            if isinstance(op, ForOp) and self._is_open(op):
                self._sink_conditions(op.body.block)
            elif isinstance(op, scf.IfOp) and not only_reads(op):
                self._split_condition(op)

    def _split_condition(self, op: scf.IfOp) -> None:
        branches = [region.block for region in op.regions if region.blocks]
        effects = [[inner for inner in block.ops if not only_reads(inner)] for block in branches]
        several = sum(map(len, effects)) > 1
        if not (several or any(self._is_nest(effect) for group in effects for effect in group)):
            return
        if any(result.first_use is not None for group in effects for effect in group for result in effect.results):
            return
        if any(self._reads_before(effect, group) for group in effects for effect in group):
            return
        for holds, block in zip((True, False), branches, strict=False):
            for effect in [inner for inner in block.ops if not only_reads(inner)]:
                self._insert_conditional(op, effect, holds)
        Rewriter.erase_op(op)

    def _is_nest(self, op: Operation) -> bool:
        return isinstance(op, ForOp) and self._is_open(op)

    def _reads_before(self, effect: Operation, effects: Sequence[Operation]) -> bool:
        """Whether an effect in a branch needs a value read before an op there may write it."""
        for source in _sources_within(effect, effect.parent):
            reads = [op for op in operations_in(source) if touches_memory(op)]
            behind = [other for other in effects if other is not effect and precedes(source, other)]
            behind = [other for other in behind if precedes(other, effect)]
            if reads and any(
                self._may_write(o, reads) for o in [*behind, *([effect] if self._is_nest(effect) else [])]
            ):
                return True
        return False

    def _insert_conditional(self, op: scf.IfOp, effect: Operation, holds: bool) -> None:
        mapping: dict[SSAValue, SSAValue] = {}
        copies = [copy_of(source, mapping) for source in _sources_within(effect, effect.parent)]
        effect.detach()
        if isinstance(effect, ForOp) and self._is_open(effect):
            inside = detached_ops(effect.body.block)
            replace_operands(inside, mapping)
            effect.body.block.add_op(_conditional(op.cond, [*copies, *inside], holds))
            Rewriter.insert_op(effect, InsertPoint.before(op))
            self._sink_conditions(effect.body.block)
        else:
            replace_operands([effect], mapping)
            insert_before(op, [_conditional(op.cond, [*copies, effect], holds)])

    # Statements

    def _is_open(self, loop: ForOp) -> bool:
        """Whether a loop contains statements, and is part neither of one nor of a nest of tir."""
        return loop in self._normalized.static

    def _find_statements(self) -> bool:
        """False if a value has moved to a temporary, so that the list must be rebuilt."""
        self._order = {op: at for at, op in enumerate(operations_in(self._function))}
        self._statements: list[_Statement] = []
        self._collect(self._top, [])
        for member in [statement.members[0] for statement in self._statements]:
            uses = (use.operation for result in member.results for use in result.uses)
            if any(not member.is_ancestor(user) and self._kept.get(user) is not member for user in uses):
                self._keep(member)
                return False
        at = 0
        while at < len(self._statements):
            statement = self._statements[at]
            for value_op in self._slice(statement):
                conflicts = self._conflicts(value_op, statement)
                if not conflicts:
                    continue
                near = value_op.parent is statement.members[0].parent
                merged = self._merge(conflicts[0], statement) if near else None
                if merged is None:
                    self._keep(value_op)
                    return False
                at = merged - 1
                break
            at += 1
        return True

    def _collect(self, block: Block, loops: list[ForOp]) -> None:
        for op in block.ops:
            if isinstance(op, ForOp) and self._is_open(op):
                self._collect(op.body.block, [*loops, op])
            elif not only_reads(op) and not _is_left(op):
                kept = self._kept.get(op)
                if kept is not None and not only_reads(kept):
                    self._statements[-1].members.append(op)
                else:
                    self._statements.append(_Statement([op], loops))

    def _slice(self, statement: _Statement) -> list[Operation]:
        found: set[Operation] = set()
        pending = [value for member in statement.members for value in (*member.operands, *captured_values(member))]
        while pending:
            value = pending.pop()
            op = value.owner
            if isinstance(op, Block) or op in found or op in statement.members:
                continue
            if op.parent is self._top and (not isinstance(op, memref.LoadOp) or self._conflicts(op, statement)):
                continue  # it is computed before the loops
            if any(member.is_ancestor(op) for member in statement.members) or not only_reads(op):
                continue
            found.add(op)
            pending += [*op.operands, *captured_values(op)]
        return sorted(found, key=self._order.__getitem__)

    def _conflicts(self, value_op: Operation, statement: _Statement) -> list[Operation]:
        """Ops that may write what a value reads, before a statement recomputes it."""
        reads = [op for op in operations_in(value_op) if touches_memory(op)]
        block = value_op.parent
        if not reads or block is None:
            return []
        first = statement.members[0]
        if self._order[value_op] > self._order[first]:
            return []  # it is between members, which keep their order
        target = block.find_ancestor_op_in_block(first)
        found: list[Operation] = []
        op = value_op.next_op
        while op is not None and op is not target:
            if not only_reads(op) and self._may_write(op, reads):
                found.append(op)
            op = op.next_op
        if target is not None and target is not first and self._may_write(target, reads):
            found.append(target)
        return found

    def _may_write(self, effect: Operation, reads: Sequence[Operation]) -> bool:
        for op in operations_in(effect):
            if not touches_memory(op):
                continue
            effects = effects_of(op)
            for read in reads:
                buffers = effects_of(read).reads
                if effects.is_opaque and not all(buffer in self._normalized.temporaries for buffer in buffers):
                    return True
                for written in effects.writes:
                    if any(_may_touch(op, written, read, buffer) for buffer in buffers):
                        return True
        return False

    def _merge(self, effect: Operation, statement: _Statement) -> int | None:
        """Merge statements from `effect` up to `statement`. Returns the index of the result; None for a nest in
        between."""
        at = self._statements.index(statement)
        start = next(
            (
                n
                for n in range(at)
                if self._statements[n].members[0].parent is effect.parent and effect in self._statements[n].members
            ),
            None,
        )
        if start is None or any(s.members[0].parent is not effect.parent for s in self._statements[start : at + 1]):
            return None
        members = [member for s in self._statements[start : at + 1] for member in s.members]
        between: Operation | None = members[0]
        while between is not None and between is not members[-1]:
            if not only_reads(between) and between not in members and not _is_left(between):
                return None
            between = between.next_op
        self._statements[start : at + 1] = [_Statement(members, statement.loops)]
        return start

    def _keep(self, op: Operation) -> None:
        loops = self._loops_around(op)
        anchor, block = op.next_op, op.parent
        if anchor is None or block is None:
            raise InternalError(f"nothing behind {op.name} uses its results")
        if op in self._kept.values():
            raise InternalError(f"the results of {op.name} are in temporaries already")
        for result in op.results:
            if isinstance(result.type, MemRefType):
                raise CompileError.at(op, f"{op_name(op)} returns a buffer whose aliases are not known")
            buffer, indices = self._normalized.temporary(result.type, result.name_hint, op, loops)
            uses = list(result.uses)
            store = memref.StoreOp.get(result, buffer, indices)
            self._kept[store] = op
            insert_before(anchor, [store])
            value = result_before(memref.LoadOp.get(buffer, indices), anchor)
            value.name_hint = result.name_hint
            for use in uses:
                use.operation.operands[use.index] = value

    # Blocks

    def _build(self, statement: _Statement) -> None:
        sources = self._slice(statement)
        loops, first = statement.loops, statement.members[0]
        variables = [loop.induction_variable for loop in loops]
        hints = [f"v{variable.name_hint or at}" for at, variable in enumerate(variables)]
        stores = [op for member in statement.members for op in operations_in(member)]
        kinds = [SPATIAL] * len(loops)
        indexed = [
            {s for index in op.indices for s in Index.of(index).sources()}
            for op in stores
            if isinstance(op, memref.StoreOp)
        ]
        plain = all(
            isinstance(op, memref.StoreOp) or not touches_memory(op) or not effects_of(op).writes for op in stores
        )
        if plain:
            kinds = [SPATIAL if any(v in one for one in indexed) else REDUCE for v in variables]
        block = new_block(
            self._label(statement),
            kinds,
            [loop.extent for loop in loops],
            [Index.of(v) for v in variables],
            hints,
            first,
        )
        mapping: dict[SSAValue, SSAValue] = dict(zip(variables, block.iter_vars, strict=True))
        for op in sorted([*sources, *statement.members], key=self._order.__getitem__):
            block.body.block.add_op(copy_of(op, mapping))
        _share_indices(block.body.block, {})
        Rewriter.insert_op(block, InsertPoint.before(first))
        for member in reversed(statement.members):
            Rewriter.erase_op(member)

    def _label(self, statement: _Statement) -> str:
        wanted: str | None = None
        for op in reversed([op for member in statement.members for op in operations_in(member)]):
            buffer = stored_buffer(op)
            if buffer is not None:
                wanted = buffer.name_hint or (f"arg{buffer.index}" if isinstance(buffer, BlockArgument) else "block")
                break
        return new_name(wanted or op_name(statement.members[-1]).replace(".", "_"), self._labels)


def _adopt(block: BlockOp, loops: Sequence[ForOp]) -> None:
    """Give an existing block an iterator per loop: its instances, including its init, run again in every iteration."""
    if not loops:
        return
    kind = REDUCE if block.init is None else SPATIAL
    count = len(loops)
    values = [Index.of(loop.induction_variable) for loop in loops]
    for at, loop in enumerate(loops):
        variable = block.body.block.insert_arg(IndexType(), at)
        variable.name_hint = f"v{loop.induction_variable.name_hint or at}"
        loop.induction_variable.replace_uses_with_if(
            variable, lambda use: block.is_ancestor(use.operation) and use.operation is not block
        )
    bindings = [*values, *bindings_of(block)]
    extents = [*(loop.extent for loop in loops), *block.extents]
    new = new_block(
        block.label,
        [*[kind] * count, *block.iter_kinds],
        extents,
        bindings,
        [None] * len(extents),
        block,
        block.attributes,
    )
    guards = guards_of(block)
    _share_indices(block.body.block, {})
    region = block.detach_region(0)
    new.detach_region(0).drop_all_references()
    new.add_region(region)
    Rewriter.replace_op(block, new, [])
    set_guards(new, guards)


def _share_indices(block: Block, known: dict[Index, SSAValue]) -> None:
    """Compute each index once, so that updates of one element are recognised."""
    known = dict(known)
    for op in list(block.ops):
        if isinstance(op, affine.ApplyOp):
            same = known.setdefault(Index.of(op.result), op.result)
            if same is not op.result:
                op.result.replace_all_uses_with(same)
                Rewriter.erase_op(op)
        for region in op.regions:
            for inner in region.blocks:
                _share_indices(inner, known)


def _is_left(op: Operation) -> bool:
    """Whether an op stays in place: an allocation, block or nest of tir, assumption, or end of the function."""
    if isinstance(op, memref.AllocOp | BlockOp | ReturnOp | scf.YieldOp):
        return True
    if isinstance(op, ForOp):
        return bool(operations_of(op, BlockOp))
    return op.name.startswith("tir.") or not (op.regions or touches_memory(op))


def _may_touch(op: Operation, written: SSAValue, read: Operation, buffer: SSAValue) -> bool:
    """Whether a write of `op` may change what `read` reads, in one iteration."""
    one, other = underlying(written), underlying(buffer)
    if one is not other:
        return may_overlap(one, other)
    if not isinstance(op, memref.StoreOp) or not isinstance(read, memref.LoadOp) or written is not buffer:
        return True
    differences = [Index.of(a) - Index.of(b) for a, b in zip(op.indices, read.indices, strict=True)]
    return not any(difference.is_constant and difference.constant for difference in differences)


def _sources_within(effect: Operation, block: Block | None) -> list[Operation]:
    found: set[Operation] = set()
    pending = [*effect.operands, *captured_values(effect)]
    while pending:
        op = pending.pop().owner
        if isinstance(op, Operation) and op.parent is block and op not in found:
            found.add(op)
            pending += [*op.operands, *captured_values(op)]
    return [] if block is None else [op for op in block.ops if op in found]


def _conditional(condition: SSAValue, ops: Sequence[Operation], holds: bool) -> scf.IfOp:
    return if_around(condition, ops) if holds else if_around(condition, (), ops)


def _erase_unused(block: Block) -> None:
    for op in reversed(list(block.ops)):
        if isinstance(op, ForOp):
            _erase_unused(op.body.block)
        if (
            only_reads(op)
            and not isinstance(op, scf.YieldOp)
            and all(result.first_use is None for result in op.results)
        ):
            Rewriter.erase_op(op)
