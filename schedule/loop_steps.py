"""The methods of a schedule that work on loops, and notes on loops and blocks."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import StringAttr

from weft.dialects import sched
from weft.passes.schedule.annotations import Note, attribute_of
from weft.schedule.recording import BlockHandle, LoopHandle, Recorder, integers


class LoopSteps(Recorder):
    """The loop methods of `Schedule`."""

    def split(self, loop: LoopHandle, factors: Sequence[int | None]) -> list[LoopHandle]:
        """Split a loop into `len(factors)` loops; None (at most one) is inferred. See `Split`."""
        return self._loops(sched.SplitOp, [loop], {"factors": integers([f or 0 for f in factors])})

    def fuse(self, *loops: LoopHandle) -> LoopHandle:
        """Fuse nested loops, outermost first, into one. See `Fuse`."""
        return self._loops(sched.FuseOp, loops)[0]

    def reorder(self, *loops: LoopHandle) -> None:
        """Put loops of one chain into the given order. See `Reorder`."""
        self._run(sched.ReorderOp, loops)

    def tile(self, *loops: LoopHandle, factors: Sequence[int]) -> list[LoopHandle]:
        """Split each loop of a perfect nest by its factor; returns the outer loops, then the tile loops. See `Tile`."""
        return self._loops(sched.TileOp, loops, {"factors": integers(factors)})

    def parallel(self, loop: LoopHandle) -> None:
        """Run the iterations on several threads. See `Parallel`."""
        self._run(sched.ParallelOp, [loop])

    def vectorize(self, loop: LoopHandle) -> None:
        """Turn the iterations into vector lanes. See `Vectorize`."""
        self._run(sched.VectorizeOp, [loop])

    def unroll(self, loop: LoopHandle) -> None:
        """Repeat the body at emission. See `Unroll`."""
        self._run(sched.UnrollOp, [loop])

    def bind(self, loop: LoopHandle, thread_axis: str) -> None:
        """Make each iteration a thread (`"threadIdx.x"`) or block of threads (`"blockIdx.x"`). See `Bind`."""
        self._run(sched.BindOp, [loop], {"thread_axis": StringAttr(thread_axis)})

    def merge(self, *loops: LoopHandle) -> LoopHandle:
        """Make loops of equal extent that follow each other one. See `Merge`."""
        return self._loops(sched.MergeOp, loops)[0]

    def loop_partition(self, loop: LoopHandle, factors: Sequence[int | None]) -> list[LoopHandle]:
        """Cut a loop into loops that follow each other, of the given extents; None (at most one) is inferred. See
        `LoopPartition`."""
        return self._loops(sched.LoopPartitionOp, [loop], {"factors": integers([f or 0 for f in factors])})

    def add_unit_loop(self, block_or_loop: BlockHandle | LoopHandle | str) -> LoopHandle:
        """Put a loop of one iteration around a block or loop. See `AddUnitLoop`."""
        return self._loops(sched.AddUnitLoopOp, [self._target(block_or_loop)])[0]

    def reorder_block_iter_var(self, block: BlockHandle | str, new_order: Sequence[int]) -> None:
        """Put the iterators of a block into another order. See `ReorderBlockIterVar`."""
        self._run(sched.ReorderBlockIterVarOp, [self._block(block)], {"new_order": integers(new_order)})

    def annotate(self, block_or_loop: BlockHandle | LoopHandle | str, ann_key: str, ann_val: Note) -> None:
        """Note something on a block or loop. See `Annotate`."""
        self._run(
            sched.AnnotateOp,
            [self._target(block_or_loop)],
            {"key": StringAttr(ann_key), "value": attribute_of(ann_val)},
        )

    def unannotate(self, block_or_loop: BlockHandle | LoopHandle | str, ann_key: str) -> None:
        """Take a note off a block or loop. See `Unannotate`."""
        self._run(sched.UnannotateOp, [self._target(block_or_loop)], {"key": StringAttr(ann_key)})

    def _target(self, block_or_loop: BlockHandle | LoopHandle | str) -> BlockHandle | LoopHandle:
        return block_or_loop if isinstance(block_or_loop, LoopHandle) else self._block(block_or_loop)
