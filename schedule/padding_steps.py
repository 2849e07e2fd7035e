"""The methods of a schedule on padding and windows."""

from __future__ import annotations

from weft.dialects import sched
from weft.schedule.recording import BlockHandle, LoopHandle, Recorder


class PaddingSteps(Recorder):
    """The methods of `Schedule` that pad, take padding apart, and keep what windows share."""

    def decompose_padding(self, block: BlockHandle | str, loop: LoopHandle) -> BlockHandle:
        """Fill with the constant of a border before `loop`, and copy the inside without a branch.

        Returns the block that fills. See `DecomposePadding`."""
        return self._blocks(sched.DecomposePaddingOp, [self._block(block), loop])[0]
