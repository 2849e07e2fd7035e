"""The cost of a plan on a machine: cycles of a core, and bytes that move between levels of memory.

`cost(work, target)` is the estimate by which default schedules, layouts of graphs and the tuner compare alternatives.
`Work` counts instructions and bytes; it refers to no IR, so that any pass can fill it in.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from weft.support.target import Target

_CYCLES: Final = {"operations": 0.5, "functions": 8.0, "loads": 0.5, "stores": 1.0}
"""Cycles of a core per vector instruction."""
_ISSUED: Final = 6.0
"""Instructions issued per cycle."""
_LATENCY: Final = 4.0
"""Cycles until a dependent instruction can use a result."""
_BYTES_OF_A_CYCLE: Final = (32.0, 16.0, 6.0)
"""Bytes per cycle from L2, L3 and memory."""
_LOOP_ENTRY: Final = 40.0
"""Cycles per execution of a loop: its last branch is mispredicted."""
_PAGE_MISS: Final = 8.0
"""Cycles per page whose translation comes from the second-level TLB."""
_WAKING: Final = 2e4
"""Cycles until other threads have started."""


@dataclass(frozen=True)
class Work:
    """Instructions that a nest executes, on all threads together, and bytes that it moves."""

    operations: float = 0.0
    """Additions, multiplications, comparisons and the like; a vector of several registers counts once for each."""
    functions: float = 0.0
    """Divisions and elementary functions."""
    loads: float = 0.0
    stores: float = 0.0
    iterations: float = 0.0
    """Iterations of loops that remain loops in the code, each with a comparison and a branch."""
    chained: float = 0.0
    """Length of the longest chain of dependent operations, such as the updates of one sum."""
    loop_entries: float = 0.0
    """Executions of innermost loops."""
    page_misses: float = 0.0
    """Pages whose translation the first-level TLB lacks."""
    moved: tuple[float, float, float] = (0.0, 0.0, 0.0)
    """Bytes from L2, L3 and memory."""
    threads: float = 1.0
    """Busy threads, on average."""


@dataclass(frozen=True)
class Cost:
    """An estimate: `cycles` of wall time, and the lower bounds that it is composed of, for one thread."""

    cycles: float
    moved: tuple[float, float, float]
    """Bytes from L2, L3 and memory."""
    arithmetic: float
    """Cycles of the arithmetic units."""
    loads: float
    """Cycles of the load ports."""
    stores: float
    """Cycles of the store ports."""
    issue: float
    """Cycles in which all instructions can be issued."""
    chain: float
    """Cycles of the longest chain of dependent operations."""
    transfer: float
    """Cycles in which `moved` arrives, without overlap of the levels."""


def cost(work: Work, target: Target) -> Cost:
    """The cost of `work` on the CPU of `target`.

    The units of a core overlap by halves: cycles are half of the sum of their bounds, plus the entries of loops and the
    misses of pages. Adding the transfers of bytes did not improve the ranking of measured schedules
    (docs/decisions/0088-what-the-cost-model-learns.md).
    """
    instructions = work.operations + work.functions + work.loads + work.stores
    bounds = (
        _CYCLES["operations"] * work.operations + _CYCLES["functions"] * work.functions,
        _CYCLES["loads"] * work.loads,
        _CYCLES["stores"] * work.stores,
        (instructions + 2.0 * work.iterations) / _ISSUED,
        _LATENCY * work.chained,
    )
    cycles = sum(bounds) / 2.0 + _LOOP_ENTRY * work.loop_entries + _PAGE_MISS * work.page_misses
    if work.threads > 1:
        cycles = cycles / work.threads + _WAKING
    transfer = sum(count / rate for count, rate in zip(work.moved, _BYTES_OF_A_CYCLE, strict=True))
    return Cost(cycles, work.moved, *bounds, transfer)
