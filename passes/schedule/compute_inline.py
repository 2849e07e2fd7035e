"""Inlining of producers into consumers and the reverse, and of epilogues into the init of reductions."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

from xdsl.dialects import memref
from xdsl.ir import Operation, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from weft.analysis.accesses import Access, Conditions, Context, accesses, domain_of, range_of
from weft.analysis.block_patterns import is_in_init, updates_of, why_in_order
from weft.analysis.block_scopes import (
    ancestors,
    bindings_of,
    buffers_loaded,
    buffers_written,
    child_blocks,
    child_towards,
    guards_of,
    precedes,
    readers_of,
    scope_of,
    why_not_complete,
)
from weft.analysis.code_motion import actions_between, loops_around_both, passing_conflict, shared_element
from weft.analysis.coverage import fills_box_around, uncovered_element
from weft.analysis.dependence import (
    PairQuestion,
    buffer_name,
    conflict_between,
    is_exact,
    is_temporary,
    may_conflict,
    or_undecided,
    unknown_elements,
)
from weft.analysis.index import Index
from weft.analysis.layout_maps import AccessInverse, inverse_in_block
from weft.analysis.questions import instances_where
from weft.analysis.reductions import why_not_reduction
from weft.analysis.sets import NotProved
from weft.dialects.aliasing import may_overlap
from weft.dialects.effects import op_name
from weft.dialects.low_access import AccessPtrOp
from weft.dialects.tir import AccessRegionOp, BlockOp, ForOp
from weft.dialects.traversal import captured_values, copy_of, operations_in
from weft.passes.index_builders import erase_if_unused, index_before, insert_before, materialize, set_access
from weft.passes.schedule.checks import (
    element_text,
    found_overlapping,
    instance_left_out,
    iterator_names,
    missed_by,
    missed_element,
    single_store,
    started_elsewhere,
)
from weft.passes.schedule.dominance import hoist, why_not_dominating
from weft.passes.schedule.nest_builders import erase_empty_loops, if_all_hold, set_extents
from weft.passes.schedule.primitive import Plan, Primitive, block_text, operation_text, owner_text
from weft.passes.schedule.trial_application import RecheckedPrimitive
from weft.support.errors import Violation


def loads_in(root: Operation, buffer: SSAValue) -> list[memref.LoadOp]:
    return [op for op in root.walk() if isinstance(op, memref.LoadOp) and op.memref is buffer]


def insert_instance(
    block: BlockOp,
    instance: Sequence[Index],
    place: Operation,
    known: Mapping[SSAValue, SSAValue],
    skipped: Collection[Operation],
) -> tuple[list[Operation], dict[SSAValue, SSAValue]]:
    """`known` maps values of the block to replacements. Erases region annotations around `place` for the buffers
    accessed. Returns the new ops, and old value -> new value."""
    touched = {*buffers_loaded(block), *buffers_written(block)}
    for around in (op for op in ancestors(place) if isinstance(op, BlockOp)):
        for op in [op for op in around.body.block.ops if isinstance(op, AccessRegionOp) and op.buffer in touched]:
            Rewriter.erase_op(op)
    point = InsertPoint.before(place)
    hoist(captured_values(block), point)
    operations: list[Operation] = []
    computed: dict[Index, SSAValue] = {}
    values: dict[SSAValue, SSAValue] = {}
    for variable, index in zip(block.iter_vars, instance, strict=True):
        if index not in computed:
            computed[index], computing = materialize(index)
            operations.extend(computing)
        values[variable] = computed[index]
    values.update(known)
    kept = [op for op in block.body.block.ops if op not in skipped and not isinstance(op, AccessRegionOp)]
    operations.extend(copy_of(op, values) for op in kept)
    Rewriter.insert_op(operations, point)
    return operations, values


def erase_inlined(block: BlockOp, buffer: SSAValue) -> None:
    parent = block.parent_op()
    Rewriter.erase_op(block)
    erase_empty_loops(parent)
    for user in {use.operation for use in buffer.uses}:
        if isinstance(user, AccessRegionOp):
            Rewriter.erase_op(user)
    if buffer.first_use is None and isinstance(buffer.owner, Operation):
        Rewriter.erase_op(buffer.owner)


@dataclass(frozen=True)
class ComputeInlinePlan(Plan):
    block: BlockOp
    store: memref.StoreOp
    inverse: AccessInverse
    loads: tuple[memref.LoadOp, ...]

    def rewrite(self) -> tuple[Operation, ...]:
        for load in self.loads:
            instance = self.inverse.instance([Index.of(index) for index in load.indices])
            _, values = insert_instance(self.block, instance, load, {}, [self.store])
            value = values.get(self.store.value, self.store.value)
            value.name_hint = value.name_hint or load.res.name_hint
            load.res.replace_all_uses_with(value)
            Rewriter.erase_op(load)
        erase_inlined(self.block, self.store.memref)
        return ()


@dataclass(frozen=True)
class ComputeInline(Primitive):
    """Inline a producer: every read of its result computes the value instead.

    Requirements:
    1. the block is complete
    2. it stores once to a temporary: unconditionally; only blocks and conditions of its scope read that
    3. the indices of the store can be inverted: each element that is read is stored by one instance
    4. nothing between the block and a reader writes what it reads: nor does the reader, before it needs it
    5. every read comes after the block
    6. its operands dominate every read

    A block without readers is erased.

    ```mlir
    tir.block "B" ... = [%i] { B[%vi] = A[%vi] * 2 }
    tir.block "C" ... = [%i] { C[%vi] = B[%vi + 1] + 1 }
    // compute_inline "B"
    tir.block "C" ... = [%i] { C[%vi] = A[%vi + 1] * 2 + 1 }
    ```
    """

    block: BlockOp

    def plan(self) -> ComputeInlinePlan:
        block = self.block
        moved = "compute_at moves it to its readers" if block.init is not None else None
        self.require(1, why_not_complete(block), legal=moved)
        store = single_store(self, 2, block)
        if not is_temporary(store.memref):
            self.refuse(2, f"it writes the parameter {buffer_name(store.memref)}", store)
        inverse = inverse_in_block(block, list(store.indices))
        if isinstance(inverse, Violation):
            self.refuse(3, inverse, store)
        scope = scope_of(block)
        conditions = [load for load in loads_in(scope, store.memref) if scope_of(load) is scope]
        readers = [*readers_of(store.memref, scope), *conditions]
        for reader in readers:
            self.require(3, unstored_element(reader, block, store.memref), reader)
            if not precedes(block, reader):
                self.refuse(5, f"{owner_text(reader)} reads it before", reader)
        require_uses_inside(self, 2, store.memref, [block, *readers])
        self._require_same_inputs(readers, store.memref)
        loads = tuple(load for reader in readers for load in loads_in(reader, store.memref))
        for load in loads:
            self.require(6, why_not_dominating(captured_values(block), InsertPoint.before(load)), load)
        return ComputeInlinePlan(block, store, inverse, loads)

    def _require_same_inputs(self, readers: Sequence[Operation], buffer: SSAValue) -> None:
        block, scope = self.block, scope_of(self.block)
        for reader in readers:
            passed = [op for op in actions_between(block, scope, child_towards(scope, reader)) if op is not reader]
            self.require(4, passing_conflict(block, passed, (), flow_to=True))
            if isinstance(reader, BlockOp) and passing_conflict(block, [reader], (), flow_to=True) is not None:
                self.require(4, overwritten_before_use(block, reader, buffer))


def require_uses_inside(
    primitive: Primitive, requirement: int, buffer: SSAValue, blocks: Sequence[Operation], subject: str | None = None
) -> None:
    """The buffer is about to be erased."""
    for use in buffer.uses:
        if isinstance(use.operation, AccessPtrOp):
            primitive.refuse(requirement, f"a pointer into {buffer_name(buffer)} is taken", use.operation, subject)
        if not any(block.is_ancestor(use.operation) for block in blocks):
            detail = f"{op_name(use.operation)} outside of the blocks of its scope uses {buffer_name(buffer)}"
            primitive.refuse(requirement, detail, use.operation, subject)


@or_undecided
def unstored_element(reader: Operation, writer: BlockOp, buffer: SSAValue) -> Violation | None:
    """An element that `reader` reads and the only store of `writer` never writes. None also if a subscript is not
    affine and `writer` runs its whole domain."""
    (store,) = (a for a in accesses(writer) if a.is_write and a.buffer is buffer)
    for load in (a for a in accesses(reader) if not a.is_write and a.buffer is buffer):
        if not (is_exact(load) and is_exact(store)):
            if instance_left_out(writer) is None:
                continue
            return Violation("loops or guards leave out elements, and the subscripts are not affine", "not proved")
        if fills_box_around(store, load):
            continue
        missed = uncovered_element(load, [store])
        if missed is not None:
            told = f'it reads {element_text(buffer, missed.place)}, which "{writer.label}" never writes'
            return missed_element(missed, told)
    return None


def overwritten_before_use(block: BlockOp, reader: BlockOp, buffer: SSAValue) -> Violation | None:
    """An instance of `block` whose inputs an earlier instance of `reader` overwrites, if `reader` computes the elements
    of `buffer`."""
    (store,) = (a for a in accesses(block) if a.is_write and a.buffer is buffer)
    for read, write in overwriting_pairs(block, reader, buffer):
        for load in (a for a in accesses(reader) if not a.is_write and a.buffer is buffer):
            common = [loop for loop, other in zip(load.loops, write.loops, strict=False) if loop is other]
            again = precedes(write.op, load.op) or load.loops != write.loops
            violation = overwritten_in_time(read, write, store, load, common, len(common) + again, write_first=True)
            if violation is not None:
                return violation
    return None


def overwriting_pairs(block: BlockOp, other: BlockOp, buffer: SSAValue) -> Iterator[tuple[Access, Access]]:
    writes = [access for access in accesses(other) if access.is_write]
    for read in accesses(block):
        if not read.is_write and read.buffer is not buffer:
            yield from ((read, write) for write in writes if may_conflict(read, write))


@or_undecided
def overwritten_in_time(
    read: Access,
    write: Access,
    own: Access,
    place: Access,
    loops: Sequence[ForOp],
    levels: int,
    *,
    write_first: bool,
) -> Violation | None:
    """An instance of `write` that overwrites an input of `read` if the body of one block runs at the accesses of the
    other: in an instance of `place` that touches the element which `own` touches in an instance of `read` (of `write`,
    unless `write_first`).

    `write` precedes that instance (`write_first`), or that precedes `read`: equal in the outer `loops`, ordered in one
    of the `levels`. A level past the last loop means the same iteration.
    """
    if read.indices is None or write.indices is None:
        return unknown_elements(read, write)

    def ordered(pair: PairQuestion, level: int) -> None:
        pair.add("moved", place)
        pair.same_element("first" if write_first else "second", own.indices, "moved", place.indices)
        first, second = ("second", "moved") if write_first else ("moved", "first")
        for at, loop in enumerate(loops[: level + 1]):
            value = Index.of(loop.induction_variable)
            (pair.equate if at < level else pair.order)((value, first), (value, second))

    for level in range(levels):
        conflict = conflict_between(read, write, (), partial(ordered, level=level))
        if conflict is not None:
            if is_exact(own) and is_exact(place):
                return conflict.violation("and would change places")
            return Violation(f"{conflict.describe()} may precede it: the subscripts are not affine", "not proved")
    return None


def conditions_left(block: BlockOp, conditions: Conditions) -> Conditions:
    """The `conditions`, over the iterators of `block`, that some instance violates."""
    context = Context.around(block).inside(block)

    def fails(index: Index, *, is_zero: bool) -> bool:
        low, high = index.range(range_of)
        if low is not None and low >= 0 and (not is_zero or high == 0):
            return False
        over_loops = index.substitute(context.iterators, range_of).simplified(range_of)
        return any(_may_be_positive(context, below) for below in (-over_loops, *([over_loops] if is_zero else [])))

    inequalities = tuple(dict.fromkeys(index for index in conditions.inequalities if fails(index, is_zero=False)))
    return Conditions(inequalities, tuple(index for index in conditions.equalities if fails(index, is_zero=True)))


def _may_be_positive(context: Context, index: Index) -> bool:
    try:
        return not instances_where(context, index - 1).is_empty()
    except NotProved:
        return True


@dataclass(frozen=True)
class ReverseComputeInlinePlan(Plan):
    """`conditions` are those under which the consumer's `instance` exists."""

    consumer: BlockOp
    producer: BlockOp
    store: memref.StoreOp
    instance: tuple[Index, ...]
    conditions: Conditions
    extents: tuple[int | SSAValue, ...]

    def rewrite(self) -> tuple[Operation, ...]:
        buffer, store = self.store.memref, self.store
        loads = loads_in(self.consumer, buffer)
        known: dict[SSAValue, SSAValue] = {load.res: store.value for load in loads}
        operations, values = insert_instance(self.consumer, self.instance, store, known, loads)
        copies = [values[index].owner for load in loads for index in load.indices if index in values]
        erase_if_unused([op for op in copies if isinstance(op, Operation) and op in operations])
        if self.conditions.inequalities or self.conditions.equalities:
            inserted = [op for op in operations if op.parent is not None]
            kept = if_all_hold(self.conditions.inequalities, self.conditions.equalities, inserted, store)
            insert_before(store, [kept])
        Rewriter.erase_op(store)
        set_extents(self.producer, self.extents)
        erase_inlined(self.consumer, buffer)
        return (self.producer,)


@dataclass(frozen=True)
class ReverseComputeInline(RecheckedPrimitive):
    """Inline a consumer into its only producer, which consumes each value instead of storing it to the temporary.

    Requirements:
    1. the block is complete, and runs its whole domain
    2. it reads a temporary of one producer that only it reads
    3. the producer is complete and stores once
    4. every load of the temporary has the same indices, which can be inverted: none is conditional
    5. each element that the block reads is stored by one instance of the producer
    6. nothing between producer and block touches what it writes, or writes what it reads
    7. what it uses is known in the producer
    8. loops that run in parallel stay independent

    If the producer stores more elements than the block reads, its store becomes conditional.

    ```mlir
    tir.block "B" ... = [%i] { B[%vi] = A[%vi] * 2 }
    tir.block "C" ... = [%i] { C[%vi] = B[%vi] + 1 }
    // reverse_compute_inline "C"
    tir.block "B" ... = [%i] { C[%vi] = A[%vi] * 2 + 1 }
    ```
    """

    block: BlockOp

    def draft(self) -> ReverseComputeInlinePlan:
        block = self.block
        self.require(1, why_not_complete(block))
        self.require(1, instance_left_out(block))
        self.require(1, shared_element(block))
        buffer, producer = self._producer()
        moved = "reverse_compute_at moves the block to its producer" if producer.init is not None else None
        self.require(3, why_not_complete(producer), producer, legal=moved)
        store = single_store(self, 3, producer)
        inverse = self._inverse(buffer)
        self.require(5, shared_element(producer), producer)
        extents = self._require_stored(producer, buffer)
        element = [Index.of(index) for index in store.indices]
        conditions = conditions_left(producer, inverse.conditions(element))
        scope = scope_of(block)
        passed = [op for op in actions_between(block, scope, child_towards(scope, producer)) if op is not producer]
        self.require(6, passing_conflict(block, passed, ()))
        self.require(6, overwritten_by_consumer(producer, block, buffer), producer)
        used = [value for index in inverse.shifts for value in index.values()]
        reason = why_not_dominating([*captured_values(block), *used], InsertPoint.before(store))
        self.require(7, reason)
        return ReverseComputeInlinePlan(block, producer, store, inverse.instance(element), conditions, extents)

    def _producer(self) -> tuple[SSAValue, BlockOp]:
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
            require_uses_inside(self, 2, buffer, [block, writers[0]])
            return buffer, writers[0]
        self.refuse(2, "it reads no temporary that a block of its scope writes")

    def _inverse(self, buffer: SSAValue) -> AccessInverse:
        loads = loads_in(self.block, buffer)
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

    def _require_stored(self, producer: BlockOp, buffer: SSAValue) -> tuple[int | SSAValue, ...]:
        """Returns the producer's extents; without the values that its guards exclude if the block writes a parameter,
        because it must then run its whole domain."""
        if not all(is_exact(a) for b in (producer, self.block) for a in accesses(b) if a.buffer is buffer):
            detail = f"the subscripts of {buffer_name(buffer)} or the conditions around it are not affine"
            self.refuse(5, Violation(detail, "not proved"), producer)
        extents = producer.extents
        if not all(is_temporary(written) for written in buffers_written(self.block)):
            extents = _guarded_extents(producer)
            domain = replace(domain_of(producer), extents=tuple(map(Index.of, extents)))
            told = "its loops or guards leave out {}"
            self.require(5, missed_by(domain, iterator_names(producer), told.format), producer)
        self.require(5, unstored_element(self.block, producer, buffer))
        return tuple(extents)


def _guarded_extents(block: BlockOp) -> list[int | SSAValue]:
    extents = list(block.extents)
    for left, right in guards_of(block):
        for at, binding in enumerate(bindings_of(block)):
            end, extent = binding + right - left, extents[at]
            if end.is_constant and isinstance(extent, int) and 0 < end.constant < extent:
                extents[at] = end.constant
    return extents


def overwritten_by_consumer(producer: BlockOp, block: BlockOp, buffer: SSAValue) -> Violation | None:
    """An instance of `producer` whose inputs an earlier instance of `block` overwrites, if `producer` runs the body of
    `block`."""
    (store,) = (a for a in accesses(producer) if a.is_write and a.buffer is buffer)
    for read, write in overwriting_pairs(producer, block, buffer):
        load = next(a for a in accesses(block) if not a.is_write and a.buffer is buffer)
        if load.loops != write.loops or store.loops != read.loops:
            return Violation("it writes what its producer reads, in separate loops", "not proved")
        levels = len(store.loops) + precedes(store.op, read.op)
        violation = overwritten_in_time(read, write, load, store, store.loops, levels, write_first=False)
        if violation is not None:
            return violation
    return None


@dataclass(frozen=True)
class FuseReductionEpiloguePlan(Plan):
    reduction: BlockOp
    epilogue: BlockOp
    init_store: memref.StoreOp
    store: memref.StoreOp
    load: memref.LoadOp
    combine: Operation
    instance: tuple[Index, ...]

    def rewrite(self) -> tuple[Operation, ...]:
        buffer, result = self.load.memref, self.store.memref
        iterators: dict[SSAValue, Index] = dict(zip(self.epilogue.iter_vars, self.instance, strict=True))
        indices = [Index.of(index).substitute(iterators) for index in self.store.indices]
        # The old initial value, combined with the other operand of the epilogue.
        known: dict[SSAValue, SSAValue] = {self.load.res: self.init_store.value}
        skipped = (self.load, self.store)
        operations, values = insert_instance(self.epilogue, self.instance, self.init_store, known, skipped)
        self.init_store.operands[0] = values[self.combine.results[0]]
        for use in list(buffer.uses):
            op = use.operation
            if isinstance(op, memref.LoadOp | memref.StoreOp) and self.reduction.is_ancestor(op):
                set_access(op, result, [index_before(index, op) for index in indices])
        erase_if_unused(operations)
        erase_inlined(self.epilogue, buffer)
        return (self.reduction,)


@dataclass(frozen=True)
class FuseReductionEpilogue(Primitive):
    """Fuse a block that combines each result of a reduction with a value, using the combiner of the reduction, into the
    init of the reduction: a sum to which a bias is added starts from the bias.

    Requirements:
    1. the first block is a reduction with a known combiner: it has one accumulator, with a distinct element per spatial
       instance, and contains no other blocks
    2. the epilogue is complete, runs its whole domain, and stores once
    3. only the two blocks touch the accumulator: it is a temporary; the reduction precedes, in a separate nest
    4. the epilogue combines the result with a value, by the op of the reduction: it loads it once, unconditionally, and
       stores `loaded op value`, where the value depends on no result
    5. the epilogue loads each element that the reduction computes once: and loads no other elements
    6. nothing between them touches what the epilogue writes, or writes what it reads: nor does the reduction
    7. what the epilogue uses is known in the reduction

    Floating-point sums and products change by rounding, because the order changes. Other ops, such as the clipping of a
    sum (`max(sum, 0)`), are refused: they would apply to the initial value, not to the result.

    ```mlir
    tir.block "T" iters(%vi: spatial<8>, %vk: reduce<64>) = [%i, %k] { tir.init { T[%vi] = 0 }  T[%vi] += A[%vi, %vk] }
    tir.block "C" iters(%vi: spatial<8>) = [%i] { C[%vi] = T[%vi] + bias[%vi] }
    // fuse_reduction_epilogue "T", "C"
    tir.block "T" iters(%vi: spatial<8>, %vk: reduce<64>) = [%i, %k] {
      tir.init { C[%vi] = 0 + bias[%vi] }  C[%vi] += A[%vi, %vk] }
    ```
    """

    reduction_block: BlockOp
    epilogue_block: BlockOp

    def plan(self) -> FuseReductionEpiloguePlan:
        reduction, epilogue = self.reduction_block, self.epilogue_block
        subject = block_text(reduction)
        init_store, operation = self._reduction()
        buffer = init_store.memref
        if epilogue is reduction or scope_of(epilogue) is not scope_of(reduction):
            self.refuse(2, "it is not another block of the scope", epilogue)
        self.require(2, why_not_complete(epilogue), epilogue)
        self.require(2, instance_left_out(epilogue), epilogue)
        self.require(2, shared_element(epilogue), epilogue)
        store = single_store(self, 2, epilogue)
        if not is_temporary(buffer):
            self.refuse(3, f"{buffer_name(buffer)} is a parameter", reduction, subject)
        for block in child_blocks(scope_of(reduction)):
            if block not in (reduction, epilogue) and buffer in (*buffers_loaded(block), *buffers_written(block)):
                self.refuse(3, f'block "{block.label}" touches {buffer_name(buffer)} too', block, subject)
        require_uses_inside(self, 3, buffer, [reduction, epilogue], subject)
        if not precedes(reduction, epilogue):
            self.refuse(3, f"{block_text(epilogue)} stands before", epilogue, subject)
        for loop in reversed(loops_around_both(reduction, epilogue)):
            legal = "fuse_reduction_epilogue before compute_at, reverse_compute_at or merge"
            self.refuse(3, Violation(f"both are in loop {operation_text(loop)}", legal=legal), loop, subject)
        load, combine = self._combination(buffer, store, operation)
        inverse = self._inverse(load, init_store)
        self._require_order()
        element = [Index.of(index) for index in init_store.indices]
        used = [*captured_values(epilogue), *(v for index in inverse.shifts for v in index.values())]
        self.require(7, why_not_dominating(used, InsertPoint.before(reduction)), epilogue, subject)
        instance = inverse.instance(element)
        return FuseReductionEpiloguePlan(reduction, epilogue, init_store, store, load, combine, instance)

    def _reduction(self) -> tuple[memref.StoreOp, type[Operation]]:
        block = self.reduction_block
        self.require(1, why_not_reduction(block), block, legal=started_elsewhere(block, self.NAME))
        self.require(1, shared_element(block), block)
        self.require(1, why_in_order(block), block)
        if any(isinstance(op, BlockOp) for op in block.body.walk()):
            self.refuse(1, "the block holds other blocks", block)
        updates = updates_of(block)
        stores = [op for op in operations_in(block) if isinstance(op, memref.StoreOp) and is_in_init(op, block)]
        update = updates[0] if updates is not None and len(updates) == 1 else None
        operation = None if update is None else update.operation
        if update is None or operation is None:
            detail = "how it combines terms into one accumulator is not understood"
            self.refuse(1, Violation(detail, "not proved", legal="sum, product, min, max, ..."), block)
        places = [[Index.of(index) for index in store.indices] for store in (*stores, update.store)]
        if len(stores) != 1 or stores[0].parent_op() is not block.init or places[0] != places[1]:
            self.refuse(1, "its init does not store once, to the element that it combines into", block)
        return stores[0], operation

    def _combination(
        self, buffer: SSAValue, store: memref.StoreOp, operation: type[Operation]
    ) -> tuple[memref.LoadOp, Operation]:
        epilogue, subject = self.epilogue_block, block_text(self.epilogue_block)
        loads, combine = loads_in(epilogue, buffer), store.value.owner
        if len(loads) != 1 or loads[0].parent_op() is not epilogue:
            self.refuse(4, f"it does not load {buffer_name(buffer)} once, unconditionally", epilogue, subject)
        (load,) = loads
        if [use.operation for use in load.res.uses] != [combine] or not isinstance(combine, Operation):
            self.refuse(4, f"what it loads of {buffer_name(buffer)} is used elsewhere, too", load, subject)
        if not isinstance(combine, operation):
            detail = f"it stores {combine.name} of the result and a value, the reduction combines by {operation.name}"
            self.refuse(4, f"{detail}: the start would go through {combine.name}, the result would not", store, subject)
        own = {v for index in store.indices for v in Index.of(index).values()} - set(epilogue.iter_vars)
        if any(isinstance(v.owner, Operation) and epilogue.is_ancestor(v.owner) for v in own):
            self.refuse(4, f"an index of {buffer_name(store.memref)} is computed from data", store, subject)
        return load, combine

    def _inverse(self, load: memref.LoadOp, init_store: memref.StoreOp) -> AccessInverse:
        """Requirement 5: all computed elements are loaded, and no others."""
        reduction, epilogue, buffer = self.reduction_block, self.epilogue_block, load.memref
        subject = block_text(epilogue)
        inverse = inverse_in_block(epilogue, list(load.indices))
        if isinstance(inverse, Violation):
            self.refuse(5, inverse, load, subject)
        left = conditions_left(reduction, inverse.conditions([Index.of(index) for index in init_store.indices]))
        if left.inequalities or left.equalities:
            self.refuse(5, f"it may not load every element of {buffer_name(buffer)} that is computed", load, subject)
        writes = [a for a in accesses(reduction) if a.is_write and a.buffer is buffer and not a.in_init]
        for read in (a for a in accesses(epilogue) if a.op is load):
            with self.deciding(5, load, subject):
                element = uncovered_element(read, writes)
            if element is not None or not all(is_exact(a) for a in (read, *writes)):
                self.refuse(5, f"it may load more of {buffer_name(buffer)} than is computed", load, subject)
        return inverse

    def _require_order(self) -> None:
        reduction, epilogue = self.reduction_block, self.epilogue_block
        subject = block_text(epilogue)
        for buffer in buffers_written(epilogue):
            for other in (*buffers_loaded(reduction), *buffers_written(reduction)):
                if may_overlap(buffer, other):
                    detail = f"the reduction touches {buffer_name(other)}, which it writes"
                    self.refuse(6, found_overlapping(detail, buffer, other), reduction, subject)
        scope = scope_of(epilogue)
        end = child_towards(scope, reduction)
        passed = [op for op in actions_between(epilogue, scope, end) if op is not reduction]
        self.require(6, passing_conflict(epilogue, passed, ()), epilogue, subject)
