"""Default schedule of two matrix products with nests over rows between them, such as attention."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from weft.analysis.block_patterns import BlockPattern, pattern_of
from weft.analysis.block_scopes import child_blocks, scope_of
from weft.autoschedule.contraction import contraction_plan
from weft.autoschedule.executor import RowMember, execute_rows
from weft.autoschedule.nests import inner_plan, nests_over_rows, outer_rows, starves_threads
from weft.autoschedule.rules import Sampled, op_of, product
from weft.dialects.element_types import bytes_of
from weft.dialects.tir import BlockOp
from weft.plans.decisions import Decisions
from weft.plans.roles import ContractionRoles, contraction_roles
from weft.plans.tile_plan import MadeBy, TilePlan
from weft.schedule.recording import BlockHandle
from weft.schedule.schedule import Schedule
from weft.support.target import Target

_TEMPORARIES: Final = 4
"""The number of arrays of the size of the first product's results that are in use at once, including halves of
others."""
_LEAST_BYTES: Final = 4
"""Minimum bytes of elements. Dot products compute with narrower elements."""


def products_around_rows(sch: Schedule, block: BlockHandle, target: Target) -> bool:
    """Merge two products and the nests between them over shared rows, a register tile of rows at a time:

    ```
    for batch: pack the right factors
      for rows of a tile: scores = left[rows] * right; weights = softmax(scores); out[rows] = weights * values
    ```
    Right factors beyond half of L2 are read for several tiles at once. After Dao et al., "FlashAttention" (2022), with
    whole rows. Not applicable if L2 holds the temporaries, if a factor is narrower than 4 bytes, or if the columns of
    the second product leave lanes idle.
    """
    found = _products(op_of(sch, block), target)
    if found is None:
        return False
    patterns, first, last, shared = found
    results, decisions = product(first.extents[at] for at in (*range(shared), first.column)), Sampled(sch)
    exceeds = results is None or results * bytes_of(first.element) > target.l2_bytes // _TEMPORARIES
    if not decisions.decide(exceeds and not starves_threads(patterns, shared, target)):
        return False
    plan = contraction_plan(patterns[0], first, target, decisions)
    if plan is not None and plan.padding:
        sch.pad_einsum(block, [*plan.padding])
        (whole,) = sch.get_consumers(block)
        sch.compute_inline(whole)
        found = _products(op_of(sch, block), target)
        if found is None:
            return False
        patterns, first, last, _ = found
        plan = contraction_plan(patterns[0], first, target, decisions)
    if plan is None:
        return False
    tile = next(split.factors[-1] or 1 for split in plan.splits if split.loop == (first.row,))
    rows = tile * _tiles(first, last, tile, target)
    ends = [_plan_of_rows(patterns[at], roles, rows, target, decisions) for at, roles in ((0, first), (-1, last))]
    if ends[0] is None or ends[1] is None or ends[1].padding:
        return False
    ends[0] = _without_padding(ends[0])
    inner = [inner_plan(pattern, shared, target, decisions) for pattern in patterns[1:-1]]
    for pattern in patterns[:-1]:
        if len(pattern.writes[0].indices) > shared:
            lanes = target.vector_bytes // bytes_of(pattern.writes[0].element_type)
            sch.storage_align(sch.get_block(pattern.block.label), 0, -2, lanes, 0)
    members = [RowMember(*member) for member in zip(patterns, (ends[0], *inner, ends[1]), strict=True)]
    execute_rows(sch, members, shared, rows, target)
    return True


def _products(
    block: BlockOp, target: Target
) -> tuple[list[BlockPattern], ContractionRoles, ContractionRoles, int] | None:
    """The nests from one product to another that share rows, the roles of both, and the number of shared loops."""
    if len(child_blocks(scope_of(block))) < 3:
        return None
    alone = contraction_roles(pattern_of(block))
    if alone is None or alone.row is None or not _has_rows(alone, alone.row + 1):
        return None
    products = 0

    def rows(pattern: BlockPattern) -> int:
        nonlocal products
        roles = contraction_roles(pattern)
        if products == 2:
            return 0
        products += roles is not None
        return outer_rows(pattern, target) if roles is None or roles.row is None else roles.row + 1

    patterns, shared = nests_over_rows(block, rows)
    first, *between, last = (contraction_roles(pattern) for pattern in patterns) if len(patterns) > 2 else (None,) * 3
    if first is None or last is None or any(roles is not None for roles in between):
        return None
    return (patterns, first, last, shared) if _has_rows(first, shared) and _has_rows(last, shared) else None


def _has_rows(roles: ContractionRoles, shared: int) -> bool:
    is_outer = roles.row == shared - 1 and roles.batch == tuple(range(shared - 1)) and not roles.rows
    is_wide = all(factor.element_bytes >= _LEAST_BYTES for factor in (roles.left, roles.right))
    return is_outer and is_wide and not roles.left.contiguous and not roles.same_buffer


def _tiles(first: ContractionRoles, last: ContractionRoles, tile: int, target: Target) -> int:
    """Tiles of rows for which the right factors are read once."""
    element = bytes_of(first.element)
    elements = [product(roles.extents[at] for at in (roles.column, *roles.reduced)) or 0 for roles in (first, last)]
    if sum(elements) * element <= target.l2_bytes // 2 or first.columns is None:
        return 1
    return max(target.l2_bytes // 2 // (tile * first.columns * element), 1)


def _plan_of_rows(
    pattern: BlockPattern, roles: ContractionRoles, rows: int, target: Target, decisions: Decisions
) -> TilePlan | None:
    """The right factor is packed once per batch, for `rows` rows of a batch."""
    extents = tuple(rows if at == roles.row else extent for at, extent in enumerate(roles.extents))
    plan = contraction_plan(pattern, replace(roles, extents=extents), target, decisions)
    if plan is None:
        return None
    batch = (roles.batch[-1],) if roles.batch else None
    return replace(
        plan,
        order=tuple(loop for loop in plan.order if loop[0] not in roles.batch),
        staged=tuple(replace(staged, at=batch) for staged in plan.staged),
        result=None if plan.result is None else replace(plan.result, prefetch=None),
        threads=(),
    )


def _without_padding(plan: TilePlan) -> TilePlan:
    staged = (replace(s, made_by=MadeBy.COPY) if s.made_by is MadeBy.PADDING else s for s in plan.staged)
    result = None if plan.result is None else replace(plan.result, padded=False)
    return replace(plan, padding=(), staged=tuple(staged), result=result)
