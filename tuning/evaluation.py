"""Evaluation of candidates: build them by builders, measure them locally or by runners.

A local batch is built on all cores, then measured sequentially, because a concurrent build would slow measurements
down. Runners are other machines, which get candidates once built. Records are added to the database at once, and
recorded candidates are not evaluated again, so running an interrupted search again resumes it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor, Future
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from queue import Empty, SimpleQueue
from time import monotonic
from typing import Any, Final, TypeAlias

from weft.support.errors import CompileError
from weft.support.limited_calls import Failure, Limits
from weft.tuning.database import Database
from weft.tuning.executors import Reply, alone, sharing
from weft.tuning.measuring import ArgumentSpec, Built
from weft.tuning.records import Decision, Record, Workload, machine_kind, now, versions
from weft.tuning.runner import Measure, Measurement, Scale, WorkerLimits, compare, measure_default, measure_drift
from weft.tuning.space import Candidate

Build: TypeAlias = Callable[[str, str, Sequence[Decision | None], str, Limits], Built | Failure]
"""From the text of a module and of a trace, decisions, a target and limits."""
Events: TypeAlias = SimpleQueue[Callable[[], None]]
"""Callbacks of finished builds and measurements, for the thread of the search."""

DEFAULT: Final = "default"
"""Origin of records of default schedules."""
_LONGEST_WAIT: Final = 3600.0


class WrongResultError(Exception):
    """A candidate computes other results than the default schedule: a bug of weft."""

    def __init__(self, workload: Workload, candidate: Candidate, difference: str) -> None:
        super().__init__(difference)
        self.workload, self.candidate, self.difference = workload, candidate, difference


@dataclass
class Trial:
    candidate: Candidate
    record: Record | None
    """Once known."""
    was_known: bool
    """The database had the record."""
    number: int = 0
    """Of its record in the database."""
    built: Built | None = None
    future: Future[Any] | None = None
    """Of its build, or of its measurement by a runner."""


class TrialEvaluator:
    def __init__(
        self,
        workload: Workload,
        target: str,
        arguments: ArgumentSpec,
        default: Candidate,
        origin: str,
        *,
        database: Database,
        executor: Executor,
        build: Build,
        measure: Measure,
        limits: WorkerLimits,
        runner: Executor | None = None,
        machine: str | None = None,
        events: Events | None = None,
    ) -> None:
        """`origin` is that of the candidates; `executor` runs `build`. Without a `runner` candidates are measured
        locally. `machine` is the kind of machine that measures, by default this one. Evaluators with concurrent trials
        share `events`.

        Raises `CompileError` if the program cannot be built or run with its default schedule.
        """
        self.workload = workload
        self._target, self._arguments, self._origin = target, arguments, origin
        self._database, self._executor, self._build, self._measure = database, executor, build, measure
        self._limits, self._runner, self._machine = limits, runner, machine or machine_kind(target)
        self._events: Events = SimpleQueue() if events is None else events
        self._default = default
        self._built_default: Built | None = None
        self._incumbent: Built | None = None
        self.default: Record = self._known(self._default) or self._measured_default()
        self.best: Record = self.default

    def begin(self, candidates: Sequence[Candidate]) -> list[Trial]:
        trials: list[Trial] = []
        for candidate in candidates:
            record = self._known(candidate)
            number = 0 if record is None else self._database.number(record)
            trials.append(Trial(candidate, record, record is not None, number))
        new = [trial for trial in trials if not trial.was_known]
        if new and self._runner is not None:
            self._scale()
        for trial in new:
            trial.future = self._submit(trial.candidate.trace, trial.candidate.decisions)
            if self._runner is not None:
                trial.future.add_done_callback(partial(self._call_later, self._have_measured, trial))
        return trials

    def finish(self, trials: Sequence[Trial], deadline: float) -> Iterator[Trial]:
        """Trials when they have records, until `deadline` (`time.monotonic`). Raises `WrongResultError` if results
        differ, and `CompileError` for builders of another version."""
        try:
            yield from self._finish(trials, deadline)
        finally:
            cancel(trials)

    def _finish(self, trials: Sequence[Trial], deadline: float) -> Iterator[Trial]:
        built = [None if trial.future is None else self._of_builder(trial.future.result()) for trial in trials]
        drift = self._drift() if any(isinstance(result, Built) for result in built) else 1.0
        for trial, result in zip(trials, built, strict=True):
            if trial.record is None and result is not None:
                if monotonic() > deadline:
                    return
                trial.built = result if isinstance(result, Built) else None
                outcome = Measurement(result) if isinstance(result, Failure) else self._compared(result, drift)
                self._record(trial, outcome)
            self.tell(trial)
            yield trial

    def _compared(self, built: Built, drift: float) -> Measurement:
        return alone(compare, self._measure, built, self._scale(), drift).value

    def _drift(self) -> float:
        scale = self._scale()
        return alone(measure_drift, self._measure, scale).value

    def _call_later(self, then: Callable[[Trial], None], trial: Trial, future: Future[Any]) -> None:
        if not future.cancelled():
            self._events.put(partial(then, trial))

    def _have_measured(self, trial: Trial) -> None:
        if trial.future is None or self._runner is None or trial.future.cancelled():
            return
        result = self._of_builder(trial.future.result())
        if isinstance(result, Failure):
            self._record(trial, Measurement(result))
            return
        trial.built = result
        trial.future = self._runner.submit(alone, compare, self._measure, result, self._scale())
        trial.future.add_done_callback(partial(self._call_later, self._was_measured, trial))

    def _was_measured(self, trial: Trial) -> None:
        if trial.future is not None and not trial.future.cancelled():
            self._record(trial, self._of_runner(trial.future.result()))
            self.tell(trial)

    def _scale(self) -> Scale:
        if self._incumbent is None:
            built = self._built(self.best.trace, self.best.decisions)
            self._incumbent = built if isinstance(built, Built) else None
        return Scale(self._reference(), self._incumbent, self.best.seconds or 0.0, self._arguments, self._limits)

    def _reference(self) -> Built:
        if self._built_default is None:
            built = self._built(self._default.trace, self._default.decisions)
            if isinstance(built, Failure):
                raise CompileError(f"@{self.workload.name} cannot be built with its default schedule: {built}")
            self._built_default = built
        return self._built_default

    def _submit(self, trace: str, decisions: Sequence[Decision | None]) -> Future[Any]:
        arguments = (self.workload.ir, trace, decisions, self._target, self._limits.build)
        return self._executor.submit(sharing, self._build, *arguments)

    def _built(self, trace: str, decisions: Sequence[Decision | None]) -> Built | Failure:
        return self._of_builder(self._submit(trace, decisions).result())

    def _of_builder(self, reply: Reply[Built | Failure] | Failure) -> Built | Failure:
        return reply if isinstance(reply, Failure) else _checked(reply, "builder").value

    def _of_runner(self, reply: Reply[Measurement] | Failure) -> Measurement:
        if isinstance(reply, Failure):
            return Measurement(reply)
        facts = _checked(reply, "runner").facts
        if facts.machine != self._machine:
            raise CompileError(
                f"runner '{facts.host}' is a machine of kind {facts.machine}, the others are {self._machine}: times of"
                " several kinds cannot be compared"
            )
        return reply.value

    def _known(self, candidate: Candidate) -> Record | None:
        place = self.workload.key, self._target, self._machine
        return self._database.known(*place, candidate.trace, candidate.decisions)

    def _measured_default(self) -> Record:
        self._incumbent = self._reference()
        scale = Scale(self._incumbent, None, 0.0, self._arguments, self._limits)
        if self._runner is None:
            outcome = alone(measure_default, self._measure, scale).value
        else:
            outcome = self._of_runner(self._runner.submit(alone, measure_default, self._measure, scale).result())
        if outcome.difference:
            raise WrongResultError(self.workload, self._default, outcome.difference)
        if isinstance(outcome.found, Failure):
            raise CompileError(f"@{self.workload.name} cannot be run with its default schedule: {outcome.found}")
        record = replace(self._record_of(self._default, outcome), origin=DEFAULT)
        self._database.add(self.workload, record)
        return record

    def _record(self, trial: Trial, outcome: Measurement) -> None:
        if outcome.difference:
            raise WrongResultError(self.workload, trial.candidate, outcome.difference)
        record = self._record_of(trial.candidate, outcome)
        self._database.add(record)
        trial.record, trial.number = record, self._database.number(record)

    def tell(self, trial: Trial) -> None:
        if trial.record is not None and _is_faster(trial.record, self.best):
            self.best, self._incumbent = trial.record, trial.built

    def _record_of(self, candidate: Candidate, outcome: Measurement) -> Record:
        times, failure = ((), str(outcome.found)) if isinstance(outcome.found, Failure) else (outcome.found, "")
        return Record(
            self.workload.key,
            self._target,
            self._machine,
            candidate.trace,
            candidate.decisions,
            times,
            failure,
            outcome.drift if times else 1.0,
            self._origin,
            versions(),
            now(),
        )


def next_done(trials: Sequence[Trial], events: Events, deadline: float) -> Trial | None:
    """Wait for a trial that runners measure; None at `deadline`. Returns the oldest record first, so that a restarted
    search receives results in order. Raises the errors of `TrialEvaluator.finish`."""
    while True:
        done = [trial for trial in trials if trial.record is not None]
        if done:
            return min(done, key=lambda trial: trial.number)
        try:
            events.get(timeout=max(min(deadline - monotonic(), _LONGEST_WAIT), 0.0))()
        except Empty:
            if monotonic() > deadline:
                return None


def handle(events: Events) -> None:
    """Run pending callbacks, which send built candidates to runners."""
    with suppress(Empty):
        while True:
            events.get_nowait()()


def cancel(trials: Sequence[Trial]) -> None:
    for trial in trials:
        if trial.future is not None:
            trial.future.cancel()


def _checked(reply: Reply[Any], role: str) -> Reply[Any]:
    if reply.facts.versions != versions():
        host, found = reply.facts.host, reply.facts.versions
        raise CompileError(f"{role} '{host}' has {found}, here it is {versions()}: install the same")
    return reply


def _is_faster(record: Record, other: Record) -> bool:
    return record.seconds is not None and (other.seconds is None or record.seconds < other.seconds)
