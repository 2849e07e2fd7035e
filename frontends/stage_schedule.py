"""Schedules of tensor expressions by stages: `s = te.create_schedule(C.op)`, `s[C].split(...)`, `weft.lower(s, [A,
C])`.

Requests run as schedule primitives, which check them, when the function is created: caches and factored reductions,
which create stages, then for each stage, from the last to the first, compute_at or compute_inline and the other
requests in order.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias, cast

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp

from weft.analysis.block_scopes import buffers_written, child_blocks, functions
from weft.dialects.tir import BlockOp, ForOp
from weft.frontends.create_func import create_func
from weft.passes.insertion import with_insertions
from weft.passes.pipelines import tir_to_low
from weft.schedule.schedule import BlockHandle, LoopHandle, Schedule
from weft.support.argument_types import checked, checked_methods, shown
from weft.support.build_options import Insertions
from weft.support.errors import CompileError, did_you_mean
from weft.texpr.buffers import Binds
from weft.texpr.expr import Expr, IterVar, Var, error
from weft.texpr.function import checked_assumptions, computations_behind
from weft.texpr.shapes import value_name
from weft.texpr.tensor import ComputeOp, Operation, Tensor


@dataclass(eq=False)
class Axis:
    name: str
    is_reduce: bool = False


@dataclass(frozen=True)
class ThreadAxis:
    """A GPU axis, such as `threadIdx.x`."""

    tag: str


AnyAxis: TypeAlias = IterVar | Axis


@dataclass(eq=False)
class MadeOp(ComputeOp):
    """The op of a stage created by a cache or a factored reduction, or of the rest of the original."""

    reduced: tuple[AnyAxis, ...] = ()

    @property
    def reduce_axis(self) -> tuple[IterVar, ...]:
        return cast("tuple[IterVar, ...]", self.reduced)


@dataclass
class _Run:
    """A lowering: the schedule, and the handles of stages and axes."""

    schedule: Schedule
    blocks: dict[Stage, BlockHandle] = field(default_factory=dict["Stage", BlockHandle])
    loops: dict[AnyAxis, LoopHandle] = field(default_factory=dict[AnyAxis, LoopHandle])

    def block(self, stage: Stage) -> BlockHandle:
        if stage not in self.blocks:
            raise error(f"stage '{stage.op.name}' computes nothing that the function needs")
        return self.blocks[stage]

    def loop(self, axis: AnyAxis) -> LoopHandle:
        if axis not in self.loops:
            raise _gone(axis)
        return self.loops[axis]

    def take(self, axis: AnyAxis) -> LoopHandle:
        loop = self.loop(axis)
        del self.loops[axis]
        return loop

    def enter(self, stage: Stage, block: BlockHandle, axes: Sequence[AnyAxis] | None = None) -> None:
        """The innermost loops of the block are those of `axes`, by default all."""
        self.blocks[stage] = block
        own = [*stage.op.axis, *stage.op.reduce_axis] if axes is None else list(axes)
        loops = self.schedule.get_loops(block)
        self.loops.update(zip(own, loops[len(loops) - len(own) :], strict=False))


Request = Callable[[_Run], None]


def _gone(axis: AnyAxis) -> CompileError:
    return error(f"axis '{axis.name}' is not a loop of a stage any more: it was split or fused")


@checked_methods
class Stage:
    """The requested schedule of one tensor's computation, with TVM's methods and parameters."""

    def __init__(self, schedule: StageSchedule, op: ComputeOp) -> None:
        self._schedule = schedule
        self.op = op
        self._leaves: list[AnyAxis] = [*op.axis, *op.reduce_axis]
        self._requests: list[Request] = []
        self._place: Request | None = None
        """Moves the block into its consumer or inlines it."""
        self._holds_others = False

    @property
    def leaf_iter_vars(self) -> tuple[AnyAxis, ...]:
        """The axes that are loops, outermost first."""
        return tuple(self._leaves)

    def _ask_of(self, axis: AnyAxis, step: Callable[[Schedule, LoopHandle], None]) -> None:
        """`axis` keeps its loop."""
        self._require(axis)
        self._requests.append(lambda run: step(run.schedule, run.loop(axis)))

    def _run(self, run: _Run) -> None:
        if self._place is not None:
            self._place(run)
        for request in self._requests:
            request(run)

    def _require(self, *axes: AnyAxis) -> None:
        """Raises CompileError for an axis that is no loop of this stage."""
        for axis in axes:
            if axis not in set(self._leaves):  # == on axes builds an expression
                if axis in self._schedule.consumed:
                    raise _gone(axis)
                raise error(f"axis '{axis.name}' is not an axis of stage '{self.op.name}'")

    def _replace(self, old: Sequence[AnyAxis], new: Sequence[AnyAxis]) -> None:
        gone = set(old)
        position = next(at for at, axis in enumerate(self._leaves) if axis in gone)
        self._leaves[position:position] = new
        self._leaves = [axis for axis in self._leaves if axis not in gone]
        self._schedule.consumed.update(gone)

    def split(self, parent: AnyAxis, factor: int | None = None, nparts: int | None = None) -> tuple[Axis, Axis]:
        """Split into an outer axis, of extent `nparts`, and an inner one, of extent `factor`."""
        if (factor is None) == (nparts is None):
            raise error(f"split of axis '{parent.name}' takes either factor or nparts")
        self._require(parent)
        outer, inner = (Axis(f"{parent.name}.{part}", parent.is_reduce) for part in ("outer", "inner"))
        self._replace([parent], [outer, inner])

        def request(run: _Run) -> None:
            run.loops[outer], run.loops[inner] = run.schedule.split(run.take(parent), [nparts, factor])

        self._requests.append(request)
        return outer, inner

    def tile(self, x_parent: AnyAxis, y_parent: AnyAxis, x_factor: int, y_factor: int) -> tuple[Axis, Axis, Axis, Axis]:
        """Split both axes, and order them x outer, y outer, x inner, y inner."""
        self._require(x_parent, y_parent)
        x_outer, x_inner = self.split(x_parent, x_factor)
        y_outer, y_inner = self.split(y_parent, y_factor)
        self.reorder(x_outer, y_outer, x_inner, y_inner)
        return x_outer, y_outer, x_inner, y_inner

    def fuse(self, *axes: AnyAxis) -> Axis:
        self._require(*axes)
        if not axes:
            raise error("fuse takes at least one axis")
        fused = Axis(".".join(axis.name for axis in axes) + ".fused", any(axis.is_reduce for axis in axes))
        self._replace(axes, [fused])

        def request(run: _Run) -> None:
            run.loops[fused] = run.schedule.fuse(*map(run.take, axes))

        self._requests.append(request)
        return fused

    def reorder(self, *axes: AnyAxis) -> None:
        self._require(*axes)
        places, named = iter(axes), set(axes)
        self._leaves = [next(places) if axis in named else axis for axis in self._leaves]
        self._requests.append(lambda run: run.schedule.reorder(*(run.loop(axis) for axis in axes)))

    def parallel(self, axis: AnyAxis) -> None:
        """Run iterations in threads."""
        self._ask_of(axis, Schedule.parallel)

    def vectorize(self, axis: AnyAxis) -> None:
        """Make iterations vector lanes."""
        self._ask_of(axis, Schedule.vectorize)

    def bind(self, axis: AnyAxis, thread: ThreadAxis | str) -> None:
        """Map iterations to the threads or blocks of a GPU axis: `te.thread_axis("threadIdx.x")`."""
        tag = thread if isinstance(thread, str) else thread.tag
        self._ask_of(axis, lambda schedule, loop: schedule.bind(loop, tag))

    def unroll(self, axis: AnyAxis) -> None:
        self._ask_of(axis, Schedule.unroll)

    def compute_at(self, parent: Stage, axis: AnyAxis) -> None:
        """Compute the part that an iteration of the consuming stage `parent` needs in that iteration."""
        parent._require(axis)
        parent._holds_others = True

        def move(run: _Run) -> None:
            goes_on = bool(self._requests) or self._holds_others
            run.schedule.compute_at(run.block(self), run.loop(axis), preserve_unit_loops=goes_on)
            if goes_on:
                run.enter(self, run.block(self))

        self._place = move

    def compute_inline(self) -> None:
        """Compute each element at its use."""
        self._place = lambda run: run.schedule.compute_inline(run.block(self))

    def compute_root(self) -> None:
        """Compute the whole tensor in separate loops, as without `compute_at`."""
        self._place = None


@checked_methods
class StageSchedule:
    """The stages of a program. `s[C]` is the stage of tensor C (or `C.op`)."""

    def __init__(self, ops: Sequence[ComputeOp], outputs: Sequence[Tensor] = ()) -> None:
        self.outputs = tuple(outputs)
        self.facts: list[Expr | bool] = []
        self.consumed: set[AnyAxis] = set()
        """Axes already split or fused."""
        self._stages: dict[Operation, Stage] = {op: Stage(self, op) for op in ops}
        self._given = list(self._stages.values())
        self._order = list(self._given)
        """Stages in topological order, including those of caches and factored reductions."""
        self._makers: list[Request] = []
        """Requests that create stages."""

    def assume(self, *facts: Expr | bool) -> None:
        """State conditions that splits rely on and calls check: `s.assume(n % 32 == 0, m <= 1024)`."""
        self.facts.extend(checked_assumptions(facts))

    @property
    def stages(self) -> list[Stage]:
        return list(self._order)

    def __getitem__(self, tensor: Tensor | Operation) -> Stage:
        op = tensor.op if isinstance(tensor, Tensor) else tensor
        if not isinstance(op, Operation):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise TypeError(
                f"a stage is that of a tensor or its op, got {shown(tensor)} of type {type(tensor).__name__}"
            )
        if op not in self._stages:
            names = [known.name for known in self._stages]
            raise error(f"'{op.name}' is not a stage of this schedule{did_you_mean(op.name, names)}")
        return self._stages[op]

    def schedule(
        self,
        args: Sequence[Tensor | Var],
        name: str = "main",
        *,
        binds: Binds | None = None,
        name_loops: bool = False,
    ) -> Schedule:
        """Create the function and run all requests. Raises `ScheduleError` for a refused one.

        With `name_loops`, loops are named after the axes of their stages: `i_outer`, `i_inner`, `i_j_fused`.
        """
        args = [*args, *(tensor for tensor in self.outputs if not any(tensor is arg for arg in args))]
        run = _Run(Schedule(create_func(args, name, binds=binds, assume=self.facts)))
        self._enter_given(run)
        for make in self._makers:
            make(run)
        for stage in reversed(self._order):
            stage._run(run)  # pyright: ignore[reportPrivateUsage]
        if name_loops:
            for axis, loop in run.loops.items():
                if isinstance(axis, Axis):
                    cast("ForOp", run.schedule.get(loop)).induction_variable.name_hint = axis.name.replace(".", "_")
        return run.schedule

    def _enter_given(self, run: _Run) -> None:
        (function,) = functions(run.schedule.mod)
        blocks = {block.label: block for block in child_blocks(function)}
        entered: dict[str, Stage] = {}
        for op, stage in self._stages.items():
            if stage not in self._given or not isinstance(op, ComputeOp):
                continue
            label = value_name(op.name)
            if label in entered:
                for one in (stage, entered[label]):
                    if one._requests or one._place is not None:  # pyright: ignore[reportPrivateUsage]
                        raise error(f"two stages are called '{op.name}': give one another name")
            elif label in blocks:
                entered[label] = stage
                run.enter(stage, run.schedule.handle_of(blocks[label]), [*op.axis, *op.reduce_axis])

    def cache_write(self, tensor: Tensor, scope: str) -> Tensor:
        """Compute `tensor` in a copy in a memory scope; its stage then copies from there.

        Returns the computing stage's tensor, which has new axes. Must precede other requests of the stage.
        """
        stage = self[tensor]
        if stage._requests or stage._place is not None:  # pyright: ignore[reportPrivateUsage]
            raise error(f"cache_write of stage '{stage.op.name}' precedes other requests of it")
        if len(stage.op.outputs) > 1:
            raise error(f"cache_write: stage '{stage.op.name}' computes {len(stage.op.outputs)} tensors together")
        reduced = tuple(_like(axis) for axis in stage.op.reduce_axis)
        made = self._made(f"{stage.op.name}.{scope}", tensor, [_like(axis) for axis in stage.op.axis], reduced, stage)
        stage.op = _left_of(stage.op, ())
        stage._leaves = [*stage.op.axis]  # pyright: ignore[reportPrivateUsage]

        def make(run: _Run) -> None:
            block = run.block(stage)
            copy = run.schedule.cache_write(block, 0, scope)
            run.enter(made, block)
            run.enter(stage, copy)

        self._makers.append(make)
        return made.op.outputs[0]

    def cache_read(self, tensor: Tensor, scope: str, readers: Sequence[Tensor | Operation]) -> Tensor:
        """Make `readers` read a copy in a memory scope.

        Returns the tensor of the copying stage. Must precede requests of the readers.
        """
        stages = [self[reader] for reader in readers]
        if not stages:
            raise error("cache_read takes at least one reader")
        source = self._stages.get(tensor.op)
        indices = [IterVar(f"ax{d}", 0, extent, False) for d, extent in enumerate(tensor.shape)]
        made = self._made(f"{tensor.name}.{scope}", tensor, indices, (), min(stages, key=self._order.index))

        def make(run: _Run) -> None:
            first = run.block(stages[0])
            buffer = value_name(tensor.name)
            if source is not None:
                written = buffers_written(cast("BlockOp", run.schedule.get(run.block(source))))
                buffer = written[tensor.value_index].name_hint or buffer
            blocks = [run.block(stage) for stage in stages]
            copy = run.schedule.cache_read(first, buffer, scope, consumer_blocks=blocks)
            run.enter(made, copy)

        self._makers.append(make)
        return made.op.outputs[0]

    def rfactor(self, tensor: Tensor, axis: AnyAxis, factor_axis: int = 0) -> Tensor:
        """Reduce in two steps: partial results for each iteration of `axis`, a loop of the reduction, in a new
        dimension at `factor_axis`, then their reduction in the stage of `tensor`.

        Returns the tensor of the partial results. Its stage gets the loops and earlier requests of the original one,
        with new axes: the spatial ones, including that of `axis`, in `op.axis`, the others in `op.reduce_axis`.
        """
        stage = self[tensor]
        stage._require(axis)  # pyright: ignore[reportPrivateUsage]
        if not axis.is_reduce:
            raise error(f"rfactor: axis '{axis.name}' is not a loop of the reduction of stage '{stage.op.name}'")
        leaves, before = stage._leaves, stage._requests  # pyright: ignore[reportPrivateUsage]
        fresh: dict[AnyAxis, AnyAxis] = {leaf: Axis(leaf.name, leaf.is_reduce and leaf is not axis) for leaf in leaves}
        spatial = [fresh[leaf] for leaf in leaves if not leaf.is_reduce]
        at = factor_axis if factor_axis >= 0 else factor_axis + len(spatial) + 1
        spatial.insert(at, fresh[axis])
        reduced = tuple(fresh[leaf] for leaf in leaves if leaf.is_reduce and leaf is not axis)
        made = self._made(f"{stage.op.name}.rf", tensor, cast("list[IterVar]", spatial), reduced, stage)
        made._leaves = list(fresh.values())  # pyright: ignore[reportPrivateUsage]
        own = stage.op.axis
        stage.op = _left_of(stage.op, (Axis(f"{axis.name}.v", True),))
        stage._requests, stage._leaves = [], [*own, *stage.op.reduce_axis]  # pyright: ignore[reportPrivateUsage]
        self.consumed.difference_update(own)

        def make(run: _Run) -> None:
            for request in before:
                request(run)
            block = run.block(stage)
            partial = run.schedule.rfactor(run.loop(axis), factor_axis)
            run.enter(made, partial, list(fresh.values()))
            run.enter(stage, block)

        self._makers.append(make)
        return made.op.outputs[0]

    def _made(
        self, name: str, like: Tensor, axis: Sequence[IterVar], reduced: tuple[AnyAxis, ...], before: Stage
    ) -> Stage:
        op = MadeOp(name, like.op.place, tuple(axis), (), reduced)
        op.outputs.append(Tensor(like.shape, like.dtype, name, op))
        made = self._stages[op] = Stage(self, op)
        self._order.insert(self._order.index(before), made)
        return made


def _like(axis: IterVar) -> IterVar:
    return IterVar(f"{axis.name}.c", axis.low, axis.extent, axis.is_reduce, axis.dtype)


def _left_of(op: ComputeOp, reduced: tuple[AnyAxis, ...]) -> MadeOp:
    """The op of a stage after another one took over a part of it."""
    left = MadeOp(op.name, op.place, op.axis, (), reduced)
    left.outputs.extend(op.outputs)
    return left


@checked
def create_schedule(ops: Operation | Tensor | Sequence[Operation | Tensor]) -> StageSchedule:
    """Returns a schedule of all computations that `ops` need, a stage per tensor."""
    given = [ops] if isinstance(ops, Operation | Tensor) else list(ops)
    roots = [item.op if isinstance(item, Tensor) else item for item in given]
    outputs = dict.fromkeys(tensor for op in roots if isinstance(op, ComputeOp) for tensor in op.outputs)
    computations = [op for op in computations_behind(roots) if isinstance(op, ComputeOp)]
    return StageSchedule(computations, list(outputs))


@checked
def thread_axis(dom: object = None, tag: str = "") -> ThreadAxis:
    """The GPU axis `tag`, which may be the only argument: `te.thread_axis("blockIdx.x")`. Its extent is the loop's."""
    if isinstance(dom, str) and not tag:
        return ThreadAxis(dom)
    return ThreadAxis(tag)


@checked
def lower(
    schedule: StageSchedule,
    args: Sequence[Tensor | Var],
    name: str = "main",
    *,
    binds: Binds | None = None,
    simple_mode: bool = True,
    passes: Insertions | None = None,
) -> ModuleOp:
    """Lower a scheduled function to loops: a tir function with parameters `args`, followed by outputs that `args`
    omits.

    With `passes` at named points (`docs/inserting-passes.md`), it is lowered for a CPU up to the last of them. `binds`:
    see `te.create_func`. `simple_mode`, from TVM, has no effect.
    """
    del simple_mode
    module = schedule.schedule(args, name, binds=binds).mod
    if passes:
        steps = with_insertions(tir_to_low(), passes)
        last = max(at for at, step in enumerate(steps) if step.point is None)
        for step in steps[: last + 1]:
            step.run.apply(Context(), module)
    return module
