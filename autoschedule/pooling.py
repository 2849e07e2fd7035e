"""Default schedule of pooling of images whose rows are contiguous."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from xdsl.ir import BlockArgument

from weft.analysis.block_patterns import BlockPattern, Operand, PatternKind
from weft.analysis.block_scopes import buffers_read
from weft.autoschedule.executor import planned
from weft.autoschedule.inlining import producing
from weft.autoschedule.nests import reduces_alike, vector_iterator
from weft.autoschedule.rules import lanes_for
from weft.autoschedule.tile_sizes import channels_together, strip_rows
from weft.dialects.element_types import bytes_of
from weft.plans import fitted
from weft.plans.decisions import Decisions
from weft.plans.tile_plan import CopyLoops, Loop, LoopSplit, MadeBy, ResultCopy, Staged, TilePlan
from weft.support.target import Target


@planned()
def pooling(pattern: BlockPattern, target: Target, decisions: Decisions) -> TilePlan | None:
    """Reduce small windows in registers, with neighbouring results in lanes. The border is added to a few rows at a
    time, so that windows read it from L1.

    ```
    for channel: for some rows: pad the data that they need
      for row: for columns of a few vectors:
        tile = neutral; for window: tile[x] = combine(tile[x], data[x * stride + window]); out = epilogue(tile)
    ```
    In images of symbolic extents the border is not copied: rows are inside columns, some channels inside of both, and
    tiles at the border are masked (`TilePlan.interior`). Not applicable to windows that are not along the rows, as
    when lanes are channels.
    """
    if pattern.kind is not PatternKind.WINDOW or not reduces_alike(pattern):
        return None
    column = vector_iterator(pattern, 0)
    extents = [pattern.extent_of(v) for v in pattern.block.iter_vars]
    windows = [read for read in pattern.reads if column is not None and _runs_along(pattern, read, column)]
    if column is None or len(windows) != 1 or len(pattern.writes) != 1:
        return None
    if any(pattern.extent_of(v) is None for v in pattern.reduced):
        return None
    if not decisions.decide(True):
        return None
    (data,) = windows
    lanes, columns = lanes_for(pattern, target), extents[column.index]
    is_padded = producing(pattern.block, data.buffer) is not None
    others = [v for v in pattern.spatial if v is not column]
    outer: list[Loop] = [(v.index,) for v in others]
    splits: list[LoopSplit] = []
    row = next((v for v in reversed(others) if _runs_along(pattern, data, v)), None)
    is_symbolic = any(pattern.extent_of(v) is None and _runs_along(pattern, data, v) for v in pattern.spatial)
    piece: Loop | None = None
    inlines = is_symbolic or decisions.decide(_reads_border_in_place(pattern, data, column))
    if is_padded and row is not None and not inlines:
        extent = extents[row.index] or fitted.SYMBOLIC_PIXELS
        rows = decisions.size(strip_rows(extent, _most_rows(data, row, target), 1, 1), extent)
        splits.append(LoopSplit((row.index,), (None, rows)))
        piece = (row.index, 0)
        outer[others.index(row) : others.index(row) + 1] = splits[-1].parts
    vectors = 1 if is_symbolic else min(-(-(columns or 1) // lanes), fitted.ACCUMULATORS)
    splits.append(LoopSplit((column.index,), (None, lanes * vectors)))
    around, lane = splits[-1].parts
    outer.append(around)
    if is_symbolic:
        # Lane masks are computed once for all rows inside.
        inner = [v.index for v in others if _runs_along(pattern, data, v)]
        outer = [*(loop for loop in outer if loop[0] not in inner), *(loop for loop in outer if loop[0] in inner)]
    interior = outer[-1] if is_symbolic else None
    channels = [v.index for v in others if not _runs_along(pattern, data, v) and (extents[v.index] or 1) > 1]
    if is_symbolic and row is not None and channels:
        at = channels[-1]
        splits.append(LoopSplit((at,), (None, channels_together(extents[at] or 1, decisions))))
        outer[outer.index((at,))], inside = splits[-1].parts
        outer.append(inside)
    reduced: tuple[Loop, ...] = tuple((v.index,) for v in pattern.reduced)
    staged = Staged(
        buffers_read(pattern.block).index(data.buffer),
        piece,
        made_by=MadeBy.INLINED_PRODUCER if inlines else MadeBy.ONLY_PRODUCER,
        # Rows start at cache lines: fewer vectors span two.
        align=target.processor.line_bytes // bytes_of(data.element_type) if len(data.indices) > 1 else 0,
        loops=CopyLoops((None, lanes)),
    )
    is_ragged = (columns is None or columns % lanes != 0) and len(pattern.writes[0].indices) > 1
    return TilePlan(
        splits=tuple(splits),
        order=(*outer, *reduced, lane),
        staged=(staged,),
        result=ResultCopy(outer[-1], align=lanes if is_ragged else 0),
        start=reduced[0],
        unrolled=_unrolled(pattern, reduced),
        interior=interior,
    )


def _unrolled(pattern: BlockPattern, reduced: Sequence[Loop]) -> tuple[Loop, ...]:
    """The innermost loops over a window of at most `UNROLLED_POOL` elements."""
    inner = list(reduced)
    while prod(pattern.extent_of(pattern.block.iter_vars[loop[0]]) or 1 for loop in inner) > fitted.UNROLLED_POOL:
        inner.pop(0)
    return tuple(inner)


def _runs_along(pattern: BlockPattern, read: Operand, iterator: BlockArgument) -> bool:
    """Whether windows of several elements overlap or are adjacent along an iterator."""
    long = [v for v in pattern.reduced if (pattern.extent_of(v) or 0) > 1]
    return any(index.depends_on([iterator]) and index.depends_on(long) for index in read.indices)


def _reads_border_in_place(pattern: BlockPattern, data: Operand, column: BlockArgument) -> bool:
    """Whether the masked loads of a window are fewer than those of a copy with the border: windows have few elements,
    and lanes are consecutive."""
    elements = prod(pattern.extent_of(v) or 0 for v in pattern.reduced)
    is_consecutive = all(abs(index.coefficient(column)) <= 1 for index in data.indices)
    return is_consecutive and elements <= fitted.UNROLLED_WINDOW


def _most_rows(data: Operand, row: BlockArgument, target: Target) -> int:
    """Returns the number of rows of results whose padded data fit in a fraction of L1."""
    step = max((abs(index.coefficient(row)) for index in data.indices), default=1)
    columns = data.type.get_shape()[-1]
    size = (max(columns, 1) if columns >= 0 else step * fitted.SYMBOLIC_PIXELS) * bytes_of(data.element_type)
    return max(target.l1_bytes // (fitted.L1_PER_PADDED_ROWS * size * max(step, 1)), 1)
