"""compute_inline, reverse_compute_inline: inline a block into its consumers, or into its producer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from xdsl.dialects import memref
from xdsl.ir import Operation, SSAValue
from xdsl.pattern_rewriter import PatternRewriter
from xdsl.rewriter import InsertPoint

from weft.analysis.access_inverse import AccessInverse, inverse_in_block
from weft.analysis.accesses import Conditions, Context, accesses, range_of
from weft.analysis.boxes import fills_box_around
from weft.analysis.dependence import buffer_name, instances_where, is_exact, is_temporary, undecided
from weft.analysis.index import Index
from weft.analysis.motion import actions_between, passing_conflict, shared_element
from weft.analysis.privacy import uncovered_element
from weft.analysis.replay_search import is_never_written
from weft.analysis.sets import NotProved
from weft.analysis.structure import (
    ancestors,
    buffers_loaded,
    buffers_written,
    child_blocks,
    child_towards,
    is_inside,
    precedes,
    readers_of,
    scope_of,
    why_not_complete,
)
from weft.dialects.effects import op_name
from weft.dialects.low_access import AccessPtrOp
from weft.dialects.tir import BlockOp
from weft.dialects.tir_regions import AccessRegionOp
from weft.dialects.traversal import copy_of
from weft.passes.index_ops import materialize
from weft.passes.schedule.inlining_order import overwritten_before_use, overwritten_by_consumer
from weft.passes.schedule.moving import instance_left_out
from weft.passes.schedule.primitive import Plan, Primitive, block_text
from weft.passes.schedule.rewriting import erase_empty_loops
from weft.passes.schedule.trial_application import MovingPrimitive
from weft.passes.schedule.visibility import Place, lift, values_used_by, why_not_visible
from weft.passes.tir.nest import compare_before, conjunction_before, erase_if_unused, if_around, insert_before
from weft.support.errors import InternalError, Violation


def stores_of(block: BlockOp) -> list[memref.StoreOp]:
    return [op for op in block.walk() if isinstance(op, memref.StoreOp)]


def loads_of(block: BlockOp, buffer: SSAValue) -> list[memref.LoadOp]:
    return [op for op in block.walk() if isinstance(op, memref.LoadOp) and op.memref is buffer]


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
    """The producer, its store, which of its instances stores an element, and the loads that compute it instead."""

    block: BlockOp
    store: memref.StoreOp
    inverse: AccessInverse
    loads: tuple[memref.LoadOp, ...]

    def rewrite(self, rewriter: PatternRewriter) -> tuple[Operation, ...]:
        buffer = self.store.memref
        for load in self.loads:
            erase_outgrown_regions(rewriter, load, self.block)
            lift(values_used_by(self.block), Place.before_op(load))
            point = InsertPoint.before(load)
            instance = self.inverse.instance([Index.of(index) for index in load.indices])
            indices: dict[SSAValue, Index] = dict(zip(self.block.iter_vars, instance, strict=True))
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
    2. it stores once to a temporary: unconditionally, and only blocks of its scope read that
    3. the indices of the store can be inverted: each element that is read is one that some instance stores
    4. nothing between the block and a reader writes what it reads: nor does the reader, before it needs it
    5. every read comes after the block
    6. what it uses is known at every read

    A block that nothing reads is erased.

    ```mlir
    tir.block "B" ... = [%i] { B[%vi] = A[%vi] * 2 }
    tir.block "C" ... = [%i] { C[%vi] = B[%vi + 1] + 1 }
    // compute_inline "B"
    tir.block "C" ... = [%i] { C[%vi] = A[%vi + 1] * 2 + 1 }
    ```
    """

    block: BlockOp

    def plan(self) -> ComputeInlinePlan:
        block, subject = self.block, block_text(self.block)
        moved = "compute_at moves it to its readers" if block.init is not None else None
        self.require(1, why_not_complete(block), block, subject, moved)
        store = single_store(self, 2, block)
        if not is_temporary(store.memref):
            self.refuse(2, f"it writes the parameter {buffer_name(store.memref)}", store, subject)
        inverse = inverse_in_block(block, list(store.indices))
        if isinstance(inverse, Violation):
            self.refuse(3, inverse, store, subject)
        readers = readers_of(store.memref, scope_of(block))
        for reader in readers:
            self.require(3, unstored_element(reader, block, store.memref), reader, subject)
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
            detail = f"{op_name(use.operation)} outside of the blocks of its scope uses {buffer_name(buffer)}"
            primitive.refuse(requirement, detail, use.operation, subject)


def erase_regions(rewriter: PatternRewriter, buffer: SSAValue) -> None:
    """Erase what is stated about accesses to a buffer that blocks no longer make."""
    for user in {use.operation for use in buffer.uses}:
        if isinstance(user, AccessRegionOp):
            rewriter.erase(user)


def erase_outgrown_regions(rewriter: PatternRewriter, place: Operation, moved: BlockOp) -> None:
    """Erase what the blocks around `place` state about buffers that `moved` accesses too, as its body comes there."""
    touched = {*buffers_loaded(moved), *buffers_written(moved)}
    for around in ancestors(place):
        if isinstance(around, BlockOp):
            for op in [op for op in around.body.block.ops if isinstance(op, AccessRegionOp) and op.buffer in touched]:
                rewriter.erase(op)


def unstored_element(reader: BlockOp, writer: BlockOp, buffer: SSAValue) -> Violation | None:
    """An element of `buffer` that `reader` reads and the only store of `writer` never writes; None where that is ruled
    out, or where the subscripts of a reader are not affine and `writer` runs its whole domain."""
    (store,) = (a for a in accesses(writer) if a.is_write and a.buffer is buffer)
    for load in (a for a in accesses(reader) if not a.is_write and a.buffer is buffer):
        if not (is_exact(load) and is_exact(store)):
            if instance_left_out(writer) is None:
                continue
            return Violation("loops or guards leave out elements, and the subscripts are not affine", "not proved")
        if fills_box_around(store, load):
            continue
        try:
            element = uncovered_element(load, [store])
        except NotProved as error:
            return undecided(error)
        if element is not None:
            places = [element[("place", d)] for d in range(len(load.indices or ()))]
            return Violation(
                f'it reads {buffer_name(buffer)}[{", ".join(map(str, places))}], which "{writer.label}" never writes',
                counterexample={"element": {f"d{d}": at for d, at in enumerate(places)}},
                replay=partial(is_never_written, [store], element),
            )
    return None


def single_store(primitive: Primitive, requirement: int, block: BlockOp) -> memref.StoreOp:
    """The only store of a block, directly in its body."""
    stores = stores_of(block)
    if len(stores) != 1:
        primitive.refuse(requirement, f"it stores {len(stores)} times", block, block_text(block))
    if stores[0].parent_op() is not block:
        primitive.refuse(requirement, "its store is conditional or in a loop", stores[0], block_text(block))
    return stores[0]


def conditions_left(block: BlockOp, conditions: Conditions) -> Conditions:
    """Those of `conditions`, over the iterators of `block`, that some instance of it does not satisfy."""
    context = Context.around(block).inside(block)

    def fails(index: Index, *, is_zero: bool) -> bool:
        low, high = index.range(range_of)
        if low is not None and low >= 0 and (not is_zero or high == 0):
            return False
        over_loops = index.substitute(context.iterators, range_of).simplified(range_of)
        return any(_may_be_positive(context, below) for below in (-over_loops, *([over_loops] if is_zero else [])))

    positives = tuple(dict.fromkeys(index for index in conditions.positives if fails(index, is_zero=False)))
    return Conditions(positives, tuple(index for index in conditions.zeros if fails(index, is_zero=True)))


def _may_be_positive(context: Context, index: Index) -> bool:
    """Whether `index`, over loop values, is above 0 in some iteration, as far as known."""
    try:
        return not instances_where(context, index - 1).is_empty()
    except NotProved:
        return True


@dataclass(frozen=True)
class ReverseComputeInlinePlan(Plan):
    """Consumer and producer, the producer's store, the consumer's instance that reads what is stored, and when there is
    one."""

    consumer: BlockOp
    producer: BlockOp
    store: memref.StoreOp
    instance: tuple[Index, ...]
    conditions: Conditions

    def rewrite(self, rewriter: PatternRewriter) -> tuple[Operation, ...]:
        buffer, store = self.store.memref, self.store
        erase_outgrown_regions(rewriter, store, self.consumer)
        lift(values_used_by(self.consumer), Place.before_op(store))
        before = store.prev_op
        point = InsertPoint.before(store)
        indices: dict[SSAValue, Index] = dict(zip(self.consumer.iter_vars, self.instance, strict=True))
        values = insert_values(rewriter, indices, point)
        for load in loads_of(self.consumer, buffer):
            values[load.res] = store.value
        operations = [
            copy_of(op, values)
            for op in self.consumer.body.block.ops
            if not isinstance(op, AccessRegionOp) and not (isinstance(op, memref.LoadOp) and op.memref is buffer)
        ]
        rewriter.insert(operations, point)
        indices_of_loads = [index for load in loads_of(self.consumer, buffer) for index in load.indices]
        copies = [values[index].owner for index in indices_of_loads if index in values]
        erase_if_unused([op for op in copies if isinstance(op, Operation) and op in operations])
        if self.conditions.positives or self.conditions.zeros:
            self._under_conditions(before)
        rewriter.erase(store)
        remove_block(rewriter, self.consumer)
        erase_regions(rewriter, buffer)
        remove_if_unused(rewriter, buffer)
        return (self.producer,)

    def _under_conditions(self, before: Operation | None) -> None:
        """Put what follows `before` in the producer, up to its store, under the conditions."""
        store, zero = self.store, Index({})
        inserted: list[Operation] = []
        op = store.prev_op
        while op is not None and op is not before:
            inserted.append(op)
            op = op.prev_op
        for op in inserted:
            op.detach()
        tests = [compare_before("sge", index, zero, store) for index in self.conditions.positives]
        tests += [compare_before("eq", index, zero, store) for index in self.conditions.zeros]
        insert_before(store, [if_around(conjunction_before(tests, store), inserted[::-1])])


@dataclass(frozen=True)
class ReverseComputeInline(MovingPrimitive):
    """A consumer disappears into its only producer: what was stored to the temporary is consumed on the spot.

    Requirements:
    1. the block is complete, and runs its whole domain
    2. it reads a temporary of one producer that only it reads: exactly one block writes it
    3. the producer is complete and stores once
    4. every load of the temporary has the same indices, which can be inverted: all of them unconditional
    5. each element that the block reads is stored by one instance of the producer
    6. nothing between producer and block touches what it writes, or writes what it reads
    7. what it uses is known in the producer
    8. loops that run in parallel stay independent: parallel and vectorized ones

    Where the producer stores more than the block reads, a condition keeps the rest of its instances from storing.

    ```mlir
    tir.block "B" ... = [%i] { B[%vi] = A[%vi] * 2 }
    tir.block "C" ... = [%i] { C[%vi] = B[%vi] + 1 }
    // reverse_compute_inline "C"
    tir.block "B" ... = [%i] { C[%vi] = A[%vi] * 2 + 1 }
    ```
    """

    block: BlockOp

    def draft(self) -> ReverseComputeInlinePlan:
        block, subject = self.block, block_text(self.block)
        self.require(1, why_not_complete(block), block, subject)
        self.require(1, instance_left_out(block), block, subject)
        self.require(1, shared_element(block), block, subject)
        buffer, producer = self._producer(subject)
        moved = "reverse_compute_at moves the block to its producer" if producer.init is not None else None
        self.require(3, why_not_complete(producer), producer, subject, moved)
        store = single_store(self, 3, producer)
        inverse = self._inverse(buffer, subject)
        self.require(5, shared_element(producer), producer, subject)
        self._require_stored(producer, buffer, subject)
        element = [Index.of(index) for index in store.indices]
        conditions = conditions_left(producer, inverse.conditions(element))
        scope = scope_of(block)
        passed = [op for op in actions_between(block, scope, child_towards(scope, producer)) if op is not producer]
        violation = passing_conflict(block, passed, (), flow_to=False)
        self.require(6, violation or passing_conflict(block, passed, (), flow_to=True), block, subject)
        self._require_no_overlap(producer, buffer, subject)
        used = [value for index in inverse.shifts for value in index.values()]
        reason = why_not_visible([*values_used_by(block), *used], Place.before_op(store))
        self.require(7, reason, block, subject)
        return ReverseComputeInlinePlan(block, block, producer, store, inverse.instance(element), conditions)

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

    def _inverse(self, buffer: SSAValue, subject: str) -> AccessInverse:
        loads = loads_of(self.block, buffer)
        first = [Index.of(i) for i in loads[0].indices]
        for load in loads:
            if load.parent_op() is not self.block:
                self.refuse(4, "a load is conditional or in a loop", load, subject)
            if [Index.of(i) for i in load.indices] != first:
                self.refuse(4, f"{buffer_name(buffer)} is read at different indices", load, subject)
        inverse = inverse_in_block(self.block, list(loads[0].indices))
        if isinstance(inverse, Violation):
            self.refuse(4, inverse, loads[0], subject)
        return inverse

    def _require_stored(self, producer: BlockOp, buffer: SSAValue, subject: str) -> None:
        """Each instance of the block finds an instance of the producer to become a part of."""
        if not all(is_exact(a) for b in (producer, self.block) for a in accesses(b) if a.buffer is buffer):
            detail = f"the subscripts of {buffer_name(buffer)} or the conditions around it are not affine"
            self.refuse(5, Violation(detail, "not proved"), producer, subject)
        if not all(is_temporary(written) for written in buffers_written(self.block)):
            # The domain of a block that writes a parameter is what it runs.
            self.require(5, instance_left_out(producer), producer, subject)
        self.require(5, unstored_element(self.block, producer, buffer), self.block, subject)

    def _require_no_overlap(self, producer: BlockOp, buffer: SSAValue, subject: str) -> None:
        """The block writes nothing that the producer reads in a later instance."""
        self.require(6, overwritten_by_consumer(producer, self.block, buffer), producer, subject)
        if not set(buffers_written(self.block)).isdisjoint(buffers_written(producer)):
            raise InternalError("a complete block is the only writer of what it writes")
