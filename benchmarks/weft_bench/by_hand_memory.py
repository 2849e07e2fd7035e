"""Hand-written schedules of memory-bound work, with prefetching."""

from __future__ import annotations

from weft.schedule.schedule import Schedule
from weft.support.target import Target
from weft_bench.by_hand import in_lanes, lanes_of, reduce_in_lanes

AHEAD = 512
"""Prefetch distance in elements of a stream: half a page."""
ACCUMULATORS = 4
"""Number of vector accumulators, to hide the latency of an operation."""


def softmax(sch: Schedule, target: Target) -> None:
    """All four stages per row, which stays in L1."""
    width = ACCUMULATORS * lanes_of(target)
    row, _ = sch.get_loops("C")
    for stage in ("C_sum", "C_exp", "C_max"):
        sch.compute_at(stage, row)
    # During the exponentials, the longest stage, prefetch the next row and the row that C will store.
    sch.annotate("C_exp", "prefetch", [["read", 0, [1, 0]], ["write", 0, [0, 0], "C"]])
    for stage in ("C_max", "C_sum"):
        reduce_in_lanes(sch, stage, width)
    for stage in ("C_exp", "C"):
        in_lanes(sch, sch.get_loops(stage)[-1], width)
    sch.parallel(row)


def layer_norm(sch: Schedule, target: Target) -> None:
    """Sum, sum of squares and result, row by row."""
    lanes = lanes_of(target)
    row, columns = sch.get_loops("C")
    for stage in ("C_rstd", "C_rstd_sum", "C_mean", "C_mean_sum"):
        sch.compute_at(stage, row)
    sch.annotate("C", "prefetch", [["read", 0, [1, 0]], ["write", 0, [1, 0]]])
    for stage in ("C_mean_sum", "C_rstd_sum"):
        reduce_in_lanes(sch, stage, ACCUMULATORS * lanes)
    in_lanes(sch, columns, lanes)
    sch.parallel(row)


def add_relu(sch: Schedule, target: Target) -> None:
    """One pass over the arrays."""
    sch.compute_inline("Y")
    sch.annotate("C", "prefetch", [["read", 0, [AHEAD]], ["read", 1, [AHEAD]], ["write", 0, [AHEAD]]])
    (element,) = sch.get_loops("C")
    sch.parallel(in_lanes(sch, element, lanes_of(target)))


def row_sums(sch: Schedule, target: Target) -> None:
    """Two rows at a time: two streams from memory."""
    row, column = sch.get_loops("C")
    pairs, pair = sch.split(row, factors=[None, 2])
    vectors, lanes = sch.split(column, factors=[None, 2 * lanes_of(target)])
    sch.reorder(pairs, vectors, pair, lanes)
    sch.annotate("C", "prefetch", [["read", 0, [0, AHEAD]]])
    sch.annotate(lanes, "reassociate", True)
    sch.decompose_reduction("C", vectors)
    sch.vectorize(lanes)
    sch.unroll(pair)
    sch.parallel(pairs)
