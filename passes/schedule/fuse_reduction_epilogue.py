"""fuse_reduction_epilogue: what is combined with the result of a reduction becomes its start."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.dialects import memref
from xdsl.ir import Operation, SSAValue
from xdsl.rewriter import InsertPoint

from weft.analysis.accesses import accesses
from weft.analysis.block_patterns import is_in_init, updates_of
from weft.analysis.code_motion import actions_between, loops_around_both, passing_conflict, shared_element
from weft.analysis.dependence import buffer_name, is_exact, is_temporary
from weft.analysis.index import Index
from weft.analysis.layout_maps import AccessInverse, inverse_in_block
from weft.analysis.privatization import uncovered_element
from weft.analysis.structure import (
    buffers_loaded,
    buffers_written,
    child_blocks,
    child_towards,
    precedes,
    scope_of,
    why_not_complete,
    why_not_reduction,
)
from weft.dialects.tir import BlockOp
from weft.dialects.traversal import operations_in
from weft.passes.index_ops import erase_if_unused, index_before
from weft.passes.schedule.compute_inline import (
    conditions_left,
    erase_inlined,
    insert_instance,
    loads_of,
    require_uses_inside,
)
from weft.passes.schedule.dominance import values_used_by, why_not_dominating
from weft.passes.schedule.primitive import Plan, Primitive, block_text, operation_text
from weft.passes.schedule.requirements import instance_left_out, single_store, started_elsewhere
from weft.support.errors import Violation


@dataclass(frozen=True)
class FuseReductionEpiloguePlan(Plan):
    """A reduction and its epilogue, the store of each, the epilogue's load of the result, its combining op, and which
    of its instances takes an element."""

    reduction: BlockOp
    epilogue: BlockOp
    started: memref.StoreOp
    store: memref.StoreOp
    load: memref.LoadOp
    combine: Operation
    instance: tuple[Index, ...]

    def rewrite(self) -> tuple[Operation, ...]:
        buffer, result = self.load.memref, self.store.memref
        iterators: dict[SSAValue, Index] = dict(zip(self.epilogue.iter_vars, self.instance, strict=True))
        indices = [Index.of(index).substitute(iterators) for index in self.store.indices]
        # The start: what the reduction starts from, combined with what the epilogue combines its result with.
        known: dict[SSAValue, SSAValue] = {self.load.res: self.started.value}
        skipped = (self.load, self.store)
        operations, values = insert_instance(self.epilogue, self.instance, self.started, known, skipped)
        self.started.operands[0] = values[self.combine.results[0]]
        for use in list(buffer.uses):
            op = use.operation
            if isinstance(op, memref.LoadOp | memref.StoreOp) and self.reduction.is_ancestor(op):
                old = [index.owner for index in op.indices]
                op.operands = [*op.operands[: use.index], result, *(index_before(index, op) for index in indices)]
                erase_if_unused([owner for owner in old if isinstance(owner, Operation)])
        erase_if_unused(operations)
        erase_inlined(self.epilogue, buffer)
        return (self.reduction,)


@dataclass(frozen=True)
class FuseReductionEpilogue(Primitive):
    """A block that combines each result of a reduction with a value, by the op that the reduction combines with,
    becomes part of where the reduction starts: a bias that is added to a sum is what the sum starts from.

    Requirements:
    1. the first block is a reduction with a known combiner: and one accumulator, of which each spatial instance has its
       own element; it holds no other blocks
    2. the epilogue is complete, runs its whole domain, and stores once: the epilogue is the second block
    3. only the two blocks touch the accumulator: it is a temporary; the reduction comes first, in a nest of its own
    4. the epilogue combines the result with a value, by the op of the reduction: it loads it once, unconditionally, and
       stores `loaded op value`, where the value depends on no result of the reduction
    5. the epilogue loads each element that the reduction computes once: by one instance, and none besides
    6. nothing between them touches what the epilogue writes, or writes what it reads: the reduction touches neither
    7. what the epilogue uses is known in the reduction

    The reduction stores to elements as different as before, so that loops stay as independent as they are. Integers,
    minima and maxima stay exactly the same. Floating-point sums and products change by rounding: asking for
    this is asking for another order, as with `rfactor`. Another op, such as the clipping of a sum (`max(sum, 0)`), is
    refused: it would clip the start, but not the result.

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
        started, operation = self._reduction()
        buffer = started.memref
        if epilogue is reduction or scope_of(epilogue) is not scope_of(reduction):
            self.refuse(2, "it is no other block of the scope", epilogue, block_text(epilogue))
        self.require(2, why_not_complete(epilogue), epilogue, block_text(epilogue))
        self.require(2, instance_left_out(epilogue), epilogue, block_text(epilogue))
        self.require(2, shared_element(epilogue), epilogue, block_text(epilogue))
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
        inverse = self._inverse(load, started)
        self._require_order()
        element = [Index.of(index) for index in started.indices]
        used = [*values_used_by(epilogue), *(v for index in inverse.shifts for v in index.values())]
        self.require(7, why_not_dominating(used, InsertPoint.before(reduction)), epilogue, subject)
        instance = inverse.instance(element)
        return FuseReductionEpiloguePlan(reduction, epilogue, started, store, load, combine, instance)

    def _reduction(self) -> tuple[memref.StoreOp, type[Operation]]:
        """The store that starts the accumulation, and the op that combines."""
        block, subject = self.reduction_block, block_text(self.reduction_block)
        self.require(1, why_not_reduction(block), block, subject, started_elsewhere(block, self.NAME))
        self.require(1, shared_element(block), block, subject)
        if any(isinstance(op, BlockOp) for op in block.body.walk()):
            self.refuse(1, "the block holds other blocks", block, subject)
        updates = updates_of(block)
        stores = [op for op in operations_in(block) if isinstance(op, memref.StoreOp) and is_in_init(op, block)]
        update = updates[0] if updates is not None and len(updates) == 1 else None
        operation = None if update is None else update.operation
        if update is None or operation is None:
            detail = "how it combines terms into one accumulator is not understood"
            self.refuse(1, Violation(detail, "not proved", legal="sum, product, min, max, ..."), block, subject)
        places = [[Index.of(index) for index in store.indices] for store in (*stores, update.store)]
        if len(stores) != 1 or stores[0].parent_op() is not block.init or places[0] != places[1]:
            self.refuse(1, "its init does not store once, to the element that it combines into", block, subject)
        return stores[0], operation

    def _combination(
        self, buffer: SSAValue, store: memref.StoreOp, operation: type[Operation]
    ) -> tuple[memref.LoadOp, Operation]:
        """The load of the result, and the op that combines it with a value."""
        epilogue, subject = self.epilogue_block, block_text(self.epilogue_block)
        loads, combine = loads_of(epilogue, buffer), store.value.owner
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

    def _inverse(self, load: memref.LoadOp, started: memref.StoreOp) -> AccessInverse:
        """Which instance of the epilogue loads an element; all that the reduction computes are loaded."""
        reduction, epilogue, buffer = self.reduction_block, self.epilogue_block, load.memref
        subject = block_text(epilogue)
        inverse = inverse_in_block(epilogue, list(load.indices))
        if isinstance(inverse, Violation):
            self.refuse(5, inverse, load, subject)
        left = conditions_left(reduction, inverse.conditions([Index.of(index) for index in started.indices]))
        if left.positives or left.zeros:
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
            if buffer in (*buffers_loaded(reduction), *buffers_written(reduction)):
                self.refuse(6, f"the reduction touches {buffer_name(buffer)}, which it writes", reduction, subject)
        scope = scope_of(epilogue)
        end = child_towards(scope, reduction)
        passed = [op for op in actions_between(epilogue, scope, end) if op is not reduction]
        self.require(6, passing_conflict(epilogue, passed, ()), epilogue, subject)
