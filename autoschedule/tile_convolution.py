"""Default schedule of convolutions in NCHWc layout by products of tiles (AMX)."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from weft.analysis.block_patterns import BlockPattern
from weft.analysis.block_scopes import consumers_of
from weft.autoschedule.blocked_convolution import Blocked, blocked_of, rows_of_strip
from weft.autoschedule.dot_products import load_of
from weft.autoschedule.executor import planned
from weft.autoschedule.rules import pays_threads
from weft.dialects.element_types import bytes_of
from weft.dialects.low_tile_products import SUM_BYTES, TILE_ROWS, elements_of, fits_registers, parts_of
from weft.passes.schedule.convolution_intrinsics import ConvolutionIntrinsic
from weft.plans import fitted
from weft.plans.decisions import Decisions
from weft.plans.roles import ConvolutionRoles
from weft.plans.tile_plan import CopyLoops, Loop, LoopSplit, MadeBy, ResultCopy, Staged, TilePlan, digits_of
from weft.support.cpu_instructions import tile_product_intrinsic
from weft.support.target import Target

_REDUCED: Final = 5
"""The number of reduced iterators: blocks of channels, rows and columns of a window, groups of channels of a block,
channels of a group."""


@planned()
def tile_convolution(pattern: BlockPattern, target: Target, decisions: Decisions) -> TilePlan | None:
    """Sum the windows of some pixels, for the filters of a block, in tile registers. Pixels of a row read the data in
    place:

    ```
    for a strip of rows: pad the data that it needs
      for block of filters: for row: for pixels of a tile:
        sums = sum over blocks of channels and windows of data[x] * weights; out = epilogue(sums)
    ```
    If rows fill too few rows of tiles, windows of several rows are laid out first, all of them if they fit in L2:

    ```
    lay out the windows of all pixels
    for block of filters: for pixels of a tile:
      sums = sum over blocks of channels and windows of windows[x] * weights; out = epilogue(sums)
    ```
    Applicable to results in blocks of filters and weights in groups of channels, if the target has tile registers and
    instructions for the elements.
    """
    blocked = blocked_of(pattern)
    elements = "" if blocked is None else _elements(blocked, target)
    if blocked is None or not elements:
        return None
    roles, column = blocked.roles, blocked.row + 1
    extents = [roles.extents[at] for at in roles.reduced]
    one = ConvolutionIntrinsic(
        pixels=1,
        filters=roles.extents[roles.column],
        elements=elements,
        blocks=extents[0],
        window=(extents[1], extents[2]),
        channels=extents[3] * extents[4],
    )
    in_place, packed = _in_place(blocked, one), replace(one, is_packed=True, pixels=_flat_pixels(roles, one.filters))
    if column in roles.symbolic or packed.depth is None or packed.pixels == 0:
        return None
    rows, columns = roles.extents[blocked.row], roles.extents[column]
    blocks = roles.size(roles.channels) // one.filters
    whole = 0.0 if in_place is None else rows * (columns // in_place.pixels) * in_place.steps * _cycles(in_place)
    packing = packed.pixels * fitted.TILE_ROW_PACKED / blocks
    flat = -(-rows * columns // packed.pixels) * packed.steps * (_cycles(packed) + packing)
    packs = in_place is None or (flat < whole and not {blocked.row, *roles.pixels} & roles.symbolic)
    if decisions.decide(packs) or in_place is None:
        return _plan_of_windows(pattern, blocked, packed, target)
    return _plan_in_place(pattern, blocked, in_place, target, decisions)


def _plan_in_place(
    pattern: BlockPattern, blocked: Blocked, intrinsic: ConvolutionIntrinsic, target: Target, decisions: Decisions
) -> TilePlan:
    roles, row = blocked.roles, blocked.row
    splits = [LoopSplit((row + 1,), (None, intrinsic.pixels))]
    tiles, pixels = splits[0].parts
    *batches, blocks = ((at,) for at in blocked.around)
    strips: list[Loop] = []
    rows: Loop = (row,)
    threads = target.num_threads if pays_threads([pattern], target) else 1
    size = decisions.size(rows_of_strip(blocked, threads, target), roles.extents[row])
    if size < roles.extents[row] or row in roles.symbolic:
        splits.append(LoopSplit((row,), (None, size)))
        strips, rows = [splits[-1].parts[0]], splits[-1].parts[1]
    products: list[Loop] = [pixels, (roles.column,), *((at,) for at in roles.reduced)]
    lanes, data_lanes = (target.vector_bytes // bytes_of(o.element_type) for o in (roles.result, roles.data))
    data = Staged(
        roles.data_position,
        next(iter(strips), None),
        made_by=MadeBy.ONLY_PRODUCER,
        loops=CopyLoops((None, data_lanes), exact=(data_lanes, lanes, lanes // 2)),
        shared=True,
    )
    return TilePlan(
        splits=tuple(splits),
        order=(*batches, *strips, blocks, rows, tiles, *products),
        staged=(data,),
        result=ResultCopy(tiles, scope="global", loops=_epilogue(lanes)) if consumers_of(pattern.block) else None,
        registers=len(products),
        intrinsic=intrinsic.name,
        intrinsic_loops=len(products),
    )


def _plan_of_windows(
    pattern: BlockPattern, blocked: Blocked, intrinsic: ConvolutionIntrinsic, target: Target
) -> TilePlan:
    roles, row = blocked.roles, blocked.row
    split = LoopSplit((row,), (None, intrinsic.pixels))
    tiles, pixels = split.parts
    *batches, blocks = ((at,) for at in blocked.around)
    products: list[Loop] = [pixels, (roles.column,), *((at,) for at in roles.reduced)]
    lanes, data_lanes = (target.vector_bytes // bytes_of(o.element_type) for o in (roles.result, roles.data))
    count, size = roles.size((row, row + 1)), roles.size(roles.reduced) * bytes_of(roles.data.element_type)
    all_fit = count * size <= target.l2_bytes // fitted.L2_PER_TILES
    pads = count % intrinsic.pixels != 0
    in_data = [at for at in (*roles.pixels, *roles.reduced) if at in (row, row + 1) or roles.known(at) != 1 or not pads]
    dimensions = [at for at in in_data if at != row + 1]
    levels = roles.reduced[:3]
    places = sorted(dimensions, key=lambda at: (at in roles.reduced[3:], at == row, at in levels, at))
    windows = Staged(
        roles.data_position,
        None if all_fit else tiles,
        reindexed=(*roles.pixels, *roles.reduced),
        fuses_producer=True,
        layout=digits_of([dimensions.index(at) for at in places]),
        loops=CopyLoops((None, data_lanes), fused=2, exact=(data_lanes, lanes, lanes // 2)),
        shared=True,
    )
    order = (*batches, blocks, tiles) if all_fit else (*batches, tiles, blocks)
    return TilePlan(
        flat=(row, row + 1),
        padding=tuple(intrinsic.pixels if at == row else 1 for at in range(len(roles.extents)) if at != row + 1)
        if pads
        else (),
        splits=(split,),
        order=(*order, *products),
        staged=(windows,),
        result=ResultCopy(order[-1], scope="global", reindexed=True, loops=_epilogue(lanes), is_first=True),
        registers=len(products),
        intrinsic=intrinsic.name,
        intrinsic_loops=len(products),
    )


def _epilogue(lanes: int) -> CopyLoops:
    return CopyLoops((None, lanes), exact=(lanes, lanes // 2), unrolled=1)


def _elements(blocked: Blocked, target: Target) -> str:
    """The elements in names of intrinsics; empty if tiles do not compute the convolution."""
    roles, row = blocked.roles, blocked.row
    if blocked.is_depthwise or blocked.group == 1 or len(roles.reduced) != _REDUCED:
        return ""
    left, right = load_of(roles.data), load_of(roles.kernel)
    if left is None or right is None or left.is_float is not right.is_float or left.bits != right.bits:
        return ""
    signs = left.sign, right.sign
    if left.bits * blocked.group != SUM_BYTES * 8 or not tile_product_intrinsic(target, *signs):
        return ""
    of_block, in_rows, _, in_channels = roles.data.indices[-4:]
    blocks, _, _, groups, _ = (roles.iterators[at] for at in roles.reduced)
    is_plain = in_rows.depends_on([roles.iterators[row]]) and of_block.coefficient(blocks) == 1
    if not is_plain or in_channels.coefficient(groups) != blocked.group:
        return ""
    return elements_of(signs)


def _in_place(blocked: Blocked, one: ConvolutionIntrinsic) -> ConvolutionIntrinsic | None:
    """The intrinsic for pixels of a row, a divisor of its length: the fewest tiles, then the most pixels. None if none
    fits in tile registers."""
    roles, column = blocked.roles, blocked.row + 1
    length = roles.extents[column]
    _, in_rows, in_columns, _ = roles.data.indices[-4:]
    _, down, across, *_ = (roles.iterators[at] for at in roles.reduced)
    stride = in_columns.coefficient(roles.iterators[column])
    dilation = (max(in_rows.coefficient(down), 1), max(in_columns.coefficient(across), 1))
    sizes = [size for size in range(1, length + 1) if length % size == 0 and fits_registers(size, one.filters)]
    found = [replace(one, pixels=size, stride=stride, dilation=dilation) for size in sizes]
    return min(found, key=lambda some: length // some.pixels * _cycles(some), default=None) if one.depth else None


def _flat_pixels(roles: ConvolutionRoles, filters: int) -> int:
    """Whole tiles that fit in registers, but no more than there are pixels."""
    parts = -(-roles.size(roles.pixels[-2:]) // TILE_ROWS)
    return max((n * TILE_ROWS for n in range(1, parts + 1) if fits_registers(n * TILE_ROWS, filters)), default=0)


def _cycles(intrinsic: ConvolutionIntrinsic) -> float:
    """Cycles of a step: products, latency of a sum, or loads of A from L1, of windows and B from L2."""
    rows, columns = len(parts_of(intrinsic.pixels)), len(parts_of(intrinsic.filters))
    loads = (rows * (1 if intrinsic.is_packed else 0.5) + columns) * fitted.TILE_LOAD
    return max(rows * columns * fitted.TILE_PRODUCT, fitted.TILE_LATENCY, loads)
