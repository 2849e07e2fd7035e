"""The data of a report, independent of its rendering."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from weft.runtime.kernel_report import KernelRow, MachinePeaks
from weft.support.trees import Tree


@dataclass(frozen=True)
class LoweringStage:
    name: str
    """The name of the pass, `input` before the first."""
    summary: str
    milliseconds: float
    parts: tuple[tuple[str, str], ...]
    """Symbol and text of each function and of each other operation of the module. Large constants are elided."""


@dataclass(frozen=True)
class BufferRow:
    """A buffer, and the bytes that loops move; None if unknown."""

    name: str
    type: str
    place: str
    """The memory scope of the buffer, and for low functions the loops around its allocation."""
    size: int | None
    """The size of the buffer in bytes."""
    loaded: int | None = None
    """Bytes of all loads."""
    stored: int | None = None
    from_caches: tuple[int, int, int] | None = None
    """Bytes from beyond L1, L2 and L3, by the cache model of the tuner, or None on GPUs."""


@dataclass(frozen=True)
class Position:
    """A scheduled function after a step, or as written."""

    name: str
    calls: tuple[str, ...]
    """The step, and the preceding queries, as calls of `weft.Schedule`."""
    trees: tuple[Tree, ...]
    buffers: tuple[BufferRow, ...]


@dataclass(frozen=True)
class ScheduleSteps:
    """The first position is the function as written."""

    title: str
    """The names of its functions."""
    origin: str
    """`in the file`, `default`, `tuned`, or the name of the space of a search."""
    positions: tuple[Position, ...]
    python: str
    ir: str
    failure: str = ""
    """The reason why a step was refused; positions end before it."""


@dataclass(frozen=True)
class GraphPicture:
    """A tree, and a picture if the graph is small enough."""

    name: str
    svg: str
    tree: Tree
    kernels: tuple[str, ...] = ()
    """For each box in order, the kernel that computes its operator, or an empty text if there is none. The list may be
    omitted."""


@dataclass(frozen=True)
class MemoryRow:
    function: str
    buffer: BufferRow


@dataclass(frozen=True)
class Roofline:
    rows: tuple[KernelRow, ...]
    peaks: MachinePeaks | None
    note: str
    """The source of bytes and peaks, or the reason why there are no peaks."""


@dataclass(frozen=True)
class ProgramReport:
    name: str
    target: str
    versions: str
    stages: tuple[LoweringStage, ...]
    trees: tuple[Tree, ...]
    """The functions at scheduling, or as given if none were scheduled."""
    schedules: tuple[ScheduleSteps, ...]
    before_fusion: tuple[GraphPicture, ...]
    after_fusion: tuple[GraphPicture, ...]
    memory: tuple[MemoryRow, ...]
    roofline: Roofline
    failure: str = ""
    """The error that ended the lowering; empty if it completed."""


@dataclass(frozen=True)
class TrialPoint:
    seconds: float | None
    origin: str
    failure: str


@dataclass(frozen=True)
class TaskReport:
    name: str
    key: str
    target: str
    machine: str
    flops: int
    calls: int | None
    """The number of calls in the given program; None without a program."""
    trials: tuple[TrialPoint, ...]
    """The trials, in the order of recording."""
    best: ScheduleSteps | None
    """The steps of the fastest schedule; None if nothing was measured."""
    problem: str = ""
    """The reason why the steps of the fastest schedule are missing or incomplete."""

    @property
    def seconds(self) -> float | None:
        return min((trial.seconds for trial in self.trials if trial.seconds is not None), default=None)

    @property
    def default_seconds(self) -> float | None:
        times = (t.seconds for t in self.trials if t.origin == "default" and t.seconds is not None)
        return next(times, None)

    @property
    def weight(self) -> float | None:
        """Seconds per run of the program with the fastest schedule; without a program, of one call."""
        return None if self.seconds is None else self.seconds * (1 if self.calls is None else self.calls)

    def failures(self) -> dict[str, int]:
        reasons = [trial.failure for trial in self.trials if trial.failure]
        return {reason: reasons.count(reason) for reason in dict.fromkeys(reasons)}


@dataclass(frozen=True)
class SearchReport:
    name: str
    versions: str
    tasks: tuple[TaskReport, ...]
    roofline: Roofline


Report: TypeAlias = ProgramReport | SearchReport
