"""Default schedule of convolutions that read their input in place."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from xdsl.dialects import arith
from xdsl.dialects.builtin import i1

from weft.analysis.block_patterns import BlockPattern, pattern_of
from weft.autoschedule.executor import planned
from weft.autoschedule.inlining import producing
from weft.autoschedule.rules import PARTS_OF_A_THREAD, lanes_for, pays_threads
from weft.autoschedule.tile_sizes import (
    RegisterTile,
    best_tile_for,
    channels_together,
    pieces_for,
    row_tile,
    tiles_for,
)
from weft.dialects.element_types import bytes_of
from weft.plans import fitted
from weft.plans.decisions import Decisions
from weft.plans.roles import ConvolutionRoles, convolution_roles, group_of
from weft.plans.tile_plan import (
    CopyLoops,
    Loop,
    LoopSplit,
    MadeBy,
    ResultCopy,
    Staged,
    TilePlan,
    panels,
    split_by_residue,
)
from weft.schedule.recording import BlockHandle
from weft.schedule.schedule import Schedule
from weft.support.target import Target

_MUCH_UNROLLED: Final = 2
"""Factor of these limits up to which a search may unroll."""


def split_groups(sch: Schedule, block: BlockHandle, pattern: BlockPattern) -> bool:
    """Make groups of channels a separate iterator. Returns whether there are any."""
    found = group_of(pattern)
    if found is None:
        return False
    at, size = found

    def grouped(*indices: int) -> tuple[int, ...]:
        return (*indices[:at], indices[at] // size, indices[at] % size, *indices[at + 1 :])

    sch.transform_block_layout(block, grouped)
    return True


@planned(split_groups)
def direct_convolution(pattern: BlockPattern, target: Target, decisions: Decisions) -> TilePlan | None:
    """Keep results in register tiles; compute vectors of neighbouring results from vectors of data (or of the kernel,
    if channels are last) and single elements of the other factor. The border is added to a few rows at a time.

    ```
    for some rows: pad the data that they need
      for channels of a tile: for row: for columns of a tile:
        tile = 0; for window, channel: tile[c, x] += kernel[c] * data[x]; out = epilogue(tile)
    ```
    For one window of one channel per result, a tile is a vector of each of several rows, and windows are traversed
    column by column, so that data shared by rows are loaded once. Unless columns have a stride, tiles at the edges then
    have conditions instead of a copied border.

    Borders of symbolic images are not copied either. Tiles are one vector wide, rows (and some channels, for one window
    of one channel) are inside columns, so that lane masks are computed once for them, and tiles at the border are
    masked (`TilePlan.interior`).

    Not applicable unless results are consecutive along an iterator with constant strides in both factors, or if the
    sums of one pixel run over consecutive elements of both factors but vectors of the kernel would be gathered.
    """
    roles = convolution_roles(pattern)
    if roles is None or not roles.is_known:
        return None
    step, lanes = roles.stride(roles.data, roles.column), lanes_for(pattern, target)
    if step is None or roles.stride(roles.kernel, roles.column) is None or _sums_in_order(roles):
        return None
    border = producing(pattern.block, roles.data.buffer)
    is_inlined = border is not None and _inlines(roles, pattern_of(border)) and decisions.decide(True)
    row = _row(roles)
    tile = _tile(roles, row, lanes, target, decisions)
    row = None if roles.sums_one_window and tile.rows == 1 else row
    has_interior = roles.has_symbolic_space and roles.column in roles.pixels and (is_inlined or border is None)
    slow = None if is_inlined or has_interior else next(iter(roles.windowed), None)
    column = roles.column
    outer: dict[int, Loop] = {at: (at,) for at in range(len(roles.extents)) if at not in roles.reduced}
    splits = [LoopSplit((column,), (None, tile.vectors, tile.lanes))]
    outer[column], vectors, lane = splits[0].parts
    rows: list[Loop] = []
    if row is not None:
        splits.append(LoopSplit((row,), (None, tile.rows)))
        outer[row], inner = splits[-1].parts
        rows.append(inner)
    channels: list[Loop] = []
    alike = [at for at in roles.shared if at not in roles.symbolic and roles.extents[at] > 1]
    if has_interior and rows and roles.sums_one_window and alike:
        at = max(alike, key=lambda at: (roles.extents[at], at))
        splits.append(LoopSplit((at,), (None, channels_together(roles.extents[at], decisions))))
        outer[at], inner = splits[-1].parts
        channels.append(inner)
    piece: Loop | None = None
    if slow is not None:
        threads = target.num_threads if pays_threads([pattern], target) else 1
        pieces = _pieces(roles, slow, row, tile, threads, target, decisions)
        steps = -(-roles.extents[slow] // (tile.rows if slow == row else 1))
        splits.append(LoopSplit(outer[slow], (None, -(-steps // pieces)) if slow in roles.symbolic else (pieces, None)))
        piece, outer[slow] = splits[-1].parts
    order = [outer.pop(at) for at in _outermost(roles, next(iter(roles.windowed), None), row)]
    order += [] if piece is None else [piece]
    order += [outer.pop(at) for at in roles.channels if at != column]
    last = outer.pop(column)
    rest = [outer[at] for at in sorted(outer)]
    # Lane masks are computed once for all rows inside.
    order += [last, *rest] if has_interior else [*rest, last]
    interior = order[-1] if has_interior else None
    order += channels
    reduced: list[Loop] = [(at,) for at in _window(roles)]
    # Elements of the shorter side stay in registers.
    sides = [*rows, vectors] if tile.rows >= tile.vectors else [vectors, *rows]
    # Split by the residue modulo the stride, so that lanes are consecutive.
    is_parted = step > 1 and not has_interior and roles.data.indices[-1].coefficient(roles.iterators[column]) == step
    data = Staged(
        roles.data_position,
        piece,
        made_by=MadeBy.INLINED_PRODUCER if is_inlined else MadeBy.ONLY_PRODUCER,
        layout=split_by_residue(len(roles.data.indices), step) if is_parted else (),
        # Rows start at cache lines: fewer vectors span two.
        align=tile.lanes if is_parted else 0,
        loops=CopyLoops((None, tile.lanes)),
        shared=True,
    )
    is_ragged = len(roles.result.indices) > 1 and (column in roles.symbolic or roles.extents[column] % tile.lanes != 0)
    return TilePlan(
        splits=tuple(splits),
        order=(*order, *reduced, *sides, lane),
        staged=(data, *_weights(roles, tile)),
        result=ResultCopy(order[-1], reindexed=roles.is_grouped, align=tile.lanes if is_ragged else 0),
        start=reduced[0],
        registers=len(sides) + 1,
        lanes=tile.lanes,
        unrolled=tuple(reduced[::-1][: _unrolled(roles, tile, decisions)]),
        interior=interior,
    )


def _weights(roles: ConvolutionRoles, tile: RegisterTile) -> tuple[Staged, ...]:
    """A copy of constant weights with consecutive lanes; none if they are, or if lanes are pixels."""
    column = roles.column
    is_needed = column in roles.channels and roles.kernel_is_constant and roles.stride(roles.kernel, column) != 1
    at = roles.kernel.dimensions_of(roles.iterators[column])
    if not is_needed or len(at) != 1 or roles.extents[column] % tile.columns:
        return ()
    layout = panels(len(roles.kernel.indices), at[0], tile.columns)
    return (Staged(1 - roles.data_position, layout=layout, loops=CopyLoops((None, tile.lanes)), shared=True),)


def _sums_in_order(roles: ConvolutionRoles) -> bool:
    """Whether lanes would be gathered although both factors are consecutive along the reduction."""
    if roles.column not in roles.channels or roles.stride(roles.kernel, roles.column) == 1:
        return False
    step = 1
    for at in reversed([at for at in roles.reduced if roles.extents[at] > 1]):
        if roles.stride(roles.data, at) != step or roles.stride(roles.kernel, at) != step:
            return False
        step *= roles.extents[at]
    return step > 1


def _tile(roles: ConvolutionRoles, row: int | None, lanes: int, target: Target, decisions: Decisions) -> RegisterTile:
    columns = roles.known(roles.column)
    rows = 1 if row is None else roles.extents[row]
    if not roles.sums_one_window:
        tiles = tiles_for(rows, columns, lanes, target.vector_registers)
        if roles.has_symbolic_space and roles.column in roles.pixels:
            tiles = [tile for tile in tiles if tile.vectors == 1]
        return decisions.tile(tiles, lambda some: best_tile_for(some, rows, columns, target.processor))
    row_bytes = roles.extents[roles.column] * bytes_of(roles.data.element_type)
    tile = row_tile(rows, columns, lanes, target.vector_registers, row_bytes, target.processor)
    return tile if tile.rows == 1 else replace(tile, rows=decisions.size(tile.rows, min(rows, 2 * tile.rows)))


def _pieces(
    roles: ConvolutionRoles,
    slow: int,
    row: int | None,
    tile: RegisterTile,
    threads: int,
    target: Target,
    decisions: Decisions,
) -> int:
    cache = target.l2_bytes // 2 if roles.channels else target.l1_bytes // 2
    least = -(-_slab_bytes(roles) // max(cache, 1))
    wanted = PARTS_OF_A_THREAD * threads
    if threads > 1 and roles.size(tuple(_outermost(roles, slow, row))) < wanted:
        least = max(least, wanted)
    steps = -(-roles.extents[slow] // (tile.rows if slow == row else 1))
    return decisions.size(pieces_for(steps, min(least, max(steps // fitted.PADDED_STEPS, 1)), threads), steps)


def _inlines(roles: ConvolutionRoles, border: BlockPattern) -> bool:
    """Whether a padded copy would cost as much as the sums (one window of one channel per result, along rows in memory
    order), or extents are symbolic, so that interior tiles read no border."""
    moves_only = all(isinstance(op, arith.SelectOp) or op.results[0].type == i1 for op in border.computing)
    if roles.has_symbolic_space:
        return moves_only and roles.column in roles.pixels
    return moves_only and roles.sums_one_window and roles.stride(roles.data, roles.column) == 1


def _row(roles: ConvolutionRoles) -> int | None:
    """The iterator along which vectors are reused: one that they do not depend on, else one along which their
    multipliers are shared."""
    in_data, in_kernel = (roles.column in places for places in (roles.pixels, roles.channels))
    candidates = roles.channels if in_data else roles.pixels if in_kernel else ()
    free = [at for at in candidates if roles.extents[at] > 1]
    if free:
        return max(free, key=lambda at: (roles.extents[at], at)) if in_data else free[-1]
    others = [at for at in roles.pixels if at != roles.column and roles.extents[at] > 1]
    return others[-1] if others else None


def _slab_bytes(roles: ConvolutionRoles) -> int:
    """Approximate data per value of the shared iterators and of the batch."""
    spanned = [roles.iterators[at] for at in (*roles.windowed, *({roles.column} & {*roles.pixels}))]
    size = bytes_of(roles.data.element_type)
    for extent, index in zip(roles.data_extents(), roles.data.indices, strict=True):
        if index.depends_on(spanned):
            size *= extent
        else:
            size *= roles.size(tuple(at for at in roles.reduced if index.depends_on([roles.iterators[at]])))
    return size


def _window(roles: ConvolutionRoles) -> list[int]:
    """Reduction iterators, column by column if rows share elements of their windows."""
    if not roles.sums_one_window:
        return list(roles.reduced)
    column = [index for index in roles.data.indices if index.depends_on([roles.iterators[roles.column]])]
    return sorted(roles.reduced, key=lambda at: not any(i.depends_on([roles.iterators[at]]) for i in column))


def _unrolled(roles: ConvolutionRoles, tile: RegisterTile, decisions: Decisions) -> int:
    body = tile.rows * tile.vectors
    most = fitted.UNROLLED_SHARED_ROWS if roles.sums_one_window else fitted.UNROLLED_PRODUCTS
    able = count = 0
    for at in reversed(_window(roles)):
        body *= roles.extents[at]
        if body > _MUCH_UNROLLED * most:
            break
        able += 1
        count += body <= most
    return decisions.choose(range(able + 1), count)


def _outermost(roles: ConvolutionRoles, slow: int | None, row: int | None) -> list[int]:
    """Iterators outside the pieces that are padded separately: groups and batches."""
    batch = [at for at in roles.pixels if slow is not None and at < slow]
    return sorted(at for at in (*roles.shared, *batch) if at not in (row, roles.column))
