"""Lanes: broadcasts, reductions, shuffles, single lanes and masks."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final, cast

from xdsl.dialects import vector

from weft.backends.c_family import expression as c
from weft.backends.c_family.arith_ops import compared, plain_float, wrapped
from weft.backends.c_family.expression import LANE, CExpr
from weft.backends.low_modules import named_lane
from weft.support.errors import CompileError, InternalError

if TYPE_CHECKING:
    from xdsl.ir import Operation

    from weft.backends.c_family.emitter import FunctionEmitter, Rules


def emit_broadcast(emitter: FunctionEmitter, op: Operation) -> None:
    """A scalar in every lane is the scalar itself."""
    source, result = op.operands[0], op.results[0]
    expr = emitter.expr(source)
    if emitter.lanes(source.type, op) and source.type != result.type:
        raise CompileError.at(op, f"vector.broadcast of {source.type} to {result.type}: one dimension at low level")
    if source in emitter.ranges:
        emitter.ranges[result] = emitter.ranges[source]
    emitter.define(result, replace(expr, lanes=emitter.lanes(result.type, op)), op)


def emit_reduction(emitter: FunctionEmitter, op: Operation) -> None:
    """All lanes of a vector, and the accumulator when there is one, in one variable, from first lane to last."""
    result = op.results[0]
    kind = op.properties["kind"]
    if not isinstance(kind, vector.CombiningKindAttr):
        raise InternalError(f"vector.reduction has the kind {kind}")
    lanes = emitter.exprs(op)[0]
    count = emitter.lanes(op.operands[0].type, op)
    element = emitter.element(result.type, op)
    element = "idx64" if element == "index" else element
    start = emitter.expr(op.operands[1]) if len(op.operands) > 1 else lanes.lane("0")
    first = 0 if len(op.operands) > 1 else 1
    total = emitter.variable(result.name_hint or "total", replace(start, element=element, lanes=0), op)
    emitter.names.enter()
    lane = emitter.names.fresh("l")
    emitter.names.leave()
    combined = _combined(emitter, op, kind.data.value, element, total, lanes.lane(lane))
    if emitter.language.unroll_lanes:
        emitter.line(emitter.language.unroll(count))
    counter = emitter.language.types["idx32"]
    emitter.line(f"for ({counter} {lane} = {first}; {lane} < {count}; ++{lane}) {total.text} = {combined.text};")
    emitter.values[result] = total


_OPERATORS: Final = {"add": "+", "mul": "*", "and": "&", "or": "|", "xor": "^"}
_ORDERS: Final = {"minsi": ("<", True), "maxsi": (">", True), "minui": ("<", False), "maxui": (">", False)}
_FLOATS: Final = {"minimumf": "weft_minimum", "maximumf": "weft_maximum"}
_NUMBERS: Final = {"minnumf": "minnumf", "maxnumf": "maxnumf"}


def _combined(emitter: FunctionEmitter, op: Operation, kind: str, element: str, lhs: CExpr, rhs: CExpr) -> CExpr:
    """One step of a reduction; `rhs` is evaluated once, or is a name."""
    if element in ("f16", "bf16"):
        plain_float(emitter, op)
    is_float = element in ("f32", "f64")
    if kind in _OPERATORS and (not is_float or kind in ("add", "mul")):
        if is_float:
            return c.binary(_OPERATORS[kind], lhs, rhs, element)
        if element == "i1":
            return c.binary({"add": "!=", "xor": "!=", "mul": "&&", "and": "&&", "or": "||"}[kind], lhs, rhs, element)
        if kind in ("add", "mul"):
            return wrapped(emitter, op, _OPERATORS[kind], lhs, rhs, element)
        return c.binary(_OPERATORS[kind], lhs, rhs, element)
    if kind in _ORDERS and not is_float:
        operator, signed = _ORDERS[kind]
        return c.conditional(compared(emitter, operator, lhs, rhs, element, signed), lhs, rhs)
    if kind in _FLOATS and is_float:
        return c.call(emitter.module.helper(f"{_FLOATS[kind]}_{element}"), (lhs, rhs), element)
    if kind in _NUMBERS and is_float:
        return c.call(emitter.language.functions[_NUMBERS[kind]][element == "f64"], (lhs, rhs), element)
    raise CompileError.at(op, f"vector.reduction <{kind}> does not work on {op.results[0].type}")


def emit_shuffle(emitter: FunctionEmitter, op: Operation) -> None:
    lhs, rhs = emitter.atom(op.operands[0], op), emitter.atom(op.operands[1], op)
    left = emitter.lanes(op.operands[0].type, op)
    name = emitter.names.fresh(op.results[0].name_hint or "v")
    mask = list(cast("vector.ShuffleOp", op).mask.get_values())
    result = emitter.lane_variable(name, lhs.element, len(mask), op)
    for lane, source in enumerate(mask):
        if source >= 0:
            value = lhs.lane(str(source)) if source < left else rhs.lane(str(source - left))
            emitter.line(f"{name}[{lane}] = {value.text};")
    emitter.values[op.results[0]] = result


def emit_extract(emitter: FunctionEmitter, op: Operation) -> None:
    position = named_lane(cast("vector.ExtractOp", op), lambda lane: emitter.expr(lane).text)
    expr = emitter.expr(op.operands[0])
    if op.operands[0] in emitter.ranges:
        emitter.ranges[op.results[0]] = emitter.ranges[op.operands[0]]
    if position is None:
        emitter.define(op.results[0], expr, op)
        return
    lane = (expr if position.isdigit() else emitter.atom(op.operands[0], op)).lane(position)
    if expr.is_atom and not lane.size and "[" in lane.text:
        lane = replace(lane, level=c.PRIMARY)
    emitter.define(op.results[0], lane, op)


def emit_insert(emitter: FunctionEmitter, op: Operation) -> None:
    position = named_lane(cast("vector.InsertOp", op), lambda lane: emitter.expr(lane).text)
    source, target = emitter.expr(op.operands[0]), emitter.expr(op.operands[1])
    if position is None:
        emitter.define(op.results[0], source, op)
        return
    name = emitter.names.fresh(op.results[0].name_hint or "v")
    lanes = emitter.lanes(op.results[0].type, op)
    result = emitter.lane_variable(name, source.element, lanes, op)
    emitter.lane_line(lanes, f"{result.text} = {target.text};")
    emitter.line(f"{name}[{position}] = {source.text};")
    emitter.values[op.results[0]] = result


def emit_create_mask(emitter: FunctionEmitter, op: Operation) -> None:
    """Lane l is true when l < n."""
    count = emitter.expr(op.operands[0])
    mask = c.binary("<", CExpr(LANE, "idx32", lanes=emitter.lanes(op.results[0].type, op)), count, "i1")
    emitter.define(op.results[0], mask, op)


RULES: Final[Rules] = {
    vector.BroadcastOp: emit_broadcast,
    vector.ReductionOp: emit_reduction,
    vector.ShuffleOp: emit_shuffle,
    vector.ExtractOp: emit_extract,
    vector.InsertOp: emit_insert,
    vector.CreateMaskOp: emit_create_mask,
}
