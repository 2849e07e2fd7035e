"""Default schedules of contractions: batched matrix products and vector-matrix products, any operand transposed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from weft.analysis.block_patterns import BlockPattern
from weft.analysis.block_scopes import consumers_of
from weft.analysis.index import Index
from weft.analysis.integer_ranges import range_of
from weft.autoschedule.executor import planned
from weft.autoschedule.rules import product, streams_lines
from weft.autoschedule.tile_sizes import (
    RegisterTile,
    best_streamed_tile,
    best_tile,
    cache_for_panels,
    depth_of_panels,
    panels_together,
    register_tiles,
    utilization,
)
from weft.dialects.element_types import bytes_of
from weft.plans import fitted
from weft.plans.cost import threads_pay_from
from weft.plans.decisions import Decisions
from weft.plans.roles import ContractionRoles, ExtentBound, Factor, contraction_roles
from weft.plans.tile_plan import (
    CopyLoops,
    Factors,
    Loop,
    LoopSplit,
    MadeBy,
    Prefetch,
    ResultCopy,
    Staged,
    TilePlan,
    panels,
)
from weft.support.target import Target

_STEPS_AT_ONCE: Final = 2
"""Reduction steps per loop test, if registers are left for the loads of the second step."""
_STEPS_TO_TRY: Final = (1, 2, 4, 8)
_DEPTHS: Final = (64, 128, 256, 512, 1024)


@dataclass(frozen=True)
class Panels:
    """Panels of the right factor, as wide as a register tile. Sizes are in elements."""

    roles: ContractionRoles
    tile: RegisterTile
    together: int
    """Panels that are packed before rows are streamed over them."""
    depth: int | None
    """Reduction steps per part, or None if the reduction is not cut into parts."""
    panel_bytes: int | None
    """Bytes of a panel of one part, or None if the number of steps is unknown."""
    threads: tuple[Loop, ...]
    """The loops that threads share."""


def panels_of(
    roles: ContractionRoles,
    tile: RegisterTile,
    steps: int | None,
    step_bytes: int,
    work_of_threads: int,
    target: Target,
    decisions: Decisions,
    *,
    in_parts: bool = True,
    packed: bool = True,
) -> Panels:
    """Panels for a reduction of `steps` steps that read `step_bytes` bytes per column. `in_parts` allows parts of the
    reduction. Several threads are used from `work_of_threads` products on. A search may choose depth and panels packed
    together."""
    depth = depth_of_panels(steps, tile.columns, step_bytes, target.l2_bytes) if in_parts else None
    if in_parts and steps is not None:
        depths = sorted({0, depth or 0, *(size for size in _DEPTHS if 2 * size <= steps)})
        depth = decisions.choose(depths, depth or 0) or None
    deep = depth or steps
    panel_bytes = None if deep is None else max(deep, 1) * tile.columns * step_bytes
    work, batches = product(roles.extents), product(roles.extents[at] for at in roles.batch)
    threads = target.num_threads if work is None or work >= work_of_threads else 1
    sharing = 1 if batches is not None and batches >= threads else threads
    count = None if roles.columns is None else -(-roles.columns // tile.columns)
    together = panels_together(count, panel_bytes, cache_for_panels(target.l2_bytes, target.l2_ways), sharing)
    if count is not None:
        together = decisions.size(together, count)
    together = together if packed else 1
    shared = _shared(roles, tile.columns * together, threads, decisions) if threads > 1 else ()
    return Panels(roles, tile, together, depth, panel_bytes, shared)


def _shared(roles: ContractionRoles, columns: int, threads: int, decisions: Decisions) -> tuple[Loop, ...]:
    """Batches, groups of panels, or tiles of rows. The default is the first that keeps all threads busy."""
    batch: tuple[Loop, ...] = tuple((at,) for at in roles.batch)
    others: tuple[Loop, ...] = tuple((at,) for at in roles.rows)
    rows: list[tuple[Loop, ...]] = [] if roles.row is None else [(*others, (roles.row, 0))]
    places = [((roles.column, 0),), *rows, *([batch] if batch else [])]
    batches = product(roles.extents[at] for at in roles.batch)
    pieces = None if roles.columns is None else -(-roles.columns // columns)
    if batch and (batches is None or utilization(batches, threads) > fitted.BUSY_PANELS):
        default = len(places) - 1
    else:
        are_idle = pieces is not None and utilization(pieces, threads) <= fitted.BUSY_PANELS
        default = int(roles.row is not None and are_idle)
    return places[decisions.choose(range(len(places)), default)]


class PanelLoops:
    def __init__(self, plan: Panels, columns: Factors, group: Factors = (), steps_at_once: int = 1) -> None:
        """`columns` are the factors of a panel, `group` those of a reduction step."""
        roles = plan.roles
        self._roles = roles
        self.splits = [LoopSplit((roles.column,), (None, plan.together, *columns))]
        self.panels, self.panel, *self.columns = self.splits[0].parts
        self.rows: list[Loop] = []
        self.row: list[Loop] = []
        if roles.row is not None:
            self.splits.append(LoopSplit((roles.row,), (None, plan.tile.rows)))
            self.row, self.rows = [self.splits[-1].parts[0]], [self.splits[-1].parts[1]]
        self.part: list[Loop] = []
        """The loop over parts of the reduction, if there are several."""
        *slow, fast = ((at,) for at in roles.reduced)
        self.steps: list[Loop] = [fast]
        if plan.depth is not None:
            self.splits.append(LoopSplit(fast, (None, plan.depth, *group)))
            self.part, self.steps = [self.splits[-1].parts[0]], [*self.splits[-1].parts[1:]]
        elif group:
            self.splits.append(LoopSplit(fast, (None, *group)))
            self.steps = [*self.splits[-1].parts]
        self.unrolled: list[Loop] = []
        """The innermost steps, which are unrolled."""
        extent = plan.depth or roles.extents[roles.reduced[-1]]
        if steps_at_once > 1 and (extent is None or extent > steps_at_once):
            self.splits.append(LoopSplit(self.steps[0], (None, steps_at_once)))
            self.steps[0], unrolled = self.splits[-1].parts
            self.unrolled.append(unrolled)
        self.slow: list[Loop] = [*slow]

    @property
    def start(self) -> Loop:
        return (*self.part, *self.slow, *self.steps)[0]

    @property
    def result(self) -> Loop:
        """The loop in whose iterations results are complete."""
        return self.panels if self.part else self.panel

    def order(self, *innermost: Loop) -> tuple[Loop, ...]:
        """Loops of the reduction are outside a register tile, except the `innermost` ones."""
        roles = self._roles
        batch, rows = ([(at,) for at in places] for places in (roles.batch, roles.rows))
        outer = [*batch, self.panels, *self.part, *rows, *self.row, self.panel]
        steps = [step for step in (*self.slow, *self.steps, *self.unrolled) if step not in innermost]
        return (*outer, *steps, *self.rows, *self.columns, *innermost)


@planned()
def contraction(pattern: BlockPattern, target: Target, decisions: Decisions) -> TilePlan | None:
    """Keep results in register tiles; read the right factor in order from panels as wide as a tile; also pack the left
    factor if its rows are its fastest dimension.

    ```
    for columns of several panels: pack them
      for rows of a tile: for panel:
        tile = 0; for k: tile[r, c] += left[r, k] * panel[k, c]; out[rows, panel] = epilogue(tile)
    ```
    Not applicable if results are not consecutive along an iterator of exactly one factor, if there is one column, or if
    the right factor can neither be packed nor has consecutive columns.
    """
    roles = contraction_roles(pattern)
    return None if roles is None else contraction_plan(pattern, roles, target, decisions)


def contraction_plan(
    pattern: BlockPattern, roles: ContractionRoles, target: Target, decisions: Decisions
) -> TilePlan | None:
    """`contraction` for these roles, whose extents may be those of a part of the loops."""
    if roles.columns == 1:
        return None
    left, right, columns, rows = roles.left, roles.right, roles.columns, roles.row_count
    many = roles.most_rows is None or roles.most_rows >= _paying_rows(right)
    ahead = right.constant and not roles.same_buffer
    pack_left = left.contiguous and not roles.same_buffer and decisions.decide(many)
    tile = _tile(roles, target, pack_left, decisions)
    ragged = columns is None or columns % tile.lanes != 0
    in_place = right.contiguous and columns is not None and columns <= tile.columns
    pack_right = (many or ahead) and (ragged or not in_place)
    if right.dequantized:
        pack_right = True  # a panel at a time
    elif right.contiguous and not roles.same_buffer:
        pack_right = decisions.decide(pack_right)
    if not right.contiguous and (roles.same_buffer or not pack_right):
        return None
    # A panel that is streamed once need not stay in a cache.
    passes_once = ahead and rows is not None and rows <= tile.rows
    work = threads_pay_from(target.processor)
    if ahead and rows is not None:
        # With few rows, loading the packed factor takes longer than its products.
        work = work * min(rows, fitted.LOADED_ELEMENT) // fitted.LOADED_ELEMENT
    is_finished_at_tiles = rows is None and bool(consumers_of(pattern.block))
    plan = panels_of(
        roles,
        tile,
        product(roles.extents[at] for at in roles.reduced),
        right.element_bytes,
        work,
        target,
        decisions,
        in_parts=pack_right and len(roles.reduced) == 1 and not passes_once and not is_finished_at_tiles,
        packed=pack_right,
    )
    if roles.same_buffer:
        plan, pack_right = replace(plan, depth=None), False
    prefetched = pack_right and decisions.decide(streams_lines(plan.panel_bytes, target))
    # If neither rows nor columns are known, there are many kernels for remainders.
    at_once = _STEPS_AT_ONCE if _fuses(target) and columns is not None else 1
    loops = PanelLoops(plan, (tile.columns,), steps_at_once=decisions.choose(_STEPS_TO_TRY, at_once))
    padded = pack_right and ragged
    staged: list[Staged] = []
    ways = 1 << (target.processor.l1_ways.bit_length() - 1)  # divides panels, unlike the 12 ways of a Zen 5
    if pack_right:
        at = None if ahead else (loops.part or [loops.panels])[0]
        factor = right.padded() if padded else right
        staged.append(_packed(factor, at, tile.columns, tile.lanes, ways, is_left=False, padded=padded))
    if pack_right and pack_left:
        staged.append(_packed(left, None, tile.rows, tile.rows, ways, is_left=True, parallel=bool(plan.threads)))
    result: ResultCopy | None = None
    if plan.depth is None or padded or consumers_of(pattern.block):
        result = ResultCopy(
            loops.result,
            scope="local" if plan.depth is None else "global",
            padded=padded,
            kept=1 if roles.row is None else 2,
            prefetch=_next_rows(pattern, roles, tile),
        )
    ahead_of = tuple(fitted.PANEL_STEPS_AHEAD * (at == roles.reduced[-1]) for at in range(len(roles.extents)))
    return TilePlan(
        padding=tuple(tile.lanes if at == roles.column else 1 for at in range(len(roles.extents))) if padded else (),
        splits=tuple(loops.splits),
        order=loops.order(),
        staged=tuple(staged),
        result=result,
        start=loops.start,
        registers=1 + len(loops.rows),
        lanes=tile.lanes,
        prefetches=(Prefetch(False, ahead_of, right.position),) if prefetched else (),
        unrolled=tuple(loops.unrolled),
        threads=plan.threads,
    )


def _paying_rows(right: Factor) -> int:
    return fitted.PACKED_ROWS if right.contiguous else fitted.PACKED_ROWS_TRANSPOSED


def few_rows(pattern: BlockPattern, target: Target) -> Sequence[ExtentBound]:
    """Returns the numbers of rows up to which a contraction with a symbolic number of rows has other schedules, in
    ascending order: those that one register tile covers, that for which panels are not packed, and that for which
    columns of the same extent are one vector. Returns none if its range decides at compile time."""
    roles = contraction_roles(pattern)
    if roles is None or roles.row is None or roles.row_count is not None or roles.same_buffer:
        return ()
    if roles.right.constant or roles.right.dequantized:
        return ()
    extent, most = pattern.block.extents[roles.row], _paying_rows(roles.right) - 1
    low, high = Index.of(extent).range(range_of)[0], roles.most_rows
    is_decided = (low is not None and low > most) or (high is not None and high <= most)
    if is_decided or isinstance(extent, int):
        return ()
    lanes = _lanes(roles, target)
    if pattern.block.extents[roles.column] == extent:
        bounds = [1, most, *([lanes] if most < lanes else [])]
    else:
        bounds = [bound for bound in fitted.FEW_ROWS if bound < most and _is_covered(roles, bound, target)] + [most]
    return [ExtentBound(extent, bound) for bound in bounds]


def _is_covered(roles: ContractionRoles, rows: int, target: Target) -> bool:
    """Returns whether one register tile covers this number of rows, and several of them the columns with few idle
    lanes."""
    if roles.columns is None:
        return False
    most = tuple(rows if at == roles.row else bound for at, bound in enumerate(roles.most))
    tile = _tile(replace(roles, most=most), target, False, Decisions())
    return tile.rows >= rows and utilization(roles.columns, tile.columns) >= fitted.BUSY_LANES


def _tile(roles: ContractionRoles, target: Target, pack_left: bool, decisions: Decisions) -> RegisterTile:
    lanes, rows, columns = _lanes(roles, target), roles.row_count, roles.columns
    most_columns = roles.most[roles.column]
    if columns is None and most_columns is not None and most_columns <= lanes:
        columns = lanes
    if rows is None and columns is not None and roles.most_rows is not None:
        rows = roles.most_rows  # a few rows are one tile, whose remainder has a version for each number of rows
    tiles = register_tiles(rows, columns, lanes, target.vector_registers, fused=_fuses(target), packed_rows=pack_left)
    if columns is None:
        tiles = [tile for tile in tiles if tile.rows * tile.vectors <= fitted.SYMBOLIC_TILE]
    if rows is not None and _from_beyond_l2(roles, target):
        return decisions.tile(tiles, lambda some: best_streamed_tile(some, rows, columns, target.processor))
    return decisions.tile(tiles, lambda some: best_tile(some, rows, columns, target.processor))


def _lanes(roles: ContractionRoles, target: Target) -> int:
    return max(target.vector_bytes // max(bytes_of(roles.element), 4), 1)


def _from_beyond_l2(roles: ContractionRoles, target: Target) -> bool:
    elements = product(roles.extents[at] for at in (roles.column, *roles.reduced))
    is_large = elements is None or elements * roles.right.element_bytes > target.l2_bytes
    return roles.right.constant and not roles.same_buffer and is_large


def _fuses(target: Target) -> bool:
    """Whether products need no extra registers. SSE (16 vectors of 16 bytes) overwrites an operand."""
    return target.vector_bytes > 16 or target.vector_registers > 16


def _next_rows(pattern: BlockPattern, roles: ContractionRoles, tile: RegisterTile) -> Prefetch | None:
    dimensions = () if roles.row is None else pattern.writes[0].dimensions_of(pattern.block.iter_vars[roles.row])
    if len(dimensions) != 1:
        return None
    rank = len(pattern.writes[0].indices)
    return Prefetch(True, tuple(tile.rows * (at == dimensions[0]) for at in range(rank)), 0)


def _packed(
    factor: Factor,
    at: Loop | None,
    width: int,
    lanes: int,
    ways: int,
    *,
    is_left: bool,
    padded: bool = False,
    parallel: bool = False,
) -> Staged:
    """Panels of `width` rows or columns, step by step. L1 holds lines of `ways` rows whose distance is a power of
    two."""
    dimension, prefetches = factor.dimension, ()
    if factor.constant:
        loops = CopyLoops((None, lanes)) if factor.contiguous else CopyLoops()
    else:
        prefetches = _prefetches_of_source(factor, width, is_left)
        if factor.contiguous and is_left:
            # Few rows in turn, so that their lines stay in cache until all elements are used.
            loops = CopyLoops((None, lanes), dimension, inside=(1, 0), steps=fitted.ROWS_IN_TURN, divides=True)
        elif factor.contiguous:
            loops = CopyLoops((None, lanes), dimension, inside=(0, 0))
        else:
            lanes = min(lanes, ways)
            # A piece stays in L1 until all of its columns are packed. Not vectorized: gathers took four times as long
            # as scalar loads and stores.
            factors = (None, width // lanes, lanes)
            loops = CopyLoops(
                factors, dimension, inside=(2, 1, 0), steps=fitted.PIECE_STEPS, divides=True, vector=False
            )
    return Staged(
        factor.position,
        at,
        made_by=MadeBy.PADDING if padded else MadeBy.COPY,
        fuses_producer=True,
        layout=panels(factor.rank, dimension, width, outermost=True),
        loops=loops,
        prefetches=prefetches,
        parallel=parallel,
    )


def _prefetches_of_source(factor: Factor, width: int, is_left: bool) -> tuple[Prefetch, ...]:
    """Prefetches for packing, whose short pieces of distant lines often start new pages."""
    dimensions = range(factor.rank)
    others = [at for at in dimensions if at != factor.dimension]
    if not others:
        return ()
    along, distance = factor.dimension if factor.contiguous else others[-1], fitted.ELEMENTS_AHEAD
    if factor.contiguous and not is_left:
        along, distance = others[-1], fitted.PACKED_STEPS_AHEAD
    reads = Prefetch(False, tuple(distance * (at == along) for at in dimensions))
    if not is_left:
        return (reads,)
    # Packed all at once, it does not stay in the near caches.
    return (reads, Prefetch(True, tuple(2 * width * (at == factor.dimension) for at in dimensions), 0))


@planned()
def vector_times_matrix(pattern: BlockPattern, target: Target, decisions: Decisions) -> TilePlan | None:
    """Add several whole rows of the matrix at once to results that stay in L1 or L2: `for k by 8: for j: out[j] +=
    left[k] * right[k, j] + ... + left[k + 7] * right[k + 7, j]`.

    Register tiles would read short pieces of distant rows. A matrix that is computed element by element (quantised
    weights) is inlined. Not applicable if the matrix fits in L2 or is not contiguous along its rows, or if results have
    more than one row.
    """
    roles = contraction_roles(pattern)
    if roles is None or roles.right.constant or not _is_bandwidth_bound(roles, target) or not decisions.decide(True):
        return None
    lanes = max(target.vector_bytes // max(bytes_of(roles.element), 4), 1)
    columns = roles.columns or 0
    chunk = -(-columns // (target.num_threads * lanes)) * lanes
    streams = target.processor.prefetched_streams
    rows = decisions.size(streams, 2 * streams)
    splits = (
        LoopSplit((roles.column,), (None, -(-chunk // lanes), lanes)),
        LoopSplit((roles.reduced[0],), (None, rows)),
    )
    (chunks, vectors, vector), (steps, step) = splits[0].parts, splits[1].parts
    return TilePlan(
        splits=splits,
        order=(chunks, steps, vectors, step, vector),
        staged=(Staged(roles.right.position, made_by=MadeBy.INLINED_PRODUCER),),
        start=steps,
        registers=2,
        threads=(chunks,) if target.num_threads > 1 else (),
    )


def _is_bandwidth_bound(roles: ContractionRoles, target: Target) -> bool:
    others = product(roles.extents[at] for at in (*roles.batch, *roles.rows))
    if others != 1 or roles.row_count != 1 or len(roles.reduced) != 1 or not roles.right.contiguous:
        return False
    columns, depth = roles.columns, roles.extents[roles.reduced[0]]
    if columns is None or depth is None or depth < target.processor.prefetched_streams or columns < target.vector_bytes:
        return False
    return columns * depth * roles.right.element_bytes > target.l2_bytes
