"""The interface of a rule of the default schedule."""

from __future__ import annotations

from typing import Protocol

from weft.dialects.tir import BlockOp, ForOp
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
        """Schedule `block`, which is plain (`analysis.plain_nests`), through the methods of `sch`.

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
