"""Default schedule of convolutions over many channels: windows are packed as the columns of a matrix product."""

from __future__ import annotations

from typing import Final

from weft.analysis.block_patterns import BlockPattern, pattern_of
from weft.analysis.block_scopes import consumers_of
from weft.autoschedule.convolution import split_groups
from weft.autoschedule.executor import planned
from weft.autoschedule.inlining import producing
from weft.autoschedule.rules import is_expensive, lanes_for
from weft.autoschedule.tile_sizes import best_tile_for, even_part, tiles_for, utilization
from weft.dialects.element_types import bytes_of
from weft.passes.tir.vectorizer import MOST_SHUFFLED
from weft.plans import fitted
from weft.plans.decisions import Decisions
from weft.plans.roles import ConvolutionRoles, convolution_roles
from weft.plans.tile_plan import ALL, CopyLoops, Loop, LoopSplit, Parts, ResultCopy, Staged, TilePlan, panels
from weft.support.target import Target

_VECTORS_OF_UNKNOWN: Final = 2
"""Limit of the number of vectors of a tile for rows of unknown length: more would often be empty in the last tile."""


@planned(split_groups)
def packed_convolution(pattern: BlockPattern, target: Target, decisions: Decisions) -> TilePlan | None:
    """Pack the windows of a few pixels and channels, so that lanes are neighbouring pixels, full for rows of any width,
    and reads are in order, and compute a matrix product. Packing handles strides, dilation and borders.

    ```
    for pixels of a tile:
      for some of the channels that are summed over: lay out their windows
        for channels of a tile: tile = 0; for k: tile[c, p] += kernel[c, k] * windows[k, p]; sums += tile
      out = epilogue(sums)
    ```
    After Chellapilla, Puri and Simard, "High performance convolutional neural networks for document processing" (2006),
    tile by tile. Not applicable if channels are last or few, or if data can be read in place (`direct_convolution`).
    """
    roles, lanes = convolution_roles(pattern), lanes_for(pattern, target)
    if roles is None or not roles.is_known or roles.column not in roles.pixels:
        return None
    pays = lays_out_windows(roles, lanes, target) and not _reads_in_place(roles, lanes, target)
    if not roles.channels or not roles.reduced or not decisions.decide(pays):
        return None
    flat, extents = roles.flat_pixels, roles.extents
    row, pixel = max(roles.channels, key=lambda at: extents[at]), flat[0]
    pixels = None if pixel in roles.symbolic else roles.size(flat)
    tiles = tiles_for(extents[row], pixels, lanes, target.vector_registers)
    if pixels is None:  # the last tile is a whole one
        tiles = [tile for tile in tiles if tile.vectors <= _VECTORS_OF_UNKNOWN]
    tile = decisions.tile(tiles, lambda some: best_tile_for(some, extents[row], pixels, target.processor))
    slow, *window = roles.reduced
    step = roles.size(tuple(window)) * tile.columns * bytes_of(roles.data.element_type)
    depth = decisions.size(even_part(extents[slow], 3 * target.l1_bytes // (4 * step)), extents[slow])
    in_parts, is_whole = depth < extents[slow], pixels is not None and pixels % tile.columns == 0

    splits = (LoopSplit((pixel,), (None, tile.vectors, tile.lanes)), LoopSplit((row,), (None, tile.rows)))
    (around, vectors, lane), (outer_row, rows) = (split.parts for split in splits)
    part: list[Loop] = [(slow, 0)] if in_parts else []
    spatial = [at for at in range(len(extents)) if at not in (*roles.reduced, *flat[1:])]
    in_data = [at for at in range(len(extents)) if roles.iterators[at] in roles.data.iterators]
    batches: list[Loop] = [(at,) for at in spatial if at in in_data and at != pixel]
    channels: list[Loop] = [(at,) for at in spatial if at not in (*in_data, row)]
    reduced: list[Loop] = [(slow, 1) if in_parts else (slow,), *((at,) for at in window)]
    sides = [rows, vectors] if tile.rows >= tile.vectors else [vectors, rows]
    keeps_units = is_whole or len(flat) == 1
    dimensions = [at for at in in_data if at == pixel or (at not in flat and (keeps_units or roles.known(at) != 1))]
    border = producing(pattern.block, roles.data.buffer)
    windows = Staged(
        roles.data_position,
        (part or [around])[0],
        reindexed=tuple(in_data),
        fuses_producer=border is not None and not _repeats_functions(roles, pattern_of(border)),
        layout=panels(len(dimensions), dimensions.index(pixel), tile.columns),
        # Rows of single elements are copied whole, and their lines prefetched together.
        loops=CopyLoops(
            (None, tile.lanes),
            inside=(ALL if roles.size(tuple(window)) > 1 else 0, 0),
            unrolled=_unrolled([depth, *(extents[at] for at in window)]),
        ),
    )
    in_place = in_parts and is_whole and not roles.is_grouped and not consumers_of(pattern.block)
    result: ResultCopy | None = ResultCopy(outer_row, reindexed=True, is_first=True)
    parts: Parts | None = None
    if in_parts:
        result = None if in_place else ResultCopy(around, scope="global", reindexed=True, kept=1, is_first=True)
        # The first part stores, the others add.
        parts = Parts(depth, outer_row, _dimensions(roles) if in_place else ())
    return TilePlan(
        flat=flat,
        padding=() if is_whole else tuple(tile.columns if at == pixel else 1 for at in _left(roles)),
        splits=splits,
        order=(*batches, around, *part, *channels, outer_row, *reduced, *sides, lane),
        joined=(tuple(reduced),) if _is_dense(roles) else (),
        staged=(windows,),
        result=result,
        parts=parts,
        start=reduced[0],
        registers=3,
        lanes=tile.lanes,
    )


def _left(roles: ConvolutionRoles) -> list[int]:
    return [at for at in range(len(roles.extents)) if at not in roles.flat_pixels[1:]]


def _dimensions(roles: ConvolutionRoles) -> tuple[int, ...]:
    return tuple(at for index in roles.result.indices for at, v in enumerate(roles.iterators) if index.depends_on([v]))


def _is_dense(roles: ConvolutionRoles) -> bool:
    step = 1
    for at in reversed(roles.reduced):
        if roles.stride(roles.kernel, at) != step:
            return False
        step *= roles.extents[at]
    return True


def _repeats_functions(roles: ConvolutionRoles, border: BlockPattern) -> bool:
    return roles.size(roles.reduced[1:]) > 1 and any(is_expensive(op.name) for op in border.computing)


def _unrolled(extents: list[int]) -> int:
    """Innermost window loops to unroll: bounds are tested once for all channels."""
    copies, count = 1, 0
    for extent in reversed([extent for extent in extents if extent > 1][1:]):
        copies *= extent
        if copies > fitted.UNROLLED_WINDOW:
            break
        count += 1
    return count


def _reads_in_place(roles: ConvolutionRoles, lanes: int, target: Target) -> bool:
    """Returns whether rows of images of symbolic extents are read in place despite a stride: shuffles of a few vectors
    gather the lanes, and windows stay in L1. Windows along a single axis are packed: their elements are shuffled once
    for all channels."""
    step = roles.stride(roles.data, roles.column)
    window = roles.size(roles.reduced) * lanes * bytes_of(roles.data.element_type)
    is_image = roles.has_symbolic_space and bool(roles.windowed)
    return is_image and step is not None and 1 < step <= MOST_SHUFFLED and window <= target.l1_bytes


def lays_out_windows(roles: ConvolutionRoles, lanes: int, target: Target) -> bool:
    """Whether packing beats reading data in place: each window has many results, and lanes are not consecutive, rows
    leave lanes idle, or windows exceed L1."""
    if roles.column not in roles.pixels or roles.size(roles.channels) < fitted.LAID_OUT_RESULTS or not roles.reduced:
        return False
    if roles.stride(roles.data, roles.column) != 1:
        return True
    window = roles.size(roles.reduced) * lanes * bytes_of(roles.data.element_type)
    if roles.column in roles.symbolic and roles.size(roles.reduced[1:]) == 1:
        # Rows of unknown length start at any offset from a cache line; packing aligns them once.
        return True
    # Tiles read in place in symbolic rows have an interior without conditions.
    columns = roles.known(roles.column) if roles.windowed else roles.extents[roles.column]
    return utilization(columns, lanes) < fitted.FULL_LANES or window > target.l1_bytes
