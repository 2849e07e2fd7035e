"""Arithmetic, comparisons, selection, conversions and constants, on scalars and lane by lane.

Floating-point additions, subtractions and multiplications may be contracted to fused multiply-adds. A conversion from a
floating-point value that no integer of the type comes near is undefined, as in LLVM. Arithmetic on `bf16` and divisions
by what may be zero, which would end the process, are rewritten by `low-legalize`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, cast

from xdsl.dialects import arith, vector
from xdsl.dialects.builtin import DenseIntOrFPElementsAttr, FloatAttr, IntegerAttr

from weft.backends.llvm.types import scalar_text, vector_text
from weft.backends.low_modules import predicate
from weft.dialects.low import DEFINED, ORDERED, ROUNDED
from weft.dialects.low_lanes import with_lane_forms
from weft.support.cpu_instructions import range_intrinsic, range_lanes
from weft.support.errors import CompileError

if TYPE_CHECKING:
    from xdsl.ir import Operation

    from weft.backends.llvm.emitter import FunctionEmitter, Rules
    from weft.backends.llvm.types import ValueType

_INTEGER: Final[dict[type[Operation], str]] = {
    arith.AddiOp: "add",
    arith.SubiOp: "sub",
    arith.MuliOp: "mul",
    arith.AndIOp: "and",
    arith.OrIOp: "or",
    arith.XOrIOp: "xor",
    arith.ShLIOp: "shl",
    arith.ShRUIOp: "lshr",
    arith.ShRSIOp: "ashr",
}
_DIVISIONS: Final[dict[type[Operation], str]] = {
    arith.DivSIOp: "sdiv",
    arith.DivUIOp: "udiv",
    arith.RemSIOp: "srem",
    arith.RemUIOp: "urem",
}
_INTEGER_INTRINSICS: Final[dict[type[Operation], str]] = {
    arith.MinSIOp: "smin",
    arith.MaxSIOp: "smax",
    arith.MinUIOp: "umin",
    arith.MaxUIOp: "umax",
}
_CONTRACT: Final = "contract "
_FLOAT: Final[dict[type[Operation], str]] = {
    arith.AddfOp: "fadd",
    arith.SubfOp: "fsub",
    arith.MulfOp: "fmul",
    arith.DivfOp: "fdiv",
}
_FLOAT_INTRINSICS: Final[dict[type[Operation], str]] = {
    arith.MaximumfOp: "maximum",
    arith.MinimumfOp: "minimum",
    arith.MaxnumfOp: "maxnum",
    arith.MinnumfOp: "minnum",
}
_CASTS: Final = with_lane_forms(
    {
        arith.ExtSIOp: "sext",
        arith.ExtUIOp: "zext",
        arith.TruncIOp: "trunc",
        arith.SIToFPOp: "sitofp",
        arith.UIToFPOp: "uitofp",
        arith.FPToSIOp: "fptosi",
        arith.FPToUIOp: "fptoui",
        arith.ExtFOp: "fpext",
        arith.TruncFOp: "fptrunc",
    }
)


def emit_constant(emitter: FunctionEmitter, op: Operation) -> None:
    result = op.results[0]
    type_ = emitter.type_of(result, op)
    value = op.properties["value"]
    if isinstance(value, IntegerAttr):
        number: float = value.value.data
    elif isinstance(value, FloatAttr):
        number = value.value.data
    elif isinstance(value, DenseIntOrFPElementsAttr):
        lanes = cast("list[float]", list(value.iter_values()))
        emitter.bind(result, vector_text(lanes, type_))
        if lanes.count(lanes[0]) == len(lanes):
            emitter.constants[result] = lanes[0]
        return
    else:
        raise CompileError.at(op, f"the llvm backend has no constants of the form {value.name}")
    emitter.bind(result, scalar_text(number, type_.element))
    emitter.constants[result] = number


def emit_integer(emitter: FunctionEmitter, op: Operation) -> None:
    lhs, rhs = emitter.texts(op)
    result = op.results[0]
    type_ = emitter.type_of(result, op)
    overflow = op.properties.get("overflowFlags")
    flags = ""
    if isinstance(overflow, arith.IntegerOverflowAttr) and overflow.data:
        flags = "".join(f"{flag.value} " for flag in overflow.data)
    emitter.define(result, f"{_INTEGER[type(op)]} {flags}{type_.text} {lhs}, {rhs}")


def emit_integer_intrinsic(emitter: FunctionEmitter, op: Operation) -> None:
    lhs, rhs = emitter.texts(op)
    result = op.results[0]
    emitter.define(result, emitter.call(emitter.type_of(result, op), _INTEGER_INTRINSICS[type(op)], lhs, rhs))


def emit_division(emitter: FunctionEmitter, op: Operation) -> None:
    """Rounds towards zero; a remainder has the sign of the dividend."""
    name = _DIVISIONS[type(op)]
    divisor = emitter.constants.get(op.operands[1])
    if DEFINED not in op.attributes and (not divisor or (divisor == -1 and name[0] == "s")):
        raise CompileError.at(
            op, f"{op.name} by what may be zero or overflow has no form in LLVM IR: run low-legalize first"
        )
    lhs, rhs = emitter.texts(op)
    emitter.define(op.results[0], f"{name} {emitter.type_of(op.results[0], op).text} {lhs}, {rhs}")


def emit_float(emitter: FunctionEmitter, op: Operation) -> None:
    name = _FLOAT[type(op)]
    if name == "fdiv" or ROUNDED in op.attributes:
        base = ""
    else:
        base = _CONTRACT if ORDERED in op.attributes else emitter.module.flags
    lhs, rhs = emitter.texts(op)
    type_ = emitter.float_type_of(op.results[0], op)
    emitter.define(op.results[0], f"{name} {emitter.module.flags_of(op, base)}{type_.text} {lhs}, {rhs}")


def emit_float_intrinsic(emitter: FunctionEmitter, op: Operation) -> None:
    type_ = emitter.float_type_of(op.results[0], op)
    flags = emitter.module.flags_of(op, "")
    emitter.define(op.results[0], emitter.call(type_, _FLOAT_INTRINSICS[type(op)], *emitter.texts(op), flags=flags))


def emit_maxnum(emitter: FunctionEmitter, op: Operation) -> None:
    """The instruction of AVX-512DQ, which takes +0 for greater than -0, for vectors that fill its registers."""
    type_ = emitter.float_type_of(op.results[0], op)
    width = range_lanes(emitter.module.target, type_.lanes, type_.bits) if type_.bits >= 32 else 0
    if not width or emitter.module.flags_of(op, ""):
        emit_float_intrinsic(emitter, op)
        return
    emitter.define(op.results[0], emitter.by_parts(type_, width, emitter.texts(op), _range_maximum))


_GREATER: Final = 0b0101
"""How the instruction chooses: the greater number (bits 0 and 1), with its own sign (bits 2 and 3)."""


def _range_maximum(type_: ValueType, texts: list[str]) -> str:
    """The greater number of two, and the number where the other is NaN."""
    bits = type_.lanes * type_.bits
    lhs, rhs = map(type_.typed, texts)
    rounding = ", i32 4" if bits == 512 else ""  # as it is set: nothing is rounded
    return (
        f"call {type_.text} @llvm.{range_intrinsic(bits, type_.bits)}"
        f"({lhs}, {rhs}, i32 {_GREATER}, {type_.text} zeroinitializer, i{max(type_.lanes, 8)} -1{rounding})"
    )


def emit_negation(emitter: FunctionEmitter, op: Operation) -> None:
    type_ = emitter.float_type_of(op.results[0], op)
    (text,) = emitter.texts(op)
    emitter.define(op.results[0], f"fneg {emitter.module.flags_of(op, '')}{type_.text} {text}")


def emit_integer_comparison(emitter: FunctionEmitter, op: Operation) -> None:
    lhs, rhs = emitter.texts(op)
    type_ = emitter.type_of(op.operands[0], op)
    emitter.define(op.results[0], f"icmp {predicate(op)} {type_.text} {lhs}, {rhs}")


def emit_float_comparison(emitter: FunctionEmitter, op: Operation) -> None:
    lhs, rhs = emitter.texts(op)
    type_ = emitter.float_type_of(op.operands[0], op)
    flags = emitter.module.flags_of(op, "")
    emitter.define(op.results[0], f"fcmp {flags}{predicate(op)} {type_.text} {lhs}, {rhs}")


def emit_select(emitter: FunctionEmitter, op: Operation) -> None:
    condition, lhs, rhs = emitter.texts(op)
    condition_type = emitter.type_of(op.operands[0], op)
    type_ = emitter.type_of(op.results[0], op)
    emitter.define(
        op.results[0],
        f"select {condition_type.text} {condition}, {type_.text} {lhs}, {type_.text} {rhs}",
    )


def emit_mul_extended(emitter: FunctionEmitter, op: Operation) -> None:
    """The low and the high half of a product, of twice the width."""
    low, high = op.results
    type_ = emitter.type_of(low, op)
    element = f"i{2 * type_.bits}"
    wide = f"<{type_.lanes} x {element}>" if type_.lanes else element
    extend = "sext" if isinstance(op, arith.MulSIExtendedOp) else "zext"
    lhs, rhs = (emitter.emit(f"{extend} {type_.text} {text} to {wide}", "wide") for text in emitter.texts(op))
    product = emitter.emit(f"mul {wide} {lhs}, {rhs}", "product")
    shift = f"splat ({element} {type_.bits})" if type_.lanes else str(type_.bits)
    shifted = emitter.emit(f"lshr {wide} {product}, {shift}", "shifted")
    emitter.define(low, f"trunc {wide} {product} to {type_.text}")
    emitter.define(high, f"trunc {wide} {shifted} to {type_.text}")


def emit_cast(emitter: FunctionEmitter, op: Operation) -> None:
    """Between types of different widths or kinds."""
    for value in (op.operands[0], op.results[0]):
        emitter.float_type_of(value, op)
    _define_cast(emitter, op, _CASTS[type(op)])


def _define_cast(emitter: FunctionEmitter, op: Operation, instruction: str) -> None:
    source, target = emitter.type_of(op.operands[0], op), emitter.type_of(op.results[0], op)
    text = emitter.text(op.operands[0])
    emitter.define(op.results[0], f"{instruction} {source.text} {text} to {target.text}")


def emit_index_cast(emitter: FunctionEmitter, op: Operation) -> None:
    """Between index, which is i64, and a signed integer: a cast of a known number stays known."""
    operand, result = op.operands[0], op.results[0]
    source = emitter.type_of(operand, op)
    target = emitter.type_of(result, op)
    if source is target:
        emitter.bind(result, emitter.text(operand))
        if operand in emitter.constants:
            emitter.constants[result] = emitter.constants[operand]
        return
    _define_cast(emitter, op, "sext" if source.bits < target.bits else "trunc")


def emit_bitcast(emitter: FunctionEmitter, op: Operation) -> None:
    if emitter.type_of(op.operands[0], op).text == emitter.type_of(op.results[0], op).text:
        emitter.bind(op.results[0], emitter.text(op.operands[0]))
    else:
        _define_cast(emitter, op, "bitcast")


_SCALARS: Final[Rules] = {
    arith.ConstantOp: emit_constant,
    **dict.fromkeys(_INTEGER, emit_integer),
    **dict.fromkeys(_INTEGER_INTRINSICS, emit_integer_intrinsic),
    **dict.fromkeys(_DIVISIONS, emit_division),
    **dict.fromkeys(_FLOAT, emit_float),
    **dict.fromkeys(_FLOAT_INTRINSICS, emit_float_intrinsic),
    arith.MaxnumfOp: emit_maxnum,
    arith.NegfOp: emit_negation,
    arith.CmpiOp: emit_integer_comparison,
    arith.CmpfOp: emit_float_comparison,
    arith.SelectOp: emit_select,
    **dict.fromkeys((arith.MulSIExtendedOp, arith.MulUIExtendedOp), emit_mul_extended),
    **dict.fromkeys(_CASTS, emit_cast),
    arith.IndexCastOp: emit_index_cast,
    **dict.fromkeys((arith.BitcastOp, vector.BitcastOp), emit_bitcast),
}
RULES: Final = with_lane_forms(_SCALARS)
