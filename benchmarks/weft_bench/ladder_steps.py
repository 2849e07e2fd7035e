"""The steps of the ladder: schedules of one matrix product, each with one more optimisation than the preceding one.

The first six are those of the usual course on tensor expressions; packing, a result cache and register tiles are
techniques of libraries (Goto and van de Geijn, "Anatomy of high-performance matrix multiplication", 2008).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir.affine import AffineExpr

from weft.frontends.create_func import create_func
from weft.schedule.schedule import BlockHandle, LoopHandle, Schedule
from weft.support.target import Target
from weft.texpr.expr import Expr
from weft.texpr.reductions import reduce_axis
from weft.texpr.reductions import sum as sum_over
from weft.texpr.tensor import compute, placeholder

TILE = 32
"""Rows and columns of a tile: two float32 tiles fill a quarter of an L1 of 32 KiB."""
UNROLLED = 4
"""Terms of the sum during which a row of the tile stays in registers."""
TERMS = 2
"""Terms of the sum per iteration when results stay in registers."""
FLOAT_BYTES = 4


def matmul(size: int) -> ModuleOp:
    """`C = A @ B` for square float32 matrices."""
    a = placeholder((size, size), "float32", name="A")
    b = placeholder((size, size), "float32", name="B")
    k = reduce_axis((0, size), name="k")

    def element(i: Expr, j: Expr) -> Expr:
        return sum_over(a[i, k] * b[k, j], axis=k)

    return create_func([a, b, compute((size, size), element, name="C")], name="matmul")


@dataclass(frozen=True)
class Step:
    """A schedule of `matmul` for a target, and its addition to the preceding step."""

    name: str
    idea: str
    schedule: Callable[[Schedule, Target], None]


def naive(sch: Schedule, target: Target) -> None:
    """Three loops, the sum innermost."""


def tile(sch: Schedule, target: Target) -> None:
    _tiles(sch, sch.get_block("C"))


def reorder(sch: Schedule, target: Target) -> None:
    _tiles_in_order(sch, sch.get_block("C"))


def vectorize(sch: Schedule, target: Target) -> None:
    _lanes(sch, target, *_tile_blocks(sch))


def parallel(sch: Schedule, target: Target) -> None:
    blocks = _tile_blocks(sch)
    _lanes(sch, target, *blocks)
    sch.parallel(sch.get_loops(blocks[0])[0])


def unroll(sch: Schedule, target: Target) -> None:
    _unrolled_tiles(sch, target, sch.get_block("C"))


def pack(sch: Schedule, target: Target) -> None:
    c = sch.get_block("C")
    packed = _packed_panels(sch, c, TILE)
    _unrolled_tiles(sch, target, c)
    _copy_in_lanes(sch, target, packed)


def cache(sch: Schedule, target: Target) -> None:
    c = sch.get_block("C")
    packed = _packed_panels(sch, c, TILE)
    result = sch.cache_write(c, 0, "local")
    k0, k1 = _tiles_in_order(sch, c)
    i0, j0, *_ = sch.get_loops(c)
    sch.reverse_compute_at(result, j0)
    init = sch.decompose_reduction(c, k0)
    sch.unroll(k1)
    for vector in _lanes(sch, target, init, c, result).values():
        sch.unroll(vector)
    sch.parallel(i0)
    _copy_in_lanes(sch, target, packed)


def registers(sch: Schedule, target: Target) -> None:
    rows, vectors = register_tile(target)
    c = sch.get_block("C")
    packed = sch.cache_read(c, "B", "global")
    result = sch.cache_write(c, 0, "local")
    i, j, k = sch.get_loops(c)
    i0, j0, i1, j1 = sch.tile(i, j, factors=[rows, vectors * _lanes_of(target)])
    k0, k1 = sch.split(k, factors=[None, TERMS])
    sch.reorder(j0, i0, k0, k1, i1, j1)
    sch.compute_at(packed, j0)
    _panels(sch, packed, ("write", 0), vectors * _lanes_of(target))
    sch.reverse_compute_at(result, i0)
    init = sch.decompose_reduction(c, k0)
    for block, vector in _lanes(sch, target, init, c, result).items():
        *_, row, _, _ = sch.get_loops(block)
        sch.unroll(row)
        sch.unroll(vector)
    sch.unroll(k1)
    _lanes(sch, target, packed)
    sch.parallel(j0)


STEPS = (
    Step("naive", "three loops, the sum innermost", naive),
    Step("tile", f"tiles of {TILE} x {TILE} results, {UNROLLED} terms of the sum at a time: both stay in cache", tile),
    Step("reorder", "the columns of a tile innermost, so that memory is read in order", reorder),
    Step("vectorize", "the columns of a tile in vector registers", vectorize),
    Step("parallel", "rows of tiles on all threads", parallel),
    Step("unroll", "a row of the tile stays in registers for some terms", unroll),
    Step("pack", "B in panels as wide as a tile, so that a tile reads consecutive memory", pack),
    Step("cache", "the results of a tile next to each other in memory of their own, copied out when done", cache),
    Step("registers", "as many results as registers hold, for the whole sum; panels packed when needed", registers),
)


def register_tile(target: Target) -> tuple[int, int]:
    """Rows and vectors of a result tile in three quarters of the registers; the rest is for a row of B and an element
    of A.
    """
    vectors = max(1, target.vector_registers // 8)
    return max(1, target.vector_registers * 3 // 4 // vectors), vectors


def _lanes_of(target: Target) -> int:
    return target.vector_bytes // FLOAT_BYTES


def _tiles(sch: Schedule, c: BlockHandle) -> list[LoopHandle]:
    """Tile the results, a few terms of the sum at a time. Returns the loops, outermost first."""
    i, j, k = sch.get_loops(c)
    i0, j0, i1, j1 = sch.tile(i, j, factors=[TILE, TILE])
    k0, k1 = sch.split(k, factors=[None, UNROLLED])
    sch.reorder(i0, j0, k0, i1, j1, k1)
    return [i0, j0, k0, i1, j1, k1]


def _tiles_in_order(sch: Schedule, c: BlockHandle) -> tuple[LoopHandle, LoopHandle]:
    """Tiles with their columns innermost. Returns the loop over groups of terms and the one within a group."""
    *_, k0, _, j1, k1 = _tiles(sch, c)
    sch.reorder(k1, j1)
    return k0, k1


def _tile_blocks(sch: Schedule) -> tuple[BlockHandle, BlockHandle]:
    """The block that initialises a tile, and the one that accumulates."""
    c = sch.get_block("C")
    k0, _ = _tiles_in_order(sch, c)
    return sch.decompose_reduction(c, k0), c


def _unrolled_tiles(sch: Schedule, target: Target, c: BlockHandle) -> None:
    k0, k1 = _tiles_in_order(sch, c)
    init = sch.decompose_reduction(c, k0)
    sch.unroll(k1)
    for vector in _lanes(sch, target, init, c).values():
        sch.unroll(vector)
    sch.parallel(sch.get_loops(c)[0])


def _lanes(sch: Schedule, target: Target, *blocks: BlockHandle) -> dict[BlockHandle, LoopHandle]:
    """Split the innermost loop of each block into a loop over vectors, which is returned, and vectorised lanes."""
    vectors: dict[BlockHandle, LoopHandle] = {}
    for block in blocks:
        vectors[block], lane = sch.split(sch.get_loops(block)[-1], factors=[None, _lanes_of(target)])
        sch.vectorize(lane)
    return vectors


def _packed_panels(sch: Schedule, c: BlockHandle, columns: int) -> BlockHandle:
    """Pack B into row-major panels of columns. Returns the copying block."""
    packed = sch.cache_read(c, "B", "global")
    _panels(sch, packed, ("write", 0), columns)
    return packed


def _panels(sch: Schedule, block: BlockHandle, buffer: tuple[str, int], columns: int) -> None:
    """Store a matrix in row-major panels of columns; the last one is padded with zeros."""

    def panel(k: AffineExpr, j: AffineExpr) -> tuple[object, ...]:
        return j // columns, k, j % columns

    sch.transform_layout(block, buffer, panel, pad_value=0.0)


def _copy_in_lanes(sch: Schedule, target: Target, packed: BlockHandle) -> None:
    _lanes(sch, target, packed)
    sch.parallel(sch.get_loops(packed)[0])
