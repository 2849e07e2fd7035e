"""The IR of each scalar operator and function."""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import cache
from typing import Protocol

from xdsl.dialects import arith
from xdsl.dialects import math as math_dialect
from xdsl.dialects.builtin import AnyFloat, Float16Type, Float64Type, IndexType, IntegerType, f32, i1
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.irdl import IRDLOperation

from weft.dialects.integer_arith import constant_integer
from weft.support.errors import InternalError
from weft.texpr.operators import BinaryKind, Number, Predicate


class Body(Protocol):
    """Where ops are appended."""

    def append(self, op: Operation) -> SSAValue: ...

    def constant(self, number: Number, type: Attribute) -> SSAValue: ...


FLOAT_BINARY: Mapping[BinaryKind, type[Operation]] = {
    BinaryKind.ADD: arith.AddfOp,
    BinaryKind.SUB: arith.SubfOp,
    BinaryKind.MUL: arith.MulfOp,
    BinaryKind.DIV: arith.DivfOp,
    BinaryKind.MIN: arith.MinimumfOp,
    BinaryKind.MAX: arith.MaximumfOp,
    BinaryKind.POW: math_dialect.PowFOp,
    BinaryKind.ATAN2: math_dialect.Atan2Op,
}
INTEGER_BINARY: Mapping[BinaryKind, type[Operation]] = {
    BinaryKind.ADD: arith.AddiOp,
    BinaryKind.SUB: arith.SubiOp,
    BinaryKind.MUL: arith.MuliOp,
    BinaryKind.FLOORDIV: arith.FloorDivSIOp,
    BinaryKind.TRUNCDIV: arith.DivSIOp,
    BinaryKind.TRUNCMOD: arith.RemSIOp,
    BinaryKind.MIN: arith.MinSIOp,
    BinaryKind.MAX: arith.MaxSIOp,
    BinaryKind.POW: math_dialect.IPowIOp,
    BinaryKind.AND: arith.AndIOp,
    BinaryKind.OR: arith.OrIOp,
    BinaryKind.XOR: arith.XOrIOp,
    BinaryKind.SHL: arith.ShLIOp,
    BinaryKind.SHR: arith.ShRSIOp,
}
INTEGER_PREDICATES: Mapping[Predicate, str] = {
    Predicate.EQ: "eq",
    Predicate.NE: "ne",
    Predicate.LT: "slt",
    Predicate.LE: "sle",
    Predicate.GT: "sgt",
    Predicate.GE: "sge",
}
FLOAT_PREDICATES: Mapping[Predicate, str] = {
    Predicate.EQ: "oeq",
    Predicate.NE: "une",
    Predicate.LT: "olt",
    Predicate.LE: "ole",
    Predicate.GT: "ogt",
    Predicate.GE: "oge",
}
"""NaN equals nothing, itself included, and has no order; `!=` is the one comparison that it satisfies."""

FUNCTIONS: Mapping[str, type[Operation]] = {
    "neg": arith.NegfOp,
    "exp": math_dialect.ExpOp,
    "exp2": math_dialect.Exp2Op,
    "expm1": math_dialect.ExpM1Op,
    "log": math_dialect.LogOp,
    "log2": math_dialect.Log2Op,
    "log10": math_dialect.Log10Op,
    "log1p": math_dialect.Log1pOp,
    "sqrt": math_dialect.SqrtOp,
    "rsqrt": math_dialect.RsqrtOp,
    "cbrt": math_dialect.CbrtOp,
    "sin": math_dialect.SinOp,
    "cos": math_dialect.CosOp,
    "tan": math_dialect.TanOp,
    "asin": math_dialect.AsinOp,
    "acos": math_dialect.AcosOp,
    "atan": math_dialect.AtanOp,
    "sinh": math_dialect.SinhOp,
    "cosh": math_dialect.CoshOp,
    "tanh": math_dialect.TanhOp,
    "asinh": math_dialect.AsinhOp,
    "acosh": math_dialect.AcoshOp,
    "atanh": math_dialect.AtanhOp,
    "erf": math_dialect.ErfOp,
    "floor": math_dialect.FloorOp,
    "ceil": math_dialect.CeilOp,
    "round": math_dialect.RoundEvenOp,
    "trunc": math_dialect.TruncOp,
    "popcount": math_dialect.CtPopOp,
    "clz": math_dialect.CountLeadingZerosOp,
    "ctz": math_dialect.CountTrailingZerosOp,
}
_FAST_MATH = arith.FastMathFlagsAttr("none")
_OVERFLOW = arith.IntegerOverflowAttr("none")


@cache
def _defaults(op_class: type[Operation]) -> Mapping[str, Attribute]:
    """The properties that an op has when nothing else is asked; `create` would leave them out."""
    if not issubclass(op_class, IRDLOperation):
        raise InternalError(f"{op_class} declares no properties")
    known = op_class.get_irdl_definition().properties
    return {name: flags for name, flags in (("fastmath", _FAST_MATH), ("overflowFlags", _OVERFLOW)) if name in known}


def _apply(body: Body, op_class: type[Operation], *operands: SSAValue) -> SSAValue:
    """An op whose result has the type of its operands."""
    types = [operands[0].type]
    return body.append(op_class.create(operands=operands, result_types=types, properties=_defaults(op_class)))


def binary(body: Body, kind: BinaryKind, left: SSAValue, right: SSAValue) -> SSAValue:
    """An operator on two values of one type: float, integer or index."""
    if isinstance(left.type, AnyFloat):
        return _apply(body, FLOAT_BINARY[kind], left, right)
    if kind is BinaryKind.FLOORMOD:
        return _floor_remainder(body, left, right)
    return _apply(body, INTEGER_BINARY[kind], left, right)


def _floor_remainder(body: Body, left: SSAValue, right: SSAValue) -> SSAValue:
    """The remainder with the sign of `right`, from that with the sign of `left`."""
    zero = body.constant(0, left.type)
    remainder = _apply(body, arith.RemSIOp, left, right)
    if _is_positive(right):
        wrong = body.append(arith.CmpiOp(remainder, zero, "slt"))
    else:
        signs = _apply(body, arith.XOrIOp, remainder, right)
        differ = body.append(arith.CmpiOp(signs, zero, "slt"))
        inexact = body.append(arith.CmpiOp(remainder, zero, "ne"))
        wrong = _apply(body, arith.AndIOp, differ, inexact)
    shifted = _apply(body, arith.AddiOp, remainder, right)
    return body.append(arith.SelectOp(wrong, shifted, remainder))


def _is_positive(value: SSAValue) -> bool:
    return (constant_integer(value) or 0) > 0


def compare(body: Body, predicate: Predicate, left: SSAValue, right: SSAValue) -> SSAValue:
    """A comparison of two values of one type."""
    if isinstance(left.type, AnyFloat):
        return body.append(arith.CmpfOp(left, right, FLOAT_PREDICATES[predicate]))
    return body.append(arith.CmpiOp(left, right, INTEGER_PREDICATES[predicate]))


def unary(body: Body, function: str, operand: SSAValue) -> SSAValue:
    """A function of one value."""
    match function:
        case "abs":
            floating = isinstance(operand.type, AnyFloat)
            return _apply(body, math_dialect.AbsFOp if floating else math_dialect.AbsIOp, operand)
        case "sigmoid":
            return _sigmoid(body, operand)
        case "isnan":
            return body.append(arith.CmpfOp(operand, operand, "uno"))
        case "isinf" | "isfinite":
            size = _apply(body, math_dialect.AbsFOp, operand)
            infinity = body.constant(math.inf, operand.type)
            return body.append(arith.CmpfOp(size, infinity, "oeq" if function == "isinf" else "olt"))
        case _:
            return _apply(body, FUNCTIONS[function], operand)


_EXP_IS_FINITE: Mapping[type[Attribute], float] = {Float16Type: 11.0, Float64Type: 709.0}
"""Type -> a number whose exponential is finite, and so great that 1 more is no other number; 88 unless given."""


def _sigmoid(body: Body, x: SSAValue) -> SSAValue:
    """t / (1 + t) with t = exp(x): 1 / (1 + exp(-x)) would be 0 from where exp(-x) is infinite, for results that are
    subnormal numbers. Greater x than t has room for give 1 as well."""
    one, end = (body.constant(number, x.type) for number in (1.0, _EXP_IS_FINITE.get(type(x.type), 88.0)))
    is_beyond = body.append(arith.CmpfOp(x, end, "ogt"))
    t = _apply(body, math_dialect.ExpOp, body.append(arith.SelectOp(is_beyond, end, x)))
    return _apply(body, arith.DivfOp, t, _apply(body, arith.AddfOp, one, t))


def cast(body: Body, operand: SSAValue, target: Attribute) -> SSAValue:
    """A value as another element type."""
    source = operand.type
    if isinstance(target, AnyFloat):
        return _to_float(body, operand, target)
    if target == i1:
        return compare(body, Predicate.NE, operand, body.constant(0.0 if isinstance(source, AnyFloat) else 0, source))
    if isinstance(source, AnyFloat):
        return _convert(body, arith.FPToSIOp, operand, target)
    if source == i1:
        return _convert(body, arith.ExtUIOp, operand, target)
    if isinstance(source, IntegerType) and isinstance(target, IntegerType):
        wider = target.width.data > source.width.data
        return _convert(body, arith.ExtSIOp if wider else arith.TruncIOp, operand, target)
    raise InternalError(f"no conversion from {source} to {target}")


def _to_float(body: Body, operand: SSAValue, target: AnyFloat) -> SSAValue:
    source = operand.type
    if isinstance(source, AnyFloat):
        if source.bitwidth == target.bitwidth:  # float16 and bfloat16: neither holds the other
            return _convert(body, arith.TruncFOp, _convert(body, arith.ExtFOp, operand, f32), target)
        wider = target.bitwidth > source.bitwidth
        return _convert(body, arith.ExtFOp if wider else arith.TruncFOp, operand, target)
    if isinstance(source, IndexType):
        raise InternalError("an index becomes an integer before it becomes a float")
    return _convert(body, arith.UIToFPOp if source == i1 else arith.SIToFPOp, operand, target)


def _convert(body: Body, op_class: type[Operation], operand: SSAValue, target: Attribute) -> SSAValue:
    return body.append(op_class.create(operands=[operand], result_types=[target]))
