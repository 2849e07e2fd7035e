"""The pipeline of a program as a list of passes and schedule steps."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, cached_property, partial
from time import perf_counter
from typing import Final, TypeAlias

from xdsl.context import Context
from xdsl.dialects.builtin import DictionaryAttr, ModuleOp
from xdsl.ir import Operation, SSAValue
from xdsl.passes import ModulePass

from weft.autoschedule.default_schedule import apply_default_schedule, scheduled_by
from weft.dialects import sched
from weft.dialects.traversal import copy_of
from weft.driver.constants import pack_constants
from weft.driver.programs import context
from weft.driver.stablehlo_loops import import_stablehlo_loops
from weft.driver.universe import pass_factories
from weft.passes.convert.convert_from_upstream import convert_from_upstream
from weft.passes.lower_graph import LowerGraphPass, graph_steps
from weft.passes.lower_tir_to_low import LowerTirToLowPass, lowering_steps
from weft.passes.lower_to_tir import is_over_tensors
from weft.passes.module_edits import functions_of, schedules_of
from weft.passes.pass_descriptions import summary_of
from weft.passes.pass_sequence import PipelineStep, run_pass
from weft.passes.pipeline_text import parse_passes, pipeline_text
from weft.passes.schedule.apply_schedule import ApplySchedulePass
from weft.passes.tir.flat_signature import state_parameter_accesses
from weft.passes.tir.tir_state_preconditions import StatePreconditionsPass
from weft.schedule.schedule import Schedule
from weft.schedule.traces import NON_REWRITING, calls_of, steps_of
from weft.support.build_options import BuildOptions
from weft.support.errors import CompileError
from weft.support.packages import installed_universe
from weft.support.target import Target
from weft.tools.printing import ScopedMLIRTarget

SHOWN_ELEMENTS: Final = 16
"""Constants of more elements are elided in texts."""
_MOST_TRACES: Final = 8
"""Maximum number of default schedules whose steps are separate states."""


@dataclass(frozen=True)
class PassItem:
    """Passes of one `group` are one lowering, a whole."""

    run: ModulePass
    group: str = ""

    @property
    def title(self) -> str:
        return pass_text(self.run)

    @property
    def summary(self) -> str:
        return summary_of(type(self.run))


@dataclass(frozen=True)
class StepItem:
    steps: tuple[sched.StepOp, ...]
    title: str
    summary: str
    group: str = ""


@dataclass(frozen=True)
class Stage:
    """A part of the pipeline: `begin` prepares the module and returns the items."""

    title: str
    summary: str
    begin: Callable[[ModuleOp], Sequence[Item]]
    is_shown: bool = True
    """Whether the prepared module is a state, unless it is the same; otherwise it is part of the first item."""
    group: str = ""


Item: TypeAlias = "PassItem | StepItem | Stage"


@dataclass(frozen=True, eq=False)
class State:
    title: str
    kind: str
    """`input`, `pass`, `step` (of a schedule of the pipeline) or `primitive` (applied by the user)."""
    summary: str
    module: ModuleOp
    rest: tuple[Item, ...] = ()
    seconds: float = 0.0
    schedule: Schedule | None = None
    """The schedule since the last pass; `module` is its module."""
    planned: Mapping[SSAValue, SSAValue] = field(default_factory=dict[SSAValue, SSAValue])
    """Maps handles of steps in the pipeline to handles in the schedule."""
    assigned: Mapping[str, SSAValue] = field(default_factory=dict[str, SSAValue])
    """Maps names given by the user to handles."""
    group: str = ""

    @cached_property
    def _texts(self) -> dict[Operation, str]:
        printer = ScopedMLIRTarget(elide_above=SHOWN_ELEMENTS)
        return {op: printer.text(op) for op in self.module.ops}

    @cached_property
    def text(self) -> str:
        """The operations, within `builtin.module` only if it has attributes."""
        attributes = self.module.attributes
        head = [f"builtin.module attributes {DictionaryAttr(attributes)} {{", "}"] if attributes else []
        return "\n".join([*head, *self._texts.values()])

    @cached_property
    def parts(self) -> dict[str, str]:
        return {name: self._texts[function] for name, function in functions_of(self.module).items()}

    def fork(self) -> State:
        """Returns a copy with a schedule that may be changed."""
        if self.schedule is None:
            schedule = Schedule(self.module)
            return replace(self, schedule=schedule, module=schedule.mod)
        handles: dict[SSAValue, SSAValue] = {}
        schedule = self.schedule.fork(handles)
        return replace(
            self,
            schedule=schedule,
            module=schedule.mod,
            planned={theirs: handles[ours] for theirs, ours in self.planned.items()},
            assigned={name: handles[ours] for name, ours in self.assigned.items()},
        )


@cache
def _context() -> Context:
    return context()


def advanced(state: State) -> State:
    """Returns the state after the next item, or the same state without `rest` if only stages without effect were left.
    Raises the errors of the item, and `CompileError` at the end."""
    if not state.rest:
        raise CompileError("the pipeline has ended")
    while state.rest:
        item, rest = state.rest[0], state.rest[1:]
        start = perf_counter()
        match item:
            case PassItem():
                return after_pass(state, item, rest)
            case StepItem():
                return _after_step(state, item, rest)
            case Stage():
                module = copy_of(state.module)
                items = item.begin(module)
                seconds = perf_counter() - start
                begun = State(item.title, "pass", item.summary, module, (*items, *rest), seconds, group=item.group)
                if item.is_shown and begun.text != state.text:
                    return begun
                # handles stay those of the unchanged module
                state = replace(state, rest=begun.rest) if begun.text == state.text else begun
    return state


def after_pass(state: State, item: PassItem, rest: tuple[Item, ...]) -> State:
    module, start = copy_of(state.module), perf_counter()
    run_pass(item.run, _context(), module)
    return State(item.title, "pass", item.summary, module, rest, perf_counter() - start, group=item.group)


def _after_step(state: State, item: StepItem, rest: tuple[Item, ...]) -> State:
    start = perf_counter()
    after = state.fork()
    mapping = dict(after.planned)
    made = {result for step in item.steps for result in step.results}
    lost = [operand for step in item.steps for operand in step.operands if operand not in mapping.keys() | made]
    if lost or after.schedule is None:
        names = ", ".join(f"%{handle.name_hint or '?'}" for handle in lost)
        raise CompileError(f"{item.title}: a pass has ended the schedule that returned {names}")
    for step in item.steps:
        after.schedule.replay_step(step, mapping)
    return replace(
        after,
        title=item.title,
        kind="step",
        summary=item.summary,
        rest=rest,
        seconds=perf_counter() - start,
        planned=mapping,
        group=item.group,
    )


# Pipelines


def pass_text(run: ModulePass) -> str:
    return pipeline_text((run,)).removeprefix("builtin.module(").removesuffix(")")


def build_pipeline(target: Target, options: BuildOptions) -> tuple[Item, ...]:
    def to_loops(module: ModuleOp) -> list[Item]:
        import_stablehlo_loops(module)
        convert_from_upstream(_context(), module)
        over_tensors = [name for name, function in functions_of(module).items() if is_over_tensors(function)]
        if not over_tensors:
            return []
        items = _graph_items(module, str(target), options, over_tensors)
        return [*items, PassItem(StatePreconditionsPass(), "graph to tir")]

    def schedules(module: ModuleOp) -> list[Item]:
        state_parameter_accesses(module)
        by_users: set[str] = set()
        items: list[Item] = []
        for trace in schedules_of(module):
            if options.scheduled:
                by_users |= scheduled_by(trace, module)
                items += step_items(trace)
            trace.detach()

        def default_schedules(module: ModuleOp) -> list[Item]:
            scheduled = copy_of(module)
            traces = apply_default_schedule(scheduled, target, skip=by_users)
            if len(traces) <= _MOST_TRACES:
                return [item for trace in traces for item in step_items(trace)]
            # one state, because each has a copy of the module
            results = set(scheduled.ops)
            for op in [*module.ops, *scheduled.ops]:
                op.detach()
                if op in results:
                    module.body.block.add_op(op)
            return []

        if options.default_schedule:
            items.append(Stage("default schedules", "The schedules that weft chooses", default_schedules))
        return items

    def constants(module: ModuleOp) -> list[Item]:
        if target.kind in ("llvm", "c"):
            pack_constants(module)
        return []

    def to_low(module: ModuleOp) -> list[Item]:
        return _lowering_items(module, str(target), options)

    return (
        Stage("convert-from-upstream", "Functions of upstream dialects become block loops", to_loops),
        Stage("schedules", "The schedules of the program, then default ones", schedules),
        Stage("pack constants", "Computations on constants are evaluated", constants),
        Stage("tir to low", "Block loops become code of the target", to_low, is_shown=False, group="tir to low"),
    )


def pass_pipeline(text: str) -> tuple[Item, ...]:
    """The lowerings of weft and its schedules are stepped into."""
    return tuple(map(_item_of, parse_passes(text, pass_factories(installed_universe()))))


def _item_of(run: ModulePass) -> Item:
    match run:
        case ApplySchedulePass():
            begin = partial(_schedule_items, only=run.schedule)
            return Stage(pass_text(run), summary_of(type(run)), begin)
        case LowerTirToLowPass() if not run.insert and not run.func:
            options = BuildOptions(checked=run.bounds)
            begin = partial(_lowering_items, target=run.target, options=options)
            return Stage(pass_text(run), summary_of(type(run)), begin, is_shown=False)
        case LowerGraphPass():
            begin = partial(_graph_items, target=run.target, options=run.options, func=run.func)
            return Stage(pass_text(run), summary_of(type(run)), begin, is_shown=False)
        case _:
            return PassItem(run)


def _items(steps: Sequence[PipelineStep], group: str) -> list[Item]:
    return [PassItem(step.run, group) for step in steps]


def _graph_items(module: ModuleOp, target: str, options: BuildOptions, func: Sequence[str]) -> list[Item]:
    return _items(graph_steps(module, target, options, func), "graph to tir")


def _lowering_items(module: ModuleOp, target: str, options: BuildOptions) -> list[Item]:
    return _items(lowering_steps(module, target, options), "tir to low")


def _schedule_items(module: ModuleOp, only: str | None) -> list[Item]:
    items: list[Item] = []
    for trace in schedules_of(module):
        if only in (None, trace.sym_name.data):
            trace.detach()
            items += step_items(trace)
    return items


def step_items(trace: sched.FuncOp) -> list[Item]:
    """Queries are part of the step after them."""
    items: list[Item] = []
    pending: list[sched.StepOp] = []
    try:
        calls = [call.replace("sch.", "", 1) for call in calls_of(trace)]
    except CompileError:  # for a step without a form in Python
        calls = [str(step) for step in steps_of(trace)]
    for step, call in zip(steps_of(trace), calls, strict=True):
        pending.append(step)
        if not isinstance(step, NON_REWRITING):
            items.append(StepItem(tuple(pending), call, f"A step of @{trace.sym_name.data}"))
            pending = []
    return items
