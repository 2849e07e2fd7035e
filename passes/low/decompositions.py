"""Formulas for operations that targets lack (`low_legalize.py`), on scalars and vectors (`elementary/lanes.py`)."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

from xdsl.dialects import arith, scf, vector
from xdsl.dialects import math as math_dialect
from xdsl.dialects.builtin import FloatNanEncoding, FloatNonfiniteBehavior, IndexType, IntegerAttr
from xdsl.ir import Block, Region

from weft.dialects import low_lanes
from weft.passes.low.elementary.lanes import DEFINED_MARK, F16
from weft.passes.low.op_rewriter import element_of
from weft.support.cpu_instructions import range_lanes

if TYPE_CHECKING:
    from collections.abc import Callable

    from xdsl.dialects.builtin import FloatSemantics
    from xdsl.ir import Operation, SSAValue

    from weft.passes.low.elementary.lanes import Bits, Lanes, Mask, Writer
    from weft.support.target import Target

# The x86 instruction for bf16 flushes subnormal inputs; without it LLVM calls a function per lane, and for Zen 4 fails
# on some shuffles (LLVM 22).


def from_bf16(x: Lanes, wide: Writer) -> Lanes:
    return (x.bits.cast(arith.ExtUIOp, wide) << 16).numbers


def to_bf16(x: Lanes, small: Writer) -> Lanes:
    """Rounds to nearest, ties to even."""
    bits = x.bits
    high = bits >> 16
    rounded = (bits + ((high & 1) + 32767)) >> 16
    # Rounding could turn a NaN into an infinity: keep its upper bits, quiet.
    chosen = x.compare("uno", x).choose_bits(high | 64, rounded)
    return chosen.cast(arith.TruncIOp, small).numbers


# Floats of a byte or less: the low bits of an i8.


def from_small(code: Bits, wide: Writer, semantics: FloatSemantics) -> Lanes:
    """Exact `f32`, without subnormal intermediate results, which GPUs may flush."""
    fraction, magnitude_bits = semantics.mantissa_bits, semantics.sign_shift
    bits = code.cast(arith.ExtUIOp, wide)
    if not semantics.has_zero:
        return _from_power_of_two(bits, semantics)
    magnitude = bits & ((1 << magnitude_bits) - 1)
    sign = (bits & (1 << magnitude_bits)) << (31 - magnitude_bits)
    normal = (magnitude << (23 - fraction)) + ((127 - semantics.exponent_bias) << 23)
    to_float = low_lanes.LANE_FORMS[arith.SIToFPOp] if wide.is_vector else arith.SIToFPOp
    units = wide.lanes(wide.op(to_float, (magnitude.value,), wide.float_type))
    subnormal = units * 2.0 ** (1 - semantics.exponent_bias - fraction)
    found = magnitude.compare("ult", 1 << fraction).choose_bits(subnormal.bits, normal)
    quiet = wide.integer(0x7FC00000)
    match semantics.nonfinite, semantics.nan_encoding:
        case FloatNonfiniteBehavior.IEEE, _:
            infinity = semantics.max_exponent << fraction
            found = magnitude.compare("uge", infinity).choose_bits(wide.integer(0x7F800000), found)
            found = magnitude.compare("ugt", infinity).choose_bits(quiet, found)
        case FloatNonfiniteBehavior.NAN_ONLY, FloatNanEncoding.ALL_ONES:
            found = magnitude.compare("eq", (1 << magnitude_bits) - 1).choose_bits(quiet, found)
        case FloatNonfiniteBehavior.NAN_ONLY, _:
            found = bits.compare("eq", 1 << magnitude_bits).choose_bits(quiet, found)
        case _:
            pass
    return (found | sign).numbers


def _from_power_of_two(code: Bits, semantics: FloatSemantics) -> Lanes:
    """A power of two with the bias of `f32`: code 0 is subnormal, the last NaN."""
    found = code.compare("eq", 0).choose_bits(code.writer.integer(1 << 22), code << 23)
    is_nan = code.compare("eq", semantics.max_exponent)
    return is_nan.choose_bits(code.writer.integer(0x7FC00000), found).numbers


def _to_power_of_two(x: Lanes, semantics: FloatSemantics) -> Bits:
    """Ties round up, numbers that are not positive become NaN. Compares integers: GPUs may flush subnormal numbers."""
    wide, bits = x.writer, x.bits
    normal = (bits + (1 << 22)) >> 23
    upper = bits.compare("uge", 3 << 21).choose_bits(wide.integer(1), wide.integer(0))
    found = bits.compare("ult", 1 << 23).choose_bits(upper, normal)
    is_positive = (bits - 1).compare("ult", 0x7F7FFFFF)
    return is_positive.choose_bits(found, wide.integer(semantics.max_exponent))


def to_small(x: Lanes, small: Writer, semantics: FloatSemantics) -> Bits:
    """Bits in an i8, rounded to nearest, ties to even."""
    fraction, magnitude_bits, bias = semantics.mantissa_bits, semantics.sign_shift, semantics.exponent_bias
    if not semantics.has_zero:
        return _to_power_of_two(x, semantics).cast(arith.TruncIOp, small)
    wide, bits = x.writer, x.bits
    sign = (bits >> 31) << magnitude_bits
    magnitude = bits & 0x7FFFFFFF
    half = ((magnitude >> (23 - fraction)) & 1) + ((1 << (22 - fraction)) - 1)
    normal = ((magnitude + half) >> (23 - fraction)) - ((127 - bias) << fraction)
    # The sum rounds at units of subnormal numbers; its low bits count the units.
    units = 2.0 ** (24 - bias - fraction)
    subnormal = (abs(x) + units).bits - ((127 + 24 - bias - fraction) << 23)
    found = magnitude.compare("ult", (127 + 1 - bias) << 23).choose_bits(subnormal, normal)
    greatest = (1 << magnitude_bits) - 1
    match semantics.nonfinite, semantics.nan_encoding:
        case FloatNonfiniteBehavior.IEEE, _:
            infinity = semantics.max_exponent << fraction
            found = found.compare("uge", infinity).choose_bits(wide.integer(infinity), found)
            nan = infinity | 1 << (fraction - 1)
            found = x.compare("uno", x).choose_bits(wide.integer(nan), found) | sign
        case FloatNonfiniteBehavior.NAN_ONLY, FloatNanEncoding.ALL_ONES:
            found = found.compare("uge", greatest).choose_bits(wide.integer(greatest), found) | sign
        case FloatNonfiniteBehavior.NAN_ONLY, _:
            signed = found.compare("eq", 0).choose_bits(found, found | sign)
            found = found.compare("ugt", greatest).choose_bits(wide.integer(greatest + 1), signed)
        case _:
            signed = found.compare("ugt", greatest).choose_bits(wide.integer(greatest), found) | sign
            found = x.compare("uno", x).choose_bits(sign ^ (greatest + 1), signed)
    return found.cast(arith.TruncIOp, small)


def to_odd_float(x: Lanes, single: Writer) -> Lanes:
    """`f32`, inexact results rounded to the neighbour with an odd last bit: a second rounding to fewer than 23 bits
    then equals a single one (Boldo and Melquiond 2008).
    """
    double = x.writer
    nearest = single.lanes(single.op(arith.TruncFOp, (x.value,), single.float_type))
    back = double.lanes(double.op(arith.ExtFOp, (nearest.value,), double.float_type))
    bits = nearest.bits
    # The other neighbour: one step towards zero if `nearest` is too large.
    other = bits + (abs(back) > abs(x)).choose_bits(single.integer(-1), single.integer(1))
    stays = (bits & 1).compare("ne", 0).choose_bits(bits, other)
    return back.compare("one", x).choose_bits(stays, bits).numbers


def sticky(value: Bits, *, signed: bool) -> Bits:
    """An integer, exact in `f64`, that rounds to a 16-bit float like `value`: the low 11 bits of a large one are OR-ed
    into the lowest kept bit.
    """
    kept = (value | ((value & 2047) + 2047)) & -2048
    # Exact if small: -2^53 <= x < 2^53, or below 2^53 if unsigned.
    offset = value + (1 << 53) if signed else value
    return offset.compare("ult", 1 << 54 if signed else 1 << 53).choose_bits(value, kept)


# Floats to integers (`weft.support.float_to_integer`)


def to_register(x: Lanes, register: Writer, *, is_below: bool) -> Bits:
    """A signed integer; the least one for NaN and out of range. `is_below`: no number exceeds the range."""
    least = -(2.0 ** (register.shape.integer_bits - 1))
    inside = x.compare("oge", least).choose(x, least)
    if not is_below:
        inside = (inside < -least).choose(inside, least)
    kind = low_lanes.LANE_FORMS[arith.FPToSIOp] if register.is_vector else arith.FPToSIOp
    return register.bits(register.op(kind, (inside.value,), register.integer_type, {}, DEFINED_MARK))


def to_integer(x: Lanes, register: Writer, small: Writer, bits: int, *, signed: bool) -> Bits:
    """The low `bits` of a conversion to `register`'s width, in the type of `small`."""
    kind = low_lanes.LANE_FORMS[arith.FPToSIOp] if register.is_vector else arith.FPToSIOp

    def converted(number: Lanes) -> Bits:
        return register.bits(register.op(kind, (number.value,), register.integer_type))

    if bits == 64 and not signed:
        is_large = x.compare("oge", 2.0**63)
        found = converted(is_large.choose(x * 0.5, x))
        return is_large.choose_bits(found << 1, found)
    found = converted(x)
    if bits < 8:
        limit = math.inf if x.writer.format is F16 else 2.0**63
        found = x.compare("oge", limit).choose_bits(register.integer(-1), found)
    return found if register.integer_type == small.integer_type else found.cast(arith.TruncIOp, small)


_TRUNCATING: Final = (arith.DivSIOp, arith.DivUIOp, arith.RemSIOp, arith.RemUIOp)
_UNSIGNED: Final = (arith.DivUIOp, arith.RemUIOp, arith.CeilDivUIOp)


def _is_harmless(kind: type[Operation], divisor: float | None) -> bool:
    return bool(divisor) and (divisor != -1 or kind in _UNSIGNED)


def is_instruction(kind: type[Operation], divisor: float | None) -> bool:
    return kind in _TRUNCATING and _is_harmless(kind, divisor)


def divided(kind: type[Operation], lhs: Bits, rhs: Bits, divisor: float | None) -> Bits:
    """Defined for all operands: x / 0 is 0, the smallest number over -1 wraps. `divisor` is its value, if known."""
    if kind is arith.FloorDivSIOp and divisor is not None and divisor > 0 and (power := int(divisor)) & power - 1 == 0:
        return lhs.shifted_right_signed(power.bit_length() - 1)
    writer = lhs.writer
    if _is_harmless(kind, divisor):
        return _divided_by_harmless(kind, lhs, rhs)
    is_zero = rhs.compare("eq", 0)
    bad = is_zero
    if kind not in _UNSIGNED:
        smallest = -1 << writer.shape.integer_bits - 1
        bad = is_zero | (lhs.compare("eq", smallest) & rhs.compare("eq", -1))
    quotient = _divided_by_harmless(kind, lhs, bad.choose_bits(writer.integer(1), rhs))
    # The remainder by 1 is 0, as required.
    return quotient if kind in (arith.RemSIOp, arith.RemUIOp) else is_zero.choose_bits(writer.integer(0), quotient)


def _divided_by_harmless(kind: type[Operation], lhs: Bits, rhs: Bits) -> Bits:
    if kind in _TRUNCATING:
        return lhs.divided(kind, rhs)
    integer = lhs.writer.integer
    if kind is arith.CeilDivUIOp:
        has_rest = lhs.divided(arith.RemUIOp, rhs).compare("ne", 0)
        return lhs.divided(arith.DivUIOp, rhs) + has_rest.choose_bits(integer(1), integer(0))
    quotient = lhs.divided(arith.DivSIOp, rhs)
    has_rest = lhs.divided(arith.RemSIOp, rhs).compare("ne", 0)
    signs = lhs ^ rhs
    if kind is arith.FloorDivSIOp:
        return quotient + (has_rest & signs.compare("slt", 0)).choose_bits(integer(-1), integer(0))
    return quotient + (has_rest & signs.compare("sge", 0)).choose_bits(integer(1), integer(0))


def integer_power(base: Bits, power: Bits, writer_at: Callable[[Operation], Writer]) -> Bits:
    """Squaring in a loop. With a negative exponent only 1 and -1 have nonzero results. `writer_at`: a writer before an
    op.
    """
    writer = base.writer
    negative = power.compare("slt", 0)
    is_odd = (power & 1).compare("ne", 0)
    sign = is_odd.choose_bits(writer.integer(-1), writer.integer(1))
    other = base.compare("eq", -1).choose_bits(sign, writer.integer(0))
    inverse = base.compare("eq", 1).choose_bits(writer.integer(1), other)
    rest = negative.choose_bits(writer.integer(0), power)
    result = _product_of_squares(base, rest, writer_at)
    return negative.choose_bits(inverse, result)


def _product_of_squares(base: Bits, power: Bits, writer_at: Callable[[Operation], Writer]) -> Bits:
    """The loop runs to the highest bit of any lane."""
    writer, type_ = base.writer, base.writer.integer_type
    element = element_of(type_)
    bits = power.value
    if writer.is_vector:
        kind = vector.CombiningKindAttr(vector.CombiningKindFlag.OR)
        bits = writer.op(vector.ReductionOp, (bits,), element, {"kind": kind})
    zeros = writer.op(math_dialect.CountLeadingZerosOp, (bits,), element)
    index = IndexType()
    if element != index:
        zeros = writer.op(arith.IndexCastOp, (zeros,), index)

    def number(value: int) -> SSAValue:
        return writer.op(arith.ConstantOp, (), index, {"value": IntegerAttr(value, index)})

    trips = writer.insert(arith.SubiOp(number(writer.shape.integer_bits), zeros))
    body = Block(arg_types=[index, type_, type_, type_])
    starts = [writer.integer(1).value, base.value, power.value]
    yielded = scf.YieldOp(*starts)
    body.add_op(yielded)
    inner = writer_at(yielded)
    result, factor, rest = (inner.bits(value) for value in body.args[1:])
    is_odd = (rest & 1).compare("ne", 0)
    next_ = (is_odd.choose_bits(result * factor, result), factor * factor, rest >> 1)
    yielded.operands = [bits.value for bits in next_]
    loop = scf.ForOp(number(0), trips, number(1), starts, Region(body))
    return writer.bits(writer.insert(loop))


# Maxima and minima on x86, whose instructions return the second operand for NaN and two zeros; LLVM's dependent blends
# have longer chains:
#
#     minimumf(a, b) = minps(a, b) | minps(b, a)       equal results stay, zeros become -0, a NaN stays one
#     maximumf(a, b) = maxps(a, b) & maxps(b, a), NaN where a and b do not compare
#     maximumf(a, b) = rangeps(a, b), NaN where a and b do not compare
#     maximumf(x, 0) = maxps(0, x) + 0                 -0 + 0 is 0
#
# `rangeps` (AVX-512DQ) is `maxnumf`, since it orders zeros. For a minimum it would save no instruction and depend on a
# mask. LLVM needs one instruction for other constants, and vectorizes loops of scalar intrinsics.

_X86: Final = ("x86_64", "i386", "i686")


def has_extrema(target: Target) -> bool:
    return target.architecture in _X86


def maximum(lhs: Lanes, rhs: Lanes, target: Target) -> Lanes:
    writer = lhs.writer
    bits = writer.shape.integer_bits
    if range_lanes(target, 8 * writer.shape.bytes // bits, bits):
        value = writer.op(arith.MaxnumfOp, (lhs.value, rhs.value), writer.float_type, {"fastmath": _NO_FLAGS})
        greater = writer.lanes(value)
    else:
        greater = (_first(lhs > rhs, lhs, rhs) & _first(rhs > lhs, rhs, lhs)).numbers
    return lhs.compare("uno", rhs).choose(math.nan, greater)


def minimum(lhs: Lanes, rhs: Lanes) -> Lanes:
    return (_first(lhs < rhs, lhs, rhs) | _first(rhs < lhs, rhs, lhs)).numbers


def _first(relation: Mask, lhs: Lanes, rhs: Lanes) -> Bits:
    return relation.choose(lhs, rhs).bits


def maximum_with_zero(x: Lanes, zero: Lanes) -> Lanes:
    return (zero > x).choose(zero, x) + 0.0


def minimum_with_zero(x: Lanes, zero: Lanes) -> Lanes:
    """The minimum of x and +0: the order is right for two zeros."""
    return (zero < x).choose(zero, x)


_NO_FLAGS: Final = arith.FastMathFlagsAttr("none")


def extremum_of_lanes(lanes: Lanes, scalar: Writer, *, is_maximum: bool) -> Lanes:
    """NaN if a lane is.

    Encodings, with other bits flipped if negative, are ordered integers, -0 before +0 (Herf 2001): one instruction per
    halving. A NaN becomes the last or first of them.
    """
    integer = lanes.writer.integer
    nan, kind = (_all_but_sign(lanes.writer), _MAXIMUM) if is_maximum else (-1, _MINIMUM)
    keys = _in_order(lanes.compare("uno", lanes).choose_bits(integer(nan), lanes.bits))
    key = scalar.op(vector.ReductionOp, (keys.value,), scalar.integer_type, {"kind": kind, "fastmath": _NO_FLAGS})
    return _in_order(scalar.bits(key)).numbers


def _in_order(bits: Bits) -> Bits:
    sign = bits.shifted_right_signed(bits.writer.shape.integer_bits - 1)
    return bits ^ (sign & _all_but_sign(bits.writer))


def _all_but_sign(writer: Writer) -> int:
    return (1 << writer.shape.integer_bits - 1) - 1


_MAXIMUM: Final = vector.CombiningKindAttr(vector.CombiningKindFlag.MAXSI)
_MINIMUM: Final = vector.CombiningKindAttr(vector.CombiningKindFlag.MINSI)
