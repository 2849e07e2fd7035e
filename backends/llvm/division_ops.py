"""Integer division and remainder, defined for all operands.

LLVM leaves division by zero and the one overflow undefined, and x86 raises a signal that would end the process. Data
must not do that, so (as in NumPy) x / 0 = 0, x mod 0 = 0, and the smallest number over -1 wraps to itself. A divisor
that is a constant, the usual case in index arithmetic, costs nothing extra.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from xdsl.dialects import arith

if TYPE_CHECKING:
    from xdsl.ir import Operation

    from weft.backends.llvm.emitter import FunctionEmitter, Rules
    from weft.backends.llvm.types import ValueType


def _safe_divisor(emitter: FunctionEmitter, op: Operation, type_: ValueType, *, signed: bool) -> tuple[str, str | None]:
    """A divisor that never traps, and the condition "the divisor is zero" (None when it is known not to be)."""
    lhs, rhs = emitter.texts(op)
    known = emitter.constants.get(op.operands[1])
    if known and (known != -1 or not signed):
        return rhs, None
    emit, i1 = emitter.emit, type_.of("i1")
    is_zero = emit(f"icmp eq {type_.text} {rhs}, {type_.splat('0')}", "is.zero")
    bad = is_zero
    if signed:
        smallest = str(-(1 << type_.bits - 1))
        is_smallest = emit(f"icmp eq {type_.text} {lhs}, {type_.splat(smallest)}", "is.smallest")
        is_minus = emit(f"icmp eq {type_.text} {rhs}, {type_.splat('-1')}", "is.minus")
        overflows = emit(f"and {i1.text} {is_smallest}, {is_minus}", "overflows")
        bad = emit(f"or {i1.text} {is_zero}, {overflows}", "bad")
    divisor = emit(f"select {i1.text} {bad}, {type_.typed(type_.splat('1'))}, {type_.text} {rhs}", "divisor")
    return divisor, is_zero


def _define_quotient(
    emitter: FunctionEmitter, op: Operation, type_: ValueType, instruction: str, is_zero: str | None
) -> None:
    """Bind the quotient that `instruction` computes, or 0 where the divisor is zero."""
    if is_zero is None:
        emitter.define(op.results[0], instruction)
        return
    quotient = emitter.emit(instruction, "quotient")
    condition = type_.of("i1").typed(is_zero)
    emitter.define(op.results[0], f"select {condition}, {type_.typed(type_.splat('0'))}, {type_.typed(quotient)}")


def emit_division(emitter: FunctionEmitter, op: Operation) -> None:
    """Rounds towards zero."""
    type_ = emitter.type_of(op.results[0], op)
    signed = isinstance(op, arith.DivSIOp)
    divisor, is_zero = _safe_divisor(emitter, op, type_, signed=signed)
    lhs = emitter.text(op.operands[0])
    _define_quotient(emitter, op, type_, f"{'sdiv' if signed else 'udiv'} {type_.text} {lhs}, {divisor}", is_zero)


def emit_remainder(emitter: FunctionEmitter, op: Operation) -> None:
    """The sign is that of the dividend; the remainder by the substitute divisor 1 is the 0 that is wanted."""
    type_ = emitter.type_of(op.results[0], op)
    signed = isinstance(op, arith.RemSIOp)
    divisor, _ = _safe_divisor(emitter, op, type_, signed=signed)
    lhs = emitter.text(op.operands[0])
    emitter.define(op.results[0], f"{'srem' if signed else 'urem'} {type_.text} {lhs}, {divisor}")


def emit_floor_division(emitter: FunctionEmitter, op: Operation) -> None:
    type_ = emitter.type_of(op.results[0], op)
    lhs = emitter.text(op.operands[0])
    known = emitter.constants.get(op.operands[1])
    if known is not None and known > 0 and (power := int(known)) & (power - 1) == 0:
        shift = type_.splat(str(power.bit_length() - 1))
        emitter.define(op.results[0], f"ashr {type_.text} {lhs}, {shift}")
        return
    emit, i1 = emitter.emit, type_.of("i1")
    divisor, is_zero = _safe_divisor(emitter, op, type_, signed=True)
    quotient = emit(f"sdiv {type_.text} {lhs}, {divisor}", "quotient")
    inexact, differ = _inexact_and_signs_differ(emitter, type_, lhs, divisor)
    down = emit(f"and {i1.text} {inexact}, {differ}", "down")
    step = emit(f"sext {i1.text} {down} to {type_.text}", "step")
    _define_quotient(emitter, op, type_, f"add {type_.text} {quotient}, {step}", is_zero)


def emit_ceil_division(emitter: FunctionEmitter, op: Operation) -> None:
    type_ = emitter.type_of(op.results[0], op)
    lhs = emitter.text(op.operands[0])
    emit, i1 = emitter.emit, type_.of("i1")
    signed = isinstance(op, arith.CeilDivSIOp)
    divisor, is_zero = _safe_divisor(emitter, op, type_, signed=signed)
    if signed:
        quotient = emit(f"sdiv {type_.text} {lhs}, {divisor}", "quotient")
        inexact, differ = _inexact_and_signs_differ(emitter, type_, lhs, divisor)
        up = emit(f"select {i1.text} {differ}, {i1.text} {i1.splat('false')}, {i1.text} {inexact}", "up")
    else:
        quotient = emit(f"udiv {type_.text} {lhs}, {divisor}", "quotient")
        rest = emit(f"urem {type_.text} {lhs}, {divisor}", "rest")
        up = emit(f"icmp ne {type_.text} {rest}, {type_.splat('0')}", "up")
    step = emit(f"zext {i1.text} {up} to {type_.text}", "step")
    _define_quotient(emitter, op, type_, f"add {type_.text} {quotient}, {step}", is_zero)


def _inexact_and_signs_differ(emitter: FunctionEmitter, type_: ValueType, lhs: str, divisor: str) -> tuple[str, str]:
    emit = emitter.emit
    rest = emit(f"srem {type_.text} {lhs}, {divisor}", "rest")
    inexact = emit(f"icmp ne {type_.text} {rest}, {type_.splat('0')}", "inexact")
    signs = emit(f"xor {type_.text} {lhs}, {divisor}", "signs")
    return inexact, emit(f"icmp slt {type_.text} {signs}, {type_.splat('0')}", "differ")


RULES: Final[Rules] = {
    **dict.fromkeys((arith.DivSIOp, arith.DivUIOp), emit_division),
    **dict.fromkeys((arith.RemSIOp, arith.RemUIOp), emit_remainder),
    arith.FloorDivSIOp: emit_floor_division,
    **dict.fromkeys((arith.CeilDivSIOp, arith.CeilDivUIOp), emit_ceil_division),
}
