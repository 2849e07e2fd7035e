"""Default schedule of windows along rows: pooling of images whose rows lie in memory."""

from __future__ import annotations

from math import prod
from typing import Final

from xdsl.ir import BlockArgument

from weft.analysis.block_patterns import Operand, PatternKind
from weft.autoschedule.inlining import fuse_consumers, producer_of
from weft.autoschedule.nests import Member, reduces_alike, vector_iterator
from weft.autoschedule.rules import LINE_BYTES, Sampled, lanes_for, pays_threads, share_among_threads
from weft.dialects.element_types import bytes_of
from weft.schedule.recording import BlockHandle, LoopHandle
from weft.schedule.schedule import Schedule
from weft.support.target import Target

_VECTORS: Final = 4
"""Vectors of results side by side, at most: enough operations in flight to hide that one takes several cycles."""
_UNROLLED: Final = 16
"""Elements of a window that is unrolled: results stay in registers."""
_PART_OF_CACHE: Final = 4
"""Which part of the first cache the rows of data fill that are padded at a time: what they are copied from, and the
results, come there, too."""


def pooling(sch: Schedule, block: BlockHandle, target: Target) -> bool:
    """Reductions of small windows, each lane one of neighbouring results, in registers. The border is added to a few
    rows at a time, so that windows read it from the first cache.

    ```
    for channel: for some rows: pad the data that they need
      for row: for columns of a few vectors:
        tile = neutral; for window: tile[x] = combine(tile[x], data[x * stride + window]); out = epilogue(tile)
    ```
    Not applicable where windows do not run along the rows, as where lanes are channels, and to large windows.
    """
    member = Member.of(sch, block)
    pattern = member.pattern
    if pattern.kind is not PatternKind.WINDOW or not reduces_alike(member):
        return False
    column = vector_iterator(member, 0)
    extents = [pattern.extent_of(v) for v in member.iterators]
    windows = [read for read in pattern.reads if column is not None and _runs_along(member, read, column)]
    if column is None or None in extents or len(windows) != 1 or len(pattern.writes) != 1:
        return False
    if prod(pattern.extent_of(v) or 0 for v in pattern.reduced) > _UNROLLED or not Sampled(sch).decide(True):
        return False
    _tile(sch, member, windows[0], column, target)
    share_among_threads(sch, block, pays_threads([pattern], target), target)
    return True


def _tile(sch: Schedule, member: Member, data: Operand, column: BlockArgument, target: Target) -> None:
    """The steps of the rule on a block that reads windows of `data`, with lanes along the iterator `column`."""
    block, pattern = member.handle, member.pattern
    lanes = lanes_for(pattern, target)
    columns = pattern.extent_of(column) or 1
    border = producer_of(sch, block, data.buffer)
    result = sch.cache_write(block, 0, "local")
    if columns % lanes and len(pattern.writes[0].indices) > 1:
        # Whole vectors: LLVM keeps no buffer in registers that is stored to under masks.
        sch.storage_align(block, 0, -2, lanes, 0)
    fuse_consumers(sch, result)
    if border is not None and len(data.indices) > 1:
        # Rows begin where lines of a cache do, so that fewer vectors lie across two of them.
        sch.storage_align(border, 0, -2, LINE_BYTES // bytes_of(data.element_type), 0)
    loops = member.loops(sch)
    others = [v for v in pattern.spatial if v is not column]
    outer = [loops[v.index] for v in others]
    row = next((v for v in reversed(others) if _runs_along(member, data, v)), None)
    piece: LoopHandle | None = None
    if border is not None and row is not None:
        rows = Sampled(sch).size(_rows(data, row, target), pattern.extent_of(row) or 1)
        at = others.index(row)
        piece, outer[at] = sch.split(outer[at], factors=[None, rows])
        outer.insert(at, piece)
    width = lanes * min(-(-columns // lanes), _VECTORS)
    around, lane = sch.split(loops[column.index], factors=[None, width])
    reduced = [loops[v.index] for v in pattern.reduced]
    sch.reorder(*outer, around, *reduced, lane)
    if border is not None:
        if piece is not None:
            sch.compute_at(border, piece)
        sch.vectorize(sch.split(sch.get_loops(border)[-1], factors=[None, lanes])[1])
    sch.reverse_compute_at(result, around)
    init = sch.decompose_reduction(block, reduced[0])
    for part in (block, init, result):
        sch.vectorize(sch.get_loops(part)[-1])
    for loop in reduced:
        sch.unroll(loop)


def _runs_along(member: Member, read: Operand, iterator: BlockArgument) -> bool:
    """Whether windows of several elements overlap or follow each other along an iterator."""
    long = [v for v in member.pattern.reduced if (member.pattern.extent_of(v) or 0) > 1]
    return any(index.depends_on([iterator]) and index.depends_on(long) for index in read.indices)


def _rows(data: Operand, row: BlockArgument, target: Target) -> int:
    """How many rows of results are computed from as much data as may be padded at a time."""
    step = max((abs(index.coefficient(row)) for index in data.indices), default=1)
    size = max(data.type.get_shape()[-1], 1) * bytes_of(data.element_type)
    return max(target.l1_bytes // (_PART_OF_CACHE * size * max(step, 1)), 1)
