"""`maximumf` and `minimumf`: NaN when either operand is NaN, and -0 below +0.

LLVM has both as intrinsics. x86 has `maxps` only, which gives its second operand for NaN and for two zeros, and LLVM
wraps it in blends that wait for each other. For vectors on x86 these forms wait for less:

    minimumf(a, b) = minps(a, b) | minps(b, a)       equal results stay, zeros become -0, a NaN stays one
    maximumf(a, b) = maxps(a, b) & maxps(b, a), NaN where a and b do not compare
    maximumf(a, b) = rangeps(a, b), NaN where a and b do not compare
    maximumf(x, 0) = maxps(0, x) + 0                 -0 + 0 is 0

`rangeps`, of AVX-512DQ, knows the order of zeros and gives the number where the other operand is NaN. It would spare a
minimum no instruction, and what comes next would wait for a mask.

Other constants take LLVM one instruction. Scalars are left to it also: it vectorizes loops of the intrinsics.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

from xdsl.dialects import arith

from weft.backends.llvm.arith_ops import float_op
from weft.backends.llvm.math_ops import each_part
from weft.backends.llvm.types import lane_list, value_type
from weft.support.cpu_instructions import has_intrinsic

if TYPE_CHECKING:
    from xdsl.ir import Operation

    from weft.backends.llvm.emitter import FunctionEmitter, Rules
    from weft.backends.llvm.types import ValueType

_X86: Final = ("x86_64", "i386", "i686")


def emit_maximum(emitter: FunctionEmitter, op: Operation) -> None:
    if not _has_form(emitter, op):
        _emit_intrinsic(emitter, op, "maximum")
        return
    zero = _constant(emitter, op)

    def instruction(type_: ValueType, texts: list[str]) -> str:
        if zero is not None:
            x = texts[1 - zero]
            greater = _chosen(emitter, type_, "ogt", texts[zero], x)
            return f"fadd {type_.text} {greater}, {type_.splat('0.0')}"
        return _maximum(emitter, type_, *texts)

    float_op(emitter, op, instruction)


def emit_minimum(emitter: FunctionEmitter, op: Operation) -> None:
    if not _has_form(emitter, op):
        _emit_intrinsic(emitter, op, "minimum")
        return
    zero = _constant(emitter, op)

    def instruction(type_: ValueType, texts: list[str]) -> str:
        if zero is not None:
            # Of two zeros the second operand is right: the constant is +0.
            x = texts[1 - zero]
            less = emitter.emit(f"fcmp olt {type_.text} {texts[zero]}, {x}", "less")
            return f"select <{type_.lanes} x i1> {less}, {type_.text} {texts[zero]}, {type_.text} {x}"
        return _minimum(emitter, type_, *texts)

    float_op(emitter, op, instruction)


def _maximum(emitter: FunctionEmitter, type_: ValueType, lhs: str, rhs: str) -> str:
    width = _range_lanes(emitter, type_)
    if width:
        greater = each_part(emitter, type_, width, [lhs, rhs], _range_maximum)
    else:
        greater = _combined(emitter, type_, "ogt", "and", lhs, rhs)
    both = emitter.emit(greater, "both")
    unordered = emitter.emit(f"fcmp uno {type_.text} {lhs}, {rhs}", "unordered")
    nan = type_.splat("0x7FF8000000000000")
    return f"select <{type_.lanes} x i1> {unordered}, {type_.text} {nan}, {type_.text} {both}"


_RANGE: Final = {"float": "ps", "double": "pd"}
"""Element -> suffix of the instructions of AVX-512DQ that choose of two numbers."""
_GREATER: Final = 0b0101
"""How they choose: the greater one (bits 0 and 1), with its own sign (bits 2 and 3)."""


def _range_lanes(emitter: FunctionEmitter, type_: ValueType) -> int:
    """Lanes of the registers that hold a vector of `type_` for `vrange`; 0 where the CPU lacks it, or where the vector
    does not fill them: LLVM cuts and pads such vectors as it finds best."""
    target = emitter.module.target
    whole = type_.lanes * type_.bytes
    size = min(whole, target.vector_bytes)
    fills = size in (16, 32, 64) and whole % size == 0
    return size // type_.bytes if fills and has_intrinsic(target, _range_intrinsic(type_, 8 * size)) else 0


def _range_intrinsic(type_: ValueType, bits: int) -> str:
    return f"x86.avx512.mask.range.{_RANGE[type_.element]}.{bits}"


def _range_maximum(type_: ValueType, texts: list[str]) -> str:
    """The greater number of two, with +0 above -0, and the number where the other is NaN."""
    bits = type_.lanes * type_.bits
    lhs, rhs = map(type_.typed, texts)
    rounding = ", i32 4" if bits == 512 else ""  # as it is set: nothing is rounded
    return (
        f"call {type_.text} @llvm.{_range_intrinsic(type_, bits)}"
        f"({lhs}, {rhs}, i32 {_GREATER}, {type_.text} zeroinitializer, i{max(type_.lanes, 8)} -1{rounding})"
    )


def _minimum(emitter: FunctionEmitter, type_: ValueType, lhs: str, rhs: str) -> str:
    return _combined(emitter, type_, "olt", "or", lhs, rhs)


_OF_LANES: Final = {"fmaximum": _maximum, "fminimum": _minimum}
"""The last part of the name of LLVM's reduction -> the form of two vectors."""


def reduces_by_halves(emitter: FunctionEmitter, name: str, type_: ValueType, flags: str) -> bool:
    """Whether `reduced_by_halves` does a reduction: on x86, where LLVM asks general registers about each scalar."""
    is_power = type_.lanes > 1 and type_.lanes & (type_.lanes - 1) == 0
    is_float = type_.element in ("float", "double")
    return name in _OF_LANES and is_power and is_float and not flags and emitter.module.target.architecture in _X86


def reduced_by_halves(emitter: FunctionEmitter, name: str, type_: ValueType, text: str) -> str:
    """The instruction that gives the maximum or minimum of all lanes: of the halves of a vector, until one lane is
    left. What is narrower than any register stands in the first lanes of one."""
    count = type_.lanes
    while count > 1:
        count //= 2
        half = value_type(type_.element, max(count, 16 // type_.bytes))
        lists = [lane_list([*range(at, at + count), *[-1] * (half.lanes - count)]) for at in (0, count)]
        halves = [
            emitter.emit(f"shufflevector {type_.text} {text}, {type_.text} poison, {lanes}", "half") for lanes in lists
        ]
        text, type_ = emitter.emit(_OF_LANES[name](emitter, half, *halves), "halves"), half
    return f"extractelement {type_.text} {text}, i64 0"


def _emit_intrinsic(emitter: FunctionEmitter, op: Operation, name: str) -> None:
    flags = emitter.module.flags_of(op, "")
    float_op(emitter, op, lambda type_, texts: emitter.call(type_, name, *texts, flags=flags))


def _has_form(emitter: FunctionEmitter, op: Operation) -> bool:
    """Whether one of the forms above stands for `op`: not where flags or a constant make LLVM's the shorter one."""
    type_ = emitter.type_of(op.results[0], op)
    if not type_.lanes or type_.element == "half" or emitter.module.target.architecture not in _X86:
        return False
    if emitter.module.flags_of(op, ""):
        return False
    known = [emitter.constants[operand] for operand in op.operands if operand in emitter.constants]
    return not known or (len(known) == 1 and known[0] == 0 and math.copysign(1.0, known[0]) > 0)


def _constant(emitter: FunctionEmitter, op: Operation) -> int | None:
    """Which operand is the constant."""
    return next((at for at, operand in enumerate(op.operands) if operand in emitter.constants), None)


def _chosen(emitter: FunctionEmitter, type_: ValueType, predicate: str, lhs: str, rhs: str) -> str:
    """`lhs` where it stands in the relation to `rhs`, else `rhs`: one instruction."""
    mask = emitter.emit(f"fcmp {predicate} {type_.text} {lhs}, {rhs}", "first")
    return emitter.emit(f"select <{type_.lanes} x i1> {mask}, {type_.text} {lhs}, {type_.text} {rhs}", "chosen")


def _combined(emitter: FunctionEmitter, type_: ValueType, predicate: str, operation: str, lhs: str, rhs: str) -> str:
    """The instruction that gives the bits of both orders of a comparison, combined."""
    integers = type_.of(f"i{type_.bits}").text
    bits = [
        emitter.emit(f"bitcast {type_.text} {_chosen(emitter, type_, predicate, *order)} to {integers}", "bits")
        for order in ((lhs, rhs), (rhs, lhs))
    ]
    both = emitter.emit(f"{operation} {integers} {bits[0]}, {bits[1]}", "both")
    return f"bitcast {integers} {both} to {type_.text}"


RULES: Final[Rules] = {
    arith.MaximumfOp: emit_maximum,
    arith.MinimumfOp: emit_minimum,
}
