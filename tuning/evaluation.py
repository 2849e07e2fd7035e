"""Evaluates candidates of a workload: builds a batch on all cores, then measures one after the other.

Building and measuring are phases that do not overlap, since a build on another core slows down what is measured
(caches, memory, clock). Each batch measures the incumbent again first: where the machine has become slower or faster
since, times are corrected by the ratio. Before a candidate becomes the incumbent both are measured again, and the
slower of its corrected times counts.

Each record is added to the database at once. What the database knows already is neither built nor measured, so a search
that was ended in any way is resumed by running it again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor, Future
from dataclasses import dataclass, field, replace
from time import monotonic
from typing import Final, TypeAlias

from weft.support.errors import CompileError
from weft.support.limited_calls import Failure, Limits
from weft.tuning.database import Database
from weft.tuning.measuring import ArgumentSpec, Built, Measured, Repeats
from weft.tuning.records import Decision, Record, Workload, machine_kind, now, time_that_counts, versions
from weft.tuning.space import Candidate

Build: TypeAlias = Callable[[str, str, Sequence[Decision | None], str, Limits], Built | Failure]
"""From the text of a module and of a trace, decisions and a target to code."""
Measure: TypeAlias = Callable[[Built, Built, ArgumentSpec, Repeats, Limits], Measured | Failure]

DEFAULT: Final = "default"
"""The origin of records of default schedules."""
_HOPELESS: Final = 5.0
"""A candidate that is so many times slower than the incumbent is called once."""
_NOISE: Final = 0.05
"""Differences of the incumbent's time that are no drift."""


@dataclass(frozen=True)
class WorkerLimits:
    """What building and measuring a candidate may take."""

    build: Limits = field(default_factory=lambda: Limits(seconds=30.0))
    run: Limits = field(default_factory=lambda: Limits(seconds=10.0))
    repeats: Repeats = field(default_factory=Repeats)


class WrongResultError(Exception):
    """A candidate computes something else than the program with its default schedule: a bug of weft."""

    def __init__(self, workload: Workload, candidate: Candidate, difference: str) -> None:
        super().__init__(difference)
        self.workload, self.candidate, self.difference = workload, candidate, difference


class Evaluator:
    """Builds and measures schedules of one workload."""

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
    ) -> None:
        """`default` is the default schedule; `origin` is that of the candidates; `executor` runs `build`.

        Raises `CompileError` where the program cannot be built or run with its default schedule.
        """
        self.workload = workload
        self._target, self._arguments, self._origin = target, arguments, origin
        self._database, self._executor, self._build, self._measure = database, executor, build, measure
        self._limits = limits
        self._default = default
        self._built_default: Built | None = None
        self._incumbent: Built | None = None
        self.default: Record = self._known(self._default) or self._measured_default()
        """The default schedule."""
        self.best: Record = self.default
        """The fastest so far."""

    def evaluate(self, candidates: Sequence[Candidate], deadline: float) -> Iterator[tuple[Candidate, Record, bool]]:
        """The record of each candidate, and whether the database had it. Ends at `deadline` (`time.monotonic`), with
        records of some of them. Raises `WrongResultError` where one computes something else."""
        known = [self._known(candidate) for candidate in candidates]
        building: dict[int, Future[Built | Failure]] = {
            at: self._submit(candidate.trace, candidate.decisions)
            for at, candidate in enumerate(candidates)
            if known[at] is None
        }
        try:
            built = {at: future.result() for at, future in building.items()}
        except BaseException:
            for future in building.values():
                future.cancel()
            raise
        drift = self._drift() if any(isinstance(result, Built) for result in built.values()) else 1.0
        for at, candidate in enumerate(candidates):
            record = known[at]
            if record is None:
                if monotonic() > deadline:
                    return
                record = self._measured(candidate, built[at], drift)
                self._database.add(record)
            if _is_faster(record, self.best):
                self.best = record
                self._incumbent = result if isinstance(result := built.get(at), Built) else None
            yield candidate, record, known[at] is not None

    def _reference(self) -> Built:
        """The default schedule, built when it is needed first."""
        if self._built_default is None:
            built = self._submit(self._default.trace, self._default.decisions).result()
            if isinstance(built, Failure):
                raise CompileError(f"@{self.workload.name} cannot be built with its default schedule: {built}")
            self._built_default = built
        return self._built_default

    def _submit(self, trace: str, decisions: Sequence[Decision | None]) -> Future[Built | Failure]:
        return self._executor.submit(self._build, self.workload.ir, trace, decisions, self._target, self._limits.build)

    def _known(self, candidate: Candidate) -> Record | None:
        place = self.workload.key, self._target, machine_kind(self._target)
        return self._database.known(*place, candidate.trace, candidate.decisions)

    def _measured(self, candidate: Candidate, built: Built | Failure, drift: float) -> Record:
        """The record of a candidate that is built."""
        if isinstance(built, Failure):
            return self._record(candidate, built, 1.0)
        best = self.best.seconds or 0.0
        found = self._record(candidate, self._run(candidate, built, best * drift), drift)
        if found.seconds is None or found.seconds >= best:
            return found
        drift = self._drift()
        again = self._record(candidate, self._run(candidate, built, best * drift), drift)
        return again if again.seconds is None or again.seconds > found.seconds else found

    def _run(self, candidate: Candidate, built: Built, best: float) -> tuple[float, ...] | Failure:
        hopeless = _HOPELESS * best if best else self._limits.repeats.hopeless_seconds
        repeats = replace(self._limits.repeats, hopeless_seconds=hopeless)
        found = self._measure(built, self._reference(), self._arguments, repeats, self._limits.run)
        if isinstance(found, Failure):
            return found
        if found.difference:
            raise WrongResultError(self.workload, candidate, found.difference)
        return found.times

    def _measured_default(self) -> Record:
        self._incumbent = self._reference()
        # Twice, for what runs first in a process is slower.
        series: list[tuple[float, ...]] = []
        for _ in range(2):
            found = self._run(self._default, self._incumbent, 0.0)
            if isinstance(found, Failure):
                raise CompileError(f"@{self.workload.name} cannot be run with its default schedule: {found}")
            series.append(found)
        found = min(series, key=time_that_counts)
        record = replace(self._record(self._default, found, 1.0), origin=DEFAULT)
        self._database.add(self.workload, record)
        return record

    def _drift(self) -> float:
        """How much slower than recorded the incumbent is now."""
        if self._incumbent is None:  # its record was there before
            built = self._submit(self.best.trace, self.best.decisions).result()
            self._incumbent = built if isinstance(built, Built) else None
        if self._incumbent is None:
            return 1.0
        found = self._run(Candidate(self.best.trace, self.best.decisions, b""), self._incumbent, 0.0)
        recorded = self.best.seconds
        if isinstance(found, Failure) or recorded is None:
            return 1.0
        ratio = time_that_counts(found) / recorded
        return 1.0 if abs(ratio - 1.0) < _NOISE else ratio

    def _record(self, candidate: Candidate, found: tuple[float, ...] | Failure, drift: float) -> Record:
        times, failure = ((), str(found)) if isinstance(found, Failure) else (found, "")
        return Record(
            self.workload.key,
            self._target,
            machine_kind(self._target),
            candidate.trace,
            candidate.decisions,
            times,
            failure,
            drift if times else 1.0,
            self._origin,
            versions(),
            now(),
        )


def _is_faster(record: Record, other: Record) -> bool:
    return record.seconds is not None and (other.seconds is None or record.seconds < other.seconds)
