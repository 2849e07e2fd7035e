"""Default schedule of convolutions of large images with few channels: vector lanes are filters."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import prod

from weft.analysis.block_patterns import BlockPattern
from weft.autoschedule.convolution import split_groups
from weft.autoschedule.executor import planned
from weft.autoschedule.packed_convolution import lays_out_windows
from weft.autoschedule.rules import PARTS_OF_A_THREAD, lanes_for, least_bytes, pays_threads
from weft.autoschedule.tile_sizes import (
    FilterTile,
    best_filter_tile,
    filter_tiles,
    rows_together,
    strip_rows,
    utilization,
)
from weft.plans import fitted
from weft.plans.decisions import Decisions
from weft.plans.roles import ConvolutionRoles, convolution_roles
from weft.plans.tile_plan import (
    ALL,
    CopyLoops,
    Loop,
    LoopSplit,
    MadeBy,
    Prefetch,
    ResultCopy,
    Staged,
    TilePlan,
    moved_last,
    panels,
)
from weft.support.target import Target


@planned(split_groups)
def filter_convolution(pattern: BlockPattern, target: Target, decisions: Decisions) -> TilePlan | None:
    """Multiply vectors of filters by single elements of the data without packing windows. A few rows are copied with
    their border, weights are laid out with consecutive filters, results are transposed when stored.

    ```
    lay out the weights
    for a strip of rows: pad the data that it needs
      for filters of a tile: for row: for pixels of a tile:
        tile = 0; for channel, window: tile[x, f] += data[x] * weights[f]; out[f, x] = epilogue(tile[x, f])
    ```
    After Georganas et al., "Anatomy of high-performance deep learning convolutions on SIMD architectures" (2018), with
    data and results in their original layout. Constant weights are padded with zeros to whole vectors of filters. Not
    applicable if windows need no packing (`direct_convolution`), if packing them costs less than transposing results,
    laying out weights and idle lanes (`packed_convolution`: small images, many filters), and to images of few channels
    each, as depthwise ones.
    """
    roles = convolution_roles(pattern)
    if roles is None or not roles.is_known:
        return None
    lanes = lanes_for(pattern, target)
    if not _is_possible(roles, lanes):
        return None
    pays = (lays_out_windows(roles, lanes, target) or _pays_in_place(roles, lanes)) and _pays(roles, lanes)
    if not decisions.decide(pays):
        return None
    threads = target.num_threads if pays_threads([pattern], target) else 1
    (filters,), slow, column = _filters(roles), roles.windowed[0], roles.column
    tile, height = _tile(roles, filters, slow, lanes, target, decisions)
    rows, shares_filters = _strip(roles, slow, tile, height, threads, target, decisions)
    pixels: dict[int, Loop] = {at: (at,) for at in roles.pixels}
    splits = [LoopSplit((slow,), (None, rows))]
    strips, pixels[slow] = splits[-1].parts
    together: list[Loop] = []
    if height > 1:
        splits.append(LoopSplit(pixels[slow], (None, height)))
        pixels[slow], inner = splits[-1].parts
        together.append(inner)
    splits.append(LoopSplit((column,), (None, tile.rows)))
    around, columns = splits[-1].parts
    splits.append(LoopSplit((filters,), (None, tile.vectors, lanes)))
    panel, vectors, lane = splits[-1].parts
    batches: list[Loop] = [(at,) for at in roles.pixels if at < slow and at != column]
    inner_pixels = [loop for at, loop in pixels.items() if at >= slow and at != column]
    channels: list[Loop] = [(at,) for at in (*roles.shared, *roles.channels) if at != filters]
    reduced: list[Loop] = [(at,) for at in roles.reduced]
    is_padded = roles.extents[filters] % tile.columns != 0
    return TilePlan(
        padding=tuple(tile.columns if at == filters else 1 for at in range(len(roles.extents))) if is_padded else (),
        splits=tuple(splits),
        order=(
            *batches,
            strips,
            *channels,
            panel,
            *inner_pixels,
            around,
            *reduced,
            *together,
            columns,
            vectors,
            lane,
        ),
        staged=(
            Staged(
                roles.data_position,
                None if shares_filters else strips,
                made_by=MadeBy.PRODUCER,
                loops=CopyLoops((None, lanes)),
            ),
            _weights(roles, filters, tile, is_padded=is_padded),
        ),
        result=replace(_result(roles, filters, tile, around, height), padded=is_padded),
        start=reduced[0],
        registers=len(together) + 3,
        lanes=lanes,
        unrolled=(reduced[-1],) if tile.shares_elements else (),
    )


def _whole(filters: int, lanes: int) -> int:
    return -(-filters // lanes) * lanes


def _pays_in_place(roles: ConvolutionRoles, lanes: int) -> bool:
    """Whether constant weights save more than transposing results costs, compared to reading data along rows."""
    steps, (filters,) = roles.size(roles.reduced), _filters(roles)
    if utilization(roles.extents[filters], lanes) < fitted.FULL_LANES:
        return False
    least = fitted.TRANSPOSED_RESULT_STEPS if roles.known(roles.column) else fitted.TRANSPOSED_RESULT_STEPS_OF_ANY
    return roles.kernel_is_constant and steps >= least * fitted.TRANSPOSED_RESULT * lanes


def _pays(roles: ConvolutionRoles, lanes: int) -> bool:
    """Returns whether copying data, weights and results costs less than packing windows and the lanes that are idle
    after the last pixel. Constant weights are packed before calls."""
    pixels, groups, steps = roles.size(roles.pixels), roles.size(roles.shared), roles.size(roles.reduced)
    filters = groups * roles.size(roles.channels)
    data = prod(max(extent, 1) for extent in roles.data.type.get_shape())
    copies = fitted.WINDOW_VECTOR * data // lanes + fitted.TRANSPOSED_RESULT * filters * pixels
    is_gathered = roles.stride(roles.data, roles.column) != 1
    cost = fitted.GATHERED_WINDOW_VECTOR if is_gathered else fitted.WINDOW_VECTOR
    windows = groups * cost * pixels * steps // lanes
    if roles.kernel_is_constant:
        idle = 1 - utilization(roles.size(roles.flat_pixels), lanes)
        idle_filters = _whole(filters, lanes) - filters
        return copies + idle_filters * pixels * steps / lanes < windows + idle * pixels * filters * steps / lanes
    return copies + fitted.PACKED_WEIGHT * filters * steps < windows


def _filters(roles: ConvolutionRoles) -> list[int]:
    return [at for at in roles.channels if roles.extents[at] > 1]


def _is_possible(roles: ConvolutionRoles, lanes: int) -> bool:
    filters = _filters(roles)
    if len(filters) != 1 or not roles.windowed or not roles.reduced:
        return False
    # Only weights that are constants are padded for free; groups would be padded separately.
    whole = roles.extents[filters[0]] % lanes == 0
    if not whole and (roles.is_grouped or not roles.kernel_is_constant):
        return False
    strides = [roles.stride(roles.data, at) for at in (roles.column, roles.reduced[-1])]
    return all(strides) and roles.column in roles.pixels


def _tile(
    roles: ConvolutionRoles, filters: int, slow: int, lanes: int, target: Target, decisions: Decisions
) -> tuple[FilterTile, int]:
    """The tile and the whole rows that it covers. A search may choose vectors, pixels, and whether elements are
    shared."""
    last = roles.reduced[-1]
    step, along = roles.stride(roles.data, roles.column) or 0, roles.stride(roles.data, last) or 0
    window = [at * along for at in range(roles.extents[last])]
    columns = roles.extents[roles.column]
    tiles = filter_tiles(columns, _whole(roles.extents[filters], lanes), lanes, target.vector_registers, step, window)

    def best(some: Sequence[FilterTile]) -> FilterTile:
        return best_filter_tile(some, columns, step, window, target.processor)

    size = decisions.tile(tiles, best)
    tiles = [tile for tile in tiles if (tile.rows, tile.vectors) == (size.rows, size.vectors)]
    shares = decisions.decide(best(tiles).shares_elements) if len(tiles) > 1 else tiles[0].shares_elements
    tile = next(tile for tile in tiles if tile.shares_elements == shares)
    height = rows_together(tile, columns, roles.extents[slow], target.vector_registers, target.processor)
    return (FilterTile(columns, 1, lanes, shares_elements=False) if height > 1 else tile), height


def _strip(
    roles: ConvolutionRoles,
    slow: int,
    tile: FilterTile,
    height: int,
    threads: int,
    target: Target,
    decisions: Decisions,
) -> tuple[int, bool]:
    """The rows of a strip, which a search may choose, and whether threads share filters instead, because strips are
    few."""
    extent, before = roles.extents[slow], tuple(at for at in roles.pixels if at < slow and at != roles.column)
    (filters,) = _filters(roles)
    batches = roles.size(before)
    most = roles.rows_of_data(slow, before).results(target.l2_bytes // fitted.L2_PER_PADDED_ROWS)
    if roles.has_symbolic_space:  # rows may be shorter than assumed
        most = max(most, fitted.PADDED_STEPS)
    rows = -(-decisions.size(strip_rows(extent, most, batches, threads), extent) // height) * height
    turns = -(-batches * -(-extent // rows) // threads)
    fits = 2 * least_bytes(roles.data) <= target.l2_bytes
    fits = fits and roles.extents[filters] >= tile.columns * threads * PARTS_OF_A_THREAD
    if fits and batches * extent < fitted.BUSY_STRIPS * threads * turns * rows:
        return -(-extent // height) * height, True
    return rows, False


def _weights(roles: ConvolutionRoles, filters: int, tile: FilterTile, *, is_padded: bool) -> Staged:
    (at,) = roles.kernel.dimensions_of(roles.iterators[filters])
    return Staged(
        1 - roles.data_position,
        layout=panels(len(roles.kernel.indices), at, tile.columns),
        # gathers took four times as long as scalar loads and stores
        loops=CopyLoops(
            (None, tile.lanes), at, inside=(ALL, 0), vector=roles.kernel.stride_of(roles.iterators[filters]) == 1
        ),
        shared=True,
        fuses_producer=is_padded,
        source=CopyLoops() if is_padded else None,
    )


def _result(roles: ConvolutionRoles, filters: int, tile: FilterTile, around: Loop, height: int) -> ResultCopy:
    """Returns results that are transposed when they are stored: element by element if the store computes nothing, else
    from vectors of filters. The lines of the next tile, each of another row, are prefetched."""
    if roles.is_grouped:  # the accumulator has a dimension for each iterator
        spatial = [at for at in range(len(roles.extents)) if at not in roles.reduced]
        rank, at, column = len(spatial), spatial.index(filters), spatial.index(roles.column)
    else:
        (at,) = roles.result.dimensions_of(roles.iterators[filters])
        (column,) = roles.result.dimensions_of(roles.iterators[roles.column])
        rank = len(roles.result.indices)
    return ResultCopy(
        around,
        reindexed=roles.is_grouped,
        layout=moved_last(rank, at),
        loops=CopyLoops((None, tile.lanes), at, inside=(0, 0), unrolled=2 if height == 1 else 3),
        prefetch=Prefetch(True, tuple(tile.rows * (dimension == column) for dimension in range(rank)), 0),
    )
