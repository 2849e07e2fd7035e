"""`low`: parallel loops, gathers and scatters, and the lane-wise forms of scalar ops."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from weft.dialects import low
from weft.dialects.low_lanes import LANE_FORMS, LdexpOp
from weft.interp import low_dots as low_dots
from weft.interp import low_gpu as low_gpu
from weft.interp import low_tiles as low_tiles
from weft.interp import pointers as pointers
from weft.interp.control import emit_loop
from weft.interp.elementwise import elementwise, lane_type
from weft.interp.emitter import out_of_bounds
from weft.interp.errors import InterpreterError
from weft.interp.registry import emit_rule, emits
from weft.interp.scalar import scalar_constant
from weft.support.errors import InternalError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from xdsl.ir import Operation

    from weft.interp.emitter import Emitter


@emits(low.ParallelForOp)
def emit_parallel_for(emitter: Emitter, op: low.ParallelForOp) -> None:
    emit_loop(emitter, op.induction_variable, op.body.block, op.extent, op, free=True)


@emits(low.PrefetchOp)
def emit_prefetch(emitter: Emitter, op: low.PrefetchOp) -> None:
    """A hint, which changes no value."""


@emits(low.GatherOp)
def emit_gather(emitter: Emitter, op: low.GatherOp) -> None:
    buffer = emitter.buffer(op.base)
    mask = "None" if op.mask is None else emitter.written(op.mask, op)
    zero = scalar_constant(0, lane_type(op.result.type))
    arguments = f"{buffer.hint!r}, {buffer.data}, {emitter.written(op.indices, op)}, {mask}, {zero!r}"
    name = emitter.define(op.result, maybe_unwritten=True)
    emitter.line(f"{name} = {emitter.helper(gather)}({emitter.operation_name(op)}, {arguments})", op)


@emits(low.ScatterOp)
def emit_scatter(emitter: Emitter, op: low.ScatterOp) -> None:
    buffer = emitter.buffer(op.base)
    mask = "None" if op.mask is None else emitter.written(op.mask, op)
    indices, value = emitter.written(op.indices, op), emitter.value(op.value)
    arguments = f"{buffer.hint!r}, {buffer.data}, {indices}, {mask}, {value}"
    with emitter.store():
        emitter.line(f"{emitter.helper(scatter)}({emitter.operation_name(op)}, {arguments})", op)


def ldexp(significand: float, exponent: float) -> float:
    """significand * 2^exponent, in double; the type of the op rounds it, once: f32 has room to spare there."""
    if not math.isfinite(exponent):
        return significand * 2.0**exponent
    try:
        return math.ldexp(significand, int(exponent))
    except OverflowError:
        return math.copysign(math.inf, significand)


def gather(
    op: Operation, name: str, data: list[Any], indices: Sequence[int], mask: Sequence[bool] | None, zero: float | int
) -> list[Any]:
    """`data[i]` for the active lanes, zero for the others."""
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
    """`data[i] = value` for the active lanes, which must be pairwise different."""
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


elementwise(LdexpOp, template=lambda emitter, op, operands: f"{emitter.helper(ldexp)}({operands[0]}, {operands[1]})")

for _scalar, _lanes in LANE_FORMS.items():
    _rule = emit_rule(_scalar.name)
    if _rule is None:
        raise InternalError(f"the interpreter has no rule for {_scalar.name}")
    emits(_lanes)(_rule)
