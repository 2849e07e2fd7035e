"""reverse_compute_inline: inline a consumer into its producer."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.dialects import memref
from xdsl.ir import Operation, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from weft.analysis.accesses import Conditions, Context, accesses, range_of
from weft.analysis.code_motion import actions_between, passing_conflict, shared_element
from weft.analysis.dependence import buffer_name, is_exact, is_temporary
from weft.analysis.index import Index
from weft.analysis.layout_maps import AccessInverse, inverse_in_block
from weft.analysis.questions import instances_where
from weft.analysis.sets import NotProved
from weft.analysis.structure import (
    buffers_loaded,
    buffers_written,
    child_blocks,
    child_towards,
    precedes,
    scope_of,
    why_not_complete,
)
from weft.dialects.tir import BlockOp
from weft.passes.index_ops import erase_if_unused, insert_before
from weft.passes.schedule.compute_inline import (
    erase_inlined,
    erase_outgrown_regions,
    insert_instance,
    loads_of,
    overwriting_pairs,
    overwritten_in_time,
    require_uses_inside,
    unstored_element,
)
from weft.passes.schedule.dominance import hoist, values_used_by, why_not_dominating
from weft.passes.schedule.loop_nests import if_all_hold, operations_up_to
from weft.passes.schedule.primitive import Plan, block_text
from weft.passes.schedule.requirements import instance_left_out, single_store
from weft.passes.schedule.trial_application import MovingPrimitive
from weft.support.errors import InternalError, Violation


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

    def rewrite(self) -> tuple[Operation, ...]:
        buffer, store = self.store.memref, self.store
        erase_outgrown_regions(store, self.consumer)
        point = InsertPoint.before(store)
        hoist(values_used_by(self.consumer), point)
        before, loads = store.prev_op, loads_of(self.consumer, buffer)
        known: dict[SSAValue, SSAValue] = {load.res: store.value for load in loads}
        operations, values = insert_instance(self.consumer, self.instance, point, known, loads)
        copies = [values[index].owner for load in loads for index in load.indices if index in values]
        erase_if_unused([op for op in copies if isinstance(op, Operation) and op in operations])
        if self.conditions.positives or self.conditions.zeros:
            *inserted, _ = operations_up_to(store, before)
            kept = if_all_hold(self.conditions.positives, self.conditions.zeros, inserted, store)
            insert_before(store, [kept])
        Rewriter.erase_op(store)
        erase_inlined(self.consumer, buffer)
        return (self.producer,)


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
        self.require(1, why_not_complete(block))
        self.require(1, instance_left_out(block))
        self.require(1, shared_element(block))
        buffer, producer = self._producer(subject)
        moved = "reverse_compute_at moves the block to its producer" if producer.init is not None else None
        self.require(3, why_not_complete(producer), producer, legal=moved)
        store = single_store(self, 3, producer)
        inverse = self._inverse(buffer)
        self.require(5, shared_element(producer), producer)
        self._require_stored(producer, buffer)
        element = [Index.of(index) for index in store.indices]
        conditions = conditions_left(producer, inverse.conditions(element))
        scope = scope_of(block)
        passed = [op for op in actions_between(block, scope, child_towards(scope, producer)) if op is not producer]
        self.require(6, passing_conflict(block, passed, ()))
        self._require_no_overlap(producer, buffer)
        used = [value for index in inverse.shifts for value in index.values()]
        reason = why_not_dominating([*values_used_by(block), *used], InsertPoint.before(store))
        self.require(7, reason)
        return ReverseComputeInlinePlan(block, producer, store, inverse.instance(element), conditions)

    def _producer(self, subject: str) -> tuple[SSAValue, BlockOp]:
        block = self.block
        blocks = child_blocks(scope_of(block))
        for buffer in buffers_loaded(block):
            writers = [b for b in blocks if b is not block and buffer in buffers_written(b)]
            if not is_temporary(buffer) or not writers:
                continue
            readers = [b for b in blocks if b is not block and b not in writers and buffer in buffers_loaded(b)]
            if len(writers) > 1:
                self.refuse(2, f"{len(writers)} blocks write {buffer_name(buffer)}")
            if readers:
                self.refuse(2, f'block "{readers[0].label}" reads {buffer_name(buffer)} too', readers[0])
            if not precedes(writers[0], block):
                self.refuse(2, f'block "{writers[0].label}" writes it after', writers[0])
            require_uses_inside(self, 2, buffer, [block, writers[0]], subject)
            return buffer, writers[0]
        self.refuse(2, "it reads no temporary that a block of its scope writes")

    def _inverse(self, buffer: SSAValue) -> AccessInverse:
        loads = loads_of(self.block, buffer)
        first = [Index.of(i) for i in loads[0].indices]
        for load in loads:
            if load.parent_op() is not self.block:
                self.refuse(4, "a load is conditional or in a loop", load)
            if [Index.of(i) for i in load.indices] != first:
                self.refuse(4, f"{buffer_name(buffer)} is read at different indices", load)
        inverse = inverse_in_block(self.block, list(loads[0].indices))
        if isinstance(inverse, Violation):
            self.refuse(4, inverse, loads[0])
        return inverse

    def _require_stored(self, producer: BlockOp, buffer: SSAValue) -> None:
        """Each instance of the block finds an instance of the producer to become a part of."""
        if not all(is_exact(a) for b in (producer, self.block) for a in accesses(b) if a.buffer is buffer):
            detail = f"the subscripts of {buffer_name(buffer)} or the conditions around it are not affine"
            self.refuse(5, Violation(detail, "not proved"), producer)
        if not all(is_temporary(written) for written in buffers_written(self.block)):
            # The domain of a block that writes a parameter is what it runs.
            self.require(5, instance_left_out(producer), producer)
        self.require(5, unstored_element(self.block, producer, buffer))

    def _require_no_overlap(self, producer: BlockOp, buffer: SSAValue) -> None:
        """The block writes nothing that the producer reads in a later instance."""
        self.require(6, overwritten_by_consumer(producer, self.block, buffer), producer)
        if not set(buffers_written(self.block)).isdisjoint(buffers_written(producer)):
            raise InternalError("a complete block is the only writer of what it writes")


def overwritten_by_consumer(producer: BlockOp, block: BlockOp, buffer: SSAValue) -> Violation | None:
    """An instance of `producer` whose inputs `block` overwrites in an earlier one, when each instance of `producer`
    does what `block` does with the element of `buffer`."""
    (store,) = (a for a in accesses(producer) if a.is_write and a.buffer is buffer)
    for read, write in overwriting_pairs(producer, block, buffer):
        load = next(a for a in accesses(block) if not a.is_write and a.buffer is buffer)
        if load.loops != write.loops or store.loops != read.loops:
            return Violation("it writes what its producer reads, in loops of its own", "not proved")
        levels = len(store.loops) + precedes(store.op, read.op)
        violation = overwritten_in_time(read, write, load, store, store.loops, levels, write_first=False)
        if violation is not None:
            return violation
    return None
