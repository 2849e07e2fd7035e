"""Schedules of tensor expressions by stages: `s = te.create_schedule(C.op)`, `s[C].split(...)`,
`weft.lower(s, [A, C])`.

A thin layer: what is asked of a stage is recorded, and run as schedule primitives on the block of that stage when the
function is made. So every request is checked by the primitive, and refused with its reason.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import cast

from xdsl.dialects.builtin import ModuleOp

from weft.frontends.te.buffers import Binds
from weft.frontends.te.expr import Expr, IterVar, Var
from weft.frontends.te.facts import checked_facts
from weft.frontends.te.function import create_func
from weft.frontends.te.places import error
from weft.frontends.te.tensor import ComputeOp, Operation, Tensor
from weft.schedule.schedule import BlockHandle, LoopHandle, Schedule
from weft.support.argument_types import checked, checked_methods, shown
from weft.support.errors import CompileError, did_you_mean


@dataclass(eq=False)
class Axis:
    """A loop that a request of a stage makes."""

    name: str


@dataclass(frozen=True)
class ThreadAxis:
    """A GPU axis, such as `threadIdx.x`."""

    tag: str


AnyAxis = IterVar | Axis


@dataclass
class _Run:
    """One lowering: the schedule, and which handle each stage and axis has at this point."""

    schedule: Schedule
    blocks: dict[ComputeOp, BlockHandle] = field(default_factory=dict[ComputeOp, BlockHandle])
    loops: dict[AnyAxis, LoopHandle] = field(default_factory=dict[AnyAxis, LoopHandle])

    def loop(self, axis: AnyAxis) -> LoopHandle:
        if axis not in self.loops:
            raise _gone(axis)
        return self.loops[axis]


Request = Callable[[_Run], None]


def _gone(axis: AnyAxis) -> CompileError:
    return error(f"axis '{axis.name}' is not a loop of a stage any more: it was split or fused")


@checked_methods()
class Stage:
    """What is asked of the computation of one tensor. Methods and parameters are those of the field."""

    def __init__(self, schedule: StageSchedule, op: ComputeOp) -> None:
        self._schedule = schedule
        self.op = op
        self._leaves: list[AnyAxis] = [*op.axis, *op.reduce_axis]

    @property
    def leaf_iter_vars(self) -> tuple[AnyAxis, ...]:
        """The axes that are loops now, outermost first."""
        return tuple(self._leaves)

    def _ask(self, request: Request) -> None:
        self._schedule.requests.append(request)

    def _require(self, *axes: AnyAxis) -> None:
        """An axis that is no loop of this stage is refused when it is named, before anything is recorded."""
        for axis in axes:
            if axis not in set(self._leaves):  # a set, for axes are expressions: == builds one
                if axis in self._schedule.consumed:
                    raise _gone(axis)
                raise error(f"axis '{axis.name}' is no axis of stage '{self.op.name}'")

    def _replace(self, old: Sequence[AnyAxis], new: Sequence[AnyAxis]) -> None:
        gone = set(old)
        position = next(at for at, axis in enumerate(self._leaves) if axis in gone)
        self._leaves[position:position] = new
        self._leaves = [axis for axis in self._leaves if axis not in gone]
        self._schedule.consumed.update(gone)

    def split(self, parent: AnyAxis, factor: int | None = None, nparts: int | None = None) -> tuple[Axis, Axis]:
        """The axis as an outer and an inner one; `factor` is the extent of the inner, `nparts` of the outer one."""
        if (factor is None) == (nparts is None):
            raise error(f"split of axis '{parent.name}' takes either factor or nparts")
        self._require(parent)
        outer, inner = Axis(f"{parent.name}.outer"), Axis(f"{parent.name}.inner")
        self._replace([parent], [outer, inner])

        def request(run: _Run) -> None:
            run.loops[outer], run.loops[inner] = run.schedule.split(_taken(run, parent), [nparts, factor])

        self._ask(request)
        return outer, inner

    def tile(self, x_parent: AnyAxis, y_parent: AnyAxis, x_factor: int, y_factor: int) -> tuple[Axis, Axis, Axis, Axis]:
        """Both axes split, in the order x outer, y outer, x inner, y inner."""
        self._require(x_parent, y_parent)
        x_outer, x_inner = self.split(x_parent, x_factor)
        y_outer, y_inner = self.split(y_parent, y_factor)
        self.reorder(x_outer, y_outer, x_inner, y_inner)
        return x_outer, y_outer, x_inner, y_inner

    def fuse(self, *axes: AnyAxis) -> Axis:
        """Nested axes, outermost first, as one."""
        self._require(*axes)
        if not axes:
            raise error("fuse takes at least one axis")
        fused = Axis(".".join(axis.name for axis in axes) + ".fused")
        self._replace(axes, [fused])

        def request(run: _Run) -> None:
            run.loops[fused] = run.schedule.fuse(*(_taken(run, axis) for axis in axes))

        self._ask(request)
        return fused

    def reorder(self, *axes: AnyAxis) -> None:
        """The axes in this order."""
        self._require(*axes)
        places, named = iter(axes), set(axes)
        self._leaves = [next(places) if axis in named else axis for axis in self._leaves]
        self._ask(lambda run: run.schedule.reorder(*(run.loop(axis) for axis in axes)))

    def parallel(self, axis: AnyAxis) -> None:
        """Iterations may run on several threads."""
        self._require(axis)
        self._ask(lambda run: run.schedule.parallel(run.loop(axis)))

    def vectorize(self, axis: AnyAxis) -> None:
        """Iterations become vector lanes."""
        self._require(axis)
        self._ask(lambda run: run.schedule.vectorize(run.loop(axis)))

    def bind(self, axis: AnyAxis, thread: ThreadAxis | str) -> None:
        """Iterations become the threads or blocks of a GPU axis: `te.thread_axis("threadIdx.x")`."""
        tag = thread if isinstance(thread, str) else thread.tag
        self._require(axis)
        self._ask(lambda run: run.schedule.bind(run.loop(axis), tag))

    def unroll(self, axis: AnyAxis) -> None:
        """The body is repeated."""
        self._require(axis)
        self._ask(lambda run: run.schedule.unroll(run.loop(axis)))

    def compute_at(self, parent: Stage, axis: AnyAxis) -> None:
        """Compute what an iteration of an axis of the consuming stage `parent` needs, in that iteration."""
        self._ask(lambda run: run.schedule.compute_at(run.blocks[self.op], run.loop(axis)))

    def compute_inline(self) -> None:
        """Compute each element where it is used."""
        self._ask(lambda run: run.schedule.compute_inline(run.blocks[self.op]))


def _taken(run: _Run, axis: AnyAxis) -> LoopHandle:
    """The loop of an axis that is about to be taken apart."""
    loop = run.loop(axis)
    del run.loops[axis]
    return loop


@checked_methods()
class StageSchedule:
    """The requests of all stages, in the order in which they were made. `s[C]` is the stage of tensor C (or `C.op`)."""

    def __init__(self, ops: Sequence[ComputeOp]) -> None:
        self.requests: list[Request] = []
        self.facts: list[Expr | bool] = []
        self.consumed: set[AnyAxis] = set()
        """Axes that were split or fused."""
        self._stages: dict[Operation, Stage] = {op: Stage(self, op) for op in ops}

    def assume(self, *facts: Expr | bool) -> None:
        """State facts about variables, which splits rely on and calls check: `s.assume(n % 32 == 0, m <= 1024)`."""
        self.facts.extend(checked_facts(facts))

    @property
    def stages(self) -> list[Stage]:
        """The stages, producers first."""
        return list(self._stages.values())

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

    def schedule(self, args: Sequence[Tensor | Var], name: str = "main", *, binds: Binds | None = None) -> Schedule:
        """The function of `args` with every request run. Raises `ScheduleError` for one that is refused."""
        run = _Run(Schedule(create_func(args, name, binds=binds, assume=self.facts)))
        for op in self._stages:
            compute = cast("ComputeOp", op)
            block = run.schedule.get_block(compute.outputs[0].name, name)
            run.blocks[compute] = block
            run.loops.update(zip((*compute.axis, *compute.reduce_axis), run.schedule.get_loops(block), strict=False))
        for request in self.requests:
            request(run)
        return run.schedule


@checked
def create_schedule(ops: Operation | Tensor | Sequence[Operation | Tensor]) -> StageSchedule:
    """A schedule of everything that the given computations need, one stage a tensor."""
    given = [ops] if isinstance(ops, Operation | Tensor) else list(ops)
    order: dict[Operation, None] = {}

    def visit(op: Operation) -> None:
        for tensor in op.input_tensors:
            visit(tensor.op)
        order.setdefault(op)

    for item in given:
        visit(item.op if isinstance(item, Tensor) else item)
    return StageSchedule([op for op in order if isinstance(op, ComputeOp)])


@checked
def thread_axis(dom: object = None, tag: str = "") -> ThreadAxis:
    """The GPU axis called `tag`, also given alone: `te.thread_axis("blockIdx.x")`. Its extent is that of the loop."""
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
) -> ModuleOp:
    """The loops of a scheduled function: a module holding one tir function with parameters `args`.

    `binds` says how arrays lie in memory, see `te.create_func`. The module is always simple to read: `simple_mode` is
    there for programs that say so.
    """
    del simple_mode
    return schedule.schedule(args, name, binds=binds).mod
