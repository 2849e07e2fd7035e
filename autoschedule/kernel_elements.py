"""Default kernels with one result per thread: elementwise blocks, windows, convolutions, all other blocks."""

from __future__ import annotations

from dataclasses import dataclass

from weft.analysis.block_patterns import pattern_of
from weft.autoschedule.contraction import fuse_consumers
from weft.autoschedule.kernels import BLOCK, THREAD, cut_for_blocks, total_of
from weft.autoschedule.rules import op_of
from weft.dialects.low_kernel import BLOCK_AXES
from weft.dialects.tir_kinds import IterKind
from weft.schedule.recording import BlockHandle, LoopHandle
from weft.schedule.schedule import Schedule
from weft.support.target import Target


class ElementsRule:
    """The spatial loops become one, and its iterations threads; neighbouring threads write neighbouring elements.

    A reduction runs within a thread, in a register, and elementwise consumers are computed on its way out. Not
    applicable where the results are not proved to be independent, and to reductions whose elements are found by
    divisions by extents that only calls tell.
    """

    name = "a result for each thread"

    def apply(self, sch: Schedule, block: BlockHandle, target: Target) -> bool:
        spatial, reduced = _loops(sch, block)
        if not spatial and not reduced:
            return False  # a block in no loop is a kernel of one thread as it is
        if not spatial:
            sch.bind(sch.add_unit_loop(reduced[0]), THREAD)
            return True
        if reduced and len(spatial) > 1 and total_of(sch, spatial[1:]) is None:
            return False
        if IterKind.REDUCE in op_of(sch, block).kinds[: len(spatial)]:
            sch.reorder(*spatial, *reduced)
        write = _register(sch, block) if reduced else None
        outer, thread = cut_for_blocks(sch, spatial, target)
        _close(sch, block, write, thread, reduced)
        sch.bind(outer, BLOCK)
        sch.bind(thread, THREAD)
        return True


@dataclass(frozen=True)
class InnerLoopsRule:
    """The three innermost spatial loops go to threads and blocks of threads; others run within a thread.

    For blocks of which it is not proved that results stay independent when all loops are one: that takes products of
    extents which only calls tell. Reductions run `in_register` as in `ElementsRule`, or in the memory of the result.
    """

    in_register: bool

    @property
    def name(self) -> str:
        return f"a result of the inner loops for each thread{', in a register' if self.in_register else ''}"

    def apply(self, sch: Schedule, block: BlockHandle, target: Target) -> bool:
        spatial, reduced = _loops(sch, block)
        if not spatial or (self.in_register and not reduced):
            return False
        *around, last = spatial[-len(BLOCK_AXES) :]
        inner = spatial[: -len(BLOCK_AXES)]
        write = _register(sch, block) if self.in_register and total_of(sch, inner) is not None else None
        outer, thread = cut_for_blocks(sch, [last], target)
        sch.reorder(*around, outer, thread, *inner, *reduced)
        _close(sch, block, write, thread, [*inner, *reduced])
        for loop, axis in zip((outer, *reversed(around)), BLOCK_AXES, strict=False):
            sch.bind(loop, axis)
        sch.bind(thread, THREAD)
        return True


def _loops(sch: Schedule, block: BlockHandle) -> tuple[list[LoopHandle], list[LoopHandle]]:
    """The spatial loops of a plain block, and those of its reduction."""
    pairs = list(zip(sch.get_loops(block), op_of(sch, block).kinds, strict=True))
    spatial = [loop for loop, kind in pairs if kind is IterKind.SPATIAL]
    return spatial, [loop for loop, kind in pairs if kind is IterKind.REDUCE]


def _register(sch: Schedule, block: BlockHandle) -> BlockHandle | None:
    """The block that copies a result out of the register that it is reduced in, with what is computed from it; None for
    several results at once."""
    if len(pattern_of(op_of(sch, block)).writes) != 1:
        return None
    write = sch.cache_write(block, 0, "local")
    fuse_consumers(sch, write)
    return write


def _close(
    sch: Schedule, block: BlockHandle, write: BlockHandle | None, thread: LoopHandle, inner: list[LoopHandle]
) -> None:
    """Let each thread start a reduction before the loops inside of it, and copy out what it has behind them."""
    if write is not None:
        sch.reverse_compute_at(write, thread)
        sch.decompose_reduction(block, inner[0])
