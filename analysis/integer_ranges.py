"""Integer ranges of index values; assumptions about symbols (`tir.assume`, `tir.assume_shape`); non-affine index
values.

Quotients, remainders and products by a symbol, as of fused loops of dynamic extent, are computed by `arith` ops,
which `meaning_of` reads.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias, cast

from xdsl.dialects import arith, memref
from xdsl.dialects.builtin import IndexType
from xdsl.dialects.func import FuncOp
from xdsl.ir import Block, BlockArgument, Operation, OpResult, SSAValue

from weft.analysis.index import Index, Quotient, RangeOf, Remainder
from weft.dialects.argument_attributes import has_argument_attribute
from weft.dialects.integer_arith import constant_integer
from weft.dialects.intervals import INTERVALS_OF_ARITH, UNBOUNDED, Interval, intersection_of_intervals
from weft.dialects.strides import dynamic_extents
from weft.dialects.tir import AssumeShapeOp, range_of_index
from weft.dialects.tir_assume import AssumeOp, Relation
from weft.dialects.tir_kinds import ELEMENT


@dataclass(frozen=True)
class Division:
    """`numerator floordiv divisor` or `numerator mod divisor`. The divisor is at least 1 if it executes."""

    numerator: Index
    divisor: Index
    is_quotient: bool


@dataclass(frozen=True)
class Product:
    left: Index
    right: Index


@dataclass(frozen=True)
class Choice:
    left: Index
    right: Index
    larger: bool


@dataclass(frozen=True)
class Alternative:
    """One of two indices: the result of `arith.select`, if iterators, loop variables and symbols decide."""

    left: Index
    right: Index


Computed: TypeAlias = "Division | Product | Choice | Alternative"

_QUOTIENTS = (arith.DivSIOp, arith.FloorDivSIOp)


def meaning_of(value: SSAValue, ranges: RangeOf | None = None) -> Computed | None:
    """The `Division`, `Product`, `Choice` or `Alternative` that computes a value.

    The divisor must be provably non-negative (division by 0 does not execute in a correct program), and truncation
    must equal flooring: the numerator is non-negative, or the divisor is added to a negative remainder.
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
        floors = isinstance(op, arith.FloorDivSIOp) or is_not_negative(numerator, ranges)
        if floors and is_not_negative(divisor, ranges):
            return Division(numerator, without_clamp(divisor), isinstance(op, _QUOTIENTS))
    if not isinstance(op, arith.SelectOp):
        return None
    if floor_remainder_of(op, ranges) is not None:
        return _floor_remainder(op, ranges)
    return Alternative(Index.of(op.lhs), Index.of(op.rhs)) if _is_decided_by_indices(op.cond) else None


def _is_decided_by_indices(condition: SSAValue) -> bool:
    op = condition.owner
    if not isinstance(op, arith.CmpiOp) or not isinstance(op.lhs.type, IndexType):
        return False
    values = [*Index.of(op.lhs).values(), *Index.of(op.rhs).values()]
    return all(is_symbol(value) or range_of_index(value) != UNBOUNDED for value in values)


def floor_remainder_of(op: arith.SelectOp, ranges: RangeOf | None = None) -> arith.RemSIOp | None:
    """The truncating division x of `select(wrong, x + divisor, x)` if that is the remainder with the sign of the
    divisor: `wrong` states that x is not 0 and differs in sign from the divisor, or that x is negative and the
    divisor is not."""
    shifted, remainder = op.lhs.owner, op.rhs.owner
    if not isinstance(remainder, arith.RemSIOp) or not isinstance(shifted, arith.AddiOp):
        return None
    if (shifted.lhs, shifted.rhs) != (op.rhs, remainder.rhs) or not _is_wrong(op.cond, op.rhs, remainder.rhs):
        return None
    is_exact = isinstance(op.cond.owner, arith.AndIOp) or is_not_negative(Index.of(remainder.rhs), ranges)
    return remainder if is_exact else None


def _floor_remainder(op: arith.SelectOp, ranges: RangeOf | None) -> Division | None:
    remainder = floor_remainder_of(op, ranges)
    if remainder is None or not is_not_negative(divisor := Index.of(remainder.rhs), ranges):
        return None
    return Division(Index.of(remainder.lhs), without_clamp(divisor), False)


def _is_wrong(condition: SSAValue, remainder: SSAValue, divisor: SSAValue) -> bool:
    op = condition.owner
    if isinstance(op, arith.AndIOp):
        signs = op.lhs.owner.operands[0].owner if isinstance(op.lhs.owner, arith.CmpiOp) else None
        return (
            isinstance(signs, arith.XOrIOp)
            and set(signs.operands) == {remainder, divisor}
            and _compares_to_zero(op.lhs, signs.result, _LESS)
            and _compares_to_zero(op.rhs, remainder, _UNEQUAL)
        )
    return _compares_to_zero(condition, remainder, _LESS)


def _compares_to_zero(condition: SSAValue, value: SSAValue, predicate: int) -> bool:
    op = condition.owner
    return (
        isinstance(op, arith.CmpiOp)
        and op.lhs is value
        and op.predicate.value.data == predicate
        and constant_integer(op.rhs) == 0
    )


_UNEQUAL, _LESS = 1, 2
"""Predicates of `arith.cmpi`."""


def is_symbol(value: SSAValue) -> bool:
    """Whether a value is a parameter, or an extent."""
    if type(value) is BlockArgument:
        return type(value.block.parent_op()) is FuncOp
    return type(value.owner) is memref.DimOp


def is_fixed(value: SSAValue) -> bool:
    """Whether a value is at the top level of the function, hence invariant in all loops."""
    return type(value.owner.parent_op()) is FuncOp


def without_clamp(index: Index) -> Index:
    """`n` for `max(n, 0)`: equal if it is at least 1."""
    value = index.single_value
    if isinstance(value, OpResult) and isinstance(value.op, arith.MaxSIOp):
        for side, other in ((value.op.lhs, value.op.rhs), (value.op.rhs, value.op.lhs)):
            if Index.of(other) == Index({}):
                return Index.of(side)
    return index


def is_not_negative(index: Index, ranges: RangeOf | None = None) -> bool:
    low = index.range(ranges or range_of)[0]
    return low is not None and low >= 0


def leaves(value: SSAValue) -> Iterator[SSAValue]:
    """Operands, recursively and once, of the quotients, products and choices that compute a value; else the value. The
    result of a select precedes its operands, because they do not decide it."""
    pending, seen = [value], {value}
    while pending:
        inner = pending.pop()
        meaning = meaning_of(inner)
        if meaning is None or isinstance(meaning, Alternative):
            yield inner
        if meaning is None:
            continue
        is_division = isinstance(meaning, Division)
        sides = (meaning.divisor, meaning.numerator) if is_division else (meaning.right, meaning.left)
        found = [part for side in sides for part in reversed(list(side.values())) if part not in seen]
        seen.update(found)
        pending += dict.fromkeys(found)


def small_values(indices: Sequence[Index]) -> Iterator[dict[SSAValue, int]]:
    """Combinations of small values for symbols in non-affine parts, smallest first."""
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


def range_of(value: SSAValue, ranges: RangeOf | None = None) -> Interval:
    """The range by extents of loops, iterators and buffers, and arithmetic; `ranges` give those of operands."""
    if type(value) is BlockArgument:
        known = range_of_index(value)
        if known == UNBOUNDED and is_parameter(value):
            least = (0, None) if _is_extent(value) else UNBOUNDED
            return intersection_of_intervals(assumed_range(value, ranges), least)
        return known
    op = value.owner
    if isinstance(op, Block):
        return UNBOUNDED
    if isinstance(op, memref.DimOp):
        return intersection_of_intervals(assumed_range(value, ranges), (0, None))
    combine = INTERVALS_OF_ARITH.get(type(op))
    if combine is None or not isinstance(value.type, IndexType):
        return UNBOUNDED
    ranges = ranges or Ranges()
    sides = [Index.of(operand) for operand in op.operands]
    found = combine(*(side.range(ranges) for side in sides))
    if isinstance(op, arith.MaxSIOp) and (total := sides[0] + sides[1]).is_constant:
        return intersection_of_intervals(found, (-(-total.constant // 2), None))  # as the distance max(n - m, m - n)
    return found


def _is_extent(parameter: BlockArgument) -> bool:
    """Whether `tir.assume_shape` states that a parameter is an extent. Elements of arrays may be negative."""
    function = parameter.block.parent_op()
    if isinstance(function, FuncOp) and has_argument_attribute(function, parameter.index, ELEMENT):
        return False
    return any(isinstance(use.operation, AssumeShapeOp) for use in parameter.uses)


@dataclass(frozen=True)
class Assumption:
    """`index == 0`, or `index >= 0`."""

    index: Index
    is_equality: bool

    def negative_alternatives(self) -> list[Index]:
        """Indices of which one is negative if the assumption is violated: several for a minimum."""
        value = (self.index * -1 - 1).single_value
        return [self.index * -1 - 1] if value is None or self.is_equality else operands_of_minimum(Index.of(value))


def operands_of_minimum(index: Index) -> list[Index]:
    value = index.single_value
    meaning = None if value is None else meaning_of(value)
    if isinstance(meaning, Choice) and not meaning.larger:
        return [*operands_of_minimum(meaning.left), *operands_of_minimum(meaning.right)]
    return [index]


def assumptions_about(symbol: SSAValue) -> list[Assumption]:
    entry = _entry_of(symbol)
    return [] if entry is None else [a for a in _assumptions_of(entry) if a.index.depends_on([symbol])]


def assumed_range(symbol: SSAValue, ranges: RangeOf | None = None) -> Interval:
    """The interval by assumptions that mention no other value."""
    entry = _entry_of(symbol)
    if entry is None:
        return UNBOUNDED
    assumptions = ranges.assumptions_of(entry) if isinstance(ranges, Ranges) else _assumptions_of(entry)
    low: int | None = None
    high: int | None = None
    for assumed in assumptions:
        factor = assumed.index.terms.get(symbol)
        if len(assumed.index.terms) != 1 or factor not in (1, -1):
            continue
        bound = -assumed.index.constant * factor
        if assumed.is_equality or factor == 1:
            low = bound if low is None else max(low, bound)
        if assumed.is_equality or factor == -1:
            high = bound if high is None else min(high, bound)
    return low, high


class Ranges:
    """`range_of`, `meaning_of` and assumptions, memoized: values in nested minima and maxima have many paths. Valid
    as long as the IR does not change."""

    def __init__(self, compute: Callable[[SSAValue, RangeOf], Interval] = range_of) -> None:
        self._compute = compute
        self._known: dict[SSAValue, Interval] = {}
        self._meanings: dict[SSAValue, Computed | None] = {}
        self._assumptions: dict[Block, list[Assumption]] = {}
        self._sources: dict[Block, list[set[SSAValue]]] = {}

    def __call__(self, value: SSAValue) -> Interval:
        known = self._known.get(value)
        if known is None:
            known = self._known[value] = self._compute(value, self)
        return known

    def meaning_of(self, value: SSAValue) -> Computed | None:
        if value not in self._meanings:
            self._meanings[value] = meaning_of(value, self)
        return self._meanings[value]

    def assumptions_of(self, entry: Block) -> list[Assumption]:
        known = self._assumptions.get(entry)
        if known is None:
            known = self._assumptions[entry] = list(_assumptions_of(entry))
        return known

    def assumptions_about(self, symbol: SSAValue) -> list[Assumption]:
        entry = _entry_of(symbol)
        if entry is None:
            return []
        assumptions = self.assumptions_of(entry)
        if entry not in self._sources:
            self._sources[entry] = [assumed.index.sources() for assumed in assumptions]
        pairs = zip(assumptions, self._sources[entry], strict=True)
        return [assumed for assumed, sources in pairs if symbol in sources]


def _entry_of(symbol: SSAValue) -> Block | None:
    owner = symbol.owner
    entry = owner if isinstance(owner, Block) else owner.parent
    return entry if entry is not None and isinstance(entry.parent_op(), FuncOp) else None


def assumption_of(op: AssumeOp) -> Assumption:
    operands = [Index.of(value) for value in op.symbols]
    difference = Index.of_expr(op.right, operands) - Index.of_expr(op.left, operands)
    return Assumption(difference - (1 if op.kind is Relation.LESS else 0), op.kind is Relation.EQUAL)


def _assumptions_of(entry: Block) -> Iterator[Assumption]:
    """Two reads of one extent are assumed equal."""
    extents: dict[tuple[SSAValue, int], SSAValue] = {}
    for op in _top_of(entry):
        if type(op) is AssumeOp:
            yield assumption_of(op)
            continue
        if type(op) not in _GIVES_EXTENTS:
            continue
        for buffer, dimension, value in _extents_given_by(op):
            first = extents.setdefault((buffer, dimension), value)
            if first is value:
                continue  # most extents are read once
            difference = Index.of(value) - Index.of(first)
            if difference.terms or difference.constant:
                yield Assumption(difference, True)


def least_of_extent(extent: Index) -> tuple[SSAValue, int] | None:
    """The parameter with which an extent increases, and its least value for which the extent is not negative: for
    `(n - 4) floordiv 2 + 1`, `n` and 2. None for other extents."""
    least, index = 0, extent
    while len(index.terms) == 1:
        ((atom, factor),) = index.terms.items()
        if factor < 1:
            return None
        least = -((index.constant - least) // factor)
        if isinstance(atom, Quotient):
            least, index = least * atom.divisor, atom.numerator
            continue
        return (atom, least) if not isinstance(atom, Remainder) and is_symbol(atom) else None
    return None


def dynamic_extents_of(function: FuncOp) -> dict[tuple[SSAValue, int], SSAValue]:
    """(buffer, dimension) -> extent, for dynamic extents with a value at the start of a function."""
    given = (found for op in _top_of(function.body.block) for found in _extents_given_by(op))
    return {(buffer, dimension): value for buffer, dimension, value in given}


# Ranges query assumptions thousands of times: access by position and exact classes are cheap.


def _top_of(entry: Block) -> Iterator[Operation]:
    op: Operation | None = entry.first_op
    while op is not None and op.name not in ("tir.for", "tir.block"):
        yield op
        op = op.next_op


_GIVES_EXTENTS: Final = frozenset((memref.DimOp, AssumeShapeOp, memref.AllocOp))


def _extents_given_by(op: Operation) -> Iterator[tuple[SSAValue, int, SSAValue]]:
    kind = type(op)
    if kind is memref.DimOp:
        buffer, dimension = op.operands
        if (constant := constant_integer(dimension)) is not None:
            yield buffer, constant, op.results[0]
    elif kind is AssumeShapeOp:
        buffer, *given = op.operands
        for dimension, extent in zip(dynamic_extents(buffer.type), given, strict=False):
            yield buffer, dimension, extent
    elif kind is memref.AllocOp and op.operands:
        alloc = cast("memref.AllocOp", op)
        for dimension, extent in zip(dynamic_extents(alloc.memref.type), alloc.dynamic_sizes, strict=False):
            yield alloc.memref, dimension, extent


def is_parameter(value: SSAValue) -> bool:
    return type(value) is BlockArgument and type(value.block.parent_op()) is FuncOp
