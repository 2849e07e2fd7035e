"""What rules of the default schedule share: their interface, handles, loops, threads, index maps."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from math import prod
from typing import Final, Protocol

from weft.analysis.block_patterns import BlockPattern
from weft.analysis.index import Index
from weft.analysis.structure import holds_one_nest
from weft.autoschedule.machine import pays_threads
from weft.dialects.tir import BlockOp, ForOp
from weft.dialects.tir_kinds import IterKind, LoopKind
from weft.schedule.recording import BlockHandle, LoopHandle
from weft.schedule.schedule import Schedule
from weft.support.errors import InternalError
from weft.support.target import Target


class Rule(Protocol):
    """Schedules one kind of block, with what it fuses into its loops."""

    @property
    def name(self) -> str:
        """What documents and messages call the rule."""
        ...

    def apply(self, sch: Schedule, block: BlockHandle, target: Target) -> bool:
        """Schedule `block`, which is plain (`analysis.structure`), through the methods of `sch`.

        Returns False where the rule has nothing to say. A `ScheduleError` on the way means the same: all that
        the rule did to the schedule is undone then, so a rule may try what it cannot prove. The rule reads what the
        block computes (`analysis.block_patterns`), never what it is called.
        """
        ...


def loop_of(sch: Schedule, handle: LoopHandle) -> ForOp:
    """The loop that a handle stands for now."""
    loop = sch.get(handle)
    if not isinstance(loop, ForOp):
        raise InternalError(f"a loop handle stands for {loop.name}")
    return loop


def extent_of(sch: Schedule, handle: LoopHandle) -> int | None:
    """The extent of a loop; None when it is known at run time only."""
    extent = loop_of(sch, handle).extent
    return extent if isinstance(extent, int) else None


def op_of(sch: Schedule, handle: BlockHandle) -> BlockOp:
    """The block that a handle stands for now."""
    block = sch.get(handle)
    if not isinstance(block, BlockOp):
        raise InternalError(f"a block handle stands for {block.name}")
    return block


def product(extents: Iterable[int | None]) -> int | None:
    """The product of extents; None when one is known at run time only."""
    known = list(extents)
    numbers = [extent for extent in known if extent is not None]
    return prod(numbers) if len(numbers) == len(known) else None


def total_of(sch: Schedule, loops: Sequence[LoopHandle]) -> int | None:
    """The number of iterations of nested loops together; None when it is known at run time only."""
    return product(extent_of(sch, loop) for loop in loops)


def fused(sch: Schedule, loops: Sequence[LoopHandle]) -> LoopHandle:
    """Nested loops as one."""
    return sch.fuse(*loops) if len(loops) > 1 else loops[0]


PARTS_OF_A_THREAD: Final = 4
"""Iterations for each thread that leave none of them idle for long."""


def share_among_threads(sch: Schedule, block: BlockHandle, patterns: Iterable[BlockPattern], target: Target) -> bool:
    """Run the outermost loops around a block on several threads, if `patterns`, what runs there, is worth it: as many
    of them, fused, as give every thread something to do. Says whether it did."""
    if not pays_threads(patterns, target):
        return False
    loops = _outer_loops(sch, block)
    wanted = target.num_threads * PARTS_OF_A_THREAD
    count, total = 0, 1
    while count < len(loops) and total < wanted:
        extent = extent_of(sch, loops[count])
        total = wanted if extent is None else total * extent
        count += 1
    if count == 0 or total < 2:
        return False
    sch.parallel(fused(sch, loops[:count]))
    return True


def _outer_loops(sch: Schedule, handle: BlockHandle) -> Sequence[LoopHandle]:
    """The serial loops around a block, outermost first, each the only thing in the one before, over which no reduction
    runs."""
    block = op_of(sch, handle)
    reducing = _reducing(block)
    found: list[LoopHandle] = []
    for handle_ in sch.get_loops(handle):
        loop = loop_of(sch, handle_)
        if loop.kind.data is not LoopKind.SERIAL or loop.induction_variable in reducing:
            break
        found.append(handle_)
        if not holds_one_nest(loop):
            break
    return found


def _reducing(block: BlockOp) -> set[object]:
    """The loop variables that a reduce iterator is computed from."""
    bindings = Index.of_map(block.bindings.data, block.binding_operands)
    pairs = zip(block.kinds, bindings, strict=True)
    return {value for kind, binding in pairs if kind is IterKind.REDUCE for value in binding.sources()}


def panels(at: int, width: int) -> Callable[..., tuple[int, ...]]:
    """A map that makes two indices of the one at `at`: the panel, and last the place in it."""

    def split(*indices: int) -> tuple[int, ...]:
        return (*indices[:at], indices[at] // width, *indices[at + 1 :], indices[at] % width)

    return split


def moved_last(at: int) -> Callable[..., tuple[int, ...]]:
    """A map that puts an index behind the others."""

    def moved(*indices: int) -> tuple[int, ...]:
        return (*indices[:at], *indices[at + 1 :], indices[at])

    return moved
