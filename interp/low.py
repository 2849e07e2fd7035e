"""`low`: parallel loops, gathers and scatters, lane-wise forms of scalar ops, and dot products."""

from __future__ import annotations

import math
from itertools import product
from operator import mul
from typing import TYPE_CHECKING, Any, Final

from xdsl.dialects.builtin import BFloat16Type, f32

from weft.dialects import low
from weft.dialects.low_dots import DotOp, TileDotOp, TileInterleaveOp, is_signed
from weft.dialects.low_lanes import LANE_FORMS, LdexpOp
from weft.dialects.low_tile_products import TileProductOp
from weft.interp import kernels as kernels
from weft.interp import memory as memory
from weft.interp import registered_calls as registered_calls
from weft.interp.control import emit_loop
from weft.interp.emitter import out_of_bounds
from weft.interp.errors import InterpreterError
from weft.interp.registry import emit_nothing, emit_rule, emits
from weft.interp.scalar import elementwise, lane_type
from weft.interp.values import finisher
from weft.support.errors import InternalError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from xdsl.ir import Operation

    from weft.interp.emitter import Emitter
    from weft.interp.kernels import Pointer


def _mask(type_: Any) -> int:
    """The mask for unsigned numbers or low bits; -1 keeps all bits."""
    return -1 if is_signed(type_) else (1 << type_.width.data) - 1


@emits(DotOp)
def emit_dot(emitter: Emitter, op: DotOp) -> None:
    acc, lhs, rhs = (emitter.written(value, op) for value in op.operands)
    if op.is_one_group:
        lhs = f"{lhs} * {op.lanes}"
    if isinstance(op.lhs_as, BFloat16Type):
        call = f"{emitter.helper(float_dot)}({acc}, {lhs}, {rhs}, {op.group})"
    else:
        masks = f"{_mask(op.lhs_as)}, {_mask(op.rhs_as)}"
        call = f"{emitter.helper(dot)}({acc}, {lhs}, {rhs}, {op.group}, {masks})"
    emitter.line(f"{emitter.define(op.result)} = {call}", op)


def dot(
    sums: Sequence[int], left: Sequence[int], right: Sequence[int], group: int, left_mask: int, right_mask: int
) -> list[int]:
    found: list[int] = []
    for lane, total in enumerate(sums):
        for at in range(lane * group, (lane + 1) * group):
            total += (left[at] & left_mask) * (right[at] & right_mask)
        found.append((total + (1 << 31)) % (1 << 32) - (1 << 31))
    return found


def float_dot(sums: Sequence[float], left: Sequence[float], right: Sequence[float], group: int) -> list[float]:
    """Sums of bf16 products, rounded to f32 after each."""
    found: list[float] = []
    for lane, total in enumerate(sums):
        for at in range(lane * group, (lane + 1) * group):
            total = _TO_F32(total + left[at] * right[at])
        found.append(total)
    return found


_TO_F32: Final = finisher(f32)


@emits(TileDotOp)
def emit_tile_dot(emitter: Emitter, op: TileDotOp) -> None:
    if isinstance(op.a_as, BFloat16Type):
        emitter.store_call(float_dot_tiles, op, *map(emitter.value, op.operands), op.lane_count, op.step_count)
        return
    numbers = (op.lane_count, op.step_count, _mask(op.a_as), _mask(op.b_as))
    emitter.store_call(dot_tiles, op, *map(emitter.value, op.operands), *numbers)


def dot_tiles(a: Pointer, b: Pointer, c: Pointer, lanes: int, steps: int, a_mask: int, b_mask: int) -> None:
    (left, a_first), (right, b_first), (sums, first) = a, b, c
    group = left[a_first : a_first + steps]
    others = right[b_first : b_first + lanes * steps]
    sums[first : first + lanes] = dot(sums[first : first + lanes], group * lanes, others, steps, a_mask, b_mask)


def float_dot_tiles(a: Pointer, b: Pointer, c: Pointer, lanes: int, steps: int) -> None:
    (left, a_first), (right, b_first), (sums, first) = a, b, c
    group = left[a_first : a_first + steps]
    others = right[b_first : b_first + lanes * steps]
    sums[first : first + lanes] = float_dot(sums[first : first + lanes], group * lanes, others, steps)


@emits(TileProductOp)
def emit_tile_product(emitter: Emitter, op: TileProductOp) -> None:
    a, b = (
        f"({emitter.value(pointer)}, [{', '.join(map(emitter.value, distances))}], {mask})"
        for pointer, distances, mask in (
            (op.a, op.a_distances, None if isinstance(op.a_as, BFloat16Type) else _mask(op.a_as)),
            (op.b, op.b_distances, None if isinstance(op.b_as, BFloat16Type) else _mask(op.b_as)),
        )
    )
    c = f"({emitter.value(op.c)}, {emitter.value(op.c_distance)}, {op.from_zero is not None})"
    emitter.store_call(tile_product, op, a, b, c, op.shape, op.levels, op.group)


def tile_product(
    a: tuple[Pointer, Sequence[int], int | None],
    b: tuple[Pointer, Sequence[int], int | None],
    c: tuple[Pointer, int, bool],
    shape: tuple[int, int, int],
    extents: Sequence[int],
    group: int,
) -> None:
    (left, a_first), (a_rows, *a_steps), a_mask = a
    (right, b_first), (b_rows, *b_steps), b_mask = b
    (sums, c_first), c_rows, from_zero = c
    rows, columns, depth = shape
    places = [
        (
            sum(map(mul, iteration, a_steps)) + inner,
            sum(map(mul, iteration, b_steps)) + inner // group * b_rows,
        )
        for iteration in product(*map(range, extents))
        for inner in range(0, depth, group)
    ]
    for row in range(rows):
        at = c_first + row * c_rows
        found: list[Any] = [0] * columns if from_zero else sums[at : at + columns]
        for in_a, in_b in places:
            start, other = a_first + row * a_rows + in_a, b_first + in_b
            factors = left[start : start + group] * columns, right[other : other + columns * group]
            if a_mask is None or b_mask is None:
                found = float_dot(found, *factors, group)
            else:
                found = dot(found, *factors, group, a_mask, b_mask)
        sums[at : at + columns] = found


@emits(TileInterleaveOp)
def emit_tile_interleave(emitter: Emitter, op: TileInterleaveOp) -> None:
    emitter.store_call(interleave, op, *map(emitter.value, op.operands), op.lane_count, op.row_count)


def interleave(source: Pointer, distance: int, target: Pointer, lanes: int, rows: int) -> None:
    (read, first), (written, start) = source, target
    for row in range(rows):
        at = first + row * distance
        written[start + row : start + lanes * rows : rows] = read[at : at + lanes]


@emits(low.ParallelForOp)
def emit_parallel_for(emitter: Emitter, op: low.ParallelForOp) -> None:
    emit_loop(emitter, op.induction_variable, op.body.block, op.extent, op, free=True)


emits(low.PrefetchOp)(emit_nothing)


@emits(low.GatherOp)
def emit_gather(emitter: Emitter, op: low.GatherOp) -> None:
    buffer = emitter.buffer(op.base)
    mask = "None" if op.mask is None else emitter.written(op.mask, op)
    zero = finisher(lane_type(op.result.type))(0)
    found = emitter.call(gather, op, repr(buffer.hint), buffer.data, emitter.written(op.indices, op), mask, repr(zero))
    emitter.line(f"{emitter.define(op.result, maybe_unwritten=True)} = {found}", op)


@emits(low.ScatterOp)
def emit_scatter(emitter: Emitter, op: low.ScatterOp) -> None:
    buffer = emitter.buffer(op.base)
    mask = "None" if op.mask is None else emitter.written(op.mask, op)
    indices, value = emitter.written(op.indices, op), emitter.value(op.value)
    emitter.store_call(scatter, op, emitter.operation_name(op), repr(buffer.hint), buffer.data, indices, mask, value)


def ldexp(significand: float, exponent: float) -> float:
    """significand * 2^exponent in double precision, exact enough for f32: the op rounds it once."""
    if not math.isfinite(exponent):
        return significand * 2.0**exponent
    try:
        return math.ldexp(significand, int(exponent))
    except OverflowError:
        return math.copysign(math.inf, significand)


def gather(
    op: Operation, name: str, data: list[Any], indices: Sequence[int], mask: Sequence[bool] | None, zero: float | int
) -> list[Any]:
    """Zero for inactive lanes."""
    lanes: list[Any] = []
    for lane, index in enumerate(indices):
        if mask is not None and not mask[lane]:
            lanes.append(zero)
            continue
        if not 0 <= index < len(data):
            out_of_bounds(op, name, [index], [len(data)])
        lanes.append(data[index])
    return lanes


def scatter(
    op: Operation,
    name: str,
    data: list[Any],
    indices: Sequence[int],
    mask: Sequence[bool] | None,
    values: Sequence[Any],
) -> None:
    """Active lanes must be pairwise different."""
    active = [lane for lane in range(len(indices)) if mask is None or mask[lane]]
    for lane in active:
        if not 0 <= indices[lane] < len(data):
            out_of_bounds(op, name, [indices[lane]], [len(data)])
    places = [indices[lane] for lane in active]
    if len(set(places)) != len(places):
        twice = next(place for place in places if places.count(place) > 1)
        raise InterpreterError(
            op, f"'{op.name}' writes {name}[{twice}] from several lanes", buffer=name, index=[twice], shape=[len(data)]
        )
    for lane in active:
        data[indices[lane]] = values[lane]


elementwise(LdexpOp, template="{ldexp}({all})", ldexp=ldexp)

for _scalar, _lanes in LANE_FORMS.items():
    _rule = emit_rule(_scalar.name)
    if _rule is None:
        raise InternalError(f"the interpreter has no rule for {_scalar.name}")
    emits(_lanes)(_rule)
