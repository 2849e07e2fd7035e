"""The data of a report, without a form: `html.py` and `terminal.py` render it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from weft.runtime.kernel_report import KernelRow, MachinePeaks
from weft.support.trees import Tree


@dataclass(frozen=True)
class LoweringStage:
    """The IR after a pass."""

    name: str
    """The name of the pass, `input` before the first."""
    summary: str
    milliseconds: float
    parts: tuple[tuple[str, str], ...]
    """Symbol and text of each function and of each other operation of the module. Large constants are left out."""


@dataclass(frozen=True)
class BufferRow:
    """A buffer of a function, and the bytes that its loops move. None: not known."""

    name: str
    type: str
    place: str
    """The memory that it lies in, and for low functions the loops around its allocation."""
    size: int | None
    """In bytes."""
    loaded: int | None = None
    """Bytes of all loads."""
    stored: int | None = None
    from_caches: tuple[int, int, int] | None = None
    """Bytes from beyond the first, the second and the third cache, by the cache model of the tuner; None on GPUs."""


@dataclass(frozen=True)
class Position:
    """A scheduled function after a step, or as it was written."""

    name: str
    calls: tuple[str, ...]
    """The step, and the queries before it, as calls of `weft.Schedule`."""
    trees: tuple[Tree, ...]
    buffers: tuple[BufferRow, ...]


@dataclass(frozen=True)
class ScheduleSteps:
    """A schedule, step by step. The first position is the function as it was written."""

    title: str
    """Its functions."""
    origin: str
    """`in the file`, `default`, `tuned`, or the name of the space of a search."""
    positions: tuple[Position, ...]
    python: str
    ir: str
    failure: str = ""
    """Why a step was refused; positions end before it."""


@dataclass(frozen=True)
class GraphPicture:
    """A graph function: as a picture, where it is small enough for one, and as a tree."""

    name: str
    svg: str
    tree: Tree


@dataclass(frozen=True)
class MemoryRow:
    """A buffer of the lowered program."""

    function: str
    buffer: BufferRow


@dataclass(frozen=True)
class Roofline:
    """Kernels with their arithmetic and bytes, and the limits of the machine."""

    rows: tuple[KernelRow, ...]
    peaks: MachinePeaks | None
    note: str
    """How bytes and peaks were obtained, or why there are no peaks."""


@dataclass(frozen=True)
class ProgramReport:
    """A program on its way through the compiler."""

    name: str
    target: str
    versions: str
    stages: tuple[LoweringStage, ...]
    trees: tuple[Tree, ...]
    """The functions when they were scheduled, or where there are none that were, as they were given."""
    schedules: tuple[ScheduleSteps, ...]
    before_fusion: tuple[GraphPicture, ...]
    after_fusion: tuple[GraphPicture, ...]
    memory: tuple[MemoryRow, ...]
    roofline: Roofline
    failure: str = ""
    """The error that ended the lowering; empty where it reached its end."""


@dataclass(frozen=True)
class TrialPoint:
    """A measured candidate of a search."""

    seconds: float | None
    origin: str
    failure: str


@dataclass(frozen=True)
class TaskReport:
    """What is recorded of a workload for a target on a kind of machine."""

    name: str
    key: str
    target: str
    machine: str
    flops: int
    calls: int | None
    """How often the program that was given calls it; None without a program."""
    trials: tuple[TrialPoint, ...]
    """In the order they were recorded."""
    best: ScheduleSteps | None
    """The steps of the fastest schedule; None where nothing was measured."""
    problem: str = ""
    """Why the steps of the fastest schedule are missing or end early."""

    @property
    def seconds(self) -> float | None:
        """The time of the fastest schedule."""
        return min((trial.seconds for trial in self.trials if trial.seconds is not None), default=None)

    @property
    def default_seconds(self) -> float | None:
        """The time of the default schedule, where it was measured."""
        times = (t.seconds for t in self.trials if t.origin == "default" and t.seconds is not None)
        return next(times, None)

    @property
    def weight(self) -> float | None:
        """Seconds that a run of the program spends in it with the fastest schedule; of one call without a program."""
        return None if self.seconds is None else self.seconds * (1 if self.calls is None else self.calls)

    def failures(self) -> dict[str, int]:
        """The reasons of failed trials, and how many failed for each."""
        reasons = [trial.failure for trial in self.trials if trial.failure]
        return {reason: reasons.count(reason) for reason in dict.fromkeys(reasons)}


@dataclass(frozen=True)
class SearchReport:
    """A database of tuning."""

    name: str
    versions: str
    tasks: tuple[TaskReport, ...]
    roofline: Roofline


Report: TypeAlias = ProgramReport | SearchReport
