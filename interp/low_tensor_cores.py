"""What the threads of a warp do together on tensor cores: all of them meet, and then it happens at once.

Where `wmma` leaves open which thread holds which element, the interpreter has a layout of its own: thread l holds the
elements from l * n on, counted row by row and from the start again, where n is how many it holds.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final, TypeAlias, cast

from xdsl.dialects.builtin import f32

from weft.dialects import low_tensor_cores
from weft.dialects.low_tensor_cores import WARP, Family, FragmentAttr, Order, Role
from weft.interp.errors import InterpreterError
from weft.interp.low_tiles import Matrix, Pointer, matrix_of, multiplied
from weft.interp.meetings import Meeting
from weft.interp.registry import emits

if TYPE_CHECKING:
    from xdsl.ir import Operation

    from weft.interp.emitter import Emitter

Lanes: TypeAlias = "Sequence[Sequence[Any]]"
"""What each thread of a warp brings to an op: one value per operand."""


@emits(*low_tensor_cores.TENSOR_CORE_OPS)
def emit_meeting(emitter: Emitter, op: low_tensor_cores.WarpOp) -> None:
    operands = ", ".join(emitter.value(operand) for operand in op.operands)
    emitter.line(f"yield {emitter.helper(Meeting)}({emitter.operation_name(op)}, ({operands},))", op)


def meet(op: Operation, lanes: Lanes) -> None:
    """What happens when the threads of a warp have come to `op`. Raises `InterpreterError` when some are missing, or
    do not agree."""
    if len(lanes) != WARP:
        raise InterpreterError(op, f"'{op.name}' is for {WARP} threads, and the warp has {len(lanes)}")
    _MEANINGS[op.name](op, lanes)


def _agreed(op: Operation, lanes: Lanes, operand: int) -> Any:
    """The value of an operand that is the same in all threads."""
    values = [lane[operand] for lane in lanes]
    for number, value in enumerate(values):
        if not _is_same(values[0], value):
            raise InterpreterError(op, f"'{op.name}': threads 0 and {number} of a warp name different tiles")
    return values[0]


def _is_same(first: Any, second: Any) -> bool:
    """Whether two numbers, or two pointers, are the same."""
    if not isinstance(first, tuple):
        return first == second
    (memory, at), (other, place) = cast("tuple[Pointer, Pointer]", (first, second))
    return memory is other and at == place


def _aligned(op: Operation, place: int, count: int) -> None:
    if place % count:
        raise InterpreterError(op, f"'{op.name}': a row starts at element {place}, which is no multiple of {count}")


def _bounded(op: Operation, pointer: Pointer, count: int) -> None:
    memory, at = pointer
    if not 0 <= at <= len(memory) - count:
        raise InterpreterError(
            op, f"access out of bounds: '{op.name}' takes {count} elements from {at} of {len(memory)}"
        )


def _registers(op: Operation, lanes: Lanes, operand: int, count: int) -> list[Pointer]:
    found = [lane[operand] for lane in lanes]
    for pointer in found:
        _bounded(op, pointer, count)
    return found


def _scatter(fragment: FragmentAttr, registers: Sequence[Pointer], tile: Sequence[Any]) -> None:
    """Give the threads what they hold of a tile, which comes row by row."""
    count = fragment.elements_per_thread
    for lane, (memory, at) in enumerate(registers):
        memory[at : at + count] = [tile[(lane * count + number) % len(tile)] for number in range(count)]


def _gathered(fragment: FragmentAttr, registers: Sequence[Pointer]) -> list[Any]:
    """The tile that threads hold, row by row."""
    rows, columns = fragment.tile
    count = fragment.elements_per_thread
    return [element for memory, at in registers for element in memory[at : at + count]][: rows * columns]


def _wmma_load(op: low_tensor_cores.WmmaLoadOp, lanes: Lanes) -> None:
    fragment = op.fragment
    (memory, at), distance = _agreed(op, lanes, 0), _agreed(op, lanes, 1)
    rows, columns = fragment.tile
    tile: list[Any] = []
    for row in range(rows):
        start = at + row * distance
        _bounded(op, (memory, start), columns)
        _aligned(op, start, row_alignment(fragment))
        tile.extend(memory[start : start + columns])
    _scatter(fragment, _registers(op, lanes, 2, fragment.elements_per_thread), tile)


def row_alignment(fragment: FragmentAttr) -> int:
    """How many elements rows in memory are multiples of: as many as a thread holds (PTX ISA, "Matrix Storage")."""
    return fragment.elements_per_thread


def _wmma_store(op: low_tensor_cores.WmmaStoreOp, lanes: Lanes) -> None:
    fragment = op.fragment
    (memory, at), distance = _agreed(op, lanes, 1), _agreed(op, lanes, 2)
    rows, columns = fragment.tile
    tile = _gathered(fragment, _registers(op, lanes, 0, fragment.elements_per_thread))
    for row in range(rows):
        start = at + row * distance
        _bounded(op, (memory, start), columns)
        _aligned(op, start, row_alignment(fragment))
        memory[start : start + columns] = tile[row * columns : (row + 1) * columns]


def _wmma_mma(op: low_tensor_cores.WmmaMmaOp, lanes: Lanes) -> None:
    c_fragment = op.a_fragment.with_role(Role.C, Order.ROW, f32)
    tiles = [
        _gathered(fragment, _registers(op, lanes, operand, fragment.elements_per_thread))
        for operand, fragment in enumerate((op.a_fragment, op.b_fragment, c_fragment))
    ]
    a, b, c = (
        matrix_of((tile, 0), fragment.tile[1], fragment)
        for tile, fragment in zip(tiles, (op.a_fragment, op.b_fragment, c_fragment), strict=True)
    )
    result = [element for row in _multiplied(op, a, b, c) for element in row]
    _scatter(c_fragment, [lane[2] for lane in lanes], result)


def _multiplied(op: Operation, a: Matrix, b: Matrix, c: Matrix) -> Matrix:
    if any(None in row for matrix in (a, b, c) for row in matrix):
        raise InterpreterError(op, f"'{op.name}' uses a fragment that was never written")
    return multiplied(a, b, c)


def _ldmatrix(op: low_tensor_cores.LdmatrixOp, lanes: Lanes) -> None:
    matrices: list[Matrix] = []
    for first in range(0, 8 * op.matrices, 8):
        rows: Matrix = []
        for lane in range(first, first + 8):
            memory, at = lanes[lane][0]
            _bounded(op, (memory, at), 8)
            _aligned(op, at, 8)
            rows.append(memory[at : at + 8])
        matrices.append([list(column) for column in zip(*rows, strict=True)] if op.is_transposed else rows)
    for lane, (memory, at) in enumerate(_registers(op, lanes, 1, 2 * op.matrices)):
        for number, matrix in enumerate(matrices):
            column = 2 * (lane % 4)
            memory[at + 2 * number : at + 2 * number + 2] = matrix[lane // 4][column : column + 2]


def _mma_sync(op: low_tensor_cores.MmaSyncOp, lanes: Lanes) -> None:
    a = FragmentAttr.of(Family.MMA, Role.A, Order.ROW, (16, 8, 16), op.element)
    fragments = [a, a.with_role(Role.B, Order.ROW, op.element), a.with_role(Role.C, Order.ROW, f32)]
    matrices: list[Matrix] = []
    for operand, fragment in enumerate(fragments):
        rows, columns = fragment.matrix
        matrix: Matrix = [[None] * columns for _ in range(rows)]
        count = fragment.elements_per_thread
        for lane, (memory, at) in enumerate(_registers(op, lanes, operand, count)):
            for number in range(count):
                row, column = fragment.place(lane, number)
                matrix[row][column] = memory[at + number]
        matrices.append(matrix)
    result = _multiplied(op, *matrices)
    for lane, values in enumerate(lanes):
        memory, at = values[2]
        for number in range(4):
            row, column = fragments[2].place(lane, number)
            memory[at + number] = result[row][column]


_MEANINGS: Final[dict[str, Callable[[Any, Lanes], None]]] = {
    low_tensor_cores.WmmaLoadOp.name: _wmma_load,
    low_tensor_cores.WmmaStoreOp.name: _wmma_store,
    low_tensor_cores.WmmaMmaOp.name: _wmma_mma,
    low_tensor_cores.LdmatrixOp.name: _ldmatrix,
    low_tensor_cores.MmaSyncOp.name: _mma_sync,
}
