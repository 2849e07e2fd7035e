"""With which values may the operands of a reduction be padded, so that the steps that are added change nothing?

What an update combines into its accumulator is computed with candidates for the padding (0, 1, and the ends of the
type) in place of the operands that lie outside, and nothing known about the others. The result must be the neutral
value of the combiner: 0 in a sum, 1 in a product, the least value in a maximum.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Collection, Mapping, Sequence

from xdsl.dialects import arith, memref
from xdsl.dialects.builtin import AnyFloat, FloatAttr, IndexType, IntegerAttr, IntegerType
from xdsl.dialects.math import FmaOp
from xdsl.ir import Attribute, Operation, SSAValue

from weft.analysis.combiners import Update

Number = int | float
MAX_OPERANDS = 5
"""More than that many have too many combinations of candidates."""

_NEUTRAL: Mapping[type[Operation], Callable[[Attribute], Number]] = {
    arith.AddfOp: lambda _: 0.0,
    arith.MulfOp: lambda _: 1.0,
    arith.MaximumfOp: lambda _: -math.inf,
    arith.MinimumfOp: lambda _: math.inf,
    arith.AddiOp: lambda _: 0,
    arith.MuliOp: lambda _: 1,
    arith.OrIOp: lambda _: 0,
    arith.XOrIOp: lambda _: 0,
    arith.AndIOp: lambda _: -1,
    arith.MaxSIOp: lambda type_: _ends(type_)[0],
    arith.MinSIOp: lambda type_: _ends(type_)[1],
    arith.MaxUIOp: lambda _: 0,
    arith.MinUIOp: lambda _: -1,
}
"""Combined with any value it gives that value (a sum may lose the sign of a zero). Integers are signed."""
_OF_TWO: Mapping[type[Operation], Callable[[Number, Number], Number]] = {
    arith.AddfOp: lambda a, b: a + b,
    arith.SubfOp: lambda a, b: a - b,
    arith.MulfOp: lambda a, b: a * b,
    arith.MaximumfOp: lambda a, b: math.nan if math.isnan(a) or math.isnan(b) else max(a, b),
    arith.MinimumfOp: lambda a, b: math.nan if math.isnan(a) or math.isnan(b) else min(a, b),
    arith.AddiOp: lambda a, b: a + b,
    arith.SubiOp: lambda a, b: a - b,
    arith.MuliOp: lambda a, b: a * b,
    arith.MaxSIOp: max,
    arith.MinSIOp: min,
    arith.AndIOp: lambda a, b: int(a) & int(b),
    arith.OrIOp: lambda a, b: int(a) | int(b),
    arith.XOrIOp: lambda a, b: int(a) ^ int(b),
}
_COMPARED: Mapping[int, Callable[[Number, Number], bool]] = {
    0: lambda a, b: a == b,
    1: lambda a, b: a != b,
    2: lambda a, b: a < b,
    3: lambda a, b: a <= b,
    4: lambda a, b: a > b,
    5: lambda a, b: a >= b,
}
"""Signed predicates of `arith.cmpi`."""


def neutral_padding(
    updates: Sequence[Update],
    operands: Sequence[tuple[SSAValue, ...]],
    outside: Sequence[Collection[int]],
) -> list[Number] | None:
    """A number for each operand such that padded steps change nothing; None when none of the candidates does.

    An operand is given by the values that are loaded from it; `outside` are, for each padded iterator of the reduction,
    the operands that lie outside when it does.
    """
    concerned = sorted({at for group in outside for at in group})
    if len(concerned) > MAX_OPERANDS or any(update.operation not in _NEUTRAL for update in updates):
        return None
    candidates = [_candidates(operands[at][0].type) for at in concerned]
    for choice in itertools.product(*candidates):
        numbers: dict[int, Number] = dict(zip(concerned, choice, strict=True))
        if all(_is_neutral(update, operands, group, numbers) for update in updates for group in outside):
            return [numbers.get(at, 0) for at in range(len(operands))]
    return None


def _is_neutral(
    update: Update, operands: Sequence[tuple[SSAValue, ...]], outside: Collection[int], numbers: Mapping[int, Number]
) -> bool:
    known: dict[SSAValue, Number | None] = {value: numbers[at] for at in outside for value in operands[at]}
    fused = update.store.value.owner
    if update.term is None and isinstance(fused, FmaOp):
        left, right = _value(fused.a, known), _value(fused.b, known)
        term = None if left is None or right is None else left * right
    else:
        term = None if update.term is None else _value(update.term, known)
    type_ = update.store.value.type
    if term is None or update.operation is None:
        return False
    return term == _wrapped(_NEUTRAL[update.operation](type_), type_)


def _candidates(type_: Attribute) -> tuple[Number, ...]:
    if isinstance(type_, AnyFloat):
        return 0.0, 1.0, -math.inf, math.inf
    return tuple(dict.fromkeys((0, _wrapped(1, type_), *_ends(type_))))


def _ends(type_: Attribute) -> tuple[int, int]:
    """The least and the greatest signed integer of a type."""
    width = type_.width.data if isinstance(type_, IntegerType) else 64
    return -(1 << (width - 1)), (1 << (width - 1)) - 1


def _wrapped(number: Number, type_: Attribute) -> Number:
    """A number as a value of a type: integers in two's complement."""
    if not isinstance(type_, IntegerType | IndexType):
        return number
    low, high = _ends(type_)
    return (int(number) - low) % (high - low + 1) + low


def _value(value: SSAValue, known: dict[SSAValue, Number | None]) -> Number | None:
    """What a value is when some loads are known; None when it depends on what is not."""
    if value not in known:
        op = value.owner
        computed = _computed(op, known) if isinstance(op, Operation) else None
        known[value] = None if computed is None else _wrapped(computed, value.type)
    return known[value]


def _computed(op: Operation, known: dict[SSAValue, Number | None]) -> Number | None:
    match op:
        case arith.ConstantOp():
            return op.value.value.data if isinstance(op.value, IntegerAttr | FloatAttr) else None
        case memref.LoadOp():
            return None
        case arith.SelectOp():
            condition = _value(op.cond, known)
            return None if condition is None else _value(op.lhs if condition else op.rhs, known)
        case arith.CmpiOp():
            sides = [_value(side, known) for side in (op.lhs, op.rhs)]
            compare = _COMPARED.get(op.predicate.value.data)
            return None if compare is None or None in sides else int(compare(*(s for s in sides if s is not None)))
        case arith.ExtFOp() | arith.TruncFOp() | arith.ExtSIOp() | arith.TruncIOp():
            return _value(op.operands[0], known)
        case arith.SIToFPOp() | arith.ExtUIOp() | arith.UIToFPOp():
            number = _value(op.operands[0], known)
            return number if number is not None and 0 <= number <= 1 else None  # exact, whatever the sign says
        case arith.NegfOp():
            number = _value(op.operands[0], known)
            return None if number is None else -number
        case _:
            return _combined(op, known)


def _combined(op: Operation, known: dict[SSAValue, Number | None]) -> Number | None:
    combine = _OF_TWO.get(type(op))
    if combine is None:
        return None
    left, right = (_value(operand, known) for operand in op.operands)
    if left is not None and right is not None:
        return combine(left, right)
    if isinstance(op, arith.MuliOp | arith.AndIOp) and 0 in (left, right):
        return 0  # of floats, 0 * inf is NaN
    return None
