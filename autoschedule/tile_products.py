"""Default schedule of contractions of bytes and of bf16 by tile registers (AMX)."""

from __future__ import annotations

from typing import Final

from weft.analysis.block_patterns import BlockPattern
from weft.analysis.block_scopes import consumers_of
from weft.autoschedule.contraction import PanelLoops, Panels, panels_of
from weft.autoschedule.dot_products import FactorLoad, dimension_of_steps, loads_of, packed_right, pays
from weft.autoschedule.executor import planned
from weft.autoschedule.tile_sizes import RegisterTile
from weft.dialects.low_tile_products import (
    SUM_BYTES,
    TILE_REGISTERS,
    TILE_ROWS,
    fits_registers,
    parts_of,
)
from weft.passes.schedule.tile_intrinsics import TileProduct, depth_of, depths_of
from weft.plans import fitted
from weft.plans.cost import threads_pay_from
from weft.plans.decisions import Decisions
from weft.plans.roles import ContractionRoles, contraction_roles
from weft.plans.tile_plan import CopyLoops, Digit, MadeBy, Prefetch, ResultCopy, Staged, TilePlan, digits_of
from weft.support.cpu_instructions import tile_product_intrinsic
from weft.support.target import Target

_MOST_ROWS: Final = 3 * TILE_ROWS


@planned()
def tile_products(pattern: BlockPattern, target: Target, decisions: Decisions) -> TilePlan | None:
    """Keep the sums of two or more tiles in registers for the whole reduction, copy them to a buffer in L1, and compute
    elementwise consumers from there.

    ```
    for columns of several panels: pack them as [steps / group][columns][group]
      for rows of a tile: for panel:
        sums = tiles of left[rows, :] . panel[:, columns]; out[rows, panel] = epilogue(sums)
    ```
    Rows, columns and steps are padded with zeros. Applicable if the target has such instructions and the sums have 32
    bits and one reduction iterator of known extent.
    """
    roles = contraction_roles(pattern)
    loads = None if roles is None or roles.row is None or not pays(roles) else loads_of(pattern, roles)
    steps = None if roles is None or loads is None else roles.extents[roles.reduced[0]]
    if roles is None or roles.row is None or loads is None or steps is None or not _has_tiles(target, loads):
        return None
    group, reduced = SUM_BYTES * 8 // loads[0].bits, roles.reduced[0]
    steps = padded_steps(steps, group)
    tile = _tile(roles, steps // depth_of(steps, group), target, decisions)
    work = fitted.TILE_PRODUCTS * threads_pay_from(target.processor)
    panels = panels_of(roles, tile, steps // group, SUM_BYTES, work, target, decisions, in_parts=False)
    is_streamed = _streams(roles, steps * loads[0].bits // 8, panels, target)
    loops = PanelLoops(panels, (tile.columns,))
    sizes = {roles.row: tile.rows, roles.column: tile.columns, reduced: steps}
    padding = tuple(sizes.get(at, 1) for at in range(len(roles.extents)))
    padded = {at for at, size in sizes.items() if (extent := roles.extents[at]) is None or extent % size}
    pads_left, pads_right, pads_result = (
        bool(padded & places) for places in ({roles.row, reduced}, {roles.column, reduced}, {roles.row, roles.column})
    )
    left, a_gap = _left(pattern, roles, panels, loops, depth_of(steps, group), is_padded=pads_left)
    right = packed_right(pattern, roles, tile, loops.panels, group, loads[1], is_padded=pads_right)
    is_copied = pads_result or bool(consumers_of(pattern.block))
    result = ResultCopy(
        loops.result,
        scope="local",
        padded=pads_result,
        kept=1,
        is_first=True,
        prefetch=_next_panel(pattern, roles, tile),
    )
    product = TileProduct(
        *(tile.rows, tile.columns, steps),
        *(loads[0].sign, loads[1].sign),
        in_scope=is_copied,
        a_gap=a_gap,
        c_gap=_gap(pattern, roles),
        is_streamed=is_streamed,
    )
    return TilePlan(
        padding=padding if padded else (),
        splits=tuple(loops.splits),
        order=loops.order(loops.steps[0]),
        staged=(*left, right),
        result=result if is_copied else None,
        registers=3,
        lanes=tile.lanes,
        intrinsic=product.name,
        intrinsic_loops=3,
        threads=panels.threads,
    )


def _has_tiles(target: Target, loads: tuple[FactorLoad, FactorLoad]) -> bool:
    is_byte = all(load.bits == 8 for load in loads)
    return (is_byte or loads[0].is_float) and bool(tile_product_intrinsic(target, *(load.sign for load in loads)))


def _streams(roles: ContractionRoles, row_bytes: int, panels: Panels, target: Target) -> bool:
    """Whether the left factor stays in L2 while packed panels are read from beyond L2."""
    rows, count = roles.row_count, None if roles.columns is None else roles.columns // panels.tile.columns
    if not roles.right.constant or rows is None or rows * row_bytes * fitted.L2_PER_LEFT > target.l2_bytes:
        return False
    return count is None or count * (panels.panel_bytes or 0) * fitted.L2_PER_TILES > target.l2_bytes


def padded_steps(steps: int, group: int) -> int:
    """Pad to the fewest iterations, then the least padding."""
    whole = [-(-steps // depth) * depth for depth in depths_of(group)]
    return min(whole, key=lambda padded: (padded // depth_of(padded, group), padded))


def _left(
    pattern: BlockPattern, roles: ContractionRoles, panels: Panels, loops: PanelLoops, depth: int, *, is_padded: bool
) -> tuple[tuple[Staged, ...], int | None]:
    """The left factor in tiles `[steps / depth][rows][depth]`, if padded, if steps are not its fastest dimension, or if
    many panels read it; otherwise in place, with the number of dimensions between its rows and steps as second
    result."""
    left, rank, columns = roles.left, roles.left.rank, roles.columns
    steps = dimension_of_steps(pattern, roles, is_left=True)
    is_turned = steps < left.dimension
    count = None if columns is None else -(-columns // panels.tile.columns)
    is_reread = count is None or count >= fitted.TILES_REREAD
    if not (is_padded or is_reread) and steps == rank - 1:
        return (), steps - left.dimension - 1
    rest = digits_of([at for at in range(rank) if at not in (left.dimension, steps)])
    rows = panels.tile.rows
    layout = (Digit(left.dimension, rows), *rest, Digit(steps, depth), Digit(left.dimension, 1, rows))
    # A producer is computed once.
    is_last = count is not None and panels.together >= count
    copy = Staged(
        left.position,
        loops.row[0],
        made_by=MadeBy.PADDING if is_padded else MadeBy.COPY,
        fuses_producer=is_last,
        layout=(*layout, Digit(steps, 1, depth)),
        loops=CopyLoops() if is_turned else CopyLoops((None, depth), steps, inside=(1, 0)),
    )
    return (copy,), None


def _next_panel(pattern: BlockPattern, roles: ContractionRoles, tile: RegisterTile) -> Prefetch:
    (write,), column = pattern.writes, pattern.block.iter_vars[roles.column]
    (at,) = write.dimensions_of(column)
    return Prefetch(True, tuple(tile.columns * (place == at) for place in range(len(write.indices))), 0)


def _gap(pattern: BlockPattern, roles: ContractionRoles) -> int:
    row, column = (
        pattern.writes[0].dimensions_of(pattern.block.iter_vars[at])[0] for at in (roles.row or 0, roles.column)
    )
    return column - row - 1


def _tile(roles: ContractionRoles, iterations: int, target: Target, decisions: Decisions) -> RegisterTile:
    """The tile of the fewest cycles, with padded rows."""
    rows, columns = roles.row_count, roles.columns
    most_vectors = TILE_REGISTERS if columns is None else -(-columns // TILE_ROWS)
    heights = range(1, min(rows, _MOST_ROWS) + 1) if rows is not None else range(TILE_ROWS, _MOST_ROWS + 1, TILE_ROWS)
    tiles = [
        RegisterTile(height, vectors, TILE_ROWS)
        for vectors in range(1, most_vectors + 1)
        for height in heights
        if fits_registers(height, vectors * TILE_ROWS)
    ]

    def cost(tile: RegisterTile) -> tuple[float, int]:
        down = len(parts_of(tile.rows))
        step = max(fitted.TILE_PRODUCT * down * tile.vectors, fitted.TILE_LOAD * (down + tile.vectors))
        of_tile = step * iterations + fitted.TILE_RESULT * down * tile.vectors + fitted.TILE_CALL
        of_rows, of_columns = (1 / tile.rows, 1 / tile.columns)
        if rows is not None:
            of_rows = -(-rows // tile.rows)
        if columns is not None:
            of_columns = -(-columns // tile.columns)
        is_padded = rows is not None and rows % tile.rows != 0
        return of_tile * of_rows * of_columns * (1 + is_padded / 64), tile.rows

    return decisions.tile(tiles, lambda some: min(some, key=cost))
