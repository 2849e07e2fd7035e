"""The search for schedules of a function, with its records."""

from __future__ import annotations

from dataclasses import dataclass, field

from weft.tuning.records import Record, Workload
from weft.tuning.search import SearchCounts


@dataclass
class TunedTask:
    workload: Workload
    calls: int
    """The number of calls in the program."""
    default: Record
    best: Record
    """The fastest record, possibly the default."""
    trials: list[Record] = field(default_factory=list[Record])
    """The evaluated candidates, in order, without the default."""
    known: int = 0
    """Trials that were already in the database."""
    counts: SearchCounts = field(default_factory=SearchCounts)
    is_exhausted: bool = False
    """Whether every schedule of the space was tried."""

    @property
    def seconds(self) -> float:
        return self.best.seconds or 0.0

    @property
    def default_seconds(self) -> float:
        return self.default.seconds or 0.0
