"""`Schedule` methods on padding and windows."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import IntegerAttr, i64

from weft.analysis.structure import find_block
from weft.dialects import sched
from weft.passes.schedule.padding import DecomposePadding
from weft.schedule.neutral_options import step_methods
from weft.schedule.recording import BlockHandle, LoopHandle, Recorder, integers
from weft.support.errors import ScheduleError


@step_methods
class PaddingSteps(Recorder):
    """The methods of `Schedule` that pad, take padding apart, and keep what windows share."""

    def pad_einsum(self, block: BlockHandle | str, padding: Sequence[int]) -> None:
        """Let each iterator of a block run up to a multiple of its padding, over padded copies. See `PadEinsum`."""
        self._run(sched.PadEinsumOp, [self._block(block)], {"padding": integers(padding)})

    def decompose_padding(self, block: BlockHandle | str, loop: LoopHandle) -> BlockHandle:
        """Fill with the constant of a border before `loop`, and copy the inside without a branch.

        Returns the block that fills. See `DecomposePadding`."""
        return self._blocks(sched.DecomposePaddingOp, [self._block(block), loop])[0]

    def can_decompose_padding(self, block: BlockHandle | str, loop: LoopHandle) -> bool:
        """Whether `decompose_padding` accepts a block and a loop. Changes nothing, and is no step."""
        op = find_block(self.mod, block) if isinstance(block, str) else self._replay.block(block.value)
        try:
            DecomposePadding(op, self._replay.loop(loop.value)).plan()
        except ScheduleError:
            return False
        return True

    def rolling_buffer(self, block: BlockHandle | str, write_buffer_index: int | str) -> None:
        """Keep what the windows of neighbouring iterations share, in a circular buffer. See `RollingBuffer`."""
        handle = self._block(block)
        index = self._buffer_index(handle, write_buffer_index, reading=False)
        self._run(sched.RollingBufferOp, [handle], {"index": IntegerAttr(index, i64)})
