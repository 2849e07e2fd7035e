"""tir-bind-threads: one loop per block and thread axis."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from math import prod

from xdsl.dialects import memref, scf
from xdsl.dialects.builtin import IndexType, NoneAttr, StringAttr, UnitAttr
from xdsl.dialects.func import CallOp, FuncOp
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from weft.analysis.accesses import accesses
from weft.analysis.block_scopes import ancestors, block_around, buffers_written, guards_of, sources_of, stored_buffer
from weft.analysis.dependence import conflict_between
from weft.analysis.independence import NO_WAIT
from weft.analysis.index import Index
from weft.analysis.sets import NotProved
from weft.analysis.threads import VIRTUAL_AXES, axis_of, is_cooperative, loops_of_axis
from weft.dialects.effects import is_opaque, opaque_op, opaque_text, touches_memory
from weft.dialects.low_access import AccessPtrOp
from weft.dialects.low_kernel import BLOCK_AXES, THREAD_AXES, AtomicOp, is_host_condition
from weft.dialects.low_tensor_cores import WARP, is_fragment_scope
from weft.dialects.tir import BlockOp, ForOp
from weft.dialects.tir_kinds import IN_STEP, SOURCE, VIRTUAL_THREADS, IterKind, LoopKind, LoopKindAttr
from weft.dialects.traversal import blocks_of
from weft.passes.index_builders import dissolve, index_before
from weft.passes.schedule.nest_builders import set_guards
from weft.passes.tir.tir_lower_tiles import LANES, require_fragment, require_lanes, require_tensor_cores, works_on_tiles
from weft.passes.tir.tir_pass import LOCAL, TirPass, buffer_type, set_memory_space
from weft.support.errors import CompileError, ScheduleError, Violation
from weft.support.target import Target

AXES = (*reversed(BLOCK_AXES), *reversed(THREAD_AXES))
"""Loops of a kernel, outermost first."""


@dataclass(frozen=True)
class BindThreadsPass(TirPass):
    """Turn every kernel into `blocks { threads { body } }`, with one loop per axis.

    ```mlir
    tir.for %i in 32 thread_binding<"blockIdx.x"> {
      tir.for %a in 64 thread_binding<"threadIdx.x"> { tir.block "S" ... = [%i * 64 + %a] {...} }
      tir.for %b in 64 thread_binding<"threadIdx.x"> { tir.block "C" ... = [%i * 64 + %b] {...} } }
    // becomes
    tir.for %i in 32 thread_binding<"blockIdx.x"> { tir.for %a in 64 thread_binding<"threadIdx.x"> {
        tir.block "S" ... = [%i * 64 + %a] {...}
        tir.block "C" ... = [%i * 64 + %a] {...} } }
    ```
    A kernel is an outermost nest with bound loops; loops around several of them, and unbound loops around bound ones,
    are host loops, whose code may load booleans that only select branches. Dependent threads run in lockstep; barriers
    are inserted later. An axis gets the largest extent of its loops; blocks in shorter ones get a guard. The first
    thread of an axis runs blocks outside of its loops, except those that only write thread-private memory, and blocks
    that fill shared memory identically in all threads. Blocks on tiles are in no loop over threadIdx.x, whose 32
    threads are a warp that executes them together. Virtual threads become unrolled loops.

    Raises CompileError for blocks in unbound loops, stores outside of blocks, other buffer accesses in host code, and
    thread axes of dynamic extent; ScheduleError for thread blocks above the target's limit.

    Requires: block loops with loops bound to GPU axes; temporaries at their places (`tir-place-buffers`).

    Leaves: kernels of one loop per axis, whose threads run in step (`tir.threads_in_step`).
    """

    name = "tir-bind-threads"

    target: str = "cuda"
    """As in `weft.build`; gives limits and instructions."""

    def rewrite(self, function: FuncOp) -> None:
        target = Target.parse(self.target)
        _drop_single_iterations(function.body.block)
        roots = list(_kernel_roots(function.body.block, target))
        if roots:
            require_tensor_cores(function, target)
            _drop_tags(function)
            function.attributes[IN_STEP] = UnitAttr()
        for root in roots:
            _Binder(root, target).run()


def _drop_tags(function: FuncOp) -> None:
    """Replace a tagged space, such as "shared.dyn", by its prefix, that of fragments by "local"."""
    for op in [op for op in function.walk() if isinstance(op, memref.AllocOp)]:
        old = buffer_type(op.memref).memory_space
        if not isinstance(old, StringAttr):
            continue
        name = old.data.partition(".")[0]
        if is_fragment_scope(old):
            require_fragment(op)
            name = LOCAL.data  # each thread of a warp holds a part
        if name not in ("global", "shared", "local"):
            raise CompileError.at(op, f'%{op.memref.name_hint}: kernels have no memory of space "{old.data}"')
        space = NoneAttr() if name == "global" else StringAttr(name)
        if space != old:
            set_memory_space(op.memref, space)


def _kernel_roots(block: Block, target: Target) -> Iterator[Operation]:
    """Raises CompileError for ops valid neither in host code nor kernels."""
    for op in block.ops:
        if isinstance(op, ForOp):
            if axis_of(op) is not None:
                yield op
            elif not _has_bound_loops(op):
                _refuse_unbound(op, target)
            elif op.kind.data in (LoopKind.PARALLEL, LoopKind.VECTORIZED):
                raise CompileError.at(
                    op, f"the loop is {op.kind.data.value}, and stands around the kernels of {target.kind}"
                )
            else:
                yield from _kernel_roots(op.body.block, target)
        elif isinstance(op, scf.IfOp):
            for inner in blocks_of(op):
                yield from _kernel_roots(inner, target)
        elif isinstance(op, BlockOp):
            yield op
        elif isinstance(op, memref.LoadOp | memref.StoreOp | AccessPtrOp) and not is_host_condition(op):
            buffer = op.buffer if isinstance(op, AccessPtrOp) else op.memref
            raise CompileError.at(
                op, f"host code touches %{buffer.name_hint}, which is in device memory: only kernels access buffers"
            )


def _drop_single_iterations(block: Block) -> None:
    """The body of a host loop of one iteration may be a kernel."""
    for op in list(block.ops):
        if isinstance(op, ForOp) and axis_of(op) is None:
            _drop_single_iterations(op.body.block)
            if op.extent == 1:
                dissolve(op, index_before(Index({}), op))


def _has_bound_loops(loop: ForOp) -> bool:
    return any(isinstance(op, ForOp) and axis_of(op) is not None for op in loop.walk())


def _refuse_unbound(loop: ForOp, target: Target) -> None:
    work = next(
        (op for op in loop.walk() if isinstance(op, BlockOp) or (not isinstance(op, CallOp) and touches_memory(op))),
        None,
    )
    if work is None:
        return
    name = f"loop %{loop.induction_variable.name_hint or '?'}"
    what = f' of block "{work.label}"' if isinstance(work, BlockOp) else ""
    raise CompileError.at(
        loop,
        f"{name}{what} is bound to no thread axis: target {target.kind} runs the work of bound loops only "
        '(bind loops of the nest to "blockIdx.x" and "threadIdx.x")',
    )


class _Binder:
    def __init__(self, root: Operation, target: Target) -> None:
        self.root = root
        self.target = target
        self.loops = {axis: list(loops_of_axis(root, axis)) for axis in AXES}
        self.outside = [op for op in ancestors(root) if isinstance(op, ForOp)]

    def run(self) -> None:
        self.check_stores()
        extents = {axis: self.extent(axis, loops) for axis, loops in self.loops.items() if loops}
        self.give_lanes(extents)
        self.check_limits(extents)
        extents.setdefault(BLOCK_AXES[0], 1)
        variables, body = self.build_loops(extents)
        for block in [op for op in self.root.walk() if isinstance(op, BlockOp) and _does_work(op)]:
            self.add_guards(block, extents, variables)
        self.root.detach()
        body.add_op(self.root)
        for axis, loops in self.loops.items():
            for loop in loops:
                dissolve(loop, variables[axis])
        for loop in [op for op in body.walk() if isinstance(op, ForOp) and axis_of(op) in VIRTUAL_AXES]:
            loop.kind, loop.thread_axis = LoopKindAttr(LoopKind.UNROLLED), None
            loop.attributes[VIRTUAL_THREADS] = UnitAttr()

    def give_lanes(self, extents: dict[str, int | SSAValue]) -> None:
        blocks = [op for op in self.root.walk() if isinstance(op, BlockOp) and works_on_tiles(op)]
        if blocks:
            require_lanes(blocks, self.loops[LANES], extents.get(LANES))
            extents[LANES] = WARP

    def check_stores(self) -> None:
        for op in self.root.walk():
            buffer = stored_buffer(op)
            if (buffer is None and not is_opaque(op)) or block_around(op) is not None:
                continue
            what = opaque_text(op) if buffer is None else f"a store to %{buffer.name_hint}"
            raise CompileError.at(op, f"{what} is outside of blocks, in a kernel")

    def extent(self, axis: str, loops: Sequence[ForOp]) -> int | SSAValue:
        if axis in THREAD_AXES:
            for loop in loops:
                if not isinstance(loop.extent, int):
                    name = loop.induction_variable.name_hint
                    raise CompileError.at(loop, f"loop %{name} is bound to {axis}, but its extent is not a constant")
        extents = {Index.of(loop.extent) for loop in loops}
        if len(extents) == 1:
            return self.known_outside(next(iter(extents)), loops[0])
        static = [extent.constant for extent in extents if extent.is_constant]
        if len(static) < len(extents):
            raise CompileError.at(loops[1], f"loops bound to {axis} in one kernel differ in extent, and one is dynamic")
        return max(static)

    def known_outside(self, extent: Index, loop: ForOp) -> int | SSAValue:
        if extent.is_constant:
            return extent.constant
        if any(self.root.is_ancestor(value.owner) for value in extent.values()):
            name = loop.induction_variable.name_hint
            raise CompileError.at(
                loop, f"loop %{name} is bound to {axis_of(loop)}, but its extent varies in the kernel"
            )
        return index_before(extent, self.root)

    def check_limits(self, extents: dict[str, int | SSAValue]) -> None:
        gpu = self.target.gpu
        if gpu is None:
            return
        static = {axis: extent for axis, extent in extents.items() if isinstance(extent, int)}
        for what, axes, limits in (("threads", THREAD_AXES, gpu.max_block), ("blocks", BLOCK_AXES, gpu.max_grid)):
            for axis, limit in zip(axes, limits, strict=True):
                self.require_at_most(static.get(axis, 1), limit, f"{static.get(axis)} {what} along {axis}", axis)
            threads = {axis: static[axis] for axis in THREAD_AXES if axis in static}
            if what == "threads" and threads:
                total, shape = prod(threads.values()), " * ".join(map(str, threads.values()))
                count = f"{shape} = {total}" if "*" in shape else shape
                first = next(iter(threads))
                self.require_at_most(total, gpu.max_threads_per_block, f"{count} threads in a block", first)

    def require_at_most(self, count: int, limit: int, text: str, axis: str) -> None:
        if count > limit:
            violation = Violation(f"{text}, target {self.target.kind} allows {limit}")
            raise ScheduleError("bind", 0, "the target runs so many threads", violation, self.loops[axis][0], axis)

    def build_loops(self, extents: dict[str, int | SSAValue]) -> tuple[dict[str, SSAValue], Block]:
        nest: dict[str, ForOp] = {}
        place = InsertPoint.before(self.root)
        for axis in AXES:
            if axis not in extents:
                continue
            loops = self.loops[axis]
            loop = ForOp(extents[axis], Region(Block(arg_types=[IndexType()])), LoopKind.THREAD_BINDING, axis)
            added = "lane" if axis == LANES else "block"
            loop.induction_variable.name_hint = loops[0].induction_variable.name_hint if loops else added
            loop.location = (loops[0] if loops else self.root).location
            Rewriter.insert_op(loop, place)
            place = InsertPoint.at_end(loop.body.block)
            nest[axis] = loop
        labels = dict.fromkeys(op.label for op in self.root.walk() if isinstance(op, BlockOp))
        next(iter(nest.values())).attributes[SOURCE] = StringAttr(", ".join(labels))
        return {axis: loop.induction_variable for axis, loop in nest.items()}, place.block

    def add_guards(self, block: BlockOp, extents: dict[str, int | SSAValue], variables: dict[str, SSAValue]) -> None:
        added: list[tuple[Index, Index]] = []
        for axis, variable in variables.items():
            extent = extents[axis]
            if extent == 1:
                continue
            if axis == LANES and works_on_tiles(block):
                continue  # executed by a whole warp
            around = [loop for loop in self.loops[axis] if loop.is_ancestor(block)]  # outermost first
            if axis in BLOCK_AXES and around and not any(isinstance(op, AtomicOp) for op in block.walk()):
                _require_no_reduction(block, around[-1])
            if not around:
                if _writes_own_memory_only(block):
                    if axis in BLOCK_AXES:
                        self.require_no_values_of_others(block, axis)
                    continue
                if axis in BLOCK_AXES:
                    raise CompileError.at(
                        block,
                        f'block "{block.label}" is in a kernel of several thread blocks along {axis}, but in '
                        "no loop over them, and thread blocks do not wait for each other",
                    )
                added.append((Index.of(variable), Index({}, 1)))
                continue
            if axis in THREAD_AXES and is_cooperative(block, around[-1]):
                added.append((Index.of(variable), Index({}, 1)))
                continue
            own = around[-1].extent
            if isinstance(own, int) and isinstance(extent, int) and own < extent:
                added.append((Index.of(variable), Index({}, own)))
        if added:
            set_guards(block, [*guards_of(block), *added])

    def require_no_values_of_others(self, block: BlockOp, axis: str) -> None:
        writes = [access for loop in self.loops[axis] for access in accesses(loop) if access.is_write]
        for read, write in product(accesses(block), writes):
            if read.buffer is not write.buffer or block.is_ancestor(write.op):
                continue
            try:
                conflict = conflict_between(write, read, self.outside)
            except NotProved:
                continue
            if conflict is not None and conflict.exact:
                detail = f"{conflict.describe()}, in each thread block along {axis}: {NO_WAIT}"
                raise CompileError.at(read.op, detail)


def _require_no_reduction(block: BlockOp, loop: ForOp) -> None:
    if loop.induction_variable in sources_of(block, IterKind.REDUCE):
        raise CompileError.at(
            block,
            f'block "{block.label}" is reduced over %{loop.induction_variable.name_hint}, which is bound to '
            f"{axis_of(loop)}: thread blocks combine what they have by atomic operations only, see "
            "tir-lower-atomic-reductions",
        )


def _does_work(block: BlockOp) -> bool:
    return any(touches_memory(op) and block_around(op) is block for op in block.walk())


def _writes_own_memory_only(block: BlockOp) -> bool:
    if opaque_op(block) is not None:
        return False
    return all(buffer_type(buffer).memory_space == LOCAL for buffer in buffers_written(block))
