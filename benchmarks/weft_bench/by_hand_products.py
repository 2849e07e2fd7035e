"""Hand-written schedules: matrix products. A tile of results stays in registers for the whole sum."""

from __future__ import annotations

from collections.abc import Callable

from xdsl.ir.affine import AffineExpr

from weft.schedule.schedule import BlockHandle, Schedule
from weft.support.target import Target
from weft_bench.by_hand import in_lanes, in_registers, lanes_of, lie_in_panels
from weft_bench.ladder_steps import TERMS, register_tile

AHEAD = 8
"""Prefetch distance of packing, in rows; or cache lines, if columns are packed."""
LINE = 64
"""Elements of a column that are packed before those of the next, whose lines are then in cache."""


def product(
    dtype: str = "float32", transpose_a: bool = False, transpose_b: bool = False, padded: bool = False
) -> Callable[[Schedule, Target], None]:
    """`C = A @ B` with results of `dtype`: a panel of B is packed, then multiplied by all rows of A. A transposed A is
    packed too, in panels as wide as a tile. `padded`: the number of columns is not a multiple of a vector, so the last
    panel is padded with zeros.
    """

    def schedule(sch: Schedule, target: Target) -> None:
        lanes = lanes_of(target, dtype)
        rows, vectors = (target.vector_registers // 4, 3) if transpose_a else register_tile(target)
        c = sch.get_block("C")
        a = sch.cache_read(c, "A", "global") if transpose_a else None
        if padded:
            sch.pad_einsum(c, [1, lanes, 1])
            (b, *_), (result,) = reversed(sch.get_producers(c)), sch.get_consumers(c)
            sch.set_scope(c, 0, "local")
        else:
            b, result = sch.cache_read(c, "B", "global"), sch.cache_write(c, 0, "local")
        i, j, k = sch.get_loops(c)
        i0, j0, i1, j1 = sch.tile(i, j, factors=[rows, vectors * lanes])
        k0, k1 = sch.split(k, factors=[None, TERMS])
        sch.reorder(j0, i0, k0, k1, i1, j1)
        sch.compute_at(b, j0)
        (_pack_columns if transpose_b else _pack_rows)(sch, b, vectors * lanes, lanes)
        if a is not None:
            _pack_left(sch, a, rows)
        sch.annotate(result, "prefetch", [["write", 0, [rows, 0]]])
        sch.reverse_compute_at(result, i0)
        init = sch.decompose_reduction(c, k0)
        for block in (init, c, result):
            in_registers(sch, block, 2, lanes)
        sch.unroll(k1)
        sch.parallel(j0)

    return schedule


def _pack_rows(sch: Schedule, b: BlockHandle, width: int, lanes: int) -> None:
    """Pack row-major B into panels of columns."""
    lie_in_panels(sch, b, 1, width)
    sch.annotate(b, "prefetch", [["read", 0, [AHEAD, 0]]])
    in_lanes(sch, sch.get_loops(b)[-1], lanes)


def _pack_columns(sch: Schedule, b: BlockHandle, width: int, lanes: int) -> None:
    """Pack a transposed B into panels of columns, a few lines of several rows at a time."""
    lie_in_panels(sch, b, 0, width)
    sch.annotate(b, "prefetch", [["read", 0, [0, LINE]]])
    j, k = sch.get_loops(b)[-2:]
    (j0, j1, j2), (k0, k1) = sch.split(j, factors=[None, AHEAD, AHEAD]), sch.split(k, factors=[None, LINE])
    sch.reorder(j0, k0, j1, k1, j2)
    sch.unroll(j2)


def _pack_left(sch: Schedule, a: BlockHandle, rows: int) -> None:
    """Pack a transposed A into panels of rows, a few lines at a time for all panels."""

    def panel(k: AffineExpr, i: AffineExpr) -> tuple[AffineExpr, ...]:
        return i // rows, k, i % rows

    sch.transform_layout(a, ("write", 0), panel, pad_value=0)
    if len(sch.get_loops(a)) == 2:  # without padding
        sch.transform_block_layout(a, panel)
    sch.annotate(a, "prefetch", [["read", 0, [LINE // rows, 0, 0]], ["write", 0, [2, 0, 0]]])
    panels, k, row = sch.get_loops(a)
    k0, k1 = sch.split(k, factors=[None, 2 * AHEAD])
    sch.reorder(k0, panels, k1, row)
    sch.vectorize(row)
    sch.parallel(k0)


def batched_relu(sch: Schedule, target: Target) -> None:
    """Batched matrix products with relu applied when a tile leaves the registers."""
    lanes, (rows, vectors) = lanes_of(target), register_tile(target)
    y = sch.get_block("Y")
    b = sch.cache_read(y, "B", "global")
    sch.set_scope(y, 0, "local")
    n, i, j, k = sch.get_loops(y)
    i0, j0, i1, j1 = sch.tile(i, j, factors=[rows, vectors * lanes])
    k0, k1 = sch.split(k, factors=[None, TERMS])
    sch.reorder(n, j0, i0, k0, k1, i1, j1)
    sch.compute_at(b, j0)
    lie_in_panels(sch, b, 2, vectors * lanes)
    in_lanes(sch, sch.get_loops(b)[-1], lanes)
    sch.annotate("C", "prefetch", [["write", 0, [0, rows, 0]]])
    sch.reverse_compute_at("C", i0)
    init = sch.decompose_reduction(y, k0)
    for block in (init, y, sch.get_block("C")):
        in_registers(sch, block, 2, lanes)
    sch.unroll(k1)
    sch.parallel(n)


def linear_relu(sch: Schedule, target: Target) -> None:
    """Results of a row stay in registers while the weights are streamed once; bias and relu are applied there."""
    lanes, vectors = lanes_of(target), target.vector_registers // 4
    y = sch.get_block("Y")
    sch.compute_inline("Z")
    sch.set_scope(y, 0, "local")
    i, j, k = sch.get_loops(y)
    j0, j1 = sch.split(j, factors=[None, vectors * lanes])
    k0, k1 = sch.split(k, factors=[None, TERMS])
    sch.reorder(i, j0, k0, k1, j1)
    sch.reverse_compute_at("C", j0)
    init = sch.decompose_reduction(y, k0)
    for block in (init, y, sch.get_block("C")):
        in_registers(sch, block, 1, lanes)
    sch.unroll(k1)
