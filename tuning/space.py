"""Search spaces: sampling functions of a schedule, run with the decisions of a search."""

from __future__ import annotations

from collections.abc import Callable, Container, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from random import Random
from typing import Final, TypeAlias

from xdsl.dialects.builtin import ModuleOp

from weft.analysis.structural_hash import structural_digest
from weft.dialects import sched
from weft.frontends.script.schedule import Schedule
from weft.passes.schedule.replay import Replay
from weft.passes.schedule.sampling import SamplePerfectTile, Sampler, divisors
from weft.schedule.traces import decisions_of, simplify_trace, trace_without_decisions
from weft.support.errors import ScheduleError
from weft.tuning.decision_tree import DecisionPath, DecisionTree
from weft.tuning.records import Decision

_NEIGHBOURS: Final = 8
"""Attempts to find a new neighbour."""

Program: TypeAlias = Callable[[Schedule], object]
"""Schedules a program by steps, some of which sample. It may return another schedule derived from its argument
(`SteeredSchedule.replayed`)."""


@dataclass(frozen=True)
class Candidate:
    trace: str
    """sched IR without decisions."""
    decisions: tuple[Decision | None, ...]
    """One per sampling step of the trace."""
    digest: bytes
    """Of the scheduled program."""
    choices: tuple[Decision, ...] = ()
    """Decisions in order, including those of undone steps, which the trace does not contain."""
    features: tuple[float, ...] = ()
    """Of the scheduled program, for a cost model (`features_of`)."""


@dataclass(frozen=True)
class Refused:
    reason: ScheduleError


class Space:
    """The schedules that a program finds for a module; none is tried twice."""

    def __init__(
        self,
        module: ModuleOp,
        program: Program,
        name: str,
        features: Callable[[ModuleOp], tuple[float, ...]] = lambda _: (),
    ) -> None:
        """`features` are those of a scheduled program; a `ScheduleError` refuses it."""
        self.name = name
        self._features = features
        self._assessed: dict[bytes, tuple[float, ...] | ScheduleError] = {}
        """By structural hash of the scheduled program, or the refusal."""
        self._module = module
        self._program = program
        self._tree = DecisionTree()

    @property
    def is_exhausted(self) -> bool:
        return self._tree.is_complete

    def check(self) -> None:
        """Raises the program's errors, except refusals."""
        with suppress(ScheduleError):
            self._program(SteeredSchedule(self._module, Random(0), DecisionTree().path(), (), None, True))

    def run(
        self,
        random: Random,
        wanted: Sequence[Decision | None] = (),
        change: int | None = None,
        *,
        takes_defaults: bool = False,
        seen: Container[bytes] = (),
    ) -> Candidate | Refused | None:
        """The schedule with the `wanted` decisions, one per sampling step. Missing and illegal ones are drawn, or with
        `takes_defaults` those of the program. Step number `change` takes a neighbour of its wanted decision.

        None for decisions that were tried before, or if the digest of the scheduled program is in `seen`. Raises
        `CompileError` and the errors of the program.
        """
        if change is None and wanted and self._tree.has_tried(wanted):
            return None
        path = self._tree.path()
        schedule = SteeredSchedule(self._module, random, path, wanted, change, takes_defaults)
        try:
            result = self._program(schedule)
        except _Tried:
            return None
        except ScheduleError as refusal:
            return Refused(refusal) if path.end() else None
        if not path.end():
            return None
        schedule = result if isinstance(result, SteeredSchedule) else schedule
        digest = structural_digest(schedule.mod)
        if digest in seen:
            return None
        features = self._assess(schedule.mod, digest)
        if isinstance(features, ScheduleError):
            return Refused(features)
        trace = simplify_trace(schedule.trace, keep_sampling=True)
        return Candidate(
            trace_without_decisions(trace),
            tuple(decisions_of(trace)),
            digest,
            tuple(path.decisions),
            features,
        )

    def _assess(self, module: ModuleOp, digest: bytes) -> tuple[float, ...] | ScheduleError:
        if digest not in self._assessed:
            try:
                self._assessed[digest] = self._features(module)
            except ScheduleError as refusal:
                self._assessed[digest] = refusal
        return self._assessed[digest]


def mutated(sampler: Sampler, decision: Decision, random: Random) -> Decision | None:
    """A legal neighbour: for tiles, a divisor of one factor moved to another; else another option; or None."""
    if isinstance(sampler, SamplePerfectTile) and isinstance(decision, tuple) and 0 not in decision:
        factors = list(decision)
        moves = [
            (source, target, d)
            for source, factor in enumerate(factors)
            for target in range(len(factors))
            for d in divisors(factor)[1:]
            if target != source and (target < sampler.n - 1 or factors[target] * d <= sampler.max_innermost_factor)
        ]
        if not moves:
            return None
        source, target, d = random.choice(moves)
        factors[source] //= d
        factors[target] *= d
        return tuple(factors)
    others = [option for option in sampler.options() if option != decision]
    return random.choice(others) if others else None


class SteeredSchedule(Schedule):
    is_of_search = True

    def __init__(
        self,
        mod: ModuleOp,
        random: Random,
        path: DecisionPath,
        wanted: Sequence[Decision | None],
        change: int | None,
        takes_defaults: bool,
    ) -> None:
        super().__init__(mod)
        self._steered = _SteeredReplay(self.mod, random)
        self._steered.steer(path, wanted, change, takes_defaults)
        self._replay = self._steered
        self._again = partial(SteeredSchedule, random=random, path=path, wanted=wanted, change=change)
        self._takes_defaults = takes_defaults

    def replayed(self, module: ModuleOp, trace: sched.FuncOp) -> SteeredSchedule:
        """Further steps of the replayed schedule decide as in this one."""
        schedule = self._again(module, takes_defaults=self._takes_defaults)
        schedule._steered.is_replaying = True
        schedule.replay(trace)
        schedule._steered.is_replaying = False
        return schedule


class _Tried(BaseException):
    """No schedule still reachable is untried. Not an `Exception`, which the program might catch."""


class _SteeredReplay(Replay):
    is_replaying = False

    def steer(
        self, path: DecisionPath, wanted: Sequence[Decision | None], change: int | None, takes_defaults: bool
    ) -> None:
        self._path, self._wanted, self._change, self._takes_defaults = path, wanted, change, takes_defaults

    def draw(self, sampler: Sampler) -> Decision:
        if self.is_replaying:
            return super().draw(sampler)
        free = with_decision(sampler, None)
        path = self._path
        at = len(path.decisions)
        path.reach(free.options)
        wanted = self._wanted[at] if at < len(self._wanted) else None
        if wanted is not None and at == self._change:
            wanted = self._neighbour(free, wanted)
        decision = None if wanted is None else _legal(free, wanted)
        if decision is None and self._takes_defaults and free != sampler:
            decision = sampler.draw(self.random)
        if decision is None:
            decision = path.choose(lambda: free.draw(self.random), self.random.choice)
        path.take(decision)
        if path.is_tried:
            raise _Tried
        return decision

    def _neighbour(self, sampler: Sampler, decision: Decision) -> Decision | None:
        """A neighbour that, with the following decisions, is untried, if found."""
        later = self._wanted[len(self._path.decisions) + 1 :]
        found = mutated(sampler, decision, self.random)
        for _ in range(_NEIGHBOURS):
            if found is None or not self._path.has_tried(found, later):
                break
            found = mutated(sampler, decision, self.random)
        return found


def with_decision(sampler: Sampler, decision: Decision | None) -> Sampler:
    return replace(sampler, decision=decision)


def _legal(sampler: Sampler, decision: Decision) -> Decision | None:
    try:
        return with_decision(sampler, decision).draw(Random(0))
    except (ScheduleError, TypeError):
        return None
