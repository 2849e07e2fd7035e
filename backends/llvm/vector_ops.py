"""Lanes: broadcasts, reductions, shuffles, single lanes, masks, and dot products of neighbouring integers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, cast

from xdsl.dialects import vector

from weft.backends.llvm.types import lane_list
from weft.backends.low_modules import named_lane
from weft.dialects.low_dots import DotOp, is_signed
from weft.support.cpu_instructions import dot_instructions
from weft.support.errors import CompileError, InternalError

if TYPE_CHECKING:
    from xdsl.ir import Operation

    from weft.backends.llvm.emitter import FunctionEmitter, Rules
    from weft.backends.llvm.types import ValueType


def emit_broadcast(emitter: FunctionEmitter, op: Operation) -> None:
    """A scalar in every lane; that of a literal is a literal."""
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
        lane = emitter.emit(f"insertelement {type_.text} poison, {type_.scalar} {text}, i64 0", "lane")
        emitter.define(
            result,
            f"shufflevector {type_.text} {lane}, {type_.text} poison, <{type_.lanes} x i32> zeroinitializer",
        )
    if source in emitter.constants:
        emitter.constants[result] = emitter.constants[source]


_REDUCTIONS: Final = {
    "add": ("add", "fadd"),
    "mul": ("mul", "fmul"),
    "and": ("and", ""),
    "or": ("or", ""),
    "xor": ("xor", ""),
    "minsi": ("smin", ""),
    "maxsi": ("smax", ""),
    "minui": ("umin", ""),
    "maxui": ("umax", ""),
    "minnumf": ("", "fmin"),
    "maxnumf": ("", "fmax"),
    "minimumf": ("", "fminimum"),
    "maximumf": ("", "fmaximum"),
}
"""Kind -> LLVM's `vector.reduce` of integers and of floating-point values."""
_COMBINING: Final = {
    "fmin": "minnum",
    "fmax": "maxnum",
    "fminimum": "minimum",
    "fmaximum": "maximum",
    **{name: name for name in ("smin", "smax", "umin", "umax")},
}
"""Reduction -> the intrinsic that combines two values; the other reductions are named as the instruction."""
_NEUTRAL: Final = {"fadd": "-0.0", "fmul": "1.0"}


def emit_reduction(emitter: FunctionEmitter, op: Operation) -> None:
    """All lanes of a vector, and the accumulator when there is one, in one value. Sums and products of floating-point
    values go from the first lane to the last, unless they may be reassociated."""
    result, source = op.results[0], emitter.type_of(op.operands[0], op)
    type_ = emitter.type_of(result, op)
    kind = op.properties["kind"]
    if not isinstance(kind, vector.CombiningKindAttr):
        raise InternalError(f"vector.reduction has the kind {kind}")
    name = _REDUCTIONS[kind.data.value][type_.is_float]
    if not name:
        raise CompileError.at(op, f"vector.reduction <{kind.data.value}> does not work on {result.type}")
    emitter.float_type_of(result, op)
    texts = emitter.texts(op)
    reduce = f"@llvm.vector.reduce.{name}.{source.suffix}"
    if name in _NEUTRAL:
        flags = emitter.module.flags_of(op, "reassoc " if emitter.module.target.reassociate else "")
        start = texts[1] if len(texts) > 1 else _NEUTRAL[name]
        emitter.define(result, f"call {flags}{type_.text} {reduce}({type_.text} {start}, {source.text} {texts[0]})")
        return
    flags = emitter.module.flags_of(op, "")
    reduced = f"call {flags}{type_.text} {reduce}({source.text} {texts[0]})"
    if len(texts) > 1:
        left = emitter.emit(reduced, "reduced")
        if name in _COMBINING:
            reduced = emitter.call(type_, _COMBINING[name], left, texts[1], flags=flags)
        else:
            reduced = f"{name} {type_.text} {left}, {texts[1]}"
    emitter.define(result, reduced)


def emit_shuffle(emitter: FunctionEmitter, op: Operation) -> None:
    lhs, rhs = emitter.texts(op)
    left, right = (emitter.type_of(operand, op) for operand in op.operands)
    lanes = list(cast("vector.ShuffleOp", op).mask.get_values())
    width = max(left.lanes, right.lanes)
    # LLVM takes two vectors of one length: fill up the shorter one, and count the lanes of the second from there.
    lhs, rhs = _fill_up(emitter, left, lhs, width), _fill_up(emitter, right, rhs, width)
    lanes = [lane if lane < left.lanes else lane - left.lanes + width for lane in lanes]
    emitter.type_of(op.results[0], op)
    type_ = f"<{width} x {left.scalar}>"
    emitter.define(op.results[0], f"shufflevector {type_} {lhs}, {type_} {rhs}, {lane_list(lanes)}")


def _fill_up(emitter: FunctionEmitter, type_: ValueType, text: str, width: int) -> str:
    if type_.lanes == width:
        return text
    lanes = [*range(type_.lanes), *[-1] * (width - type_.lanes)]
    return emitter.emit(f"shufflevector {type_.text} {text}, {type_.text} poison, {lane_list(lanes)}", "filled")


def emit_extract(emitter: FunctionEmitter, op: Operation) -> None:
    type_ = emitter.type_of(op.operands[0], op)
    text = emitter.text(op.operands[0])
    position = named_lane(cast("vector.ExtractOp", op), emitter.text)
    if position is None:
        emitter.bind(op.results[0], text)
    else:
        emitter.define(op.results[0], f"extractelement {type_.text} {text}, i64 {position}")


def emit_insert(emitter: FunctionEmitter, op: Operation) -> None:
    type_ = emitter.type_of(op.results[0], op)
    source, dest = emitter.text(op.operands[0]), emitter.text(op.operands[1])
    position = named_lane(cast("vector.InsertOp", op), emitter.text)
    if position is None:
        emitter.bind(op.results[0], source)
    else:
        emitter.define(op.results[0], f"insertelement {type_.text} {dest}, {type_.scalar} {source}, i64 {position}")


def emit_create_mask(emitter: FunctionEmitter, op: Operation) -> None:
    """Lane l is true when l < n. The comparison is on 32 bits: half the registers of one on index values."""
    lanes = emitter.type_of(op.results[0], op).lanes
    count = emitter.text(op.operands[0])
    at_least = emitter.emit(f"call i64 @llvm.smax.i64(i64 {count}, i64 0)", "count")
    within = emitter.emit(f"call i64 @llvm.smin.i64(i64 {at_least}, i64 {lanes})", "count")
    short = emitter.emit(f"trunc i64 {within} to i32", "count")
    vector_ = f"<{lanes} x i32>"
    lane = emitter.emit(f"insertelement {vector_} poison, i32 {short}, i64 0", "lane")
    counts = emitter.emit(
        f"shufflevector {vector_} {lane}, {vector_} poison, <{lanes} x i32> zeroinitializer", "counts"
    )
    numbers = f"<{', '.join(f'i32 {number}' for number in range(lanes))}>"
    emitter.define(op.results[0], f"icmp ult {vector_} {numbers}, {counts}")


def emit_dot(emitter: FunctionEmitter, op: Operation) -> None:
    """The instruction that computes it. `low-lower-dots` leaves none for which there is no such."""
    dot = cast("DotOp", op)
    target = emitter.module.target
    signs = (is_signed(dot.lhs_as), is_signed(dot.rhs_as))
    known = dot_instructions(target)
    instruction = next((i for i in known if i.takes(dot.lanes, dot.group, *signs)), None)
    if instruction is None:
        shown = f"{dot.lanes} x {dot.group} of {dot.lhs_as} and {dot.rhs_as}"
        raise CompileError.at(op, f"low.dot: {target.cpu} has no instruction for {shown}; run low-lower-dots for it")
    acc, left, right = emitter.texts(op)
    sums, lanes = emitter.type_of(dot.acc, op), emitter.type_of(dot.rhs, op)
    if dot.is_one_group:
        group = emitter.type_of(dot.lhs, op)
        places = lane_list([at % dot.group for at in range(lanes.lanes)])
        left = emitter.emit(f"shufflevector {group.text} {left}, {group.text} poison, {places}", "groups")
    if signs != (instruction.left_signed, instruction.right_signed):
        left, right = right, left
    name = f"llvm.{instruction.name}"
    operands = [(lanes.text, left), (lanes.text, right)]
    if instruction.adds:
        operands.insert(0, (sums.text, acc))
    call = f"call {sums.text} @{name}({', '.join(f'{type_} {text}' for type_, text in operands)})"
    if instruction.adds:
        emitter.define(op.results[0], call)
    else:
        emitter.define(op.results[0], f"add {sums.text} {acc}, {emitter.emit(call, 'products')}")


RULES: Final[Rules] = {
    vector.BroadcastOp: emit_broadcast,
    vector.ReductionOp: emit_reduction,
    vector.ShuffleOp: emit_shuffle,
    vector.ExtractOp: emit_extract,
    vector.InsertOp: emit_insert,
    vector.CreateMaskOp: emit_create_mask,
    DotOp: emit_dot,
}
