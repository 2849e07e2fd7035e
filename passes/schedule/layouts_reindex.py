"""reindex: a copy of a buffer with one dimension for each iterator that indexes it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import ClassVar

from xdsl.dialects import memref
from xdsl.dialects.builtin import DYNAMIC_INDEX, IndexType, MemRefType
from xdsl.ir import Block, Operation, OpResult, Region, SSAValue
from xdsl.pattern_rewriter import PatternRewriter
from xdsl.rewriter import InsertPoint

from weft.analysis.accesses import Context, accesses, is_fixed, range_of
from weft.analysis.checks import domain_of
from weft.analysis.coverage import Domain, missed_instance
from weft.analysis.dependence import buffer_name, undecided
from weft.analysis.index import Index, exprs_of
from weft.analysis.motion import disturbed_by_opaque, shared_element
from weft.analysis.replay_search import is_missed
from weft.analysis.sets import NotProved
from weft.analysis.structure import (
    buffers_stored_by,
    child_towards,
    function_of,
    is_inside,
    parts_of,
    reads_earlier,
    scope_of,
    writers_of,
)
from weft.dialects import sched
from weft.dialects.effects import op_name
from weft.dialects.tir import BlockOp
from weft.dialects.tir_kinds import SPATIAL, IterKind
from weft.dialects.tir_regions import AccessRegionOp
from weft.passes.index_ops import materialize
from weft.passes.schedule.caching import free_label
from weft.passes.schedule.copying import alloc_like, insert_alloc, memref_type
from weft.passes.schedule.layouts import buffer_at
from weft.passes.schedule.primitive import BufferPlace, Plan, block_text
from weft.passes.schedule.rehearsal import KEEPS_INDEPENDENCE, MovingPrimitive
from weft.passes.schedule.rewriting import nest, new_loop
from weft.passes.schedule.visibility import Place, why_not_visible
from weft.passes.tir.nest import erase_if_unused
from weft.support.errors import Violation


@dataclass(frozen=True)
class ReindexPlan(Plan):
    """A buffer, how the block indexes it, by which iterators, and the nest before (or after) which the copy runs."""

    block: BlockOp
    buffer: SSAValue
    indices: tuple[Index, ...]
    iterators: tuple[int, ...]
    reading: bool
    place: Operation

    def rewrite(self, rewriter: PatternRewriter) -> tuple[Operation, ...]:
        block, old = self.block, memref_type(self.buffer)
        name = free_label(function_of(block), f"{self.buffer.name_hint or 'buffer'}_reindex")
        extents = [block.extents[at] for at in self.iterators]
        shape = [extent if isinstance(extent, int) else DYNAMIC_INDEX for extent in extents]
        type_ = MemRefType(old.element_type, shape, memory_space=old.memory_space)
        alloc = alloc_like(type_, [extent for extent in extents if not isinstance(extent, int)], name)
        alloc.location = block.location
        insert_alloc(rewriter, self.buffer, alloc, ())
        self._redirect(alloc.memref)
        copy, outermost = self._copy(name, alloc.memref, extents)
        before, after = InsertPoint.before(self.place), InsertPoint.after(self.place)
        rewriter.insert([outermost], before if self.reading else after)
        return (copy,)

    def _redirect(self, new: SSAValue) -> None:
        """The block accesses the copy, by its iterators."""
        variables = [self.block.iter_vars[at] for at in self.iterators]
        exprs, operands = exprs_of([Index.of(variable) for variable in variables])
        for use in list(self.buffer.uses):
            op = use.operation
            if not is_inside(op, self.block):
                continue
            if isinstance(op, AccessRegionOp):
                stated = type(op)(new, exprs, operands)
                op.operands, op.properties = list(stated.operands), dict(stated.properties)
                stated.drop_all_references()
            else:
                old = list(op.operands[use.index + 1 :])
                op.operands = [*op.operands[: use.index], new, *variables]
                erase_if_unused([operand.op for operand in old if isinstance(operand, OpResult)])

    def _copy(self, name: str, new: SSAValue, extents: Sequence[int | SSAValue]) -> tuple[BlockOp, Operation]:
        loops = [new_loop(extent, f"ax{at}", self.block) for at, extent in enumerate(extents)]
        body = Block(arg_types=[IndexType()] * len(extents))
        variables = [self.block.iter_vars[at] for at in self.iterators]
        mapping: dict[SSAValue, Index] = {}
        for argument, variable in zip(body.args, variables, strict=True):
            argument.name_hint = variable.name_hint
            mapping[variable] = Index.of(argument)
        exprs, operands = exprs_of([Index.of(loop.induction_variable) for loop in loops])
        copy = BlockOp(name, [SPATIAL] * len(extents), extents, exprs, operands, Region(body))
        places: list[SSAValue] = []
        for index in self.indices:
            value, operations = materialize(index.substitute(mapping))
            body.add_ops(operations)
            places.append(value)
        own = list(body.args)
        source, target = ((self.buffer, places), (new, own)) if self.reading else ((new, own), (self.buffer, places))
        load = memref.LoadOp.get(*source)
        body.add_ops([load, memref.StoreOp.get(load.res, *target)])
        outermost = nest(loops, [copy]) or copy
        for op in outermost.walk():
            op.location = self.block.location
        return copy, outermost


@dataclass(frozen=True)
class Reindex(MovingPrimitive):
    """A block reads or writes a copy of a buffer that has a dimension for each iterator in its indices, in the order of
    the iterators, and that is indexed by just these.

    Requirements:
    1. the block reads or writes that many buffers
    2. all that the block does with the buffer are loads and stores with the same indices, over its iterators and values
       that are known outside of its nest
    3. every instance of these iterators accesses it: no guard or condition leaves elements out
    4. reading: nothing in the nest of the block writes the buffer
    5. writing: the block is the only writer of the buffer in its scope, does not read what was there before, and stores
       to different elements in different instances; nothing else in its nest accesses the buffer
    6. the extents of the iterators are known at the top of the function
    7. parallel and vectorized loops have independent iterations afterwards too

    An iterator that no index depends on over its domain, as `%v floordiv 64` below 64, has no dimension.
    The copy runs right before the nest of the block when reading, else right after it. Its block is called
    `<buffer>_reindex`, its loops ax0, ax1, ...

    ```mlir
    tir.block "C" iters(%vi: spatial<8>, %vj: spatial<4>) = [%i, %j] { memref.load %A[%vj, %vi * 2 + 1] ... }
    // reindex "C" {buffer = ["read", 0]}
    tir.for %ax0 in 8 { tir.for %ax1 in 4 {
      tir.block "A_reindex" iters(%vi: spatial<8>, %vj: spatial<4>) = [%ax0, %ax1] {
        A_reindex[%vi, %vj] = A[%vj, %vi * 2 + 1] } } }
    tir.block "C" iters(%vi: spatial<8>, %vj: spatial<4>) = [%i, %j] { memref.load %A_reindex[%vi, %vj] ... }
    ```
    """

    NAME: ClassVar[str] = "reindex"
    STEP: ClassVar[type[sched.StepOp]] = sched.ReindexOp
    REQUIREMENTS: ClassVar[tuple[str, ...]] = (
        "the block reads or writes that many buffers",
        "all accesses have the same indices, over iterators of the block",
        "every instance accesses the buffer",
        "nothing in the nest writes what is read",
        "what is written is the block's alone",
        "the extents of the iterators are known at the top of the function",
        KEEPS_INDEPENDENCE,
    )
    INDEPENDENCE: ClassVar[int] = 7

    block: BlockOp
    buffer: BufferPlace

    def draft(self) -> ReindexPlan:
        block, subject = self.block, block_text(self.block)
        buffer = buffer_at(self, block, self.buffer)
        reading = self.buffer[0] == "read"
        if len(parts_of(block)) > 1:
            self.refuse(3, "loop_partition made it one of several parts of a block", block, subject)
        place = child_towards(scope_of(block), block)
        indices = self._indices(buffer, place)
        simpler = tuple(index.simplified(range_of) for index in indices)
        iterators = tuple(
            at
            for at, (v, extent) in enumerate(zip(block.iter_vars, block.extents, strict=True))
            if any(i.depends_on([v]) for i in (indices if extent == 1 else simpler))
        )
        if not iterators:
            self.refuse(2, f"no iterator is in the indices of {buffer_name(buffer)}", block, subject)
        self._require_all(buffer, iterators)
        if reading:
            self._require_unchanged(buffer, place)
        else:
            self._require_own(buffer, place, iterators)
        for at in iterators:
            extent = block.extents[at]
            if not isinstance(extent, int) and not is_fixed(extent):
                self.refuse(6, f"the extent of %{block.iter_vars[at].name_hint or at} is not", block, subject)
        return ReindexPlan(block, block, buffer, simpler, iterators, reading, place)

    def _indices(self, buffer: SSAValue, place: Operation) -> tuple[Index, ...]:
        """The indices of all accesses of the block."""
        block, subject, name = self.block, block_text(self.block), buffer_name(buffer)
        found: dict[tuple[Index, ...], Operation] = {}
        for use in buffer.uses:
            op = use.operation
            if not is_inside(op, block) or isinstance(op, AccessRegionOp):
                continue
            if not isinstance(op, memref.LoadOp | memref.StoreOp) or op.memref is not buffer:
                self.refuse(2, f"{op_name(op)} works on {name} as it lies", op, subject)
            found.setdefault(tuple(Index.of(index) for index in op.indices), op)
        if len(found) != 1:
            texts = " and ".join(sorted(f"{name}[{', '.join(map(repr, indices))}]" for indices in found))
            self.refuse(2, f"it accesses {texts}", block, subject)
        (indices,) = found
        outer = [v for index in indices for v in index.values() if v not in block.iter_vars]
        self.require(2, why_not_visible(outer, Place.before_op(place)), block, subject)
        return indices

    def _require_all(self, buffer: SSAValue, iterators: Sequence[int]) -> None:
        """No instance is left out."""
        block, subject, name = self.block, block_text(self.block), buffer_name(buffer)
        around = Context.around(block).inside(block).conditions
        for access in accesses(block):
            if access.buffer is buffer and not access.in_init and access.conditions != around:
                self.refuse(3, f"a condition decides whether {name} is accessed", access.op, subject)
        whole = domain_of(block)
        bindings, extents = whole.bindings, whole.extents
        domain = Domain(
            whole.loops,
            tuple(bindings[at] for at in iterators),
            tuple(extents[at] for at in iterators),
            whole.conditions,
        )
        try:
            missed = missed_instance(domain, loops_run=True)
        except NotProved as error:
            self.refuse(3, undecided(error), block, subject)
        if missed is not None:
            names = [block.iter_vars[at].name_hint or f"v{at}" for at in iterators]
            point = {name: missed[("iterator", at)] for at, name in enumerate(names)}
            text = ", ".join(f"{name}={value}" for name, value in point.items())
            violation = Violation(
                f"its guards leave out instance ({text})",
                counterexample={"instance": point},
                replay=partial(is_missed, domain, missed),
            )
            self.refuse(3, violation, block, subject)

    def _require_unchanged(self, buffer: SSAValue, place: Operation) -> None:
        for use in buffer.uses:
            op = use.operation
            if is_inside(op, place) and buffer in buffers_stored_by(op):
                self.refuse(4, f"{op_name(op)} writes {buffer_name(buffer)} there", op, block_text(self.block))
        self.require(4, disturbed_by_opaque((place,), buffer, writes=True), self.block, block_text(self.block))

    def _require_own(self, buffer: SSAValue, place: Operation, iterators: Sequence[int]) -> None:
        block, subject, name = self.block, block_text(self.block), buffer_name(buffer)
        others = [writer for writer in writers_of(buffer, scope_of(block)) if writer is not block]
        if others:
            self.refuse(5, f'block "{others[0].label}" writes {name} too', others[0], subject)
        for use in buffer.uses:
            if is_inside(use.operation, place) and not is_inside(use.operation, block):
                self.refuse(5, f"{op_name(use.operation)} accesses {name} in the nest", use.operation, subject)
        self.require(5, disturbed_by_opaque((place,), buffer), block, subject)
        if reads_earlier(block, buffer):
            self.refuse(5, f"it reads {name} as it was before", block, subject)
        for at in iterators:
            if block.kinds[at] is IterKind.REDUCE:
                self.refuse(
                    5, f"reduce iterator %{block.iter_vars[at].name_hint or at} is in its indices", block, subject
                )
        self.require(5, shared_element(block), block, subject)
