"""Arithmetic on 16-bit floats: computed in `float`, and rounded back after every op.

`float` has more than twice the bits (24 >= 2 * 11 + 2), so that the first rounding of `+ - * /` and of the square root
does no harm (Figueroa 1995). For `half` LLVM does this well by itself. For `bfloat` it does not: x86's conversion
instruction takes subnormal numbers for zero, without it every lane becomes a call, and for a Zen 4 code generation
dies of some shuffles of them (LLVM 22). So a value of it is the integer that its bits make, and both ways to `float`
are written here in integer instructions; LLVM sees a `bfloat` where a function takes or gives one, and nowhere else.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from weft.backends.llvm.emitter import FunctionEmitter
    from weft.backends.llvm.types import ValueType


def widen(emitter: FunctionEmitter, type_: ValueType, text: str) -> str:
    """A 16-bit float as a `float`, which is exact."""
    emit, wide = emitter.emit, type_.of("float")
    if type_.element == "half":
        return emit(f"fpext {type_.text} {text} to {wide.text}", "wide")
    i16, i32 = type_.of("i16"), type_.of("i32")
    zeros = emit(f"zext {i16.text} {text} to {i32.text}", "bits")
    high = emit(f"shl {i32.text} {zeros}, {i32.splat('16')}", "bits")
    return emit(f"bitcast {i32.text} {high} to {wide.text}", "wide")


def narrow(emitter: FunctionEmitter, type_: ValueType, text: str) -> str:
    """The expression of a 16-bit float: the `float` in `text`, rounded to nearest, ties to even."""
    wide = type_.of("float")
    if type_.element == "half":
        return f"fptrunc {wide.text} {text} to {type_.text}"
    emit, i32 = emitter.emit, type_.of("i32")
    i16 = type_.of("i16")
    bits = emit(f"bitcast {wide.text} {text} to {i32.text}", "bits")
    high = emit(f"lshr {i32.text} {bits}, {i32.splat('16')}", "high")
    odd = emit(f"and {i32.text} {high}, {i32.splat('1')}", "odd")
    half = emit(f"add {i32.text} {odd}, {i32.splat('32767')}", "half")
    sum_ = emit(f"add {i32.text} {bits}, {half}", "sum")
    rounded = emit(f"lshr {i32.text} {sum_}, {i32.splat('16')}", "rounded")
    # Rounding could turn a NaN into an infinity: keep its upper bits and make it quiet.
    quiet = emit(f"or {i32.text} {high}, {i32.splat('64')}", "quiet")
    is_nan = emit(f"fcmp uno {wide.text} {text}, {text}", "is.nan")
    chosen = emit(f"select {type_.of('i1').text} {is_nan}, {i32.text} {quiet}, {i32.text} {rounded}", "chosen")
    return f"trunc {i32.text} {chosen} to {i16.text}"


def to_odd_float(emitter: FunctionEmitter, double: ValueType, text: str) -> str:
    """A `double` as a `float`, inexact results rounded to the neighbour with an odd last bit. A second rounding to
    fewer than 23 bits then gives what one rounding would have given (Boldo and Melquiond 2008)."""
    emit, single, i32, i1 = emitter.emit, double.of("float"), double.of("i32"), double.of("i1")
    nearest = emit(f"fptrunc {double.text} {text} to {single.text}", "nearest")
    back = emit(f"fpext {single.text} {nearest} to {double.text}", "back")
    bits = emit(f"bitcast {single.text} {nearest} to {i32.text}", "bits")
    # The other neighbour of an inexact number: one step towards zero when `nearest` lies beyond it.
    size = emit(emitter.call(double, "fabs", text), "size")
    back_size = emit(emitter.call(double, "fabs", back), "back.size")
    beyond = emit(f"fcmp ogt {double.text} {back_size}, {size}", "beyond")
    step = emit(f"select {i1.text} {beyond}, {i32.text} {i32.splat('-1')}, {i32.text} {i32.splat('1')}", "step")
    other = emit(f"add {i32.text} {bits}, {step}", "other")
    inexact = emit(f"fcmp one {double.text} {back}, {text}", "inexact")
    is_odd = emit(f"trunc {i32.text} {bits} to {i1.text}", "is.odd")
    stays = emit(f"select {i1.text} {is_odd}, {i32.text} {bits}, {i32.text} {other}", "stays")
    chosen = emit(f"select {i1.text} {inexact}, {i32.text} {stays}, {i32.text} {bits}", "chosen")
    return emit(f"bitcast {i32.text} {chosen} to {single.text}", "to.odd")


def narrow_double(emitter: FunctionEmitter, type_: ValueType, text: str) -> str:
    """The expression of a `bfloat`: the `double` in `text`, rounded once."""
    return narrow(emitter, type_, to_odd_float(emitter, type_.of("double"), text))


def from_integer(emitter: FunctionEmitter, source: ValueType, text: str, type_: ValueType, *, signed: bool) -> str:
    """The expression of a `bfloat`: the integer in `text`, rounded once."""
    emit, double = emitter.emit, source.of("double")
    if source.bits == 64:
        text = _sticky(emitter, source, text, signed=signed)
    instruction = "sitofp" if signed else "uitofp"
    value = emit(f"{instruction} {source.text} {text} to {double.text}", "double")
    return narrow_double(emitter, type_, value)


def _sticky(emitter: FunctionEmitter, i64: ValueType, text: str, *, signed: bool) -> str:
    """A 64-bit integer that is exact in a `double`, and rounds to a `bfloat` like `text`: the low 11 bits of a large
    one are gathered in the lowest bit that stays."""
    emit = emitter.emit
    low = emit(f"and {i64.text} {text}, {i64.splat('2047')}", "low")
    carry = emit(f"add {i64.text} {low}, {i64.splat('2047')}", "carry")
    marked = emit(f"or {i64.text} {text}, {carry}", "marked")
    kept = emit(f"and {i64.text} {marked}, {i64.splat('-2048')}", "kept")
    # Small ones are exact as they are: -2^53 <= x < 2^53, or below 2^53 when unsigned.
    offset = emit(f"add {i64.text} {text}, {i64.splat(str(1 << 53))}", "offset") if signed else text
    bound = 1 << 54 if signed else 1 << 53
    small = emit(f"icmp ult {i64.text} {offset}, {i64.splat(str(bound))}", "small")
    return emit(f"select {i64.of('i1').text} {small}, {i64.text} {text}, {i64.text} {kept}", "sticky")
