"""`weft.tune`: schedules of a program found by search."""

from __future__ import annotations

import hashlib
import importlib
import math
import os
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from itertools import accumulate
from pathlib import Path
from queue import SimpleQueue
from random import Random
from time import monotonic
from typing import Any, Final

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Region

from weft.autoschedule.default_schedule import default_schedule, schedule_by_rules, scheduled_by
from weft.dialects import sched
from weft.dialects.tir_kinds import CONSTANTS_FROM_MEMORY
from weft.dialects.traversal import copy_of
from weft.driver.build import lower_to_tir
from weft.driver.candidates import build_candidate, constant_positions
from weft.driver.programs import functions_of, parse, parse_file, schedules_of
from weft.driver.traces import parse_trace, trace_with_decisions
from weft.driver.workloads import Task, tasks_of
from weft.interp.arguments import EXTENTS, ConcreteShapes, argument_recipe
from weft.interp.compare import reduction_length_of
from weft.passes.tir.flat_signature import state_parameter_accesses
from weft.runtime import gpu_library
from weft.schedule.schedule import Schedule
from weft.schedule.traces import decisions_of, trace_without_decisions
from weft.support.argument_types import checked
from weft.support.errors import CompileError, InternalError, ScheduleError, did_you_mean
from weft.support.files import write_output
from weft.support.gpu_machine import GPU_KINDS
from weft.support.limited_calls import end_idle_children
from weft.support.target import Target
from weft.tuning.cost_model import AnalyticalModel, BoostedTrees, CostModel, cost_model, samples_from_text
from weft.tuning.database import Database
from weft.tuning.evaluation import Evaluator, Events, Trial, WrongResultError, cancel, handle, next_done
from weft.tuning.executors import Fleet, check_runner, opened_executor
from weft.tuning.features import Assessment
from weft.tuning.measuring import ArgumentSpec, measure
from weft.tuning.records import Decision, Record, Workload, machine_kind
from weft.tuning.runner import WorkerLimits
from weft.tuning.search import EvolutionarySearch, Ranking, SearchCounts, SearchOptions
from weft.tuning.space import Candidate, Program, Refused, Space, SteeredSchedule
from weft.tuning.task_scheduler import expected_gain

_COLUMNS: Final = (
    *("ID", "name", "FLOP", "weight", "speed", "latency"),
    *("weighted", "default", "gain", "trials", "done"),
)
_MEASURED: Final = ("llvm", "opencl", "cuda")
"""Kinds of targets whose programs are measured."""
_DEFAULT_SPACE: Final = "default space"
_FIRST: Final = 4
"""Schedules that other searches found, with which one begins."""


@dataclass
class TunedTask:
    """The search of a function."""

    workload: Workload
    calls: int
    """How often the program calls it."""
    default: Record
    best: Record
    """The fastest: of the search, or the default."""
    trials: list[Record] = field(default_factory=list[Record])
    """What was evaluated, in order, without the default."""
    known: int = 0
    """Trials that the database had already."""
    counts: SearchCounts = field(default_factory=SearchCounts)
    is_exhausted: bool = False
    """Whether every schedule of the space was tried."""

    @property
    def seconds(self) -> float:
        """The time of the best."""
        return self.best.seconds or 0.0

    @property
    def default_seconds(self) -> float:
        return self.default.seconds or 0.0


@dataclass
class Tuned:
    """What a search found."""

    tasks: list[TunedTask]
    target: str
    skipped: dict[str, str] = field(default_factory=dict[str, str])
    """Functions that were not tuned, with the reason."""

    @property
    def trace(self) -> sched.FuncOp:
        """The fastest schedule, with its decisions. Raises `CompileError` where several functions were tuned."""
        if len(self.tasks) != 1:
            names = ", ".join(task.workload.name for task in self.tasks)
            raise CompileError(f"several functions were tuned ({names}): their traces are in tuned.traces")
        return self.traces[self.tasks[0].workload.name]

    @property
    def traces(self) -> dict[str, sched.FuncOp]:
        """The fastest schedule of each function, by its name."""
        return {t.workload.name: trace_with_decisions(t.best.trace, t.best.decisions) for t in self.tasks}

    @property
    def num_trials(self) -> int:
        return sum(len(task.trials) for task in self.tasks)

    def table(self) -> str:
        """A row for each function: what it computes, how often, and how fast, by default and now."""
        rows: list[tuple[str, ...]] = [
            ("ID", "name", "FLOP", "weight", "speed", "latency", "weighted", "default", "gain", "trials", "done")
        ]
        total = before = 0.0
        for number, task in enumerate(self.tasks):
            flops, weighted = task.workload.flops, task.seconds * task.calls
            total, before = total + weighted, before + task.default_seconds * task.calls
            rows.append(
                (
                    *(str(number), task.workload.name, f"{flops:,}" if flops else "?", str(task.calls)),
                    f"{flops / task.seconds / 1e9:.2f} GFLOP/s" if flops else "?",
                    *(f"{seconds * 1e6:.2f} us" for seconds in (task.seconds, weighted, task.default_seconds)),
                    f"{task.default_seconds / task.seconds:.2f}",
                    *(str(len(task.trials)), "all" if task.is_exhausted else ""),
                )
            )
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        lines = ["  ".join(text.rjust(width) for text, width in zip(row, widths, strict=True)) for row in rows]
        gain = f", {before / total:.2f} times as fast as by default" if total else ""
        return "\n".join([*lines, f"{self.num_trials} trials, {total * 1e6:.2f} us in all{gain}"])

    def plot(self, path: str | os.PathLike[str]) -> None:
        """Draw the best time so far over the trials, a line for each function, into a picture: its suffix says of which
        kind. Raises `CompileError` without matplotlib (extra `plot`)."""
        try:
            figure: Any = importlib.import_module("matplotlib.figure").Figure()
        except ImportError:
            raise CompileError("plot: pictures are drawn by matplotlib: pip install 'weft[plot]'") from None
        axes = figure.subplots()
        for task in self.tasks:
            times = [record.seconds or math.inf for record in (task.default, *task.trials)]
            best = [second * 1e6 for second in accumulate(times, min)]
            axes.step(range(len(best)), best, where="post", label=task.workload.name)
        axes.set_xlabel("trials; 0 is the default schedule")
        axes.set_ylabel("us")
        axes.set_ylim(bottom=0)
        axes.legend()
        figure.savefig(path)

    def __str__(self) -> str:
        return self.table()


@checked
def tune(
    program: ModuleOp | str | os.PathLike[str],
    *,
    space: Callable[[Schedule], object] | sched.FuncOp | str | None = None,
    trials: int = 64,
    database: str | os.PathLike[str] | None = None,
    seed: int = 0,
    target: Target | str = "llvm",
    func: str | None = None,
    timeout: float | None = None,
    executor: Executor | str | None = None,
    runner: Executor | str | None = None,
    window: int | None = None,
    limits: WorkerLimits | None = None,
    progress: Callable[[Tuned], object] | None = None,
) -> Tuned:
    """Search for fast schedules of a program by measuring them, on this machine or others.

        def space(sch):
            i, j, k = sch.get_loops("C")
            j0, j1 = sch.split(j, sch.sample_perfect_tile(j, n=2))
            sch.reorder(i, j0, k, j1)

        tuned = weft.tune(module, space=space, trials=64, database="tune.db")
        lib = weft.build(module, database="tune.db")

    `program` is a module at any level, its text, or a file; `func` names the function to tune where there are several.
    `space` is a function that schedules and samples (`sch.sample_perfect_tile`, `sample_categorical`,
    `sample_compute_location`), or sched IR with sampling steps; without it, the sampling steps of the default schedule
    are searched. The default schedule is measured first, so that what is found is never slower.

    Records go to `database` one by one. The same search with the same database and seed finds its trials there and
    goes on behind them, however it ended; `trials` counts them too. `timeout` is in seconds, and ends the search with
    the trial under way.

    `executor` runs the builders: one of `concurrent.futures`, or the name of one, `"4"` (processes), `"dask:ADDRESS"`,
    `"ray"` or `"ray:ADDRESS"`; by default as many processes as cores. `runner`, another or the same, measures one
    candidate at a time on each machine; without it candidates are measured here, while no builder runs. `window` trials
    are under way at once, by default two for each worker, and at least a batch of 8.

    Raises `CompileError` for a program that cannot be tuned, and where workers do not answer, have another version or
    are of several kinds of machines; what `space` raises; `InternalError` when a schedule computes something else than
    the default, with the name of a file that shows it.
    """
    module = copy_of(_parsed(program))
    machine = Target.parse(target) if isinstance(target, str) else target
    _check(machine, trials)
    if window is not None and window < 1:
        raise CompileError(f"tune: window must be at least 1, got {window}")
    lower_to_tir(module, str(machine))
    path = None if database is None else Path(database)
    end = float("inf") if timeout is None else monotonic() + timeout
    with ExitStack() as stack:
        stack.callback(end_idle_children)
        opened = stack.enter_context(Database(":memory:" if path is None else path))
        workers = _opened_workers(stack, executor, runner, window, machine)
        made = _Searches(opened, workers, str(machine), seed, limits or default_limits(machine))
        tuned = made.begin(module, func, space, machine)
        try:
            made.run(trials, end, tuned, progress)
        except WrongResultError as error:
            raise InternalError(made.reproducer(error, Path() if path is None else path.parent)) from error
        finally:
            made.save_model()
    return tuned


@dataclass(frozen=True)
class _Workers:
    """Who builds and who measures."""

    builder: Executor
    runner: Executor | None
    """None measures here."""
    machine: str
    """The kind of machine that measures."""
    window: int
    """Trials under way at once."""


def _opened_workers(
    stack: ExitStack, executor: Executor | str | None, runner: Executor | str | None, window: int | None, target: Target
) -> _Workers:
    """Connect to builders and runners. Raises `CompileError` where they do not answer or do not fit the target."""
    builder = stack.enter_context(opened_executor(str(_processors()) if executor is None else executor, "executor"))
    if runner is None or runner is executor or runner == executor:
        measures = None if runner is None else builder
    else:
        measures = stack.enter_context(opened_executor(runner, "runner"))
    fleets = [fleet for fleet in (builder, measures) if isinstance(fleet, Fleet)]
    for fleet in fleets:
        fleet.first_worker()
    if measures is not None and target.has_kernels:
        raise CompileError(
            f"runner: programs for target kind '{target.kind}' are measured on the device of this machine"
        )
    kind = (
        machine_kind(str(target)) if measures is None else check_runner(measures, f"{target.architecture} {target.cpu}")
    )
    if window is None:
        window = max([SearchOptions.batch, *(2 * fleet.num_workers for fleet in fleets)])
    return _Workers(builder, measures, kind, window)


def _parsed(program: ModuleOp | str | os.PathLike[str]) -> ModuleOp:
    if isinstance(program, str):
        if "\n" not in program and program.endswith(".mlir"):
            raise ValueError(f"tune: argument 'program' is MLIR text; a file is given as pathlib.Path({program!r})")
        return parse(program)
    return parse_file(Path(program)) if isinstance(program, os.PathLike) else program


def _check(target: Target, trials: int) -> None:
    """Raises `CompileError` where programs for a target cannot be measured here."""
    if target.kind not in _MEASURED:
        raise CompileError(f"tune: programs for target kind {', '.join(_MEASURED)} are measured, got '{target.kind}'")
    if target.has_kernels:
        gpu_library.device_for(target).check_target(target)
    elif target.obstacle:
        raise CompileError(f"tune: {target.obstacle}")
    if trials < 1:
        raise CompileError(f"tune: trials must be at least 1, got {trials}")


def within_device(target: Target) -> Target:
    """A target with the limits of the device that runs its programs here, where these are narrower. Raises
    `DeviceError` without a device for kernels."""
    if target.gpu is None:
        return target
    ours, its = target.gpu, gpu_library.device_for(target).limits
    shared = min(ours.max_shared_bytes, its.max_shared_bytes)
    threads = min(ours.max_threads_per_block, its.max_threads_per_block)
    limits = replace(ours, max_threads_per_block=threads, max_shared_bytes=shared)
    return replace(target, gpu=replace(limits, shared_bytes=min(ours.shared_bytes, shared)))


def default_limits(target: Target) -> WorkerLimits:
    """What building and measuring a candidate may take unless given: kernels of OpenCL are built where they run."""
    limits = WorkerLimits()
    if target.kind != "opencl":
        return limits
    return replace(limits, run=replace(limits.run, seconds=limits.build.seconds + limits.run.seconds))


def _processors() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@dataclass
class _Search:
    """The search of one function."""

    found: TunedTask
    evaluator: Evaluator
    search: EvolutionarySearch
    best: list[float]
    """Seconds before the first batch, and after each that ended."""
    begun: float = 0.0
    """Batches that were begun."""

    def gain(self) -> tuple[float, float]:
        """What another batch is expected to save."""
        return expected_gain(self.found.calls, self.best, self.begun)

    def begin(self, most: int) -> list[Trial]:
        """Have new candidates evaluated."""
        trials = self.evaluator.begin(self.search.propose(most))
        self.begun += len(trials) / SearchOptions.batch
        return trials

    def tell(self, trial: Trial) -> None:
        """Take a trial into account that has its record."""
        if trial.record is None:
            return
        self.search.tell(trial.candidate, trial.record.seconds)
        found = self.found
        found.trials.append(trial.record)
        found.known += trial.was_known
        found.best, found.counts = self.evaluator.best, self.search.counts
        found.is_exhausted = self.search.is_exhausted
        if len(found.trials) % SearchOptions.batch == 0:
            self.best.append(found.seconds)


class _Searches:
    """The searches of the functions of a program."""

    def __init__(self, database: Database, workers: _Workers, target: str, seed: int, limits: WorkerLimits) -> None:
        self._database, self._workers = database, workers
        self._events: Events = SimpleQueue()
        self._target, self._seed, self._limits = target, seed, limits
        self._searches: list[_Search] = []
        self._model: CostModel = AnalyticalModel()

    def begin(
        self,
        module: ModuleOp,
        func: str | None,
        space: Callable[[Schedule], object] | sched.FuncOp | str | None,
        machine: Target,
    ) -> Tuned:
        """Measure the default schedules."""
        tuned = Tuned([], self._target)
        by_users: set[str] = set()
        for schedule in schedules_of(module):
            by_users |= scheduled_by(schedule, module)
        tasks = tasks_of(module)
        if func is not None:
            names = {task.function.sym_name.data for task in tasks}
            if func not in names:
                raise CompileError(f"tune: there is no function '{func}' with blocks{did_you_mean(func, names)}")
            tasks = [task for task in tasks if task.function.sym_name.data == func]
        self._model = self._first_model([task.key for task in tasks])
        found: dict[str, TunedTask] = {}
        for task in tasks:
            name = task.function.sym_name.data
            if task.key in found:  # an equal function, of another name
                found[task.key].calls += task.calls
                continue
            reason = "a schedule of the program works on it" if name in by_users else task.obstacle(machine.kind)
            if reason:
                tuned.skipped[name] = reason
                continue
            try:
                self._searches.append(self._begin(task, space, machine))
            except CompileError as error:
                if len(tasks) == 1:
                    raise
                tuned.skipped[name] = error.message  # the space is for another function of the program
                continue
            tuned.tasks.append(self._searches[-1].found)
            found[task.key] = tuned.tasks[-1]
        if not tuned.tasks:
            reasons = "".join(f"\n  @{name}: {reason}" for name, reason in tuned.skipped.items())
            raise CompileError(f"tune: there is no function to tune{reasons or ', none holds blocks'}")
        return tuned

    def _first_model(self, keys: Sequence[str]) -> CostModel:
        """The cost model to begin with: what earlier searches of any program learned."""
        model = cost_model()
        if isinstance(model, BoostedTrees):
            digest = hashlib.blake2b("".join(keys).encode(), digest_size=16).hexdigest()
            begun = self._database.begin_search(f"model {digest} {self._target} {self._workers.machine} {self._seed}")
            text = self._database.model(self._target, self._workers.machine, until=begun)
            if text is not None:
                model.learn(samples_from_text(text))
        return model

    def save_model(self) -> None:
        """Keep what the cost model learned."""
        if isinstance(self._model, BoostedTrees) and self._model.samples:
            self._database.save_model(self._target, self._workers.machine, self._model.to_text())

    def _begin(
        self, task: Task, space: Callable[[Schedule], object] | sched.FuncOp | str | None, machine: Target
    ) -> _Search:
        workload, unit, arguments = workload_of(task)
        try:
            made, origin, default = _space(unit, space, machine, Assessment(within_device(machine)))
        except ScheduleError as refusal:
            reason = str(refusal).removeprefix("error: ")
            text = f"tune: the default schedule of @{workload.name} cannot run here: {reason}"
            raise CompileError(text) from refusal
        if space is not None:
            made.check()
        evaluator = Evaluator(
            workload,
            self._target,
            arguments,
            default,
            origin,
            database=self._database,
            executor=self._workers.builder,
            build=build_candidate,
            measure=measure,
            limits=self._limits,
            runner=self._workers.runner,
            machine=self._workers.machine,
            events=self._events,
        )
        first = self._found_elsewhere(workload, origin, machine)
        ranking = Ranking(self._model, default.features, evaluator.default.seconds or 1.0)
        search = EvolutionarySearch(made, self._seed, first=first, ranking=ranking)
        if space is None:
            search.adopt(default)
            search.tell(default, evaluator.default.seconds)
        found = TunedTask(workload, task.calls, evaluator.default, evaluator.best, is_exhausted=search.is_exhausted)
        return _Search(found, evaluator, search, [found.seconds])

    def _found_elsewhere(self, workload: Workload, origin: str, machine: Target) -> list[tuple[Decision | None, ...]]:
        """The decisions of the fastest schedules that other searches of a space found. Those of rules for kernels are
        none for processors."""
        kind = self._workers.machine
        begun = self._database.begin_search(f"{workload.key} {self._target} {kind} {origin} {self._seed}")
        others = self._database.elsewhere(workload.key, kind, _FIRST, until=begun)
        alike = [record for record in others if (record.target.split()[0] in GPU_KINDS) is machine.has_kernels]
        return [record.decisions for record in alike if record.origin == origin]

    def run(self, trials: int, end: float, tuned: Tuned, progress: Callable[[Tuned], object] | None) -> None:
        """Evaluate candidates until trials, time or spaces are spent."""
        evaluate = self._measure_here if self._workers.runner is None else self._have_measured
        for at, _ in enumerate(evaluate(trials, end), 1):
            if progress is not None and at % SearchOptions.batch == 0:
                progress(tuned)
        if progress is not None and tuned.num_trials % SearchOptions.batch:
            progress(tuned)

    def _next(self) -> _Search | None:
        """The search whose next batch is expected to gain most."""
        able = [search for search in self._searches if not search.search.is_exhausted]
        return max(able, key=_Search.gain, default=None)

    def _measure_here(self, trials: int, end: float) -> Iterator[Trial]:
        """Batches one after the other. Of a window of several the builders work on the later ones meanwhile."""
        under_way: deque[tuple[_Search, list[Trial]]] = deque()
        left, window = trials, self._window()
        try:
            while True:
                while left > 0 and monotonic() < end and sum(len(batch) for _, batch in under_way) < window:
                    search = self._next()
                    if search is None:
                        break
                    batch = search.begin(left)
                    left -= len(batch)
                    under_way.append((search, batch))
                    if left > 0:
                        search.search.prepare()  # one processor makes candidates while the others build
                if not under_way:
                    return
                search, batch = under_way.popleft()
                for trial in search.evaluator.finish(batch, end):
                    search.tell(trial)
                    yield trial
                search.found.is_exhausted = search.search.is_exhausted
        finally:
            for _, batch in under_way:
                cancel(batch)

    def _have_measured(self, trials: int, end: float) -> Iterator[Trial]:
        """As many trials at once as the window has: when one is done, the next begins. What is proposed depends on all
        that were done before, in the order of their records: a search that is started again proposes the same."""
        under_way: list[tuple[_Search, Trial]] = []
        left, window = trials, self._window()
        try:
            while True:
                while left > 0 and monotonic() < end and len(under_way) < window:
                    search = self._next()
                    if search is None:
                        break
                    begun = search.begin(min(left, window - len(under_way)))
                    left -= len(begun)
                    under_way += [(search, trial) for trial in begun]
                    handle(self._events)
                done = next_done([trial for _, trial in under_way], self._events, end) if under_way else None
                if done is None:
                    return
                ((search, trial),) = [entry for entry in under_way if entry[1] is done]
                under_way = [entry for entry in under_way if entry[1] is not done]
                search.evaluator.tell(trial)
                search.tell(trial)
                yield trial
        finally:
            cancel([trial for _, trial in under_way])

    def _window(self) -> int:
        """Trials under way at once: those with which this search began first, or it would propose others now."""
        keys = " ".join(search.found.workload.key for search in self._searches)
        digest = hashlib.blake2b(keys.encode(), digest_size=16).hexdigest()
        key = f"{digest} {self._target} {self._workers.machine} {self._seed}"
        return self._database.window(key, self._workers.window)

    def reproducer(self, error: WrongResultError, folder: Path) -> str:
        """Write a file that shows a wrong result; returns the message."""
        (search,) = [s for s in self._searches if s.evaluator.workload.key == error.workload.key]
        workload = search.evaluator.workload
        module = parse(workload.ir)
        module.body.block.add_op(trace_with_decisions(error.candidate.trace, error.candidate.decisions))
        path = folder / f"weft-wrong-{workload.name}-{error.candidate.digest.hex()[:12]}.mlir"
        write_output(path, f"// {error.difference}\n{module!s}\n")
        return f"a schedule of @{workload.name} changes its result: {error.difference}; '{path}' shows it"


def workload_of(task: Task) -> tuple[Workload, ModuleOp, ArgumentSpec]:
    """What is tuned for a function: its workload, the module that is scheduled, and what it is measured with."""
    unit = task.unit()
    ir = str(unit)
    function = next(iter(functions_of(unit).values()))
    work = ConcreteShapes(function, EXTENTS[0]).work(functions_of(unit).get)
    workload = Workload(task.key, function.sym_name.data, ir, work.flops if work.is_exact else 0)
    recipe, constants = argument_recipe(function), constant_positions(function)
    given_to = tuple(p for at, p in enumerate(recipe.parameters) if at not in constants)
    recipe, from_memory = replace(recipe, parameters=given_to), CONSTANTS_FROM_MEMORY in function.attributes
    arguments = ArgumentSpec(recipe, 0, reduction_length_of(function), from_memory)
    state_parameter_accesses(unit)
    return workload, unit, arguments


def _space(
    unit: ModuleOp,
    space: Callable[[Schedule], object] | sched.FuncOp | str | None,
    machine: Target,
    features: Callable[[ModuleOp], tuple[float, ...]],
) -> tuple[Space, str, Candidate]:
    """The space to search, its name, and the default schedule. Raises `ScheduleError` where that is refused."""
    if space is None:
        made = Space(unit, default_program(machine), _DEFAULT_SPACE, features)
        default = made.run(Random(0), takes_defaults=True)
        if isinstance(default, Refused):
            raise default.reason
        if default is None:
            raise InternalError("the default schedule of a new space was tried before")
        return made, _DEFAULT_SPACE, default
    found = default_schedule(unit, machine)
    trace = found[0] if found else sched.FuncOp("trace", Region(Block()))
    scheduled = Schedule(unit)
    scheduled.replay(trace)
    places = trace_without_decisions(trace), tuple(decisions_of(trace))
    default = Candidate(*places, b"", features=features(scheduled.mod))
    given = parse_trace(space) if isinstance(space, str) else space
    if isinstance(given, sched.FuncOp):
        name = given.sym_name.data
        return Space(unit, _replaying(given), name, features), name, default
    name = getattr(given, "__qualname__", "space")
    return Space(unit, given, name, features), name, default


def default_program(target: Target) -> Program:
    """The rules of default schedules; their choices are the space."""

    def program(sch: Schedule) -> object:
        return schedule_by_rules(sch, target, sch.replayed) if isinstance(sch, SteeredSchedule) else None

    return program


def _replaying(trace: sched.FuncOp) -> Callable[[Schedule], object]:
    """The sampling steps of a trace; their decisions are its defaults."""
    return lambda sch: sch.replay(trace)
