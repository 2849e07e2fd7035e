"""tir-transpose-tiles: transpose square tiles in registers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, cast

from xdsl.dialects import memref, vector
from xdsl.dialects.builtin import DenseArrayBase, IntegerAttr, MemRefType, VectorType, i64
from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation, SSAValue

from weft.analysis.index import Index
from weft.analysis.integer_ranges import Product, meaning_of
from weft.dialects.aliasing import with_overlapping
from weft.dialects.effects import only_computes, opaque_op, underlying
from weft.dialects.element_types import bytes_of
from weft.dialects.tir import ForOp
from weft.dialects.tir_kinds import LoopKind, LoopKindAttr
from weft.dialects.traversal import copies_of_sources, operations_in, operations_of
from weft.passes.index_builders import index_before, insert_before, set_access
from weft.passes.tir.tir_pass import LOCAL, FunctionPass, allocate_before, range_of
from weft.support.statistics import Statistic

_TRANSPOSED: Final = Statistic("tir-transpose-tiles", "tiles-transposed", "tiles that are transposed in registers")
_SIDES: Final = (4, 8, 16)
"""Rows and columns of a tile; all rows are in registers at once."""
_PART_BYTES: Final = 16
"""Bytes within which shuffles of x86 and Arm move elements; between such parts they move whole ones."""


@dataclass(frozen=True)
class TransposeTilesPass(FunctionPass):
    """Load the columns that lanes read as rows, and transpose the tile in registers.

    ```mlir
    tir.for %r in 8 { tir.for %c in 8 vectorized { %a = memref.load %A[%r + %c * 100]; USE(%r, %c, %a) } }
    ```
    is, with a local buffer of 64 elements and 24 shuffles,

    ```mlir
    %row0 = vector.load %A[0] ... %row7 = vector.load %A[700]
    %0 = vector.shuffle %row0, %row1 [...] ... vector.store %23, %tile[56]
    tir.for %r in 8 unrolled { tir.for %c in 8 vectorized { %a = memref.load %tile[%r * 8 + %c]; USE(%r, %c, %a) } }
    ```
    The tile has 4, 8 or 16 rows and columns: the extents of both loops. Loads under conditions, as at edges, and from
    buffers that the loops store to, stay. The outer loop contains only the vectorized one; it is unrolled, so that LLVM
    keeps the local buffer in registers.

    A tile of n rows takes n log2(n) shuffles, first within parts of 16 bytes, by pairs of rows, then of whole parts
    (Eklundh, "A fast computer method for matrix transposing", 1972).

    Requires: flat buffers (`tir-flatten`), vectorized loops.

    Leaves: the same; vectors outside of the vectorized loops.
    """

    name = "tir-transpose-tiles"

    def rewrite(self, function: FuncOp) -> None:
        for loop in operations_of(function, ForOp):
            if loop.kind.data is LoopKind.VECTORIZED and loop.extent in _SIDES:
                transpose_tiles(loop)


def transpose_tiles(columns: ForOp) -> None:
    rows = columns.parent_op()
    if not isinstance(rows, ForOp) or rows.extent != columns.extent:
        return
    if rows.kind.data not in (LoopKind.SERIAL, LoopKind.UNROLLED):
        return
    if any(op is not columns and not only_computes(op) for op in rows.body.block.ops):
        return
    stored = [op.memref for op in operations_in(columns) if isinstance(op, memref.StoreOp)]
    if opaque_op(columns) is not None or any(underlying(buffer) is not buffer for buffer in stored):
        return
    written = with_overlapping(stored)
    for op in list(columns.body.block.ops):
        if not isinstance(op, memref.LoadOp) or len(op.indices) != 1:
            continue
        if op.memref not in written and underlying(op.memref) is op.memref:
            _transpose(op, rows, columns)


def _transpose(load: memref.LoadOp, rows: ForOp, columns: ForOp) -> None:
    place = Index.of(load.indices[0]).simplified(range_of)
    row, column = rows.induction_variable, columns.induction_variable
    if not _reads_columns(place, row, column) or rows.is_ancestor(load.memref.owner):
        return
    if not isinstance(rows.extent, int):
        return
    count, element = rows.extent, load.res.type
    part = _PART_BYTES // bytes_of(element)
    if part < 1 or part > count:
        return
    type_ = VectorType(element, [count])
    starts = [_index_at(load.indices[0], {row: 0, column: number}, rows) for number in range(count)]
    loads = [vector.LoadOp(load.memref, [start], type_) for start in starts]
    insert_before(rows, loads)
    tile_type = MemRefType(element, [count * count], memory_space=LOCAL)
    hint = f"{load.memref.name_hint or 'tile'}_tile"
    tile = allocate_before(rows, memref.AllocaOp, tile_type, hint, IntegerAttr(64, i64)).memref
    for number, lanes in enumerate(_transposed([op.results[0] for op in loads], part, rows)):
        insert_before(rows, [vector.StoreOp(lanes, tile, [index_before(Index({}, number * count), rows)])])
    set_access(load, tile, [index_before(Index({row: count, column: 1}), load)])
    rows.kind = LoopKindAttr(LoopKind.UNROLLED)
    _TRANSPOSED.add()


def _reads_columns(place: Index, row: SSAValue, column: SSAValue) -> bool:
    """Rows are at stride 1, columns at a symbolic one or a number other than 0 and 1."""
    steps: list[Index] = []
    for atom, factor in place.terms.items():
        index = Index({atom: 1})
        if atom is row and factor == 1:
            continue
        if atom is column:
            steps.append(Index({}, factor))
        elif index.depends_on([row, column]):
            meaning = meaning_of(atom) if isinstance(atom, SSAValue) else None
            if not isinstance(meaning, Product):
                return False
            moving, step = meaning.left, meaning.right
            if step.depends_on([column]):
                moving, step = step, moving
            moves = moving.coefficient(column)
            stays = moving - Index({column: moves})
            if moves == 0 or stays.depends_on([row, column]) or step.depends_on([row, column]):
                return False
            steps.append(step * moves * factor)
    return place.coefficient(row) == 1 and len(steps) == 1 and steps[0] not in (Index({}), Index({}, 1))


def _index_at(index: SSAValue, iteration: Mapping[SSAValue, int], loop: ForOp) -> SSAValue:
    """The value in one iteration of the loops, computed before `loop`."""
    mapping = {variable: index_before(Index({}, number), loop) for variable, number in iteration.items()}
    insert_before(loop, copies_of_sources([index], mapping, loop.is_ancestor))
    return index_before(Index.of(mapping.get(index, index)).simplified(range_of), loop)


def _transposed(rows: Sequence[SSAValue], part: int, anchor: Operation) -> list[SSAValue]:
    """Shuffles first move elements within parts of `part` lanes."""
    lanes = len(rows)
    values = list(rows)
    size = 1
    while size < part:
        # Units of `size` elements of one half of each part, alternating between two rows.
        halves = [[at for at in range(lanes) if at % part // (part // 2) == half] for half in (0, 1)]
        units = [[half[at : at + size] for at in range(0, len(half), size)] for half in halves]
        masks = [[at + row * lanes for unit in half for row in (0, 1) for at in unit] for half in units]
        following: list[SSAValue] = []
        for base in range(0, lanes, 2 * size):
            for at in range(base, base + size):
                following += [_shuffled(values[at], values[at + size], mask, anchor) for mask in masks]
        values, size = following, 2 * size
    # Part k of row `part * g + j` now has column `part * k + j` of the rows from `part * g` on.
    by_column = [_transposed_parts(values[at::part], lanes, part, anchor) for at in range(part)]
    return [by_column[at % part][at // part] for at in range(lanes)]


def _transposed_parts(rows: Sequence[SSAValue], lanes: int, part: int, anchor: Operation) -> list[SSAValue]:
    if len(rows) == 1:
        return list(rows)
    masks = [[at for at in range(2 * lanes) if at // part % 2 == parity] for parity in (0, 1)]
    pairs = list(zip(rows[::2], rows[1::2], strict=True))
    even, odd = (
        _transposed_parts([_shuffled(one, other, mask, anchor) for one, other in pairs], lanes, part, anchor)
        for mask in masks
    )
    return [value for pair in zip(even, odd, strict=True) for value in pair]


def _shuffled(one: SSAValue, other: SSAValue, mask: Sequence[int], anchor: Operation) -> SSAValue:
    type_ = cast("VectorType", one.type)
    op = vector.ShuffleOp(one, other, DenseArrayBase.from_list(i64, mask), result_type=type_)
    insert_before(anchor, [op])
    return op.results[0]
