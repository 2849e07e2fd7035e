"""The loop of `weft.tune`, which chooses the function of the next trial, and distributes building and measuring."""

from __future__ import annotations

import hashlib
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from queue import SimpleQueue
from time import monotonic
from typing import Final

from xdsl.dialects.builtin import ModuleOp

from weft.autoschedule.default_schedule import scheduled_by
from weft.dialects import sched
from weft.driver.candidates import build_candidate
from weft.driver.programs import parse
from weft.driver.representative_sizes import WeightedShapes, shapes_of_calls
from weft.driver.search_spaces import space_of, within_device, workload_of
from weft.driver.traces import trace_with_decisions
from weft.driver.tuned import Tuned
from weft.driver.tuned_task import TunedTask
from weft.driver.workloads import Task, tasks_of
from weft.passes.module_edits import schedules_of
from weft.schedule.schedule import Schedule
from weft.support.errors import CompileError, ScheduleError, did_you_mean
from weft.support.files import write_output
from weft.support.gpu_machine import GPU_KINDS
from weft.support.machine import host_cores
from weft.support.sizes import WeightedSizes
from weft.support.target import Target
from weft.tuning.cost_model import AnalyticalModel, BoostedTrees, CostModel, cost_model, samples_from_text
from weft.tuning.database import Database
from weft.tuning.evaluation import Events, Trial, TrialEvaluator, WrongResultError, cancel, handle, next_done
from weft.tuning.executors import Fleet, check_runner, opened_executor
from weft.tuning.features import Assessment
from weft.tuning.measuring import ArgumentSpec, measure
from weft.tuning.records import Decision, Workload, machine_kind
from weft.tuning.runner import WorkerLimits
from weft.tuning.search import EvolutionarySearch, Ranking, SearchOptions
from weft.tuning.task_scheduler import expected_gain

_FIRST: Final = 4
"""The number of initial candidates from schedules found by other searches."""


@dataclass(frozen=True)
class Workers:
    builder: Executor
    runner: Executor | None
    """The workers that measure, or None to measure here."""
    machine: str
    """The kind of machine that measures."""
    window: int
    """The number of concurrent trials."""


def opened_workers(
    stack: ExitStack, executor: Executor | str | None, runner: Executor | str | None, window: int | None, target: Target
) -> Workers:
    """Connect to builders and runners. Raises `CompileError` if they do not answer or do not fit the target."""
    builder = stack.enter_context(opened_executor(str(host_cores()) if executor is None else executor, "executor"))
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
    return Workers(builder, measures, kind, window)


@dataclass
class _TaskSearch:
    found: TunedTask
    evaluator: TrialEvaluator
    search: EvolutionarySearch
    best: list[float]
    """Seconds before the first batch, and after each completed one."""
    begun: float = 0.0
    """The number of started batches."""

    def gain(self) -> tuple[float, float]:
        return expected_gain(self.found.calls, self.best, self.begun)

    def begin(self, most: int) -> list[Trial]:
        trials = self.evaluator.begin(self.search.propose(most))
        self.begun += len(trials) / SearchOptions.batch
        return trials

    def tell(self, trial: Trial) -> None:
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


class Searches:
    def __init__(self, database: Database, workers: Workers, target: str, seed: int, limits: WorkerLimits) -> None:
        self._database, self._workers = database, workers
        self._events: Events = SimpleQueue()
        self._target, self._seed, self._limits = target, seed, limits
        self._searches: list[_TaskSearch] = []
        self._model: CostModel = AnalyticalModel()

    def begin(
        self,
        module: ModuleOp,
        func: str | None,
        space: Callable[[Schedule], object] | sched.FuncOp | str | None,
        machine: Target,
        sizes: Sequence[WeightedSizes] = (),
    ) -> Tuned:
        """Measure the default schedules, at representative `sizes` of symbols. Raises `CompileError` for invalid
        sizes."""
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
        shapes = shapes_of_calls(module, sizes) if sizes else {}
        for task in tasks:
            name = task.function.sym_name.data
            if task.key in found:  # an equal function with another name
                found[task.key].calls += task.calls
                continue
            calls = shapes.get(name, []) if task.symbolic_parameter else []
            reason = (
                "a schedule of the program works on it"
                if name in by_users
                else task.obstacle(machine.kind, has_sizes=bool(calls))
            )
            if reason:
                tuned.skipped[name] = reason
                continue
            try:
                self._searches.append(self._begin(task, calls, space, machine))
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
        model = cost_model()
        if isinstance(model, BoostedTrees):
            digest = hashlib.blake2b("".join(keys).encode(), digest_size=16).hexdigest()
            begun = self._database.begin_search(f"model {digest} {self._target} {self._workers.machine} {self._seed}")
            text = self._database.model(self._target, self._workers.machine, until=begun)
            if text is not None:
                model.learn(samples_from_text(text))
        return model

    def save_model(self) -> None:
        if isinstance(self._model, BoostedTrees) and self._model.samples:
            self._database.save_model(self._target, self._workers.machine, self._model.to_text())

    def _begin(
        self,
        task: Task,
        calls: Sequence[WeightedShapes],
        space: Callable[[Schedule], object] | sched.FuncOp | str | None,
        machine: Target,
    ) -> _TaskSearch:
        workload, unit, arguments = workload_of(task, calls)
        if calls:
            self._check_sizes(workload, arguments)
        try:
            made, origin, default = space_of(unit, space, machine, Assessment(within_device(machine)))
        except ScheduleError as refusal:
            reason = str(refusal).removeprefix("error: ")
            text = f"tune: the default schedule of @{workload.name} cannot run here: {reason}"
            raise CompileError(text) from refusal
        if space is not None:
            made.check()
        evaluator = TrialEvaluator(
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
        return _TaskSearch(found, evaluator, search, [found.seconds])

    def _check_sizes(self, workload: Workload, arguments: ArgumentSpec) -> None:
        """Raises `CompileError` if the database has times at other sizes, which are not comparable."""
        digest = hashlib.blake2b(repr(arguments.weighted).encode(), digest_size=7).digest()
        number = int.from_bytes(digest, "big")
        if self._database.window(f"sizes {workload.key} {self._target} {self._workers.machine}", number) != number:
            raise CompileError(
                f"tune: the database has times of @{workload.name} at other sizes: give the same sizes, or another file"
            )

    def _found_elsewhere(self, workload: Workload, origin: str, machine: Target) -> list[tuple[Decision | None, ...]]:
        """The decisions of the fastest schedules of other searches of a space; for kernels only those of kernels."""
        kind = self._workers.machine
        begun = self._database.begin_search(f"{workload.key} {self._target} {kind} {origin} {self._seed}")
        others = self._database.elsewhere(workload.key, kind, _FIRST, until=begun)
        alike = [record for record in others if (record.target.split()[0] in GPU_KINDS) is machine.has_kernels]
        return [record.decisions for record in alike if record.origin == origin]

    def run(self, trials: int, end: float, tuned: Tuned, progress: Callable[[Tuned], object] | None) -> None:
        evaluate = self._measure_here if self._workers.runner is None else self._have_measured
        for at, _ in enumerate(evaluate(trials, end), 1):
            if progress is not None and at % SearchOptions.batch == 0:
                progress(tuned)
        if progress is not None and tuned.num_trials % SearchOptions.batch:
            progress(tuned)

    def _next(self) -> _TaskSearch | None:
        able = [search for search in self._searches if not search.search.is_exhausted]
        return max(able, key=_TaskSearch.gain, default=None)

    def _measure_here(self, trials: int, end: float) -> Iterator[Trial]:
        """Evaluate successive batches. With a window of several batches, builders work on later ones meanwhile."""
        under_way: deque[tuple[_TaskSearch, list[Trial]]] = deque()
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
                        search.search.prepare()  # while other processors build
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
        """Keep `window` trials in progress. Proposals depend on all earlier trials in the order of their records, so a
        restarted search repeats them."""
        under_way: list[tuple[_TaskSearch, Trial]] = []
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
        """The window that this search started with; another would change its proposals."""
        keys = " ".join(search.found.workload.key for search in self._searches)
        digest = hashlib.blake2b(keys.encode(), digest_size=16).hexdigest()
        key = f"{digest} {self._target} {self._workers.machine} {self._seed}"
        return self._database.window(key, self._workers.window)

    def reproducer(self, error: WrongResultError, folder: Path) -> str:
        """Write a file that reproduces a wrong result. Returns the message."""
        (search,) = [s for s in self._searches if s.evaluator.workload.key == error.workload.key]
        workload = search.evaluator.workload
        module = parse(workload.ir)
        module.body.block.add_op(trace_with_decisions(error.candidate.trace, error.candidate.decisions))
        path = folder / f"weft-wrong-{workload.name}-{error.candidate.digest.hex()[:12]}.mlir"
        write_output(path, f"// {error.difference}\n{module!s}\n")
        return f"a schedule of @{workload.name} changes its result: {error.difference}; '{path}' shows it"
