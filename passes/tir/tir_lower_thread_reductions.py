"""tir-lower-thread-reductions: combine thread-private partial results by shuffles and through shared memory."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import arith, memref, scf
from xdsl.dialects.builtin import AnyFloat, IndexType, IntegerType, MemRefType, ModuleOp
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.passes import ModulePass

from weft.analysis.index import Index
from weft.analysis.structure import ancestors, stored_buffer
from weft.analysis.threads import axis_of
from weft.dialects.low_gpu import ShuffleMode, ShuffleOp
from weft.dialects.low_kernel import SHARED, THREAD_AXES
from weft.dialects.tir import BlockOp, ForOp, InitOp
from weft.dialects.tir_kinds import ACROSS_THREADS, IterKind
from weft.passes.index_ops import zero_of
from weft.passes.tir.nest import (
    LOCAL,
    buffer_type,
    compare_before,
    conjunction_before,
    detached_ops,
    if_around,
    index_before,
    index_constant,
    insert_before,
    range_of,
    tir_functions,
)
from weft.support.errors import CompileError, InternalError
from weft.support.target import Target

_SHUFFLING = ("cuda", "metal")
"""Kinds of target whose threads can read each other's registers."""


@dataclass(frozen=True)
class LowerThreadReductionsPass(ModulePass):
    """Lower the blocks that combine one value of each thread (`tir-factor-thread-reductions`), inside kernels.

    The threads of a warp combine by shuffles, halving their number in each step; the warps leave their results in
    shared memory, and the first one combines those. It needs the axis to be `threadIdx.x`, with as many threads as the
    reduction, a power of two up to a warp or a multiple of it. Elsewhere, and on targets without shuffles, the values
    of all threads are combined in shared memory. The first thread of the axis then runs the init of the block, combines
    the result into it, and stores; barriers come later (`tir-insert-barriers`). Where the accumulator is in memory of
    space "local", all threads of the axis get the result, and do so.

    ```mlir
    tir.block "B" iters(%vi: spatial<8>, %vt: reduce<32>) = [%i, %t] {tir.across_threads = "threadIdx.x"} {
      tir.init { B[%vi] = 0 }
      B[%vi] = B[%vi] + P[%vi, %vt] }
    // becomes
    %p16 = P[%i, %t] + low.shuffle down P[%i, %t], 16 width 32
    %p8 = %p16 + low.shuffle down %p16, 8 width 32 ...
    scf.if %t == 0 { B[%i] = 0;  B[%i] = B[%i] + %p1 }
    ```
    Raises CompileError where the block stands under something that not all threads of a block come to.
    """

    name = "tir-lower-thread-reductions"

    target: str = "cuda"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        target = Target.parse(self.target)
        for function in tir_functions(op):
            for block in [b for b in function.walk() if isinstance(b, BlockOp) and ACROSS_THREADS in b.attributes]:
                _Lowering(block, target).run()


class _Lowering:
    """Lowers one block. `values` are, for each accumulator, what this thread has combined so far."""

    def __init__(self, block: BlockOp, target: Target) -> None:
        self.block = block
        self.target = target
        around = [op for op in ancestors(block) if isinstance(op, ForOp) and axis_of(op) in THREAD_AXES]
        self.loops = {axis_of(loop): loop for loop in around}
        bindings = zip(Index.of_map(block.bindings.data, block.binding_operands), block.kinds, strict=True)
        (reduced,) = (index for index, kind in bindings if kind is IterKind.REDUCE)
        thread = reduced.single_value
        owner = next((loop for loop in around if loop.induction_variable is thread), None)
        (extent,) = (e for e, kind in zip(block.extents, block.kinds, strict=True) if kind is IterKind.REDUCE)
        if owner is None or not isinstance(extent, int):
            raise InternalError(f'block "{block.label}" combines the values of threads, but is bound to {reduced!r}')
        self.thread_loop, self.count = owner, extent
        self.thread = owner.induction_variable
        self.conditions = _guards(block)

    def run(self) -> None:
        block = self.block
        for parent in ancestors(block):
            if isinstance(parent, scf.IfOp | BlockOp):
                name = parent.name if isinstance(parent, scf.IfOp) else f'block "{parent.label}"'
                raise CompileError.at(
                    block, f'block "{block.label}" is reduced over threads inside of {name}, which not all may reach'
                )
        self._bind_iterators()
        stored = {buffer for op in block.walk() if (buffer := stored_buffer(op)) is not None}
        body = [op for op in block.body.block.ops if not isinstance(op, InitOp)]
        self.body = body
        self.terms = [op for op in body if isinstance(op, memref.LoadOp) and op.memref not in stored]
        self.olds = [op for op in body if isinstance(op, memref.LoadOp) and op.memref in stored]
        self.stores = [op for op in body if isinstance(op, memref.StoreOp)]
        self.for_all = all(buffer_type(buffer).memory_space == LOCAL for buffer in stored)
        values = self._own_values()
        values = self._by_shuffles(values) if self._can_shuffle() else self._in_shared_memory(values)
        self._store(values)
        block.detach()
        block.erase()

    def _bind_iterators(self) -> None:
        block = self.block
        bindings = Index.of_map(block.bindings.data, block.binding_operands)
        for variable, binding in zip(block.iter_vars, bindings, strict=True):
            if variable.first_use is not None:
                value = index_before(binding.simplified(range_of), block, variable.name_hint)
                variable.replace_all_uses_with(value)

    def _can_shuffle(self) -> bool:
        gpu = self.target.gpu
        if gpu is None or self.target.kind not in _SHUFFLING or axis_of(self.thread_loop) != THREAD_AXES[0]:
            return False
        warp = gpu.warp_size
        fits = self.count % warp == 0 or (self.count < warp and warp % self.count == 0)
        scalars = all(
            isinstance(term.res.type, AnyFloat | IndexType) or _width(term.res.type) >= 8 for term in self.terms
        )
        return fits and scalars and self.thread_loop.extent == self.count and self.count <= warp * warp

    def _own_values(self) -> list[SSAValue]:
        """What this thread has; zero where the block does not run in it."""
        conditions = self._compare(self.conditions)
        own: list[SSAValue] = []
        for term in self.terms:
            computed = self._copies_of_indices(term)
            load = term.clone(computed)
            load.location = term.location
            if conditions is None:
                insert_before(self.block, [load])
                own.append(load.results[0])
                continue
            zero = arith.ConstantOp(zero_of(term.res.type))
            choice = scf.IfOp(
                conditions,
                [term.res.type],
                Region(Block([load, scf.YieldOp(load.results[0])])),
                Region(Block([zero, scf.YieldOp(zero.result)])),
            )
            insert_before(self.block, [choice])
            own.append(choice.results[0])
        for value, term in zip(own, self.terms, strict=True):
            value.name_hint = term.memref.name_hint
        return own

    def _copies_of_indices(self, op: Operation) -> dict[SSAValue, SSAValue]:
        """Computations in the block that the operands of `op` come from, repeated before the block."""
        mapping: dict[SSAValue, SSAValue] = {}

        def visit(value: SSAValue) -> None:
            owner = value.owner
            if isinstance(owner, Operation) and owner.parent is self.block.body.block and value not in mapping:
                for operand in owner.operands:
                    visit(operand)
                copy = owner.clone(mapping)
                insert_before(self.block, [copy])

        for operand in op.operands:
            visit(operand)
        return mapping

    def _combined(self, left: Sequence[SSAValue], right: Sequence[SSAValue]) -> list[SSAValue]:
        """The values of two threads combined, computed before the block."""
        mapping: dict[SSAValue, SSAValue] = {}
        by_buffer = {store.memref: at for at, store in enumerate(self.stores)}
        order = {term.memref: at for at, term in enumerate(self.terms)}
        for old in self.olds:
            mapping[old.res] = left[by_buffer[old.memref]]
        for term in self.terms:
            mapping[term.res] = right[order[term.memref]]
        for op in self.body:
            if op.name.startswith(("arith.", "math.")):
                insert_before(self.block, [op.clone(mapping)])
        return [mapping.get(store.value, store.value) for store in self.stores]

    def _by_shuffles(self, values: list[SSAValue]) -> list[SSAValue]:
        gpu = self.target.gpu
        warp = 32 if gpu is None else gpu.warp_size
        width = min(self.count, warp)
        values = self._halved(values, width, width)
        warps = self.count // warp
        if warps <= 1:
            return self._from_first_lane(values, width) if self.for_all else values
        thread = Index.of(self.thread)
        scratch = self._scratch(values, warps)
        place = self._place((thread // warp).simplified(range_of))
        first = compare_before("eq", (thread % warp).simplified(range_of), Index({}), self.block)
        self._store_to(scratch, place, values, first)
        inside = compare_before("slt", thread, Index({}, warps), self.block)
        gathered = self._load_from(scratch, self._place(thread), values, inside)
        values = self._halved(gathered, warps, warp)
        if not self.for_all:
            return values
        place = self._place(Index({}))
        self._store_to(scratch, place, values, compare_before("eq", thread, Index({}), self.block))
        return self._loaded(scratch, place)

    def _from_first_lane(self, values: Sequence[SSAValue], width: int) -> list[SSAValue]:
        """What lane 0 of each group of `width` has, in all of its lanes."""
        lane = index_constant(0)
        shuffles = [ShuffleOp(ShuffleMode.IDX, value, lane.result, width) for value in values]
        insert_before(self.block, [lane, *shuffles])
        return [shuffle.result for shuffle in shuffles]

    def _halved(self, values: list[SSAValue], count: int, width: int) -> list[SSAValue]:
        """Lane 0 of each group of `width` gets what its first `count` lanes have."""
        offset = 1
        while offset * 2 < count:
            offset *= 2
        lanes = count
        while offset >= 1 and count > 1:
            distance = index_constant(offset)
            insert_before(self.block, [distance])
            shuffles = [ShuffleOp(ShuffleMode.DOWN, value, distance.result, width) for value in values]
            insert_before(self.block, shuffles)
            combined = self._combined(values, [s.result for s in shuffles])
            if lanes < 2 * offset:
                lane = (Index.of(self.thread) % width).simplified(range_of)
                inside = compare_before("slt", lane, Index({}, lanes - offset), self.block)
                combined = self._chosen(inside, combined, values)
            values, lanes = combined, offset
            offset //= 2
        return values

    def _chosen(self, condition: SSAValue, new: Sequence[SSAValue], old: Sequence[SSAValue]) -> list[SSAValue]:
        selects = [arith.SelectOp(condition, a, b) for a, b in zip(new, old, strict=True)]
        insert_before(self.block, selects)
        return [select.result for select in selects]

    def _in_shared_memory(self, values: list[SSAValue]) -> list[SSAValue]:
        scratch = self._scratch(values, self.count)
        thread = Index.of(self.thread)
        inside = self._compare([(thread, Index({}, self.count))])
        self._store_to(scratch, self._place(thread), values, inside)
        lanes = self.count
        while lanes > 1:
            offset = (lanes + 1) // 2
            active = compare_before("slt", thread, Index({}, lanes - offset), self.block)
            self._guarded(active, lambda o=offset: self._combine_places(scratch, thread, o))
            lanes = offset
        if self.for_all:
            return self._loaded(scratch, self._place(Index({})))
        first = compare_before("eq", thread, Index({}), self.block)
        return self._load_from(scratch, self._place(thread), values, first)

    def _combine_places(self, scratch: list[SSAValue], thread: Index, offset: int) -> None:
        here, there = self._place(thread), self._place(thread + offset)
        pairs = [[memref.LoadOp.get(buffer, place) for buffer in scratch] for place in (here, there)]
        for loads in pairs:
            insert_before(self.block, loads)
        results = self._combined([op.res for op in pairs[0]], [op.res for op in pairs[1]])
        insert_before(self.block, [memref.StoreOp.get(v, b, here) for v, b in zip(results, scratch, strict=True)])

    def _guarded(self, condition: SSAValue, write: Callable[[], None]) -> None:
        """Put what `write` writes before the block under a condition."""
        before = self.block.prev_op
        write()
        ops: list[Operation] = []
        op = self.block.prev_op
        while op is not None and op is not before:
            ops.append(op)
            op = op.prev_op
        ops.reverse()
        for op in ops:
            op.detach()
        insert_before(self.block, [if_around(condition, ops)])

    def _scratch(self, values: Sequence[SSAValue], count: int) -> list[SSAValue]:
        """Shared memory for `count` values along the axis, for each thread of the other axes."""
        others = [loop.extent for axis, loop in self.loops.items() if axis != axis_of(self.thread_loop)]
        shape = [*(e for e in others if isinstance(e, int)), count]
        found: list[SSAValue] = []
        for value, store in zip(values, self.stores, strict=True):
            alloc = memref.AllocOp([], [], MemRefType(value.type, shape, memory_space=SHARED))
            alloc.memref.name_hint = f"{store.memref.name_hint}_parts"
            insert_before(self.block, [alloc])
            found.append(alloc.memref)
        return found

    def _place(self, along: Index) -> list[SSAValue]:
        others = [loop for axis, loop in self.loops.items() if axis != axis_of(self.thread_loop)]
        return [*(loop.induction_variable for loop in others), index_before(along.simplified(range_of), self.block)]

    def _store_to(
        self, scratch: list[SSAValue], place: list[SSAValue], values: Sequence[SSAValue], condition: SSAValue | None
    ) -> None:
        stores: list[Operation] = [memref.StoreOp.get(v, b, place) for v, b in zip(values, scratch, strict=True)]
        insert_before(self.block, stores if condition is None else [])
        if condition is not None:
            for op in stores:
                op.location = self.block.location
            insert_before(self.block, [if_around(condition, stores)])

    def _loaded(self, scratch: list[SSAValue], place: list[SSAValue]) -> list[SSAValue]:
        """The values at one place of shared memory."""
        loads = [memref.LoadOp.get(buffer, place) for buffer in scratch]
        insert_before(self.block, loads)
        return [load.res for load in loads]

    def _load_from(
        self, scratch: list[SSAValue], place: list[SSAValue], otherwise: Sequence[SSAValue], condition: SSAValue
    ) -> list[SSAValue]:
        """The values in shared memory where `condition` holds, those of this thread elsewhere."""
        found: list[SSAValue] = []
        for buffer, value in zip(scratch, otherwise, strict=True):
            load = memref.LoadOp.get(buffer, place)
            load.location = self.block.location
            then = Region(Block([load, scf.YieldOp(load.res)]))
            choice = scf.IfOp(condition, [value.type], then, Region(Block([scf.YieldOp(value)])))
            insert_before(self.block, [choice])
            found.append(choice.results[0])
        return found

    def _store(self, values: Sequence[SSAValue]) -> None:
        """The first thread (or all of them) runs the block, with the combined values in the place of its own."""
        block = self.block
        for term, value in zip(self.terms, values, strict=True):
            term.res.replace_all_uses_with(value)
            term.detach()
            term.erase()
        init = block.init
        starting: list[Operation] = []
        if init is not None:
            starting = detached_ops(init.body.block)
            init.detach()
            init.erase()
        first = [] if self.for_all else [(Index.of(self.thread), Index({}, 1))]
        condition = self._compare([*self.conditions, *first])
        ops = [*starting, *detached_ops(block.body.block)]
        insert_before(block, ops if condition is None else [if_around(condition, ops)])

    def _compare(self, conditions: Sequence[tuple[Index, Index]]) -> SSAValue | None:
        """That each left is less than its right, None when ranges prove all."""
        open_: list[SSAValue] = []
        for left, right in conditions:
            low, _ = (right - left).simplified(range_of).range(range_of)
            if low is None or low < 1:
                open_.append(compare_before("slt", left, right, self.block))
        return conjunction_before(open_, self.block) if open_ else None


def _guards(block: BlockOp) -> list[tuple[Index, Index]]:
    dims = [Index.of(v) for v in block.guard_operands]
    return [
        (Index.of_expr(left, dims).simplified(range_of), Index.of_expr(right, dims).simplified(range_of))
        for left, right in block.guards
    ]


def _width(type_: Attribute) -> int:
    return type_.width.data if isinstance(type_, IntegerType) else 0
