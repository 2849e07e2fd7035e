"""Vectors: broadcasts, reductions, shuffles, single lanes, masks, and dot products of groups of integers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, cast

from xdsl.dialects import vector
from xdsl.dialects.builtin import BFloat16Type

from weft.backends.llvm.arith_ops import INSTRUCTIONS, INTRINSICS
from weft.backends.llvm.types import lane_list, value_type
from weft.backends.low_modules import named_lane, reduction_op
from weft.dialects.low_dots import DotOp, factor_of
from weft.support.cpu_instructions import Factor, dot_instructions
from weft.support.errors import CompileError

if TYPE_CHECKING:
    from xdsl.ir import Operation

    from weft.backends.llvm.emitter import FunctionEmitter, Rules
    from weft.backends.llvm.types import ValueType


def emit_broadcast(emitter: FunctionEmitter, op: Operation) -> str | None:
    source, result = op.operands[0], op.results[0]
    type_ = emitter.type_of(result, op)
    text = emitter.text(source)
    if emitter.type_of(source, op).lanes:
        if source.type != result.type:
            raise CompileError.at(op, f"vector.broadcast of {source.type} to {result.type}: one dimension at low level")
        emitter.bind(result, text)
    elif not text.startswith("%"):
        emitter.bind(result, type_.splat(text))
    else:
        return emitter.splat(type_, text)
    return None


_REDUCTIONS: Final = {"maximum": "fmaximum", "minimum": "fminimum", "maxnum": "fmax", "minnum": "fmin"}
"""Intrinsic on two values -> the corresponding `vector.reduce`, if the names differ."""
_NEUTRAL: Final = {"fadd": "-0.0", "fmul": "1.0"}


def emit_reduction(emitter: FunctionEmitter, op: Operation) -> str:
    """Floating-point sums and products are in lane order, unless they may be reassociated."""
    result, source = op.results[0], emitter.type_of(op.operands[0], op)
    kind = reduction_op(op)
    type_ = emitter.float_type_of(result, op)
    instruction, intrinsic = INSTRUCTIONS.get(kind), INTRINSICS.get(kind, "")
    name = instruction or _REDUCTIONS.get(intrinsic, intrinsic)
    vector_, *accumulator = emitter.texts(op)
    reduce = f"@llvm.vector.reduce.{name}.{source.suffix}"
    if name in _NEUTRAL:
        flags = emitter.module.flags_of(op, emitter.sum_flags)
        start = accumulator[0] if accumulator else _NEUTRAL[name]
        return f"call {flags}{type_.text} {reduce}({type_.text} {start}, {source.text} {vector_})"
    flags = emitter.module.flags_of(op, "")
    reduced = f"call {flags}{type_.text} {reduce}({source.text} {vector_})"
    if not accumulator:
        return reduced
    left = emitter.emit(reduced, "reduced")
    if instruction is None:
        return emitter.call(type_, intrinsic, left, accumulator[0], flags=flags)
    return f"{instruction} {type_.text} {left}, {accumulator[0]}"


def emit_shuffle(emitter: FunctionEmitter, op: Operation) -> str:
    lhs, rhs = emitter.texts(op)
    left, right = (emitter.type_of(operand, op) for operand in op.operands)
    lanes = list(cast("vector.ShuffleOp", op).mask.get_values())
    width = max(left.lanes, right.lanes)
    # LLVM requires vectors of equal length: pad the shorter one, and offset the lanes of the second.
    lhs, rhs = _padded(emitter, left, lhs, width), _padded(emitter, right, rhs, width)
    lanes = [lane if lane < left.lanes else lane - left.lanes + width for lane in lanes]
    emitter.type_of(op.results[0], op)
    type_ = f"<{width} x {left.scalar}>"
    return f"shufflevector {type_} {lhs}, {type_} {rhs}, {lane_list(lanes)}"


def _padded(emitter: FunctionEmitter, type_: ValueType, text: str, width: int) -> str:
    if type_.lanes == width:
        return text
    lanes = [*range(type_.lanes), *[-1] * (width - type_.lanes)]
    return emitter.emit(f"shufflevector {type_.text} {text}, {type_.text} poison, {lane_list(lanes)}", "filled")


def emit_extract(emitter: FunctionEmitter, op: Operation) -> str | None:
    type_ = emitter.type_of(op.operands[0], op)
    text = emitter.text(op.operands[0])
    position = named_lane(cast("vector.ExtractOp", op), emitter.text)
    if position is not None:
        return f"extractelement {type_.text} {text}, i64 {position}"
    emitter.bind(op.results[0], text)
    return None


def emit_insert(emitter: FunctionEmitter, op: Operation) -> str | None:
    type_ = emitter.type_of(op.results[0], op)
    source, dest = emitter.text(op.operands[0]), emitter.text(op.operands[1])
    position = named_lane(cast("vector.InsertOp", op), emitter.text)
    if position is not None:
        return f"insertelement {type_.text} {dest}, {type_.scalar} {source}, i64 {position}"
    emitter.bind(op.results[0], source)
    return None


def emit_create_mask(emitter: FunctionEmitter, op: Operation) -> str:
    """A comparison of 32 bits needs half the registers of one on indices."""
    lanes = emitter.type_of(op.results[0], op).lanes
    count = emitter.text(op.operands[0])
    at_least = emitter.emit(f"call i64 @llvm.smax.i64(i64 {count}, i64 0)", "count")
    within = emitter.emit(f"call i64 @llvm.smin.i64(i64 {at_least}, i64 {lanes})", "count")
    short = emitter.emit(f"trunc i64 {within} to i32", "count")
    type_ = value_type("i32", lanes)
    counts = emitter.emit(emitter.splat(type_, short), "counts")
    numbers = f"<{', '.join(f'i32 {number}' for number in range(lanes))}>"
    return f"icmp ult {type_.text} {numbers}, {counts}"


def emit_dot(emitter: FunctionEmitter, op: DotOp) -> str:
    """`low-lower-dots` keeps only those that the target has."""
    target = emitter.module.target
    floats = isinstance(op.lhs_as, BFloat16Type)
    factors = (factor_of(op.readings[0]), factor_of(op.readings[1]))
    known = dot_instructions(target)
    instruction = next((i for i in known if i.takes(op.lanes, op.group, *factors)), None)
    if instruction is None:
        shown = f"{op.lanes} x {op.group} of {op.lhs_as} and {op.rhs_as}"
        raise CompileError.at(op, f"low.dot: {target.cpu} has no instruction for {shown}; run low-lower-dots for it")
    acc, left, right = emitter.texts(op)
    sums, lanes = emitter.type_of(op.acc, op), emitter.type_of(op.rhs, op)
    group = emitter.type_of(op.lhs, op)
    left = _narrowed(emitter, group, left, factors[0])
    right = _narrowed(emitter, lanes, right, factors[1])
    if op.is_one_group:
        places = lane_list([at % op.group for at in range(lanes.lanes)])
        left = emitter.emit(f"shufflevector {group.text} {left}, {group.text} poison, {places}", "groups")
    if not instruction.takes_in_order(*factors):
        left, right = right, left
    name, type_ = f"llvm.{instruction.name}", lanes.text
    if floats:
        type_ = f"<{lanes.lanes} x bfloat>"
        left, right = (emitter.emit(f"bitcast {lanes.text} {side} to {type_}", "pairs") for side in (left, right))
    operands = [(type_, left), (type_, right)]
    if instruction.adds:
        operands.insert(0, (sums.text, acc))
    result = value_type("i16", 2 * sums.lanes).text if instruction.pairs else sums.text
    call = f"call {result} @{name}({', '.join(f'{type_} {text}' for type_, text in operands)})"
    if instruction.pairs:
        pairs = emitter.emit(call, "pairs")
        ones = value_type("i16", 2 * sums.lanes).splat("1")
        call = f"call {sums.text} @llvm.{instruction.pairs}({result} {pairs}, {result} {ones})"
    return call if instruction.adds else f"add {sums.text} {acc}, {emitter.emit(call, 'products')}"


def _narrowed(emitter: FunctionEmitter, type_: ValueType, text: str, factor: Factor) -> str:
    """The low bits of lanes that are read as narrower integers."""
    if factor.width is None:
        return text
    return emitter.emit(f"and {type_.text} {text}, {type_.splat(str((1 << factor.width) - 1))}", "low")


RULES: Final[Rules] = {
    vector.BroadcastOp: emit_broadcast,
    vector.ReductionOp: emit_reduction,
    vector.ShuffleOp: emit_shuffle,
    vector.ExtractOp: emit_extract,
    vector.InsertOp: emit_insert,
    vector.CreateMaskOp: emit_create_mask,
    DotOp: emit_dot,
}
