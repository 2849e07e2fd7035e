"""What a warp does with tiles, as one step on whole tiles; see `low_tensor_cores.py` for what its threads do."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

from weft.dialects import low_tensor_cores
from weft.dialects.low_tensor_cores import FragmentAttr, Order
from weft.interp.registry import emits
from weft.interp.rounding import round_f32

if TYPE_CHECKING:
    from collections.abc import Sequence

    from weft.interp.emitter import Emitter

Pointer: TypeAlias = "tuple[list[Any], int]"
Matrix: TypeAlias = "list[list[Any]]"


@emits(low_tensor_cores.TileLoadOp, low_tensor_cores.TileStoreOp)
def emit_tile_copy(emitter: Emitter, op: low_tensor_cores.Copy) -> None:
    rows, columns = op.fragment.tile
    operands = ", ".join(emitter.value(operand) for operand in op.operands)
    with emitter.store():
        emitter.line(f"{emitter.helper(copy_tile)}({operands}, {rows}, {columns})", op)


def copy_tile(source: Pointer, source_rows: int, target: Pointer, target_rows: int, rows: int, columns: int) -> None:
    """Copy rows of so many elements."""
    (read, first), (written, start) = source, target
    for row in range(rows):
        at, to = first + row * source_rows, start + row * target_rows
        written[to : to + columns] = read[at : at + columns]


@emits(low_tensor_cores.TileFillOp)
def emit_tile_fill(emitter: Emitter, op: low_tensor_cores.TileFillOp) -> None:
    rows, columns = op.fragment.tile
    target, distance = emitter.value(op.target), emitter.value(op.target_rows)
    value = repr(float(op.value.value.data))
    with emitter.store():
        emitter.line(f"{emitter.helper(fill_tile)}({target}, {distance}, {value}, {rows}, {columns})", op)


def fill_tile(target: Pointer, target_rows: int, value: float, rows: int, columns: int) -> None:
    written, start = target
    for row in range(rows):
        written[start + row * target_rows : start + row * target_rows + columns] = [value] * columns


@emits(low_tensor_cores.TileMmaOp)
def emit_tile_mma(emitter: Emitter, op: low_tensor_cores.TileMmaOp) -> None:
    operands = ", ".join(emitter.value(operand) for operand in op.operands)
    fragments = ", ".join(emitter.constant(f, "fragment") for f in (op.a_fragment, op.b_fragment))
    with emitter.store():
        emitter.line(f"{emitter.helper(multiply_tiles)}({operands}, {fragments})", op)


def multiply_tiles(
    a: Pointer,
    a_rows: int,
    b: Pointer,
    b_rows: int,
    c: Pointer,
    c_rows: int,
    a_fragment: FragmentAttr,
    b_fragment: FragmentAttr,
) -> None:
    left, right = matrix_of(a, a_rows, a_fragment), matrix_of(b, b_rows, b_fragment)
    memory, start = c
    m, n, _ = a_fragment.shape
    sums = [memory[start + row * c_rows : start + row * c_rows + n] for row in range(m)]
    for row, line in enumerate(multiplied(left, right, sums)):
        memory[start + row * c_rows : start + row * c_rows + n] = line


def matrix_of(tile: Pointer, distance: int, fragment: FragmentAttr) -> Matrix:
    """The rows of the matrix that a tile holds, whichever way."""
    memory, start = tile
    rows, columns = fragment.tile
    found = [memory[start + row * distance : start + row * distance + columns] for row in range(rows)]
    return found if fragment.order is Order.ROW else [list(column) for column in zip(*found, strict=True)]


def multiplied(a: Matrix, b: Matrix, c: Sequence[Sequence[Any]]) -> Matrix:
    """A * B + C, rounded once: hardware rounds more often, and in an order that is not specified."""
    columns = list(zip(*b, strict=True))
    return [
        [
            round_f32(sum((x * y for x, y in zip(row, column, strict=True)), 0.0) + before)
            for column, before in zip(columns, line, strict=True)
        ]
        for row, line in zip(a, c, strict=True)
    ]
