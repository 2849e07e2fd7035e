"""Recording of schedules: a module, its trace, and handles."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from copy import copy, deepcopy
from dataclasses import dataclass
from functools import wraps
from inspect import isfunction
from random import Random
from typing import Any, Final, NoReturn, Self, TypeAlias, TypeVar, overload

from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue

from weft.analysis.block_scopes import ROOT, find_block, function_of, functions
from weft.dialects import sched
from weft.dialects.tir import BlockOp, ForOp
from weft.dialects.traversal import copy_of, operations_in
from weft.passes.schedule.decompose_padding import DecomposePadding
from weft.passes.schedule.replay import Replay, StepOutcome, check_decisions, check_handles, set_decision
from weft.passes.schedule.sampling import ComputeLocation, Decision, HandleValue
from weft.support.argument_types import checked
from weft.support.errors import CompileError, ScheduleError, did_you_mean

R = TypeVar("R")
C = TypeVar("C", bound=type)


def step_methods(class_: C) -> C:
    """Class decorator: checks arguments; a call that raises removes its `get_block` steps."""
    for name, method in list(vars(class_).items()):
        if name == "__init__":
            setattr(class_, name, checked(method))
        elif isfunction(method) and not name.startswith("_"):
            setattr(class_, name, step_method(method))
    return class_


def step_method(method: Callable[..., R]) -> Callable[..., R]:
    run = checked(method)

    @wraps(run)
    def call(self: Recorder, *args: Any, **keywords: Any) -> R:
        steps = self.trace.body.block
        last = steps.last_op
        try:
            return run(self, *args, **keywords)
        except Exception:
            while (step := steps.last_op) is not last and isinstance(step, sched.GetBlockOp):
                steps.erase_op(step, safe_erase=False)  # the refused step may still use it
            raise

    return call


@dataclass(frozen=True)
class _Named:
    value: SSAValue

    def __repr__(self) -> str:
        return f"{type(self).__name__}(%{self.value.name_hint or '?'})"


@dataclass(frozen=True, repr=False)
class BlockHandle(_Named):
    """A block; `sch.get(handle)` returns the op."""


@dataclass(frozen=True, repr=False)
class LoopHandle(_Named):
    """A loop, consumed by a step that splits or erases it."""


@dataclass(frozen=True, repr=False)
class IntHandle(_Named):
    """A sampled integer; `sch.get(handle)` is its value."""


Handle: TypeAlias = BlockHandle | LoopHandle | IntHandle
NO_DECISIONS: Final[Mapping[sched.StepOp, Decision | None]] = {}


@contextmanager
def undone_on_error(schedule: Recorder) -> Generator[None]:
    steps, copy = schedule.trace.body.block, copy_of(schedule.mod)
    replay = schedule._replay  # pyright: ignore[reportPrivateUsage]
    last, handles = steps.last_op, dict(replay.handles)
    copies = dict(zip(operations_in(schedule.mod), operations_in(copy), strict=True))
    try:
        yield
    except BaseException:
        while (step := steps.last_op) is not None and step is not last:
            steps.erase_op(step, safe_erase=False)
        schedule.mod = replay.module = copy
        replay.handles = {
            handle: copies.get(found, found) if isinstance(found, Operation) else found
            for handle, found in handles.items()
        }
        raise


def is_live(schedule: Recorder, handle: BlockHandle | LoopHandle) -> bool:
    found = schedule._replay.handles.get(handle.value)  # pyright: ignore[reportPrivateUsage]
    return isinstance(found, Operation) and found.get_toplevel_object() is schedule.mod


@step_methods
class Recorder:
    """Runs steps on a copy of a module. `Schedule` adds a method per step."""

    is_of_search: bool = False
    """Whether a search makes the choices that rules of default schedules leave open."""

    def __init__(self, mod: ModuleOp, seed: int | None = None) -> None:
        self.original: ModuleOp = mod
        self.mod: ModuleOp = self._copied(mod)
        """The module as scheduled so far."""
        self.trace: sched.FuncOp = sched.FuncOp("trace", Region(Block()))
        """IR that can be printed, parsed, and replayed on the original module."""
        self._replay = Replay(self.mod, Random(seed))

    def __getattr__(self, name: str) -> NoReturn:
        known = [other for other in dir(type(self)) if not other.startswith("_")]
        hint = "" if name.startswith("_") else did_you_mean(name, known)
        raise AttributeError(f"a schedule has no '{name}'{hint}", name=name, obj=self)

    def _copied(self, mod: ModuleOp) -> ModuleOp:
        return copy_of(mod)

    def replay(self, trace: sched.FuncOp, decisions: Sequence[Decision | None] | None = None) -> None:
        """Run the steps of another schedule's trace (or a parsed `sched.func`).

        Sampling steps keep their decisions, or use `decisions`, in which None draws again
        (`weft.schedule.traces.decisions_of`).

        Raises the steps' errors, and `CompileError` for another number of results; preceding steps stay applied.
        """
        steps = [step for step in trace.body.block.ops if isinstance(step, sched.StepOp)]
        drawing = [step for step in steps if isinstance(step, sched.SamplingOp)]
        decided: dict[sched.StepOp, Decision | None] = {}
        if decisions is not None:
            check_decisions(drawing, decisions)
            decided.update(zip(drawing, decisions, strict=True))
        mapping: dict[SSAValue, SSAValue] = {}
        for step in steps:
            self.replay_step(step, mapping, decided)

    def replay_step(
        self,
        step: sched.StepOp,
        mapping: dict[SSAValue, SSAValue],
        decided: Mapping[sched.StepOp, Decision | None] = NO_DECISIONS,
    ) -> None:
        """`mapping` maps the other trace's handles to this one's, and receives the results. Raises the step's
        errors."""
        copy = step.clone(value_mapper=mapping)
        if step in decided:
            set_decision(copy, decided[step])
        recorded = self._record(copy)
        mapping.update(zip(step.results, recorded.results, strict=False))
        check_handles(step, len(recorded.results))

    def fork(self, handles: dict[SSAValue, SSAValue]) -> Self:
        """A copy in the same state. Adds new handles to `handles`."""
        made = copy(self)
        made.mod = copy_of(self.mod)
        made.trace = copy_of(self.trace, handles)
        copies: dict[object, Operation] = dict(zip(operations_in(self.mod), operations_in(made.mod), strict=True))
        known = self._replay.handles
        bound = {copy: copies.get(known[handle], known[handle]) for handle, copy in handles.items() if handle in known}
        made._replay = Replay(made.mod, deepcopy(self._replay.random), bound)
        return made

    @overload
    def get(self, handle: BlockHandle | LoopHandle) -> Operation: ...
    @overload
    def get(self, handle: IntHandle) -> int: ...
    def get(self, handle: Handle) -> Operation | int:
        if isinstance(handle, IntHandle):
            return self._replay.integer(handle.value)
        return self._replay.resolve(handle.value)

    def get_block(self, name: str, func_name: str | None = None) -> BlockHandle:
        """The block called `name`. Raises `CompileError` with suggestions for unknown or ambiguous names."""
        properties: dict[str, Attribute] = {"label": StringAttr(name)}
        if func_name is not None:
            properties["func"] = StringAttr(func_name)
        return BlockHandle(self._run(sched.GetBlockOp, [], properties).results[0])

    def can_decompose_padding(self, block: BlockHandle | str, loop: LoopHandle) -> bool:
        """Whether `decompose_padding` accepts a block and a loop; not a step."""
        op = find_block(self.mod, block) if isinstance(block, str) else self._replay.block(block.value)
        try:
            DecomposePadding(op, self._replay.loop(loop.value)).plan()
        except ScheduleError:
            return False
        return True

    def unsafe_set_dtype(self, block: BlockHandle | str, buffer_index: int | str, dtype: str) -> NoReturn:
        """Always refused, because another element type changes results."""
        name = block if isinstance(block, str) else self._replay.block(block.value).label
        raise CompileError(
            f"unsafe_set_dtype: buffer {buffer_index!r} of block '{name}' as {dtype} would change what the program "
            "computes; cast in the program, or recode integers that fit (`recode`)"
        )

    def __repr__(self) -> str:
        names = ", ".join(f"@{f.sym_name.data}" for f in functions(self.mod))
        return f"Schedule of {names} after {len(list(self.trace.body.block.ops))} steps"

    def known_handle(self, op: Operation) -> BlockHandle | LoopHandle | None:
        """The last handle of a block or loop, or None."""
        for value, found in reversed(self._replay.handles.items()):
            if found is op:
                return LoopHandle(value) if isinstance(op, ForOp) else BlockHandle(value)
        return None

    def _block(self, block: BlockHandle | str) -> BlockHandle:
        return self.get_block(block) if isinstance(block, str) else block

    def _run(
        self,
        kind: type[sched.StepOp],
        operands: Sequence[Handle],
        properties: dict[str, Attribute],
    ) -> sched.StepOp:
        for handle in operands:
            if not isinstance(handle, Handle):  # pyright: ignore[reportUnnecessaryIsInstance]
                raise CompileError(f"expected a handle that the schedule gave, got {handle!r}")
        values = [handle.value for handle in operands]
        for value in values:
            owner = value.owner.parent_op() if isinstance(value.owner, Operation) else None
            if owner is not self.trace:
                raise CompileError("the handle belongs to another schedule")
        return self._record(kind.create(operands=values, properties=properties))

    def handle_of(self, block: BlockOp) -> BlockHandle:
        """A handle for a block whose name is unique in its function, without a search."""
        func = function_of(block).sym_name
        step = sched.GetBlockOp.create(properties={"label": StringAttr(block.label), "func": func})
        return BlockHandle(self._add(step, StepOutcome([block])).results[0])

    def _record(self, step: sched.StepOp) -> sched.StepOp:
        try:
            outcome = self._replay.evaluate(step)
        except Exception:
            step.erase()
            raise
        return self._add(step, outcome)

    def _add(self, step: sched.StepOp, outcome: StepOutcome) -> sched.StepOp:
        given = list(outcome.found) if type(step).get_irdl_definition().results else []
        recorded = type(step).create(
            operands=list(step.operands),
            result_types=[_type(found) for found in given],
            properties=dict(step.properties),
        )
        if outcome.decision is not None:
            recorded.properties["decision"] = outcome.decision
        for at, (result, found) in enumerate(zip(recorded.results, given, strict=True)):
            result.name_hint = _hint(found, at)
        self._replay.bind(recorded, given)
        step.erase()
        self.trace.body.block.add_op(recorded)
        return recorded


def _type(found: HandleValue) -> Attribute:
    if isinstance(found, int):
        return sched.INT
    return sched.LOOP if isinstance(found, ForOp | ComputeLocation) else sched.BLOCK


def _hint(found: HandleValue, at: int) -> str | None:
    """Named after a loop or lower-case block; integers are t0, t1, ..."""
    if isinstance(found, int):
        return f"t{at}"
    if isinstance(found, ComputeLocation):
        return "place"
    if isinstance(found, ForOp):
        return found.induction_variable.name_hint
    if isinstance(found, BlockOp | FuncOp):
        name = found.label.lower() if isinstance(found, BlockOp) else ROOT
        return name if SSAValue.is_valid_name(name) else "block"
    return None
