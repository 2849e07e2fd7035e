"""Default schedule of products summed in groups that are scaled before they are added."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import gcd
from typing import Final

from xdsl.dialects import arith
from xdsl.dialects.builtin import i32
from xdsl.ir import SSAValue

from weft.analysis.block_patterns import BlockPattern, Operand, PatternKind, pattern_of
from weft.analysis.index import Index, Quotient
from weft.autoschedule.inlining import fuse_consumers, producer_of
from weft.autoschedule.rules import keep_in_registers, op_of, pays_threads, product, share_among_threads
from weft.passes.graph.graph_pack_weights import ROWS
from weft.passes.schedule.dot_intrinsics import dot_name
from weft.schedule.recording import BlockHandle, LoopHandle
from weft.schedule.schedule import Schedule
from weft.support.target import Target

_SUMS: Final = (PatternKind.REDUCTION, PatternKind.CONTRACTION, PatternKind.CONVOLUTION, PatternKind.WINDOW)
_DOT: Final = 4
"""The number of products of bytes that a dot product adds to each sum."""
_ALL_ROWS: Final = 12
"""The maximum number of rows, times the bytes of their data, that share unpacked weights."""
_DOTS: Final = 48
"""Limit of the number of dot products of an iteration, beyond two steps, with 32 vector registers; in proportion with
others."""
_STEPS: Final = 8
"""Limit of the number of unrolled reduction steps of a group: the number of 4-bit weights in an element of 32 bits."""


@dataclass(frozen=True)
class _Groups:
    parts: BlockHandle
    """The block that forms the sum of each group."""
    rows: int
    """The number of sums of each column in registers: the rows of a tile, times the bytes of their data."""
    has_all_rows: bool
    """Whether a tile contains all rows; otherwise it contains `ROWS` of the last axis of rows."""
    width: int
    """The number of columns of a panel, which are consecutive in memory."""
    unrolled: int
    """The number of reduction steps of a group that are unrolled."""
    pattern: BlockPattern
    """The pattern of the sums of groups."""
    is_integer: bool
    """Whether the sums are dot products of bytes."""
    bytes: BlockHandle | None
    """The block that unpacks narrower weights to bytes for dot products, or None if there is none."""


def grouped_products(sch: Schedule, block: BlockHandle, target: Target) -> bool:
    """Keep the sums of a panel of columns in registers; unpack weights once for a tile of rows, all rows if they are
    few.

    ```
    for columns of a panel: for rows of a tile: total = 0
      for group: sums = 0
        for k: for row: sums[row, c] += x[row, group, k] * weight[group, k, c]
        total[row, c] += scale[group, c] * sums[row, c]
      out[row, panel] = epilogue(total)
    ```
    Applicable to a sum over groups that alone reads sums of products, one per element and group, with weights stored in
    panels (`column floordiv width`). Not applicable if results are not consecutive along an iterator of both, or if an
    extent other than rows is unknown. Many rows need sums of integers.
    """
    found = _groups(sch, block)
    lanes = max(target.vector_bytes // 4, 1)
    if found is None or found.width % lanes:
        return False
    pays = pays_threads([found.pattern], target)
    width = found.width
    while found.rows * width > lanes * target.vector_registers // 2 and width % (2 * lanes) == 0:
        width //= 2
    total = sch.cache_write(block, 0, "local")
    fuse_consumers(sch, total)
    *tile, column, group = sch.get_loops(block)
    outer: list[LoopHandle] = []
    if not found.has_all_rows:
        *outer, last = tile
        outermost, last = sch.split(last, [None, ROWS])
        outer, tile = [*outer, outermost], [last]
    panel, columns = sch.split(column, [None, width])
    lane = [columns] if width == lanes else sch.split(columns, [None, lanes])
    sch.reorder(panel, *outer, group, *tile, *lane)
    sch.reverse_compute_at(total, outer[-1] if outer else panel, preserve_unit_loops=True)
    sch.compute_at(found.parts, group, preserve_unit_loops=True)
    sch.set_scope(found.parts, 0, "local")
    *rows, one, column, steps = sch.get_loops(found.parts)[2 + len(outer) :]
    dots = [_DOT] if found.is_integer else []
    count = found.unrolled // (_DOT if dots else 1)
    while (
        dots
        and count % 2 == 0
        and count > 2
        and count * found.rows * width > _DOTS * lanes * target.vector_registers // 32
    ):
        count //= 2
    step, unrolled, *dot = sch.split(steps, [None, count, *dots])
    lane = [column] if width == lanes else sch.split(column, [None, lanes])
    sch.reorder(one, step, unrolled, *rows, *lane, *dot)
    if found.bytes is not None:
        sch.compute_at(found.bytes, step, preserve_unit_loops=True)
    first_sum = sch.decompose_reduction(found.parts, step)
    first_total = sch.decompose_reduction(block, group)
    if width > lanes:
        sch.split(sch.get_loops(total)[-1], [None, lanes])
    if dots:
        for loop in (unrolled, *rows, *lane[:-1]):
            sch.unroll(loop)
        is_narrow = any(isinstance(op, arith.AndIOp) for op in found.pattern.block.walk())
        sch.tensorize(lane[-1], dot_name(lanes, 8, True, False, right_width=4 if is_narrow else None))
    for part in (first_sum, *(() if dots else (found.parts,))):
        keep_in_registers(sch, sch.get_loops(part)[-len(rows) - len(lane) :], lanes)
    for part in (first_total, block, total):
        keep_in_registers(sch, sch.get_loops(part)[-len(tile) - len(lane) :], lanes)
    if not dots:
        sch.unroll(unrolled)
    if found.bytes is not None:
        *within, columns, byte = sch.get_loops(found.bytes)[-4:]
        keep_in_registers(sch, [*within, sch.fuse(columns, byte)], target.vector_bytes)
    share_among_threads(sch, block, pays, target, 1)
    return True


def _groups(sch: Schedule, block: BlockHandle) -> _Groups | None:
    pattern = pattern_of(op_of(sch, block))
    if pattern.kind not in _SUMS or len(pattern.reduced) != 1:
        return None
    iterators = (*pattern.spatial, *pattern.reduced)
    order = (*pattern.spatial[:-1], *pattern.reduced, *pattern.spatial[-1:])
    if len(pattern.writes) != 1 or tuple(pattern.block.iter_vars) != iterators or not pattern.spatial:
        return None
    if pattern.writes[0].stride_of(pattern.spatial[-1]) != 1:
        return None
    for producer in sch.get_producers(block):
        inner = pattern_of(op_of(sch, producer))
        if inner.kind not in _SUMS or len(inner.reduced) != 1 or len(inner.writes) != 1:
            continue
        reads = [read for read in pattern.reads if read.buffer is inner.writes[0].buffer]
        is_ours = bool(reads) and all(_is_in_order(read, order) for read in reads)
        is_ours = is_ours and len(sch.get_consumers(producer)) == 1
        is_whole = tuple(inner.block.iter_vars) == (*inner.spatial, *inner.reduced)
        if not is_ours or not is_whole or not _is_in_order(inner.writes[0], inner.spatial):
            continue
        extents = [inner.extent_of(v) for v in inner.block.iter_vars]
        *rows, _, columns, size = extents
        width = _width(inner, inner.spatial[-1])
        if size is None or columns is None or width is None:
            continue
        is_integer = inner.writes[0].element_type == i32
        unrolled = gcd(size, _STEPS * (_DOT if is_integer else 1))
        unpacked = _bytes(sch, producer, inner) if is_integer else None
        count = product(rows)
        has_all_rows = count is not None and count <= _ALL_ROWS
        if not has_all_rows and (not is_integer or len(rows) < 2):
            continue
        in_tile = count if count is not None and has_all_rows else ROWS * (rows[-1] or 1)
        return _Groups(producer, in_tile, has_all_rows, width, unrolled, inner, is_integer, unpacked)
    return None


def _bytes(sch: Schedule, parts: BlockHandle, pattern: BlockPattern) -> BlockHandle | None:
    column = pattern.spatial[-1]
    weights = [read for read in pattern.reads if read.dimensions_of(column)]
    return producer_of(sch, parts, weights[0].buffer) if len(weights) == 1 else None


def _is_in_order(operand: Operand, iterators: Sequence[SSAValue]) -> bool:
    return [index for index in operand.indices if index.terms] == [Index({v: 1}) for v in iterators]


def _width(pattern: BlockPattern, column: SSAValue) -> int | None:
    """Columns of a panel: the divisor in the indices of the weights."""
    for read in pattern.reads:
        for index in read.indices:
            for atom in index.terms:
                if isinstance(atom, Quotient) and atom.numerator.single_value is column:
                    return atom.divisor
    return None
