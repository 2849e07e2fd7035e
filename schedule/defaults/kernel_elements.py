"""The rule for kernels whose threads compute a result each: elementwise blocks, windows, convolutions, what is left."""

from __future__ import annotations

from collections.abc import Sequence

from weft.analysis.block_patterns import pattern_of
from weft.dialects.low_kernel import BLOCK_AXES
from weft.dialects.tir_kinds import IterKind
from weft.schedule.defaults.contraction import fuse_consumers
from weft.schedule.defaults.kernels import BLOCK, THREAD, cut_for_blocks, total_of
from weft.schedule.defaults.rules import op_of
from weft.schedule.recording import BlockHandle, LoopHandle
from weft.schedule.schedule import Schedule
from weft.support.target import Target


class ElementsRule:
    """The spatial loops become one, and its iterations threads; neighbouring threads write neighbouring elements.

    A reduction runs within a thread, in a register where the size of what it writes lets it, and elementwise consumers
    are computed on its way out. Not applicable where the results are not proved to be independent.
    """

    name = "a result for each thread"

    def apply(self, sch: Schedule, block: BlockHandle, target: Target) -> bool:
        spatial, reduced = _loops(sch, block)
        if not spatial and not reduced:
            return False  # a block in no loop is a kernel of one thread as it is
        if not spatial:
            sch.bind(sch.add_unit_loop(reduced[0]), THREAD)
            return True
        if IterKind.REDUCE in op_of(sch, block).kinds[: len(spatial)]:
            sch.reorder(*spatial, *reduced)
        cached = bool(reduced) and len(pattern_of(op_of(sch, block)).writes) == 1 and _is_known(sch, spatial)
        write = sch.cache_write(block, 0, "local") if cached else None
        if write is not None:
            fuse_consumers(sch, write)
        outer, thread = cut_for_blocks(sch, spatial, target)
        if write is not None:
            sch.reverse_compute_at(write, thread)
            sch.decompose_reduction(block, reduced[0])
        sch.bind(outer, BLOCK)
        sch.bind(thread, THREAD)
        return True


class InnerLoopsRule:
    """The three innermost spatial loops go to threads and blocks of threads; others run within a thread.

    For blocks of which it is not proved that results stay independent when all loops are one: that takes products of
    extents which only calls tell.
    """

    name = "a result of the inner loops for each thread"

    def apply(self, sch: Schedule, block: BlockHandle, target: Target) -> bool:
        spatial, reduced = _loops(sch, block)
        if not spatial:
            return False
        *around, last = spatial[-len(BLOCK_AXES) :]
        outer, thread = cut_for_blocks(sch, [last], target)
        sch.reorder(*around, outer, thread, *spatial[: -len(BLOCK_AXES)], *reduced)
        for loop, axis in zip((outer, *reversed(around)), BLOCK_AXES, strict=False):
            sch.bind(loop, axis)
        sch.bind(thread, THREAD)
        return True


def _loops(sch: Schedule, block: BlockHandle) -> tuple[list[LoopHandle], list[LoopHandle]]:
    """The spatial loops of a plain block, and those of its reduction."""
    pairs = list(zip(sch.get_loops(block), op_of(sch, block).kinds, strict=True))
    spatial = [loop for loop, kind in pairs if kind is IterKind.SPATIAL]
    return spatial, [loop for loop, kind in pairs if kind is IterKind.REDUCE]


def _is_known(sch: Schedule, spatial: Sequence[LoopHandle]) -> bool:
    """Whether which element a thread computes is no matter of divisions by numbers that only calls tell: what lies in a
    kernel has a size that is known."""
    return len(spatial) == 1 or total_of(sch, spatial[1:]) is not None
