"""Ranges of floats, from ops that clamp, round, or convert integers."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final, NamedTuple, cast

from xdsl.dialects import arith
from xdsl.dialects import math as math_dialect
from xdsl.dialects.builtin import Float16Type
from xdsl.ir import Operation

from weft.dialects.integer_arith import known_number
from weft.dialects.low_lanes import with_lane_forms
from weft.passes.low.op_rewriter import element_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from xdsl.dialects.builtin import IntegerType
    from xdsl.ir import SSAValue


class FloatRange(NamedTuple):
    low: float
    high: float
    may_be_nan: bool


_ANY: Final = FloatRange(-math.inf, math.inf, True)
_DEPTH: Final = 6
"""Ops that a query follows."""


def float_range(value: SSAValue, depth: int = _DEPTH) -> FloatRange:
    number = known_number(value)
    if number is not None:
        return FloatRange(number, number, False) if number == number else _ANY
    owner = value.owner
    rule = _RULES.get(type(owner)) if depth and isinstance(owner, Operation) else None
    return _ANY if rule is None else rule(cast("Operation", owner), depth - 1)


def _maximum(op: Operation, depth: int) -> FloatRange:
    a, b = (float_range(operand, depth) for operand in op.operands)
    return FloatRange(max(a.low, b.low), max(a.high, b.high), a.may_be_nan or b.may_be_nan)


def _minimum(op: Operation, depth: int) -> FloatRange:
    a, b = (float_range(operand, depth) for operand in op.operands)
    return FloatRange(min(a.low, b.low), min(a.high, b.high), a.may_be_nan or b.may_be_nan)


def _rounded(op: Operation, depth: int) -> FloatRange:
    low, high, may_be_nan = float_range(op.operands[0], depth)
    return FloatRange(
        math.floor(low) if math.isfinite(low) else low, math.ceil(high) if math.isfinite(high) else high, may_be_nan
    )


def _extended(op: Operation, depth: int) -> FloatRange:
    return float_range(op.operands[0], depth)


def _from_signed(op: Operation, depth: int) -> FloatRange:
    limit = _limit(op, _integer_bits(op) - 1)
    return FloatRange(-limit, limit, False)


def _from_unsigned(op: Operation, depth: int) -> FloatRange:
    return FloatRange(0.0, _limit(op, _integer_bits(op)), False)


def _integer_bits(op: Operation) -> int:
    return cast("IntegerType", element_of(op.operands[0].type)).width.data


def _limit(op: Operation, bits: int) -> float:
    """2^bits, or infinity if the float type overflows."""
    return math.inf if bits >= 16 and isinstance(element_of(op.results[0].type), Float16Type) else 2.0**bits


_ROUNDINGS: Final = (
    *(math_dialect.CeilOp, math_dialect.FloorOp, math_dialect.RoundOp, math_dialect.RoundEvenOp, math_dialect.TruncOp),
)
_RULES: Final[Mapping[type[Operation], Callable[[Operation, int], FloatRange]]] = with_lane_forms(
    {
        arith.MaximumfOp: _maximum,
        arith.MinimumfOp: _minimum,
        **dict.fromkeys(_ROUNDINGS, _rounded),
        arith.ExtFOp: _extended,
        arith.SIToFPOp: _from_signed,
        arith.UIToFPOp: _from_unsigned,
    }
)
