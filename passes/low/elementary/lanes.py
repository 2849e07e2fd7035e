"""Lanes with the operators of Python, which create ops: the notation of formulas.

    y = x * x + 1.0        ->        %0 = arith.mulf %x, %x {low.ordered} : vector<16xf32>
                                     %1 = arith.addf %0, %one {low.ordered} : vector<16xf32>

A formula works on scalars, vectors of any length, and Python numbers. Additions, subtractions and multiplications are
`low.ordered`: never reassociated, but possibly contracted to fused multiply-adds, so a formula must be right both ways
(exact products stay exact). At most one product of a sum may be fused; the other is a `rounded_product`. Results thus
do not depend on the vector length.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Final, cast

from xdsl.dialects import arith, math, scf, vector
from xdsl.dialects.builtin import (
    DenseIntOrFPElementsAttr,
    FloatAttr,
    IndexType,
    IntegerAttr,
    IntegerType,
    UnitAttr,
    VectorType,
    bf16,
    f16,
    f32,
    f64,
    i1,
    i16,
    i32,
    i64,
)

from weft.dialects import low_lanes
from weft.dialects.low import DEFINED, ORDERED, ROUNDED
from weft.passes.low.op_rewriter import OpRewriter

if TYPE_CHECKING:
    from collections.abc import Callable

    from xdsl.dialects.builtin import AnyFloat
    from xdsl.ir import Attribute, Block, Operation, SSAValue


@dataclass(frozen=True)
class Format:
    float_type: AnyFloat
    integer_type: IntegerType
    mantissa_bits: int
    """Of the fraction."""
    bias: int
    """Exponent bias of the encoding; also the greatest exponent of a finite number."""

    @property
    def one(self) -> int:
        return self.bias << self.mantissa_bits

    @property
    def rounder(self) -> float:
        """1.5 * 2^mantissa_bits: `x + rounder` has x rounded to an integer in its low bits, for |x| < 2^(mantissa_bits
        - 2).
        """
        return 1.5 * 2.0**self.mantissa_bits

    @property
    def smallest_normal(self) -> float:
        return 2.0 ** (1 - self.bias)


F16: Final = Format(f16, i16, 10, 15)
BF16: Final = Format(bf16, i16, 7, 127)
F32: Final = Format(f32, i32, 23, 127)
F64: Final = Format(f64, i64, 52, 1023)
FORMATS: Final[Mapping[Attribute, Format]] = {format_.float_type: format_ for format_ in (F16, BF16, F32, F64)}

_NO_FLAGS: Final = arith.FastMathFlagsAttr("none")
_FLOAT: Final[Mapping[str, Attribute]] = {"fastmath": _NO_FLAGS}
_INTEGER: Final[Mapping[str, Attribute]] = {"overflowFlags": arith.IntegerOverflowAttr("none")}
_MARK: Final[Mapping[str, Attribute]] = {ORDERED: UnitAttr()}
_ROUNDED: Final[Mapping[str, Attribute]] = {ROUNDED: UnitAttr()}
_UNMARKED: Final[Mapping[str, Attribute]] = {}
DEFINED_MARK: Final[Mapping[str, Attribute]] = {DEFINED: UnitAttr()}
_ANY: Final = vector.CombiningKindAttr(vector.CombiningKindFlag.OR)
_PREDICATES: Final = {
    name: IntegerAttr(arith.CMPF_COMPARISON_OPERATIONS.index(name), i64)
    for name in ("oeq", "olt", "ole", "ogt", "oge", "one", "ult", "uno")
}
_INTEGER_PREDICATES: Final = {
    name: IntegerAttr(number, i64) for number, name in enumerate(arith.CMPI_COMPARISON_OPERATIONS)
}


class Shape:
    """Types of a formula's values: `lanes` of a format, 0 for scalars; `integer` of integer formulas. Cached, because
    types and constants are expensive to make.
    """

    def __init__(self, format_: Format, lanes: int, integer: IntegerType | IndexType | None = None) -> None:
        self.format = format_
        self.element = integer or format_.integer_type
        self.integer_bits = self.element.width.data if isinstance(self.element, IntegerType) else 64
        self.is_vector = lanes > 0
        self.bytes = lanes * self.integer_bits // 8
        self.float_type = _type(format_.float_type, lanes)
        self.integer_type = _type(self.element, lanes)
        self.mask_type = _type(i1, lanes)
        self._values: dict[int | str, Attribute] = {}

    def number(self, key: str) -> Attribute:
        if key not in self._values:
            lanes = cast("VectorType[AnyFloat]", self.float_type)
            self._values[key] = (
                DenseIntOrFPElementsAttr.from_list(lanes, [float(key)])
                if self.is_vector
                else FloatAttr(float(key), self.format.float_type)
            )
        return self._values[key]

    def integer(self, number: int) -> Attribute:
        if number not in self._values:
            lanes = cast("VectorType[IntegerType]", self.integer_type)
            self._values[number] = (
                DenseIntOrFPElementsAttr.from_list(lanes, [number])
                if self.is_vector
                else IntegerAttr(number, self.element)
            )
        return self._values[number]


def _type(element: Attribute, lanes: int) -> Attribute:
    return VectorType(element, [lanes]) if lanes else element


@cache
def shape_of(format_: Format, lanes: int) -> Shape:
    return Shape(format_, lanes)


@cache
def integer_shape(integer: IntegerType | IndexType, lanes: int) -> Shape:
    return Shape(F64, lanes, integer)


@dataclass
class Constants:
    block: Block
    known: dict[tuple[Shape, int | str], SSAValue] = field(default_factory=dict["tuple[Shape, int | str]", "SSAValue"])

    def number(self, shape: Shape, number: float) -> SSAValue:
        # zeros of different signs are equal, except as text
        key = (shape, repr(number))
        if key not in self.known:
            self.known[key] = self._add(shape.number(key[1]), shape.float_type)
        return self.known[key]

    def integer(self, shape: Shape, number: int) -> SSAValue:
        key = (shape, number)
        if key not in self.known:
            self.known[key] = self._add(shape.integer(number), shape.integer_type)
        return self.known[key]

    def _add(self, value: Attribute, type_: Attribute) -> SSAValue:
        op = arith.ConstantOp.create(properties={"value": value}, result_types=[type_])
        first = self.block.first_op
        if first is None:
            self.block.add_op(op)
        else:
            self.block.insert_op_before(op, first)
        return op.result


class Writer(OpRewriter):
    """Inserts the ops of a formula before the op that it replaces."""

    def __init__(self, op: Operation, constants: Constants, shape: Shape, *, has_ldexp: bool = False) -> None:
        super().__init__(op)
        self.shape = shape
        self.format = shape.format
        self.float_type = shape.float_type
        self.integer_type = shape.integer_type
        self.mask_type = shape.mask_type
        self.is_vector = shape.is_vector
        self.has_ldexp = has_ldexp
        """`low.ldexp` is an instruction for this shape."""
        self._constants = constants

    def number(self, number: float) -> Lanes:
        return Lanes(self, self._constants.number(self.shape, float(number)))

    def integer(self, number: int) -> Bits:
        half = 1 << (self.shape.integer_bits - 1)
        signed = (number + half) % (2 * half) - half
        return Bits(self, self._constants.integer(self.shape, signed))

    def floats(self, kind: type[Operation], *operands: SSAValue, marks: Mapping[str, Attribute] = _UNMARKED) -> Lanes:
        return Lanes(self, self.op(kind, operands, self.float_type, _FLOAT, marks))

    def called_where(self, mask: Mask, call: type[Operation], x: Lanes, others: Lanes) -> Lanes:
        """`call`, not expanded, in lanes of `mask`, else `others`. Skipped if no lane needs it."""
        condition = mask.value
        if self.is_vector:
            condition = self.op(vector.ReductionOp, (condition,), i1, {"kind": _ANY, "fastmath": _NO_FLAGS})
        called = call.create(operands=[x.value], result_types=[self.float_type], properties=dict(_FLOAT))
        kind = low_lanes.SelectOp if self.is_vector else arith.SelectOp
        chosen = kind.create(operands=[mask.value, called.results[0], others.value], result_types=[self.float_type])
        then = [called, chosen, scf.YieldOp(chosen.results[0])]
        return self.lanes(self.insert(scf.IfOp(condition, [self.float_type], then, [scf.YieldOp(others.value)])))

    def lanes(self, value: SSAValue) -> Lanes:
        return Lanes(self, value)

    def bits(self, value: SSAValue) -> Bits:
        return Bits(self, value)


@dataclass(frozen=True, slots=True)
class Lanes:
    writer: Writer
    value: SSAValue

    def _other(self, other: Lanes | float) -> SSAValue:
        return other.value if isinstance(other, Lanes) else self.writer.number(other).value

    def _arith(self, kind: type[Operation], left: SSAValue, right: SSAValue) -> Lanes:
        return self.writer.floats(kind, left, right, marks=_MARK)

    def __add__(self, other: Lanes | float) -> Lanes:
        return self._arith(arith.AddfOp, self.value, self._other(other))

    def __radd__(self, other: float) -> Lanes:
        return self._arith(arith.AddfOp, self._other(other), self.value)

    def __sub__(self, other: Lanes | float) -> Lanes:
        return self._arith(arith.SubfOp, self.value, self._other(other))

    def __rsub__(self, other: float) -> Lanes:
        return self._arith(arith.SubfOp, self._other(other), self.value)

    def __mul__(self, other: Lanes | float) -> Lanes:
        return self._arith(arith.MulfOp, self.value, self._other(other))

    __rmul__ = __mul__

    def rounded_product(self, other: Lanes | float) -> Lanes:
        """The product, not fused with a sum."""
        return self.writer.floats(arith.MulfOp, self.value, self._other(other), marks=_ROUNDED)

    def __truediv__(self, other: Lanes | float) -> Lanes:
        return self.writer.floats(arith.DivfOp, self.value, self._other(other))

    def __rtruediv__(self, other: float) -> Lanes:
        return self.writer.number(other) / self

    def __neg__(self) -> Lanes:
        return self.writer.floats(arith.NegfOp, self.value)

    def __abs__(self) -> Lanes:
        return self.writer.floats(math.AbsFOp, self.value)

    def with_sign_of(self, other: Lanes) -> Lanes:
        return self.writer.floats(math.CopySignOp, self.value, other.value)

    def ldexp(self, exponent: Lanes) -> Lanes:
        """x * 2^exponent, for integral exponents, rounded once."""
        writer = self.writer
        return Lanes(writer, writer.op(low_lanes.LdexpOp, (self.value, exponent.value), writer.float_type))

    @property
    def bits(self) -> Bits:
        writer = self.writer
        kind = vector.BitcastOp if writer.is_vector else arith.BitcastOp
        return Bits(writer, writer.op(kind, (self.value,), writer.integer_type))

    def compare(self, predicate: str, other: Lanes | float) -> Mask:
        writer = self.writer
        kind = low_lanes.CmpfOp if writer.is_vector else arith.CmpfOp
        properties = {"predicate": _PREDICATES[predicate], "fastmath": _NO_FLAGS}
        return Mask(writer, writer.op(kind, (self.value, self._other(other)), writer.mask_type, properties))

    def __lt__(self, other: Lanes | float) -> Mask:
        return self.compare("olt", other)

    def __gt__(self, other: Lanes | float) -> Mask:
        return self.compare("ogt", other)

    def at_least(self, least: float) -> Lanes:
        """NaN stays. One instruction on x86."""
        lower = self.writer.number(least)
        return (lower > self).choose(lower, self)

    def at_most(self, greatest: float) -> Lanes:
        """NaN stays. One instruction on x86."""
        upper = self.writer.number(greatest)
        return (upper < self).choose(upper, self)

    def polynomial(self, coefficients: Sequence[float]) -> Lanes:
        """The sum of `coefficients[k] * x^k`, by Horner's rule."""
        *rest, last = coefficients
        result = self.writer.number(last)
        for coefficient in reversed(rest):
            result = result * self + coefficient
        return result


@dataclass(frozen=True, slots=True)
class Bits:
    """Integers of the numbers' width. Right shifts are logical."""

    writer: Writer
    value: SSAValue

    def _binary(self, kind: type[Operation], other: Bits | int, properties: Mapping[str, Attribute]) -> Bits:
        writer = self.writer
        right = other if isinstance(other, Bits) else writer.integer(other)
        return Bits(writer, writer.op(kind, (self.value, right.value), writer.integer_type, properties))

    def __add__(self, other: Bits | int) -> Bits:
        return self._binary(arith.AddiOp, other, _INTEGER)

    def __sub__(self, other: Bits | int) -> Bits:
        return self._binary(arith.SubiOp, other, _INTEGER)

    def __and__(self, other: Bits | int) -> Bits:
        return self._binary(arith.AndIOp, other, {})

    def __or__(self, other: Bits | int) -> Bits:
        return self._binary(arith.OrIOp, other, {})

    def __xor__(self, other: Bits | int) -> Bits:
        return self._binary(arith.XOrIOp, other, {})

    def __lshift__(self, count: int) -> Bits:
        return self._binary(arith.ShLIOp, count, _INTEGER)

    def __rshift__(self, count: int) -> Bits:
        return self._binary(arith.ShRUIOp, count, {})

    def __mul__(self, other: Bits | int) -> Bits:
        return self._binary(arith.MuliOp, other, _INTEGER)

    def shifted_right_signed(self, count: int) -> Bits:
        return self._binary(arith.ShRSIOp, count, {})

    def divided(self, kind: type[Operation], divisor: Bits) -> Bits:
        """Quotient or remainder by a nonzero divisor, without overflow."""
        writer = self.writer
        return Bits(writer, writer.op(kind, (self.value, divisor.value), writer.integer_type, {}, DEFINED_MARK))

    def compare(self, predicate: str, other: Bits | int) -> Mask:
        writer = self.writer
        kind = low_lanes.CmpiOp if writer.is_vector else arith.CmpiOp
        right = other if isinstance(other, Bits) else writer.integer(other)
        properties = {"predicate": _INTEGER_PREDICATES[predicate]}
        return Mask(writer, writer.op(kind, (self.value, right.value), writer.mask_type, properties))

    def cast(self, kind: type[Operation], writer: Writer) -> Bits:
        taken = low_lanes.LANE_FORMS[kind] if writer.is_vector else kind
        return Bits(writer, writer.op(taken, (self.value,), writer.integer_type))

    @property
    def numbers(self) -> Lanes:
        writer = self.writer
        kind = vector.BitcastOp if writer.is_vector else arith.BitcastOp
        return Lanes(writer, writer.op(kind, (self.value,), writer.float_type))


@dataclass(frozen=True, slots=True)
class Mask:
    writer: Writer
    value: SSAValue

    def choose(self, yes: Lanes | float, no: Lanes | float) -> Lanes:
        left, right = (x if isinstance(x, Lanes) else self.writer.number(x) for x in (yes, no))
        return Lanes(left.writer, self._select(left.value, right.value, left.writer.float_type))

    def choose_bits(self, yes: Bits, no: Bits) -> Bits:
        return Bits(yes.writer, self._select(yes.value, no.value, yes.writer.integer_type))

    def _select(self, yes: SSAValue, no: SSAValue, type_: Attribute) -> SSAValue:
        kind = low_lanes.SelectOp if self.writer.is_vector else arith.SelectOp
        return self.writer.op(kind, (self.value, yes, no), type_)

    def __and__(self, other: Mask) -> Mask:
        return Mask(self.writer, self.writer.op(arith.AndIOp, (self.value, other.value), self.writer.mask_type))

    def __or__(self, other: Mask) -> Mask:
        return Mask(self.writer, self.writer.op(arith.OrIOp, (self.value, other.value), self.writer.mask_type))


if TYPE_CHECKING:
    Formula = Callable[..., Lanes]
