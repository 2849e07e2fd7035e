"""Default schedule of convolutions in NCHWc layout."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from weft.analysis.block_patterns import BlockPattern
from weft.autoschedule.dot_products import load_of
from weft.autoschedule.executor import planned
from weft.autoschedule.rules import lanes_for, least_bytes, pays_threads, streams_lines
from weft.autoschedule.tile_sizes import MOST_ROWS, channel_tile, most_pixels, pixel_tile, pixel_tile_of_any, strip_rows
from weft.dialects.element_types import bytes_of
from weft.passes.schedule.dot_intrinsics import LANES
from weft.plans import fitted
from weft.plans.decisions import Decisions
from weft.plans.roles import ConvolutionRoles, convolution_roles
from weft.plans.tile_plan import CopyLoops, Loop, LoopSplit, MadeBy, Prefetch, ResultCopy, Staged, TilePlan
from weft.support.target import Target

_UNROLLED: Final = 4
"""The number of channels of a block that are unrolled for flat tiles; LLVM unrolls the others by itself."""
_DOT_BITS: Final = 32
"""Bits per accumulator lane and per group of inputs of one dot-product instruction."""


@planned()
def blocked_convolution(pattern: BlockPattern, target: Target, decisions: Decisions) -> TilePlan | None:
    """Keep tiles of pixels times the filters of a block in registers; read the data in place.

    ```
    for a strip of rows: pad the data that it needs
      for block of filters: for row: for pixels of a tile:
        tile = 0; for block of channels, window, channel: tile[x, f] += data[x] * weights[f]; out = epilogue(tile)
    ```
    Groups of channels that weights store together use integer dot products. Tiles span rows if no large enough tile
    divides a row: strips then consist of tiles, the data are padded first, and threads share blocks of filters.
    Depthwise, lanes are channels. Not applicable unless the filters of a block are consecutive in results and weights,
    and blocks are another iterator.
    """
    blocked = blocked_of(pattern)
    if blocked is None:
        return None
    threads = target.num_threads if pays_threads([pattern], target) else 1
    tile = _tile(blocked, lanes_for(pattern, target), target, decisions)
    if tile is None:
        return None
    roles, row, is_flat = blocked.roles, blocked.row, tile.is_flat
    tiles, pixels = LoopSplit((row if is_flat else row + 1,), (None, tile.pixels)).parts
    splits = [LoopSplit(tiles[:-1], (None, tile.pixels)), LoopSplit((roles.column,), (None, tile.lanes))]
    vectors, lane = splits[-1].parts
    around: list[Loop] = [(at,) for at in blocked.around]
    *batches, blocks = around
    rows: list[Loop] = [] if is_flat else [(row,)]
    reduced: list[Loop] = [(at,) for at in roles.reduced]
    group = [reduced.pop()] if blocked.group > 1 else []
    unrolled = [*reduced] if blocked.is_depthwise else []
    if is_flat and roles.extents[reduced[-1][0]] % _UNROLLED == 0:
        splits.append(LoopSplit(reduced[-1], (None, _UNROLLED)))
        reduced[-1:] = splits[-1].parts
        unrolled.append(reduced[-1])
    strips: list[Loop] = []
    shared: int | None = None
    if is_flat:
        count = -(-roles.extents[row] * roles.extents[row + 1] // tile.pixels)
        size = decisions.size(_tiles(blocked, count, threads, target), count)
        if size < count:
            splits.append(LoopSplit(tiles, (None, size)))
            strips, tiles = [splits[-1].parts[0]], splits[-1].parts[1]
            if threads > 1:
                splits.append(LoopSplit(blocks, (threads, None)))
                part, blocks = splits[-1].parts
                batches.append(part)
                shared = len(batches)
    else:
        size = decisions.size(rows_of_strip(blocked, threads, target), roles.extents[row])
        if size < roles.extents[row] or row in roles.symbolic:
            splits.append(LoopSplit((row,), (None, size)))
            strips, rows = [splits[-1].parts[0]], [splits[-1].parts[1]]
    if blocked.is_depthwise:
        order = [*batches, blocks, *strips, *rows, vectors, tiles, *reduced, pixels, lane]
    else:
        outer = [blocks, *strips] if blocked.is_grouped else [*strips, blocks]
        order = [*batches, *outer, *rows, tiles, *reduced, pixels, vectors, lane, *group]
    # Elements narrower than the sums are also copied by whole vectors.
    wide = target.vector_bytes // bytes_of(roles.data.element_type)
    return TilePlan(
        flat=(row, row + 1) if is_flat else (),
        splits=tuple(splits),
        order=tuple(order),
        staged=(
            Staged(
                roles.data_position,
                None if is_flat else next(iter(strips), blocks if blocked.is_grouped else None),
                made_by=MadeBy.ONLY_PRODUCER,
                loops=CopyLoops((None, tile.lanes), exact=(wide, tile.lanes, fitted.BLOCK_LANES)),
                shared=True,
            ),
        ),
        result=ResultCopy(tiles),
        start=reduced[0],
        registers=len(order) - order.index(pixels),
        lanes=tile.lanes,
        intrinsic=tile.intrinsic,
        prefetches=_of_weights(blocked, target),
        unrolled=tuple(unrolled),
        most_shared=shared,
    )


@dataclass(frozen=True)
class Blocked:
    """Pixels are batches, rows and columns, in this order; `column` is the filters of a block, or the channels if
    depthwise."""

    roles: ConvolutionRoles
    row: int
    """The column of pixels is the next iterator."""
    around: tuple[int, ...]
    """Spatial iterators except rows, columns and the filters of a block: batches, blocks of filters."""
    is_depthwise: bool
    group: int
    """Elements of the data per dot product, along the last reduction iterator; 1 if weights have no layout for dot
    products."""

    @property
    def is_grouped(self) -> bool:
        """Whether a block of filters, or of channels if depthwise, depends on its own channels only."""
        return self.around[-1] in self.roles.shared

    def dot(self, lanes: int) -> str | None:
        """The tensor intrinsic for `lanes` sums of these integers, or None."""
        left, right = load_of(self.roles.data), load_of(self.roles.kernel)
        if lanes not in LANES or left is None or right is None:
            return None
        fits = left.bits * self.group == right.bits * self.group == _DOT_BITS
        return left.dot_name(lanes, right) if fits and left.is_float is right.is_float else None


def blocked_of(pattern: BlockPattern) -> Blocked | None:
    roles = convolution_roles(pattern)
    if roles is None:
        return None
    data, kernel, filters = roles.data, roles.kernel, roles.column
    # Blocks of filters that read different groups of channels; all channels if depthwise.
    channels, is_depthwise = sorted((*roles.channels, *roles.shared)), not roles.channels
    if len(channels) != 2 or channels[-1] != filters or len(roles.pixels) != 3:
        return None
    _, row, column = roles.pixels
    width = roles.extents[filters]
    if not roles.is_known or not all(roles.moves_evenly(data, at) for at in (*roles.reduced, row, column)):
        return None
    if is_depthwise and roles.stride(data, filters) != 1:
        return None
    if roles.stride(roles.result, column) != width or not _are_dense(roles, row, column):
        return None
    last, group = roles.reduced[-1], roles.stride(kernel, filters)
    if group is None or group < 1 or (is_depthwise and group > 1):
        return None
    if group > 1 and (roles.extents[last], roles.stride(data, last), roles.stride(kernel, last)) != (group, 1, 1):
        return None
    spatial = sorted((*roles.pixels, *channels))
    if spatial[-1] != filters or column != row + 1:
        return None
    around = tuple(at for at in spatial if at not in (row, column, filters))
    return Blocked(roles, row, around, is_depthwise, group)


def _are_dense(roles: ConvolutionRoles, row: int, column: int) -> bool:
    if column not in roles.symbolic:
        return roles.stride(roles.result, row) == roles.extents[column] * (roles.stride(roles.result, column) or 0)
    rows, columns = (roles.result.dimensions_of(roles.iterators[at]) for at in (row, column))
    return len(rows) == 1 and columns == (rows[0] + 1,)


@dataclass(frozen=True)
class _Tile:
    pixels: int
    lanes: int
    is_flat: bool
    """Whether tiles continue from row to row."""
    intrinsic: str = ""
    """The tensor intrinsic that multiplies groups of channels."""


def _tile(blocked: Blocked, lanes: int, target: Target, decisions: Decisions) -> _Tile | None:
    """None if there are too few registers. A search may choose the pixels, and whether tiles are flat."""
    extents, row = blocked.roles.extents, blocked.row
    filters, rows, columns = extents[blocked.roles.column], extents[row], extents[row + 1]
    # Dot products are tensor intrinsics of whole vectors. Otherwise the last vector of a block may be shorter.
    is_whole = blocked.group > 1 or filters % fitted.BLOCK_LANES != 0
    while lanes > 2 and (filters < lanes or (is_whole and filters % lanes)):
        lanes //= 2
    if is_whole and filters % lanes:
        return None
    if blocked.is_depthwise:
        return _Tile(decisions.choose(range(1, min(columns, MOST_ROWS) + 1), channel_tile(columns)), lanes, False)
    is_known = not {row, row + 1} & blocked.roles.symbolic
    vectors = -(-filters // lanes)
    if vectors > target.vector_registers // 3:
        return None
    dot = blocked.dot(lanes) if blocked.group > 1 else ""
    if dot is None:
        return None
    # A dot product occupies a register until it is added.
    registers = target.vector_registers - (blocked.group > 1)
    if is_known:
        pixels, is_flat = pixel_tile(rows, columns, vectors, registers, target.processor)
    else:
        pixels, is_flat = pixel_tile_of_any(vectors, registers, target.processor), False
    if rows > 1 and is_known:
        is_flat = decisions.decide(is_flat)
    most = min(most_pixels(vectors, registers), rows * columns if is_flat else columns)
    return _Tile(decisions.choose(range(1, most + 1), min(pixels, most)), lanes, is_flat, dot)


def _of_weights(blocked: Blocked, target: Target) -> tuple[Prefetch, ...]:
    """Prefetch the weights of a block of filters if they exceed L1."""
    roles = blocked.roles
    weights = roles.size((*roles.reduced, roles.column)) * bytes_of(roles.kernel.element_type)
    if blocked.is_depthwise or not streams_lines(weights, target):
        return ()
    step = roles.reduced[-1 if blocked.group == 1 else -2]
    ahead = tuple(fitted.WEIGHT_STEPS_AHEAD * (at == step) for at in range(len(roles.extents)))
    return (Prefetch(False, ahead, 1 - roles.data_position),)


def rows_of_strip(blocked: Blocked, threads: int, target: Target) -> int:
    """Rows whose data fill a fraction of L2, unless re-reading all data for each block of filters moves less than
    re-reading the weights for each strip."""
    roles, around = blocked.roles, blocked.around
    row, extent = roles.rows_of_data(blocked.row, around), roles.extents[blocked.row]
    batches = roles.size(tuple(at for at in around if at < around[-1] or blocked.is_grouped))
    rows = strip_rows(extent, row.results(target.l2_bytes // fitted.L2_PER_STRIP), batches, threads)
    if blocked.is_grouped:
        return rows
    all_data = (roles.extents[around[-1]] + 2) * row.bytes * row.step * extent
    return extent if all_data < -(-extent // rows) * least_bytes(roles.kernel) else rows


def _tiles(blocked: Blocked, tiles: int, threads: int, target: Target) -> int:
    """All, unless the data exceed L2 and re-reading them for each block of filters moves more than re-reading the
    weights, from farther away, for each strip."""
    roles = blocked.roles
    row, extent = roles.rows_of_data(blocked.row, blocked.around), roles.extents[blocked.row]
    blocks = roles.extents[blocked.around[-1]]
    data, room = row.bytes * min(row.step, row.span) * extent, target.l2_bytes // fitted.L2_PER_TILES
    if data <= room or blocks % threads:
        return tiles
    found = strip_rows(tiles, tiles * room // data, 1, 1)
    weights = fitted.STREAMED_WEIGHT * -(-tiles // found) * least_bytes(roles.kernel)
    return found if weights < (blocks + 2) * data else tiles
