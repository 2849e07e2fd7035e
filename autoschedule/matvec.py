"""Default schedule of a vector times a large matrix, bound by memory bandwidth."""

from __future__ import annotations

from typing import Final

from weft.analysis.block_patterns import pattern_of
from weft.autoschedule.contraction_roles import Roles, roles_of
from weft.autoschedule.contraction_tiles import product
from weft.autoschedule.rules import op_of
from weft.dialects.element_types import bytes_of
from weft.schedule.recording import BlockHandle
from weft.schedule.schedule import Schedule
from weft.support.target import Target

_ROWS_AT_ONCE: Final = 8
"""Rows of the matrix that are read side by side: as many streams as processors fetch ahead, and as many sums for each
time that a result is loaded and stored."""


class MatrixVectorRule:
    """Whole rows of the matrix, several at once, are added to results that stay in the first caches:
    `for k by 8: for j: out[j] += left[k] * right[k, j] + ... + left[k + 7] * right[k + 7, j]`.

    Register tiles would read short pieces of rows, far apart. Not applicable where the matrix fits into the second
    cache, where there is more than one row of results, or where the matrix is not read along its rows.
    """

    name = "vector times matrix"

    def apply(self, sch: Schedule, block: BlockHandle, target: Target) -> bool:
        roles = roles_of(pattern_of(op_of(sch, block)))
        if roles is None or not _streams(roles, target):
            return False
        loops = sch.get_loops(block)
        lanes = max(target.vector_bytes // max(bytes_of(roles.element), 4), 1)
        columns = roles.columns or 0
        chunk = -(-columns // (target.num_threads * lanes)) * lanes
        chunks, vectors, vector = sch.split(loops[roles.column], [None, -(-chunk // lanes), lanes])
        steps, step = sch.split(loops[roles.reduced[0]], [None, _ROWS_AT_ONCE])
        sch.reorder(chunks, steps, vectors, step, vector)
        init = sch.decompose_reduction(block, steps)
        sch.unroll(step)
        sch.vectorize(vector)
        sch.vectorize(sch.get_loops(init)[-1])
        if target.num_threads > 1:
            sch.parallel(chunks)
        return True


def _streams(roles: Roles, target: Target) -> bool:
    """Whether the rule has something to say."""
    others = product(roles.extents[at] for at in (*roles.batch, *roles.rows))
    if others != 1 or roles.row_count != 1 or len(roles.reduced) != 1 or not roles.right.contiguous:
        return False
    columns, depth = roles.columns, roles.extents[roles.reduced[0]]
    if columns is None or depth is None or depth < _ROWS_AT_ONCE or columns < target.vector_bytes:
        return False
    return columns * depth * roles.right.element_bytes > target.l2_bytes
