"""Vectors: broadcasts, reductions, shuffles, single lanes and masks."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final, cast

from xdsl.dialects import vector

from weft.backends.c_family import expression as c
from weft.backends.c_family.arith_ops import combined, plain_element
from weft.backends.c_family.expression import LANE, CExpr
from weft.backends.low_modules import named_lane, reduction_op
from weft.support.errors import CompileError

if TYPE_CHECKING:
    from xdsl.ir import Operation

    from weft.backends.c_family.emitter import FunctionEmitter, Rules


def emit_broadcast(emitter: FunctionEmitter, op: Operation) -> CExpr:
    source, result = op.operands[0], op.results[0]
    if emitter.lanes(source.type, op) and source.type != result.type:
        raise CompileError.at(op, f"vector.broadcast of {source.type} to {result.type}: one dimension at low level")
    if source in emitter.ranges:
        emitter.ranges[result] = emitter.ranges[source]
    return emitter.expr(source)


def emit_reduction(emitter: FunctionEmitter, op: Operation) -> None:
    """Lanes are combined in order, after the accumulator."""
    result = op.results[0]
    kind = reduction_op(op)
    plain_element(emitter, op, result.type)
    element = emitter.wide_element(result.type, op)
    vector_, *accumulator = emitter.exprs(op)
    start = accumulator[0] if accumulator else vector_.lane("0")
    total = emitter.variable(result.name_hint or "total", replace(start, element=element, lanes=0), op)

    def step(lane: str) -> str:
        return f"{total.text} = {combined(emitter, op, kind, element, total, vector_.lane(lane)).text};"

    emitter.for_lanes(0 if accumulator else 1, emitter.lanes(op.operands[0].type, op), step)
    emitter.values[result] = total


def emit_shuffle(emitter: FunctionEmitter, op: Operation) -> CExpr:
    lhs, rhs = emitter.atom(op.operands[0], op), emitter.atom(op.operands[1], op)
    left = emitter.lanes(op.operands[0].type, op)
    name = emitter.names.fresh(op.results[0].name_hint or "v")
    mask = list(cast("vector.ShuffleOp", op).mask.get_values())
    result = emitter.lane_variable(name, lhs.element, len(mask), op)
    for lane, source in enumerate(mask):
        if source >= 0:
            value = lhs.lane(str(source)) if source < left else rhs.lane(str(source - left))
            emitter.line(f"{name}[{lane}] = {value.text};")
    return result


def emit_extract(emitter: FunctionEmitter, op: Operation) -> CExpr:
    position = named_lane(cast("vector.ExtractOp", op), lambda lane: emitter.expr(lane).text)
    expr = emitter.expr(op.operands[0])
    if op.operands[0] in emitter.ranges:
        emitter.ranges[op.results[0]] = emitter.ranges[op.operands[0]]
    if position is None:
        return expr
    lane = (expr if position.isdigit() else emitter.atom(op.operands[0], op)).lane(position)
    if expr.is_atom and not lane.size and "[" in lane.text:
        lane = replace(lane, level=c.PRIMARY)
    return lane


def emit_insert(emitter: FunctionEmitter, op: Operation) -> CExpr:
    position = named_lane(cast("vector.InsertOp", op), lambda lane: emitter.expr(lane).text)
    source, target = emitter.expr(op.operands[0]), emitter.expr(op.operands[1])
    if position is None:
        return source
    name = emitter.names.fresh(op.results[0].name_hint or "v")
    lanes = emitter.lanes(op.results[0].type, op)
    result = emitter.lane_variable(name, source.element, lanes, op)
    emitter.lane_line(lanes, f"{result.text} = {target.text};")
    emitter.line(f"{name}[{position}] = {source.text};")
    return result


def emit_create_mask(emitter: FunctionEmitter, op: Operation) -> CExpr:
    lane = CExpr(LANE, "idx32", lanes=emitter.lanes(op.results[0].type, op))
    return c.binary("<", lane, emitter.expr(op.operands[0]), "i1")


RULES: Final[Rules] = {
    vector.BroadcastOp: emit_broadcast,
    vector.ReductionOp: emit_reduction,
    vector.ShuffleOp: emit_shuffle,
    vector.ExtractOp: emit_extract,
    vector.InsertOp: emit_insert,
    vector.CreateMaskOp: emit_create_mask,
}
