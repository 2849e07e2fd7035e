"""Index values that symbols divide or multiply: what `fuse` makes of loops whose extents are known at run time only.

Affine maps divide by constants. A quotient, a remainder or a product by a symbol is an SSA value computed by an `arith`
op; here is which of them mean what, and of which values it is known that they are not negative.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from xdsl.dialects import arith, func, memref
from xdsl.dialects.builtin import IndexType
from xdsl.ir import BlockArgument, OpResult, SSAValue

from weft.analysis.facts import assumed_range, is_parameter
from weft.analysis.index import Index
from weft.dialects.index_map import Interval
from weft.dialects.tir import AssumeShapeOp, range_of_index


@dataclass(frozen=True)
class Division:
    """`numerator floordiv divisor` or `numerator mod divisor`; where it is computed, the divisor is at least 1."""

    numerator: Index
    divisor: Index
    is_quotient: bool


@dataclass(frozen=True)
class Product:
    """`left * right`, neither of them a constant."""

    left: Index
    right: Index


@dataclass(frozen=True)
class Choice:
    """The larger (or smaller) of two indices."""

    left: Index
    right: Index
    larger: bool


Computed: TypeAlias = "Division | Product | Choice"

_QUOTIENTS = (arith.DivSIOp, arith.FloorDivSIOp)


def meaning_of(value: SSAValue) -> Computed | None:
    """What a value computes that is not affine, where it means what `Division` and `Product` say; else None.

    A division counts when its divisor cannot be negative (division by 0 never happens in a program that runs), and when
    truncation is flooring: the numerator cannot be negative.
    """
    if type(value) is not OpResult or type(value.type) is not IndexType:
        return None
    op = value.op
    if isinstance(op, arith.MuliOp):
        return Product(Index.of(op.lhs), Index.of(op.rhs))
    if isinstance(op, arith.MaxSIOp | arith.MinSIOp):
        return Choice(Index.of(op.lhs), Index.of(op.rhs), isinstance(op, arith.MaxSIOp))
    if isinstance(op, arith.DivSIOp | arith.FloorDivSIOp | arith.RemSIOp):
        numerator, divisor = Index.of(op.lhs), Index.of(op.rhs)
        floors = isinstance(op, arith.FloorDivSIOp) or is_not_negative(numerator)
        if floors and is_not_negative(divisor):
            return Division(numerator, without_clamp(divisor), isinstance(op, _QUOTIENTS))
    return None


def is_symbol(value: SSAValue) -> bool:
    """Whether a value is fixed for the whole call and free: a parameter, or an extent of a parameter."""
    if type(value) is BlockArgument:
        return type(value.block.parent_op()) is func.FuncOp
    return type(value.owner) is memref.DimOp


def is_fixed(value: SSAValue) -> bool:
    """Whether a value is the same for all instances of the function's loops: defined at its top level."""
    return type(value.owner.parent_op()) is func.FuncOp


def without_clamp(index: Index) -> Index:
    """`n` for `max(n, 0)`: the same number wherever it is at least 1."""
    value = index.single_value
    if isinstance(value, OpResult) and isinstance(value.op, arith.MaxSIOp):
        for side, other in ((value.op.lhs, value.op.rhs), (value.op.rhs, value.op.lhs)):
            if Index.of(other) == Index({}):
                return Index.of(side)
    return index


def is_not_negative(index: Index) -> bool:
    """Whether ranges prove that an index is 0 or more."""
    low = index.range(range_of)[0]
    return low is not None and low >= 0


def leaves(value: SSAValue) -> Iterator[SSAValue]:
    """The values that a value is computed from by quotients, products and choices; itself where it is none."""
    meaning = meaning_of(value)
    if meaning is None:
        yield value
        return
    is_division = isinstance(meaning, Division)
    for side in (meaning.numerator, meaning.divisor) if is_division else (meaning.left, meaning.right):
        for part in side.values():
            yield from leaves(part)


def small_values(indices: Sequence[Index]) -> Iterator[dict[SSAValue, int]]:
    """Numbers for all symbols that multiply, divide or are chosen in `indices`: small ones first, some dozens."""
    symbols: dict[SSAValue, None] = {}
    for index in indices:
        for value in index.values():
            if meaning_of(value) is not None:
                symbols.update((leaf, None) for leaf in leaves(value) if is_symbol(leaf))
    if symbols and len(symbols) <= _MOST_SYMBOLS:
        choices = itertools.product(_SMALL, repeat=len(symbols))
        for numbers in sorted(choices, key=sum)[:_MOST_CHOICES]:
            yield dict(zip(symbols, numbers, strict=True))


_SMALL = (1, 2, 3, 4, 5)
_MOST_SYMBOLS, _MOST_CHOICES = 3, 48


def range_of(value: SSAValue) -> Interval:
    """The range of an index value: loops and iterators lie in their extents, extents of buffers are not negative, and
    what is computed from these is followed."""
    if type(value) is BlockArgument:
        known = range_of_index(value)
        if known == (None, None) and is_parameter(value):
            return _range_of_symbol(value, 0 if _is_extent(value) else None)
        return known
    op = value.owner
    if isinstance(op, memref.DimOp):
        return _range_of_symbol(value, 0)
    if not isinstance(value.type, IndexType):
        return None, None
    if isinstance(op, arith.MuliOp | arith.MaxSIOp | arith.MinSIOp):
        return _range_of_two(op)
    if isinstance(op, arith.DivSIOp | arith.FloorDivSIOp | arith.RemSIOp):
        numerator, divisor = Index.of(op.lhs).range(range_of), Index.of(op.rhs).range(range_of)
        if _not_below(numerator, 0) and _not_below(divisor, 0):
            return _range_of_division(op, numerator, divisor)
    return range_of_index(value)


def _range_of_symbol(symbol: SSAValue, least: int | None) -> Interval:
    low, high = assumed_range(symbol)
    return max((bound for bound in (low, least) if bound is not None), default=None), high


def _is_extent(parameter: BlockArgument) -> bool:
    """Whether a parameter of a function is stated to be the extent of a buffer."""
    return any(isinstance(use.operation, AssumeShapeOp) for use in parameter.uses)


def _not_below(interval: Interval, bound: int) -> bool:
    return interval[0] is not None and interval[0] >= bound


def _range_of_two(op: arith.MuliOp | arith.MaxSIOp | arith.MinSIOp) -> Interval:
    (low, high), (other_low, other_high) = (Index.of(side).range(range_of) for side in (op.lhs, op.rhs))
    if isinstance(op, arith.MuliOp):
        if low is None or other_low is None or low < 0 or other_low < 0:
            return None, None
        return low * other_low, None if high is None or other_high is None else high * other_high
    lows, highs = [b for b in (low, other_low) if b is not None], [b for b in (high, other_high) if b is not None]
    if isinstance(op, arith.MaxSIOp):
        return max(lows, default=None), max(highs) if len(highs) == 2 else None
    return min(lows) if len(lows) == 2 else None, min(highs, default=None)


def _range_of_division(
    op: arith.DivSIOp | arith.FloorDivSIOp | arith.RemSIOp, numerator: Interval, divisor: Interval
) -> Interval:
    high = numerator[1]
    if isinstance(op, arith.RemSIOp):
        most = [h for h in (high, None if divisor[1] is None else max(divisor[1] - 1, 0)) if h is not None]
        return 0, min(most, default=None)
    return 0, None if high is None else high // max(divisor[0] or 1, 1)
