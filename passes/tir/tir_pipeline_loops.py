"""tir-pipeline-loops: software-pipeline copies into shared memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from xdsl.dialects import memref, scf
from xdsl.dialects.builtin import IntegerAttr, MemRefType, UnitAttr
from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation, SSAValue

from weft.analysis.block_scopes import buffers_written, vectorized_loop_around
from weft.analysis.index import Index
from weft.analysis.threads import axis_of, is_shared
from weft.dialects.aliasing import with_overlapping
from weft.dialects.effects import only_computes, opaque_op, opaque_text
from weft.dialects.low_access import AccessPtrOp, StrideOp
from weft.dialects.low_kernel import AsyncCommitOp, AsyncWaitOp, BarrierOp
from weft.dialects.tir import ForOp
from weft.dialects.tir_kinds import ASYNC, PIPELINE_STAGES, LoopKind, LoopKindAttr
from weft.dialects.traversal import copy_of
from weft.passes.index_builders import (
    detached_ops,
    index_before,
    insert_before,
    insert_where,
    replace_operands,
)
from weft.passes.tir.tir_flatten import allocate_several
from weft.passes.tir.tir_partition_blocks import thread_bodies
from weft.passes.tir.tir_pass import LOCAL, KernelPass, range_of, unproved_before
from weft.support.errors import CompileError
from weft.support.target import Target


@dataclass(frozen=True)
class PipelineLoopsPass(KernelPass):
    """Pipeline the serial loops of kernels that are annotated `pipeline_stages = n` (n at least 2).

    The body of such a loop fetches, waits at a barrier, uses the fetched values, and waits again:

    ```mlir
    tir.for %k in 64 { FETCH(%k) into %S;  low.barrier;  USE(%k) of %S;  low.barrier } {pipeline_stages = 3}
    // becomes, with three of each buffer
    FETCH(0) into %S[0];  low.async_commit;  FETCH(1) into %S[1];  low.async_commit
    tir.for %k in 64 {
      low.async_wait 1
      low.barrier
      scf.if %k + 2 < 64 { FETCH(%k + 2) into %S[(%k + 2) mod 3] }
      low.async_commit
      USE(%k) of %S[%k mod 3] }
    low.barrier
    ```
    One barrier per iteration suffices: the previous iteration's uses of the overwritten stage precede it. The barrier
    after the loop is omitted if no later op touches the same memory. `tir-async-copies` makes copies without arithmetic
    asynchronous. On targets without such copies the loop is unchanged. Raises CompileError for other bodies.

    Requires: kernels with barriers (`tir-insert-barriers`).

    Leaves: loops that fetch ahead of their use.
    """

    name = "tir-pipeline-loops"

    target: str = "cuda"
    """As in `weft.build`; gives limits and instructions."""

    def rewrite(self, function: FuncOp) -> None:
        gpu = Target.parse(self.target).gpu
        if gpu is not None and gpu.has_async_copy:
            _pipeline_function(function)


@dataclass
class _Pipeline:
    loop: ForOp
    stages: int
    fetch: list[Operation]
    use: list[Operation]
    buffers: set[SSAValue] = field(default_factory=set[SSAValue])


def _pipeline_function(function: FuncOp) -> None:
    for body in thread_bodies(function):
        loops = [op for op in body.walk() if isinstance(op, ForOp) and PIPELINE_STAGES in op.attributes]
        plans = [_plan(loop) for loop in loops]
        for buffer in dict.fromkeys(buffer for plan in plans for buffer in plan.buffers):
            sharing = [plan for plan in plans if buffer in plan.buffers]
            if len({plan.stages for plan in sharing}) > 1:
                raise CompileError.at(
                    sharing[0].loop, f"loops with different {PIPELINE_STAGES} share %{buffer.name_hint}"
                )
            _multiply(buffer, sharing)
        for plan in plans:
            _rewrite(plan)


def _plan(loop: ForOp) -> _Pipeline:
    noted = loop.attributes[PIPELINE_STAGES]
    stages = noted.value.data if isinstance(noted, IntegerAttr) else 0
    if stages < 2:
        raise CompileError.at(loop, f"{PIPELINE_STAGES} is a number of at least 2, got {noted}")
    if loop.kind.data is not LoopKind.SERIAL or vectorized_loop_around(loop) is not None:
        raise _no_pipeline(loop, "it is not serial")
    ops = list(loop.body.block.ops)
    barriers = [op for op in ops if isinstance(op, BarrierOp)]
    if not barriers or barriers[1:] not in ([], ops[-1:]):
        raise _no_pipeline(loop, "its body is not one part that fetches, a barrier, and one part that uses")
    at = ops.index(barriers[0])
    # Loads after the last store belong to the use.
    last = max((i for i in range(at) if buffers_written(ops[i])), default=-1)
    plan = _Pipeline(loop, stages, ops[: last + 1], [op for op in ops[last + 1 :] if not isinstance(op, BarrierOp)])
    if any(isinstance(inner, BarrierOp) for part in (*plan.fetch, *plan.use) for inner in part.walk()):
        raise _no_pipeline(loop, "a barrier is inside of one of its parts")
    for op in [inner for part in plan.fetch for inner in part.walk()]:
        if isinstance(op, memref.StoreOp):
            if not is_shared(op.memref):
                raise _no_pipeline(loop, f"it stores to %{op.memref.name_hint} before the barrier")
            plan.buffers.add(op.memref)
        elif not op.regions and not only_computes(op) and not isinstance(op, scf.YieldOp):
            raise _no_pipeline(loop, f"{op.name} precedes the barrier")
    if not plan.buffers:
        raise _no_pipeline(loop, "it fetches nothing into shared memory")
    _require_own_order(plan)
    for op in plan.fetch:
        if not only_computes(op) and any(result.first_use is not None for result in op.results):
            raise _no_pipeline(loop, f"a value of {op.name} before the barrier is used after it")
    return plan


def _require_own_order(plan: _Pipeline) -> None:
    for part in plan.use:
        if (opaque := opaque_op(part)) is not None:
            raise _no_pipeline(plan.loop, f"it {opaque_text(opaque)}")
    stored = with_overlapping(buffer for part in plan.use for buffer in buffers_written(part))
    for op in [inner for part in plan.fetch for inner in part.walk() if isinstance(inner, memref.LoadOp)]:
        if op.memref in plan.buffers or op.memref in stored:
            raise _no_pipeline(plan.loop, f"it fetches from %{op.memref.name_hint}, which it writes")
    if overwritten := stored & plan.buffers:
        names = ", ".join(sorted(f"%{buffer.name_hint}" for buffer in overwritten))
        raise _no_pipeline(plan.loop, f"it writes {names} where it uses what was fetched")


def _no_pipeline(loop: ForOp, why: str) -> CompileError:
    return CompileError.at(loop, f"loop %{loop.induction_variable.name_hint} cannot be pipelined: {why}")


def _multiply(buffer: SSAValue, plans: Sequence[_Pipeline]) -> None:
    """Accesses outside of the loops use the first copy."""
    alloc = buffer.owner
    known = (memref.LoadOp, memref.StoreOp, AccessPtrOp, StrideOp)
    if not isinstance(alloc, memref.AllocOp) or any(not isinstance(use.operation, known) for use in buffer.uses):
        raise _no_pipeline(plans[0].loop, f"%{buffer.name_hint} is used by more than loads, stores and pointers")
    stages = plans[0].stages

    def stage_at(user: Operation) -> SSAValue:
        plan = next((p for p in plans if p.loop.is_ancestor(user)), None)
        stage = Index({}) if plan is None else Index.of(plan.loop.induction_variable) % stages
        return index_before(stage.simplified(range_of), user)

    allocate_several(alloc, stages, alloc, stage_at).attributes[ASYNC] = UnitAttr()


def _rewrite(plan: _Pipeline) -> None:
    loop, stages = plan.loop, plan.stages
    _collect_stages(plan)
    for op in [inner for part in plan.fetch for inner in part.walk()]:
        if isinstance(op, ForOp) and op.kind.data is LoopKind.VECTORIZED and not _fetches_neighbours(op):
            op.kind = LoopKindAttr(LoopKind.UNROLLED)  # separate copies of lanes that are not consecutive
    extent = Index.of(loop.extent)
    for stage in range(stages - 1):
        at = Index({}, stage)
        _fetch_before(plan, at, loop, unproved_before([(at, extent)], loop))
    block = loop.body.block
    use = _with_shared_computations(plan)
    detached_ops(block)
    anchor = AsyncCommitOp()
    anchor.location = loop.location
    block.add_op(anchor)
    insert_before(anchor, [AsyncWaitOp(stages - 2), BarrierOp()])
    following = Index.of(loop.induction_variable) + (stages - 1)
    _fetch_before(plan, following, anchor, unproved_before([(following, extent)], anchor), commit=False)
    block.add_ops(use)
    del loop.attributes[PIPELINE_STAGES]
    if loop.parent is not None and _is_followed_up(loop):
        after = BarrierOp()
        after.location = loop.location
        loop.parent.insert_op_after(after, loop)
    for op in reversed(plan.fetch):
        op.erase()


def _is_followed_up(loop: ForOp) -> bool:
    """Whether later ops and a loop may access the same non-local memory, and one of the two writes."""
    touched, stored = _touched(loop)
    op: Operation = loop
    while True:
        parent = op.parent_op()
        following = op.next_op
        while following is not None:
            later, written = _touched(following)
            if later & stored or written & touched:
                return True
            following = following.next_op
        if not isinstance(parent, ForOp | scf.IfOp) or (isinstance(parent, ForOp) and axis_of(parent) is not None):
            return parent is None or not isinstance(parent, ForOp)
        if isinstance(parent, ForOp) and parent.extent != 1:
            return True
        op = parent


def _touched(root: Operation) -> tuple[set[SSAValue], set[SSAValue]]:
    touched, stored = set[SSAValue](), set[SSAValue]()
    for op in root.walk():
        for value in op.operands:
            if isinstance(value.type, MemRefType) and value.type.memory_space != LOCAL:
                touched.add(value)
                if not isinstance(op, memref.LoadOp | StrideOp) and (not isinstance(op, AccessPtrOp) or op.writes):
                    stored.add(value)
    return touched, stored


def _collect_stages(plan: _Pipeline) -> None:
    ops = [op for op in plan.loop.body.block.ops if not isinstance(op, BarrierOp)]
    end = ops.index(plan.fetch[-1]) + 1
    plan.fetch, plan.use = ops[:end], ops[end:]


def _with_shared_computations(plan: _Pipeline) -> list[Operation]:
    needed: list[Operation] = []
    wanted = {operand for part in plan.use for op in part.walk() for operand in op.operands}
    for op in reversed(plan.fetch):
        if op.results and only_computes(op) and any(result in wanted for result in op.results):
            needed.insert(0, op)
            wanted.update(op.operands)
    mapping: dict[SSAValue, SSAValue] = {}
    copies = [op.clone(mapping) for op in needed]
    replace_operands(plan.use, mapping)
    return [*copies, *plan.use]


def _fetch_before(
    plan: _Pipeline, at: Index, anchor: Operation, conditions: list[SSAValue], *, commit: bool = True
) -> None:
    mapping: dict[SSAValue, SSAValue] = {plan.loop.induction_variable: index_before(at, anchor)}
    copies = [copy_of(op, mapping) for op in plan.fetch]
    insert_where(conditions, copies, anchor)
    if commit:
        insert_before(anchor, [AsyncCommitOp()])


def _fetches_neighbours(loop: ForOp) -> bool:
    lane = loop.induction_variable
    for op in loop.body.walk():
        if isinstance(op, scf.IfOp):
            return False
        if isinstance(op, memref.LoadOp | memref.StoreOp):
            *outer, last = [Index.of(index).simplified(range_of) for index in op.indices]
            if last.coefficient(lane) != 1 or any(index.depends_on([lane]) for index in outer):
                return False
            if (last - Index({lane: 1})).depends_on([lane]):
                return False
    return True
