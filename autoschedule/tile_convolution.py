"""Default schedule of convolutions in NCHWc layout by products of tiles (AMX)."""

from __future__ import annotations

from dataclasses import dataclass

from weft.analysis.block_patterns import BlockPattern
from weft.analysis.block_scopes import consumers_of
from weft.autoschedule.blocked_convolution import Blocked, blocked_of, rows_of_strip
from weft.autoschedule.dot_products import load_of
from weft.autoschedule.executor import planned
from weft.autoschedule.rules import pays_threads
from weft.dialects.element_types import bytes_of
from weft.dialects.low_tile_products import fits_registers, parts_of
from weft.passes.schedule.convolution_intrinsics import ConvolutionIntrinsic
from weft.plans.decisions import Decisions
from weft.plans.tile_plan import Loop, MadeBy, Nest, Result, Split, Staged, TilePlan
from weft.support.cpu_instructions import tile_product_intrinsic
from weft.support.target import Target

_REDUCED = 5
"""Blocks of channels, rows and columns of a window, groups of channels of a block, channels of a group."""


@planned()
def tile_convolution(pattern: BlockPattern, target: Target, decisions: Decisions) -> TilePlan | None:
    """Sum the windows of some pixels of a row, for the filters of a block, in tile registers; read the data in place.

    ```
    for a strip of rows: pad the data that it needs
      for block of filters: for row: for pixels of a tile:
        tile = sum over blocks of channels and windows of data[x] * weights; out = epilogue(tile)
    ```
    Applicable to results in blocks of filters and weights in groups of channels, if the target has tile registers and
    instructions for the elements.
    """
    found = _tiled(pattern, target, decisions)
    if found is None:
        return None
    blocked, intrinsic = found.blocked, found.intrinsic
    roles, row, lanes = blocked.roles, blocked.row, target.vector_bytes // bytes_of(blocked.roles.result.element_type)
    tiles, pixels = Split((row + 1,), (None, intrinsic.pixels)).parts
    splits = [Split((row + 1,), (None, intrinsic.pixels))]
    *batches, blocks = ((at,) for at in blocked.around)
    strips: list[Loop] = []
    rows: Loop = (row,)
    threads = target.num_threads if pays_threads([pattern], target) else 1
    size = decisions.size(rows_of_strip(blocked, threads, target), roles.extents[row])
    if size < roles.extents[row] or row in roles.symbolic:
        splits.append(Split((row,), (None, size)))
        strips, rows = [splits[-1].parts[0]], splits[-1].parts[1]
    products: list[Loop] = [pixels, (roles.column,), *((at,) for at in roles.reduced)]
    data_lanes = target.vector_bytes // bytes_of(roles.data.element_type)
    return TilePlan(
        splits=tuple(splits),
        order=(*batches, *strips, blocks, rows, tiles, *products),
        staged=(
            Staged(
                roles.data_position,
                next(iter(strips), None),
                made_by=MadeBy.ONLY_PRODUCER,
                nest=Nest((None, data_lanes), exact=(data_lanes, lanes, lanes // 2)),
                shared=True,
            ),
        ),
        result=Result(tiles, scope="global", nest=Nest((None, lanes), exact=(lanes, lanes // 2), unrolled=1))
        if consumers_of(pattern.block)
        else None,
        registers=len(products),
        intrinsic=intrinsic.name,
        intrinsic_loops=len(products),
    )


@dataclass(frozen=True)
class _Tiled:
    blocked: Blocked
    intrinsic: ConvolutionIntrinsic


def _tiled(pattern: BlockPattern, target: Target, decisions: Decisions) -> _Tiled | None:
    """The roles of a convolution and the intrinsic for it; None if tiles do not compute it."""
    blocked = blocked_of(pattern)
    if blocked is None or blocked.is_depthwise or blocked.group == 1 or len(blocked.roles.reduced) != _REDUCED:
        return None
    roles = blocked.roles
    row, column = (roles.iterators[at] for at in (blocked.row, blocked.row + 1))
    left, right = load_of(roles.data), load_of(roles.kernel)
    if left is None or right is None or left.bits * blocked.group != 32 or left.bits != right.bits:
        return None
    signs = (None, None) if left.is_float else (left.signed, right.signed)
    if left.is_float is not right.is_float or not tile_product_intrinsic(target, *signs):
        return None
    elements = "bf16" if left.is_float else "".join(f"{'s' if signed else 'u'}8" for signed in signs)
    blocks, down, across, groups, _ = (roles.iterators[at] for at in roles.reduced)
    *_, of_block, in_rows, in_columns, in_channels = roles.data.indices
    steps = (in_rows.coefficient(down), in_columns.coefficient(across), in_columns.coefficient(column))
    is_plain = in_rows.depends_on([row]) and of_block.coefficient(blocks) == 1
    if not is_plain or in_channels.coefficient(groups) != blocked.group or blocked.row + 1 in roles.symbolic:
        return None
    extents, filters = [roles.extents[at] for at in roles.reduced], roles.extents[roles.column]
    pixels = _pixels(roles.extents[blocked.row + 1], filters, decisions)
    if pixels is None:
        return None
    intrinsic = ConvolutionIntrinsic(
        pixels=pixels,
        filters=filters,
        elements=elements,
        blocks=extents[0],
        window=(extents[1], extents[2]),
        channels=extents[3] * extents[4],
        stride=steps[2],
        dilation=(max(steps[0], 1), max(steps[1], 1)),
    )
    return None if intrinsic.depth is None else _Tiled(blocked, intrinsic)


def _pixels(columns: int, filters: int, decisions: Decisions) -> int | None:
    """The pixels of a tile, a divisor of a row: with the fewest parts of tiles, and the most pixels among those; None
    if no such product fits in tile registers."""
    sizes = [size for size in range(1, columns + 1) if columns % size == 0 and fits_registers(size, filters)]
    if not sizes:
        return None
    best = min(sizes, key=lambda size: (columns // size * len(parts_of(size)), -size))
    return decisions.choose(sizes, best)
