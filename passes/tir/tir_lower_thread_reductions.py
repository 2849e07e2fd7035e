"""tir-lower-thread-reductions: combine values of threads."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from xdsl.dialects import arith, memref, scf
from xdsl.dialects.builtin import FixedBitwidthType, IndexType, MemRefType
from xdsl.dialects.func import FuncOp
from xdsl.dialects.utils.fast_math import FastMathFlag
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.rewriter import Rewriter

from weft.analysis.block_scopes import ancestors, bindings_of, buffers_written, guards_of
from weft.analysis.index import Index
from weft.analysis.threads import axis_of
from weft.dialects.low_kernel import SHARED, THREAD_AXES, ShuffleMode, ShuffleOp
from weft.dialects.tir import BlockOp, ForOp, InitOp
from weft.dialects.tir_kinds import ACROSS_THREADS, IterKind
from weft.dialects.traversal import copies_of_sources, copy_of
from weft.passes.index_builders import (
    branch_before,
    compare_before,
    conjunction_before,
    constant_before,
    detached_ops,
    index_before,
    insert_before,
    insert_where,
    number_attribute,
    result_before,
)
from weft.passes.tir.tir_pass import (
    LOCAL,
    TirPass,
    allocate_before,
    bind_iterators,
    buffer_type,
    range_of,
    unproved_before,
)
from weft.support.errors import CompileError, InternalError
from weft.support.target import Target

_SHUFFLING = ("cuda", "metal")
"""Kinds of target whose threads can read each other's registers."""


@dataclass(frozen=True)
class LowerThreadReductionsPass(TirPass):
    """Lower the blocks that combine one value of each thread (`tir-factor-thread-reductions`), inside kernels.

    Threads of a warp combine by shuffles, halving their number in each step; the first warp combines the results of all
    warps in shared memory. This requires axis `threadIdx.x` with the extent of the reduction: a power of two up to a
    warp, or a multiple of a warp. Otherwise, and without shuffles, all values are combined in shared memory. Then the
    first thread of the axis, or every one if the accumulator is "local", runs the init, combines, and stores;
    `tir-insert-barriers` inserts barriers later.

    ```mlir
    tir.block "B" iters(%vi: spatial<8>, %vt: reduce<32>) = [%i, %t] {tir.across_threads = "threadIdx.x"} {
      tir.init { B[%vi] = 0 }
      B[%vi] = B[%vi] + P[%vi, %vt] }
    // becomes
    %p16 = P[%i, %t] + low.shuffle down P[%i, %t], 16 width 32
    %p8 = %p16 + low.shuffle down %p16, 8 width 32 ...
    scf.if %t == 0 { B[%i] = 0;  B[%i] = B[%i] + %p1 }
    ```
    Raises CompileError if the block is under a condition or in a loop that differs between threads of a thread block.

    Requires: kernels (`tir-bind-threads`) with blocks of `tir-factor-thread-reductions`, and temporaries in memory
    spaces (`tir-assign-spaces`).

    Leaves: no block that combines values of several threads.
    """

    name = "tir-lower-thread-reductions"
    fast_math = (FastMathFlag.REASSOC,)

    target: str = "cuda"
    """As in `weft.build`; gives limits and instructions."""

    def rewrite(self, function: FuncOp) -> None:
        for block in [b for b in function.walk() if isinstance(b, BlockOp) and ACROSS_THREADS in b.attributes]:
            _Lowering(block, Target.parse(self.target)).run()


class _Lowering:
    """`values` are this thread's partial combinations, one per accumulator."""

    def __init__(self, block: BlockOp, target: Target) -> None:
        self.block = block
        self.target = target
        iterators = zip(bindings_of(block), block.extents, block.kinds, strict=True)
        ((reduced, count),) = ((index, extent) for index, extent, kind in iterators if kind is IterKind.REDUCE)
        around = [op for op in ancestors(block) if isinstance(op, ForOp) and axis_of(op) in THREAD_AXES]
        owner = next((loop for loop in around if loop.induction_variable is reduced.single_value), None)
        if owner is None or not isinstance(count, int):
            raise InternalError(f'block "{block.label}" combines the values of threads, but is bound to {reduced!r}')
        self.thread_loop, self.count = owner, count
        self.thread = Index.of(owner.induction_variable)
        self.others = [loop for loop in around if loop is not owner]
        """Over threads along the other axes."""
        self.anchor: Operation = block
        """New ops are inserted before this one."""
        self.conditions = guards_of(block)
        stored = buffers_written(block)
        self.body = [op for op in block.body.block.ops if not isinstance(op, InitOp)]
        loads = [op for op in self.body if isinstance(op, memref.LoadOp)]
        self.terms = [load for load in loads if load.memref not in stored]
        self.olds = [load for load in loads if load.memref in stored]
        self.stores = [op for op in self.body if isinstance(op, memref.StoreOp)]
        self.for_all = all(buffer_type(buffer).memory_space == LOCAL for buffer in stored)

    def run(self) -> None:
        block = self.block
        for parent in ancestors(block):
            if isinstance(parent, scf.IfOp | BlockOp):
                name = parent.name if isinstance(parent, scf.IfOp) else f'block "{parent.label}"'
                raise CompileError.at(
                    block, f'block "{block.label}" is reduced over threads inside of {name}, which not all may reach'
                )
        bind_iterators(block)
        values = self._own_values()
        self._store(self._by_shuffles(values) if self._can_shuffle() else self._in_shared_memory(values))
        Rewriter.erase_op(block)

    def _can_shuffle(self) -> bool:
        gpu = self.target.gpu
        if gpu is None or self.target.kind not in _SHUFFLING or axis_of(self.thread_loop) != THREAD_AXES[0]:
            return False
        warp = gpu.warp_size
        fits = self.count % warp == 0 or (self.count < warp and warp % self.count == 0)
        scalars = all(_is_shuffled(term.res.type) for term in self.terms)
        return fits and scalars and self.thread_loop.extent == self.count and self.count <= warp * warp

    def _own_values(self) -> list[SSAValue]:
        """Zero if the block does not run in this thread."""
        conditions = self._compare(self.conditions)
        own: list[SSAValue] = []
        for term in self.terms:
            mapping: dict[SSAValue, SSAValue] = {}
            insert_before(self.anchor, copies_of_sources(term.operands, mapping, self._is_in_body))
            load = copy_of(term, mapping)
            if conditions is None:
                own.append(self._insert(load))
                continue
            zero = arith.ConstantOp(number_attribute(0, term.res.type))
            then, otherwise = [load, scf.YieldOp(load.res)], [zero, scf.YieldOp(zero.result)]
            own.append(self._insert(scf.IfOp(conditions, [term.res.type], then, otherwise)))
        for value, term in zip(own, self.terms, strict=True):
            value.name_hint = term.memref.name_hint
        return own

    def _is_in_body(self, op: Operation) -> bool:
        return op.parent is self.block.body.block

    def _combined(self, left: Sequence[SSAValue], right: Sequence[SSAValue]) -> list[SSAValue]:
        lefts = dict(zip((store.memref for store in self.stores), left, strict=True))
        mapping: dict[SSAValue, SSAValue] = {old.res: lefts[old.memref] for old in self.olds}
        mapping.update(zip((term.res for term in self.terms), right, strict=True))
        for op in self.body:
            if op.name.startswith(("arith.", "math.")):
                self._insert(op.clone(mapping))
        return [mapping.get(store.value, store.value) for store in self.stores]

    def _by_shuffles(self, values: list[SSAValue]) -> list[SSAValue]:
        gpu = self.target.gpu
        warp = 32 if gpu is None else gpu.warp_size
        width = min(self.count, warp)
        values = self._halved(values, width, width)
        warps = self.count // warp
        if warps <= 1:
            if not self.for_all:
                return values
            lane = constant_before(0, self.block)
            return [self._insert(ShuffleOp(ShuffleMode.IDX, value, lane, width)) for value in values]
        thread = self.thread
        scratch = self._scratch(values, warps)
        first = compare_before("eq", (thread % warp).simplified(range_of), Index({}), self.block)
        self._store_to(scratch, (thread // warp).simplified(range_of), values, first)
        inside = compare_before("slt", thread, Index({}, warps), self.block)
        values = self._halved(self._load_from(scratch, thread, values, inside), warps, warp)
        if not self.for_all:
            return values
        first = compare_before("eq", thread, Index({}), self.block)
        self._store_to(scratch, Index({}), values, first)
        return self._loaded(scratch, Index({}))

    def _halved(self, values: list[SSAValue], count: int, width: int) -> list[SSAValue]:
        """Combine the first `count` of each `width` lanes into lane 0."""
        offset = 1
        while offset * 2 < count:
            offset *= 2
        lanes = count
        while offset >= 1 and count > 1:
            distance = constant_before(offset, self.block)
            others = [self._insert(ShuffleOp(ShuffleMode.DOWN, value, distance, width)) for value in values]
            combined = self._combined(values, others)
            if lanes < 2 * offset:
                lane = (self.thread % width).simplified(range_of)
                inside = compare_before("slt", lane, Index({}, lanes - offset), self.block)
                pairs = zip(combined, values, strict=True)
                combined = [self._insert(arith.SelectOp(inside, new, old)) for new, old in pairs]
            values, lanes = combined, offset
            offset //= 2
        return values

    def _in_shared_memory(self, values: list[SSAValue]) -> list[SSAValue]:
        scratch, thread = self._scratch(values, self.count), self.thread
        self._store_to(scratch, thread, values, self._compare([(thread, Index({}, self.count))]))
        lanes = self.count
        while lanes > 1:
            offset = (lanes + 1) // 2
            with self._under(compare_before("slt", thread, Index({}, lanes - offset), self.block)):
                combined = self._combined(self._loaded(scratch, thread), self._loaded(scratch, thread + offset))
                self._store_to(scratch, thread, combined)
            lanes = offset
        if self.for_all:
            return self._loaded(scratch, Index({}))
        return self._load_from(scratch, thread, values, compare_before("eq", thread, Index({}), self.block))

    def _scratch(self, values: Sequence[SSAValue], count: int) -> list[SSAValue]:
        shape = [*(loop.extent for loop in self.others if isinstance(loop.extent, int)), count]
        found: list[SSAValue] = []
        for value, store in zip(values, self.stores, strict=True):
            type_ = MemRefType(value.type, shape, memory_space=SHARED)
            alloc = allocate_before(self.block, memref.AllocOp, type_, f"{store.memref.name_hint}_parts")
            found.append(alloc.memref)
        return found

    def _place(self, along: Index) -> list[SSAValue]:
        here = index_before(along.simplified(range_of), self.anchor)
        return [*(loop.induction_variable for loop in self.others), here]

    def _store_to(
        self, scratch: list[SSAValue], along: Index, values: Sequence[SSAValue], condition: SSAValue | None = None
    ) -> None:
        with self._under(condition):
            place = self._place(along)
            pairs = zip(values, scratch, strict=True)
            insert_before(self.anchor, [memref.StoreOp.get(value, buffer, place) for value, buffer in pairs])

    def _loaded(self, scratch: list[SSAValue], along: Index) -> list[SSAValue]:
        place = self._place(along)
        return [self._insert(memref.LoadOp.get(buffer, place)) for buffer in scratch]

    def _load_from(
        self, scratch: list[SSAValue], along: Index, otherwise: Sequence[SSAValue], condition: SSAValue
    ) -> list[SSAValue]:
        place, found = self._place(along), list[SSAValue]()
        for buffer, value in zip(scratch, otherwise, strict=True):
            load = memref.LoadOp.get(buffer, place)
            load.location = self.block.location
            choice = scf.IfOp(condition, [value.type], [load, scf.YieldOp(load.res)], [scf.YieldOp(value)])
            found.append(self._insert(choice))
        return found

    def _store(self, values: Sequence[SSAValue]) -> None:
        block = self.block
        for term, value in zip(self.terms, values, strict=True):
            term.res.replace_all_uses_with(value)
            Rewriter.erase_op(term)
        init = block.init
        starting: list[Operation] = []
        if init is not None:
            starting = detached_ops(init.body.block)
            Rewriter.erase_op(init)
        first = [] if self.for_all else [(self.thread, Index({}, 1))]
        conditions = unproved_before([*self.conditions, *first], block)
        insert_where(conditions, [*starting, *detached_ops(block.body.block)], block)

    def _compare(self, conditions: Sequence[tuple[Index, Index]]) -> SSAValue | None:
        unproved = unproved_before(conditions, self.block)
        return conjunction_before(unproved, self.block) if unproved else None

    def _insert(self, op: Operation) -> SSAValue:
        return result_before(op, self.anchor)

    @contextmanager
    def _under(self, condition: SSAValue | None) -> Generator[None]:
        outer = self.anchor
        with branch_before(condition, outer) as self.anchor:
            yield
        self.anchor = outer


def _is_shuffled(type_: Attribute) -> bool:
    return isinstance(type_, IndexType) or (isinstance(type_, FixedBitwidthType) and type_.bitwidth >= 8)
