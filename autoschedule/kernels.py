"""Shared by the default kernels: the mapping of loops to blocks and threads."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Final

from weft.autoschedule.rules import extent_of
from weft.dialects.low_kernel import BLOCK_AXES
from weft.schedule.recording import LoopHandle
from weft.schedule.schedule import Schedule
from weft.support.target import Target

BLOCK: Final = "blockIdx.x"
THREAD: Final = "threadIdx.x"
_THREADS: Final = 256
"""Threads of a block: enough to hide that memory is slow, few enough that several blocks run on a processor."""
_WARP: Final = 32


def most_threads(target: Target) -> int:
    """How many threads a block has where there is work for all of them."""
    return _THREADS if target.gpu is None else min(_THREADS, target.gpu.max_threads_per_block)


def threads_for(work: int | None, target: Target) -> int:
    """How many threads share some steps: a power of two from a warp on, no more than there are steps; None is many."""
    threads = most_threads(target)
    while work is not None and threads > _WARP and threads > work:
        threads //= 2
    return threads


def fused(sch: Schedule, loops: Sequence[LoopHandle]) -> LoopHandle:
    """Nested loops as one."""
    return sch.fuse(*loops) if len(loops) > 1 else loops[0]


def total_of(sch: Schedule, loops: Sequence[LoopHandle]) -> int | None:
    """How many iterations nested loops have together; None when that is known at run time only."""
    extents = [extent_of(sch, loop) for loop in loops]
    known = [extent for extent in extents if extent is not None]
    return prod(known) if len(known) == len(extents) else None


def rows_to_blocks(sch: Schedule, rows: Sequence[LoopHandle]) -> bool:
    """An iteration of some nested loops for each block of threads; says whether there are few enough of them.

    Loops of known extents become one. Others are bound each: in which row a block is must not be a matter of divisions
    by numbers that only calls tell, for what lies in a kernel has a size that is known.
    """
    if total_of(sch, rows) is not None:
        sch.bind(fused(sch, rows), BLOCK)
        return True
    if len(rows) > len(BLOCK_AXES):
        return False
    for loop, axis in zip(reversed(rows), BLOCK_AXES, strict=False):
        sch.bind(loop, axis)
    return True


def to_threads(sch: Schedule, loops: Sequence[LoopHandle], threads: int) -> LoopHandle:
    """Nested loops shared among the threads of a block, neighbours next to each other; gives the loop over threads."""
    _, thread = sch.split(fused(sch, loops), factors=[None, threads])
    sch.bind(thread, THREAD)
    return thread


def to_threads_in_lanes(sch: Schedule, loops: Sequence[LoopHandle], threads: int, lanes: int) -> None:
    """Spread nested loops over the threads of a block, some neighbours at once for each."""
    _, thread, lane = sch.split(fused(sch, loops), factors=[None, threads, lanes])
    sch.bind(thread, THREAD)
    sch.vectorize(lane)


def cut_for_blocks(sch: Schedule, loops: Sequence[LoopHandle], target: Target) -> list[LoopHandle]:
    """Nested loops as one over blocks of threads and one over the threads of a block, an iteration a thread."""
    threads = threads_for(total_of(sch, loops), target)
    return sch.split(fused(sch, loops), factors=[None, threads])
