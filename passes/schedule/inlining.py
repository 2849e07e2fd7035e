"""compute_inline, reverse_compute_inline: a block becomes part of those that read it, or of the one that it reads."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from xdsl.dialects import memref
from xdsl.ir import Operation, SSAValue
from xdsl.pattern_rewriter import PatternRewriter
from xdsl.rewriter import InsertPoint

from weft.analysis.accesses import range_of
from weft.analysis.dependence import buffer_name, is_temporary
from weft.analysis.index import Index
from weft.analysis.motion import actions_between, passing_conflict, shared_element
from weft.analysis.structure import (
    buffers_loaded,
    buffers_written,
    child_blocks,
    child_towards,
    is_inside,
    precedes,
    scope_of,
    why_not_complete,
)
from weft.dialects import sched
from weft.dialects.low_access import AccessPtrOp
from weft.dialects.tir import BlockOp
from weft.dialects.tir_regions import AccessRegionOp
from weft.dialects.traversal import copy_of
from weft.passes.index_ops import materialize
from weft.passes.schedule.inlining_order import overwritten_before_use, overwritten_by_consumer
from weft.passes.schedule.primitive import Plan, Primitive, block_text
from weft.passes.schedule.rehearsal import KEEPS_INDEPENDENCE, MovingPrimitive
from weft.passes.schedule.rewriting import erase_empty_loops
from weft.passes.schedule.visibility import Place, lift, values_used_by, why_not_visible
from weft.support.errors import InternalError


def stores_of(block: BlockOp) -> list[memref.StoreOp]:
    return [op for op in block.walk() if isinstance(op, memref.StoreOp)]


def loads_of(block: BlockOp, buffer: SSAValue) -> list[memref.LoadOp]:
    return [op for op in block.walk() if isinstance(op, memref.LoadOp) and op.memref is buffer]


def inverse_of(block: BlockOp, indices: Sequence[SSAValue]) -> dict[SSAValue, tuple[int, int]] | None:
    """Iterator -> (dimension, constant) when each dimension is one iterator of its own plus a constant, and every
    iterator has a dimension; None when the indices cannot be inverted so."""
    found: dict[SSAValue, tuple[int, int]] = {}
    iterators = set(block.iter_vars)
    for dimension, operand in enumerate(indices):
        index = Index.of(operand)
        if not index.terms:
            continue
        variable = (index - index.constant).single_value
        if variable is None or variable not in iterators or variable in found:
            return None
        found[variable] = (dimension, index.constant)
    missing = [v for v, extent in zip(block.iter_vars, block.extents, strict=True) if v not in found and extent != 1]
    return None if missing else found


def ranges_of(
    block: BlockOp, indices: Sequence[SSAValue], inverse: Mapping[SSAValue, tuple[int, int]]
) -> list[tuple[int, Index]]:
    """First element and extent in each dimension of an access with this inverse."""
    extents: dict[SSAValue, int | SSAValue] = dict(zip(block.iter_vars, block.extents, strict=True))
    by_dimension = {dimension: (shift, Index.of(extents[v])) for v, (dimension, shift) in inverse.items()}
    return [by_dimension.get(at, (Index.of(index).constant, Index({}, 1))) for at, index in enumerate(indices)]


def clone_body(
    block: BlockOp, values: dict[SSAValue, SSAValue], skip: Operation
) -> tuple[list[Operation], dict[SSAValue, SSAValue]]:
    """Copies of the ops of a block with values replaced, without `skip` and the access annotations."""
    operations = [
        copy_of(op, values) for op in block.body.block.ops if op is not skip and not isinstance(op, AccessRegionOp)
    ]
    return operations, values


def remove_block(rewriter: PatternRewriter, block: BlockOp) -> None:
    """Erase a block, and the loops that become empty."""
    parent = block.parent_op()
    rewriter.erase(block)
    erase_empty_loops(parent)


def remove_if_unused(rewriter: PatternRewriter, buffer: SSAValue) -> None:
    """Erase the allocation of a buffer that nobody uses any more."""
    if buffer.first_use is None and isinstance(buffer.owner, Operation):
        rewriter.erase(buffer.owner)


def insert_values(
    rewriter: PatternRewriter, indices: Mapping[SSAValue, Index], point: InsertPoint
) -> dict[SSAValue, SSAValue]:
    """Values of indices, computed at a point; shared between equal ones."""
    known: dict[Index, SSAValue] = {}
    result: dict[SSAValue, SSAValue] = {}
    for variable, index in indices.items():
        if index not in known:
            value, operations = materialize(index)
            rewriter.insert(operations, point)
            known[index] = value
        result[variable] = known[index]
    return result


@dataclass(frozen=True)
class ComputeInlinePlan(Plan):
    """The producer, its store, and how its iterators follow from the indices of a load."""

    block: BlockOp
    store: memref.StoreOp
    inverse: Mapping[SSAValue, tuple[int, int]]
    loads: tuple[memref.LoadOp, ...]

    def rewrite(self, rewriter: PatternRewriter) -> tuple[Operation, ...]:
        buffer = self.store.memref
        for load in self.loads:
            lift(values_used_by(self.block), Place.before_op(load))
            point = InsertPoint.before(load)
            indices: dict[SSAValue, Index] = {}
            for variable in self.block.iter_vars:
                dimension, constant = self.inverse.get(variable, (None, 0))
                indices[variable] = (
                    Index({}) if dimension is None else Index.of(load.indices[dimension]) - constant
                ).simplified(range_of)
            values = insert_values(rewriter, indices, point)
            operations, mapped = clone_body(self.block, dict(values), self.store)
            rewriter.insert(operations, point)
            stored = self.store.value
            rewriter.replace(load, [], [mapped.get(stored, stored)])
        remove_block(rewriter, self.block)
        erase_regions(rewriter, buffer)
        remove_if_unused(rewriter, buffer)
        return ()


@dataclass(frozen=True)
class ComputeInline(Primitive):
    """A producer disappears: every read of what it writes computes the value instead.

    Requirements:
    1. the block is complete
    2. it stores once, unconditionally, to a temporary that only blocks of its scope read
    3. the indices of the store can be inverted: each is one iterator plus a constant, and every iterator has one
    4. nothing between the block and a reader writes what the block reads; nor does the reader, before it needs it
    5. every read of the temporary comes after the block
    6. what the block uses is known at every read

    ```mlir
    tir.block "B" ... = [%i] { B[%vi] = A[%vi] * 2 }
    tir.block "C" ... = [%i] { C[%vi] = B[%vi + 1] + 1 }
    // compute_inline "B"
    tir.block "C" ... = [%i] { C[%vi] = A[%vi + 1] * 2 + 1 }
    ```
    """

    NAME: ClassVar[str] = "compute_inline"
    STEP: ClassVar[type[sched.StepOp]] = sched.ComputeInlineOp
    REQUIREMENTS: ClassVar[tuple[str, ...]] = (
        "the block is complete",
        "it stores once to a temporary",
        "the indices of the store can be inverted",
        "nothing between the block and a reader writes what it reads",
        "every read comes after the block",
        "what it uses is known at every read",
    )

    block: BlockOp

    def plan(self) -> ComputeInlinePlan:
        block, subject = self.block, block_text(self.block)
        self.require(1, why_not_complete(block), block, subject)
        store = single_store(self, 2, block)
        if not is_temporary(store.memref):
            self.refuse(2, f"it writes the parameter {buffer_name(store.memref)}", store, subject)
        inverse = inverse_of(block, list(store.indices))
        if inverse is None:
            self.refuse(3, f"the indices of {buffer_name(store.memref)} are not distinct iterators", store, subject)
        if block.guard is not None and not guard_keeps_inside(block):
            self.refuse(1, "a guard leaves elements out", block, subject)
        readers = [b for b in child_blocks(scope_of(block)) if store.memref in buffers_loaded(b)]
        if not readers:
            self.refuse(5, f"no block reads {buffer_name(store.memref)}", block, subject)
        for reader in readers:
            if not precedes(block, reader):
                self.refuse(5, f'block "{reader.label}" reads it before', reader, subject)
        require_uses_inside(self, 2, store.memref, [block, *readers], subject)
        self._require_same_inputs(readers, store.memref, subject)
        loads = tuple(load for reader in readers for load in loads_of(reader, store.memref))
        for load in loads:
            self.require(6, why_not_visible(values_used_by(block), Place.before_op(load)), load, subject)
        return ComputeInlinePlan(block, block, store, inverse, loads)

    def _require_same_inputs(self, readers: Sequence[BlockOp], buffer: SSAValue, subject: str) -> None:
        """Between producer and reader nobody overwrites what the producer read."""
        block, scope = self.block, scope_of(self.block)
        for reader in readers:
            passed = [op for op in actions_between(block, scope, child_towards(scope, reader)) if op is not reader]
            self.require(4, passing_conflict(block, passed, (), flow_to=True), block, subject)
            if passing_conflict(block, [reader], (), flow_to=True) is not None:
                self.require(4, overwritten_before_use(block, reader, buffer), block, subject)


def require_uses_inside(
    primitive: Primitive, requirement: int, buffer: SSAValue, blocks: Sequence[BlockOp], subject: str
) -> None:
    """Nothing but loads and stores of these blocks touches a buffer: it will be gone."""
    for use in buffer.uses:
        if isinstance(use.operation, AccessPtrOp):
            primitive.refuse(requirement, f"a pointer into {buffer_name(buffer)} is taken", use.operation, subject)
        if not any(is_inside(use.operation, block) for block in blocks):
            detail = f"{use.operation.name} outside of the blocks of its scope uses {buffer_name(buffer)}"
            primitive.refuse(requirement, detail, use.operation, subject)


def erase_regions(rewriter: PatternRewriter, buffer: SSAValue) -> None:
    """Erase what is stated about accesses to a buffer that blocks no longer make."""
    for user in {use.operation for use in buffer.uses}:
        if isinstance(user, AccessRegionOp):
            rewriter.erase(user)


def guard_keeps_inside(block: BlockOp) -> bool:
    """Whether the guards only keep iterators inside their domains, as an imperfect split makes them."""
    operands = [Index.of(v) for v in block.guard_operands]
    bindings = Index.of_map(block.bindings.data, block.binding_operands)
    allowed = {Index.of(extent) - index for index, extent in zip(bindings, block.extents, strict=True)} | {
        index + 1 for index in bindings
    }
    return all(
        Index.of_expr(right, operands) - Index.of_expr(left, operands) in allowed for left, right in block.guards
    )


def single_store(primitive: Primitive, requirement: int, block: BlockOp) -> memref.StoreOp:
    """The only store of a block, directly in its body."""
    stores = stores_of(block)
    if len(stores) != 1:
        primitive.refuse(requirement, f"it stores {len(stores)} times", block, block_text(block))
    if stores[0].parent_op() is not block:
        primitive.refuse(requirement, "its store is conditional or in a loop", stores[0], block_text(block))
    return stores[0]


@dataclass(frozen=True)
class ReverseComputeInlinePlan(Plan):
    """Consumer and producer, the producer's store, and the consumer's iterators from the indices of that store."""

    consumer: BlockOp
    producer: BlockOp
    store: memref.StoreOp
    inverse: Mapping[SSAValue, tuple[int, int]]

    def rewrite(self, rewriter: PatternRewriter) -> tuple[Operation, ...]:
        buffer = self.store.memref
        lift(values_used_by(self.consumer), Place.before_op(self.store))
        indices: dict[SSAValue, Index] = {}
        for variable in self.consumer.iter_vars:
            dimension, constant = self.inverse.get(variable, (None, 0))
            indices[variable] = (
                Index({}) if dimension is None else Index.of(self.store.indices[dimension]) - constant
            ).simplified(range_of)
        point = InsertPoint.before(self.store)
        values: dict[SSAValue, SSAValue] = dict(insert_values(rewriter, indices, point))
        for load in loads_of(self.consumer, buffer):
            values[load.res] = self.store.value
        operations = [
            copy_of(op, values)
            for op in self.consumer.body.block.ops
            if not isinstance(op, AccessRegionOp) and not (isinstance(op, memref.LoadOp) and op.memref is buffer)
        ]
        rewriter.insert(operations, point)
        rewriter.erase(self.store)
        remove_block(rewriter, self.consumer)
        erase_regions(rewriter, buffer)
        remove_if_unused(rewriter, buffer)
        return (self.producer,)


@dataclass(frozen=True)
class ReverseComputeInline(MovingPrimitive):
    """A consumer disappears into its only producer: what was stored to the temporary is consumed on the spot.

    Requirements:
    1. the block is complete
    2. it reads a temporary that exactly one block writes, and only it reads
    3. that producer is complete and stores once
    4. every load of the temporary has the same indices, which can be inverted, unconditionally
    5. the producer runs the same elements as the block: equal domains
    6. nothing between producer and block touches what the block writes, or writes what it reads
    7. what the block uses is known in the producer
    8. parallel and vectorized loops have independent iterations afterwards too

    ```mlir
    tir.block "B" ... = [%i] { B[%vi] = A[%vi] * 2 }
    tir.block "C" ... = [%i] { C[%vi] = B[%vi] + 1 }
    // reverse_compute_inline "C"
    tir.block "B" ... = [%i] { C[%vi] = A[%vi] * 2 + 1 }
    ```
    """

    NAME: ClassVar[str] = "reverse_compute_inline"
    STEP: ClassVar[type[sched.StepOp]] = sched.ReverseComputeInlineOp
    REQUIREMENTS: ClassVar[tuple[str, ...]] = (
        "the block is complete",
        "it reads a temporary of one producer that only it reads",
        "the producer is complete and stores once",
        "every load of the temporary has the same indices, which can be inverted",
        "the producer runs the same elements as the block",
        "nothing between producer and block touches what it writes, or writes what it reads",
        "what it uses is known in the producer",
        KEEPS_INDEPENDENCE,
    )
    INDEPENDENCE: ClassVar[int] = 8

    block: BlockOp

    def draft(self) -> ReverseComputeInlinePlan:
        block, subject = self.block, block_text(self.block)
        self.require(1, why_not_complete(block), block, subject)
        if block.guard is not None and not guard_keeps_inside(block):
            self.refuse(1, "a guard leaves elements out", block, subject)
        self.require(1, shared_element(block), block, subject)
        buffer, producer = self._producer(subject)
        self.require(3, why_not_complete(producer), producer, subject)
        store = single_store(self, 3, producer)
        inverse = self._inverse(buffer, subject)
        self._require_same_elements(producer, store, inverse, subject)
        scope = scope_of(block)
        passed = [op for op in actions_between(block, scope, child_towards(scope, producer)) if op is not producer]
        violation = passing_conflict(block, passed, (), flow_to=False)
        self.require(6, violation or passing_conflict(block, passed, (), flow_to=True), block, subject)
        self._require_no_overlap(producer, buffer, subject)
        self.require(7, why_not_visible(values_used_by(block), Place.before_op(store)), block, subject)
        return ReverseComputeInlinePlan(block, block, producer, store, inverse)

    def _producer(self, subject: str) -> tuple[SSAValue, BlockOp]:
        block = self.block
        blocks = child_blocks(scope_of(block))
        for buffer in buffers_loaded(block):
            writers = [b for b in blocks if b is not block and buffer in buffers_written(b)]
            if not is_temporary(buffer) or not writers:
                continue
            readers = [b for b in blocks if b is not block and b not in writers and buffer in buffers_loaded(b)]
            if len(writers) > 1:
                self.refuse(2, f"{len(writers)} blocks write {buffer_name(buffer)}", block, subject)
            if readers:
                self.refuse(2, f'block "{readers[0].label}" reads {buffer_name(buffer)} too', readers[0], subject)
            if not precedes(writers[0], block):
                self.refuse(2, f'block "{writers[0].label}" writes it after', writers[0], subject)
            require_uses_inside(self, 2, buffer, [block, writers[0]], subject)
            return buffer, writers[0]
        self.refuse(2, "it reads no temporary that a block of its scope writes", block, subject)

    def _inverse(self, buffer: SSAValue, subject: str) -> dict[SSAValue, tuple[int, int]]:
        loads = loads_of(self.block, buffer)
        first = [Index.of(i) for i in loads[0].indices]
        for load in loads:
            if load.parent_op() is not self.block:
                self.refuse(4, "a load is conditional or in a loop", load, subject)
            if [Index.of(i) for i in load.indices] != first:
                self.refuse(4, f"{buffer_name(buffer)} is read at different indices", load, subject)
        inverse = inverse_of(self.block, list(loads[0].indices))
        if inverse is None:
            self.refuse(4, f"the indices of {buffer_name(buffer)} are not distinct iterators", loads[0], subject)
        return inverse

    def _require_same_elements(
        self, producer: BlockOp, store: memref.StoreOp, inverse: Mapping[SSAValue, tuple[int, int]], subject: str
    ) -> None:
        """Dimension by dimension, the producer stores the range of elements that the block reads."""
        if producer.guard is not None and not guard_keeps_inside(producer):
            self.refuse(5, f'block "{producer.label}" leaves elements out', producer, subject)
        produced = inverse_of(producer, list(store.indices))
        if produced is None:
            self.refuse(5, f'block "{producer.label}" does not store each element once', store, subject)
        (load, *_) = loads_of(self.block, store.memref)
        stored = ranges_of(producer, list(store.indices), produced)
        read = ranges_of(self.block, list(load.indices), inverse)
        for dimension, (theirs, ours) in enumerate(zip(stored, read, strict=True)):
            if theirs != ours:
                texts = [f"{extent!r} elements from {start}" for start, extent in (theirs, ours)]
                detail = f"in dimension {dimension} the producer runs {texts[0]}, the block {texts[1]}"
                self.refuse(5, detail, self.block, subject)

    def _require_no_overlap(self, producer: BlockOp, buffer: SSAValue, subject: str) -> None:
        """The block writes nothing that the producer reads in a later instance."""
        self.require(6, overwritten_by_consumer(producer, self.block, buffer), producer, subject)
        if not set(buffers_written(self.block)).isdisjoint(buffers_written(producer)):
            raise InternalError("a complete block is the only writer of what it writes")
