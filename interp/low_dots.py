"""Dot products of neighbouring integers: sums wrap to 32 bits."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from weft.dialects import low_dots
from weft.interp.registry import emits

if TYPE_CHECKING:
    from collections.abc import Sequence

    from weft.interp.emitter import Emitter
    from weft.interp.low_tiles import Pointer


def _mask(emitter: Emitter, type_: Any) -> str:
    """What an unsigned reading keeps of a signed number; -1 keeps all."""
    return "-1" if low_dots.is_signed(type_) else str((1 << type_.width.data) - 1)


@emits(low_dots.DotOp)
def emit_dot(emitter: Emitter, op: low_dots.DotOp) -> None:
    acc, lhs, rhs = (emitter.written(value, op) for value in op.operands)
    if op.is_one_group:
        lhs = f"{lhs} * {op.lanes}"
    masks = f"{_mask(emitter, op.lhs_as)}, {_mask(emitter, op.rhs_as)}"
    emitter.line(f"{emitter.define(op.result)} = {emitter.helper(dot)}({acc}, {lhs}, {rhs}, {op.group}, {masks})", op)


def dot(
    sums: Sequence[int], left: Sequence[int], right: Sequence[int], group: int, left_mask: int, right_mask: int
) -> list[int]:
    """Each sum plus the dot product of its group."""
    found: list[int] = []
    for lane, total in enumerate(sums):
        for at in range(lane * group, (lane + 1) * group):
            total += (left[at] & left_mask) * (right[at] & right_mask)
        found.append((total + (1 << 31)) % (1 << 32) - (1 << 31))
    return found


@emits(low_dots.TileDotOp)
def emit_tile_dot(emitter: Emitter, op: low_dots.TileDotOp) -> None:
    pointers = ", ".join(emitter.value(value) for value in op.operands)
    numbers = f"{op.lane_count}, {op.step_count}, {_mask(emitter, op.a_as)}, {_mask(emitter, op.b_as)}"
    with emitter.store():
        emitter.line(f"{emitter.helper(dot_tiles)}({pointers}, {numbers})", op)


def dot_tiles(a: Pointer, b: Pointer, c: Pointer, lanes: int, steps: int, a_mask: int, b_mask: int) -> None:
    (left, a_first), (right, b_first), (sums, first) = a, b, c
    group = left[a_first : a_first + steps]
    others = right[b_first : b_first + lanes * steps]
    sums[first : first + lanes] = dot(sums[first : first + lanes], group * lanes, others, steps, a_mask, b_mask)


@emits(low_dots.TileInterleaveOp)
def emit_tile_interleave(emitter: Emitter, op: low_dots.TileInterleaveOp) -> None:
    operands = ", ".join(emitter.value(value) for value in op.operands)
    with emitter.store():
        emitter.line(f"{emitter.helper(interleave)}({operands}, {op.lane_count}, {op.row_count})", op)


def interleave(source: Pointer, distance: int, target: Pointer, lanes: int, rows: int) -> None:
    """Rows by turns."""
    (read, first), (written, start) = source, target
    for row in range(rows):
        at = first + row * distance
        written[start + row : start + lanes * rows : rows] = read[at : at + lanes]
