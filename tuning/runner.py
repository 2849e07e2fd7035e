"""The measurement of a candidate by a runner, relative to the incumbent, the fastest schedule so far.

Drift is the ratio of the incumbent's time, measured first, to its recorded time; it corrects times, so that those of
runners of one kind are comparable. A candidate replaces the incumbent only if it remains faster in repeated,
alternating measurements: the best of many noisy times would be luck (`docs/tuning.md`).
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from time import monotonic
from typing import Final, TypeAlias

from weft.support.limited_calls import Failure, Limits
from weft.tuning.measuring import ArgumentSpec, Built, Measured, Repeats
from weft.tuning.records import time_that_counts

Measure: TypeAlias = Callable[[Built, Built, ArgumentSpec, Repeats, Limits], Measured | Failure]

_HOPELESS: Final = 2.0
"""A candidate slower than the incumbent by this factor is rejected after the first calls."""
_NOISE: Final = 0.05
"""Relative differences of the incumbent's time that are not drift."""
_CLEAR: Final = 0.95
"""Below this fraction of the incumbent's time a candidate is faster beyond doubt."""
_PAIRS: Final = 3
"""Repeated pairs of measurements in case of doubt."""
_FRESH: Final = 10.0
"""Seconds for which a runner of a fleet reuses its drift."""


@dataclass(frozen=True)
class WorkerLimits:
    build: Limits = field(default_factory=lambda: Limits(seconds=30.0))
    run: Limits = field(default_factory=lambda: Limits(seconds=10.0))
    repeats: Repeats = field(default_factory=Repeats)


@dataclass(frozen=True)
class Scale:
    reference: Built
    """The program with its default schedule, which defines the results."""
    incumbent: Built | None
    best: float
    """Recorded seconds of the incumbent, or 0."""
    arguments: ArgumentSpec
    limits: WorkerLimits


@dataclass(frozen=True)
class Measurement:
    found: tuple[float, ...] | Failure
    drift: float = 1.0
    difference: str = ""
    """From the result of the reference: a bug; there are no times."""

    @property
    def seconds(self) -> float | None:
        """The time for comparisons, or None."""
        return time_that_counts(self.found) / self.drift if isinstance(self.found, tuple) and self.found else None


def compare(measure: Measure, candidate: Built, scale: Scale, drift: float | None = None) -> Measurement:
    """`drift` defaults to that of this process, measured again every ten seconds."""
    drift = _recent_drift(measure, scale) if drift is None else drift
    found = _run(measure, candidate, scale, drift)
    for _ in range(_PAIRS):
        if found.seconds is None or found.seconds >= scale.best:
            break
        again = _run(measure, candidate, scale, _ratio(measure, scale))
        found = again if again.seconds is None or again.seconds > found.seconds else found
        if found.seconds is not None and found.seconds < _CLEAR * scale.best:
            break
    return found


def measure_default(measure: Measure, scale: Scale) -> Measurement:
    """Measure twice, because the first run in a process is slower."""
    outcomes = [_run(measure, scale.reference, scale, 1.0) for _ in range(2)]
    for outcome in outcomes:
        if outcome.seconds is None:
            return outcome
    return min(outcomes, key=lambda outcome: outcome.seconds or 0.0)


def measure_drift(measure: Measure, scale: Scale) -> float:
    """The slow-down since the incumbent's time was recorded; 1 within noise."""
    ratio = _ratio(measure, scale)
    return 1.0 if abs(ratio - 1.0) < _NOISE else ratio


def _ratio(measure: Measure, scale: Scale) -> float:
    if scale.incumbent is None or not scale.best:
        return 1.0
    now = _run(measure, scale.incumbent, replace(scale, best=0.0), 1.0).seconds
    return 1.0 if now is None else now / scale.best


_drifts: dict[bytes, tuple[float, float]] = {}
"""Time of measurement and drift, for the last incumbent."""


def _recent_drift(measure: Measure, scale: Scale) -> float:
    code = b"" if scale.incumbent is None else scale.incumbent.code
    key = hashlib.blake2b(code + f"{scale.best} {scale.arguments}".encode()).digest()
    when, drift = _drifts.get(key, (-_FRESH, 1.0))
    if monotonic() - when > _FRESH:
        drift = measure_drift(measure, scale)
        _drifts.clear()
        _drifts[key] = monotonic(), drift
    return drift


def _run(measure: Measure, built: Built, scale: Scale, drift: float) -> Measurement:
    limits = scale.limits
    hopeless = _HOPELESS * scale.best * drift if scale.best else limits.repeats.hopeless_seconds
    repeats = replace(limits.repeats, hopeless_seconds=hopeless)
    found = measure(built, scale.reference, scale.arguments, repeats, limits.run)
    if isinstance(found, Failure):
        return Measurement(found)
    return Measurement(found.times, drift, found.difference)
