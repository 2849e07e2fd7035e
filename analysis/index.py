"""Index expressions in normal form: integer sums of scaled atoms, where an atom is a value, a quotient or a
remainder.

Floor division and non-negative remainder are by positive constants, as in `AffineMap`, the form in the IR. A product
of two values is opaque.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import gcd
from operator import itemgetter
from typing import Final, TypeAlias, TypeVar, cast

from xdsl.dialects import affine, arith
from xdsl.dialects.builtin import IndexType, IntegerAttr
from xdsl.ir import OpResult, SSAValue
from xdsl.ir.affine import (
    AffineBinaryOpExpr,
    AffineBinaryOpKind,
    AffineConstantExpr,
    AffineDimExpr,
    AffineExpr,
    AffineMap,
)

from weft.dialects.index_map import over_dims
from weft.dialects.intervals import Interval
from weft.dialects.tir import range_of_index
from weft.dialects.traversal import sources_in
from weft.support.errors import CompileError, InternalError

_Digit = TypeVar("_Digit")
RangeOf: TypeAlias = Callable[[SSAValue], Interval]
"""The range of a value. `range_of_index` supports loop variables and block iterators."""


@dataclass(frozen=True)
class Quotient:
    numerator: Index
    divisor: int


@dataclass(frozen=True)
class Remainder:
    """`numerator mod divisor`, in 0 .. divisor-1."""

    numerator: Index
    divisor: int


_TRACED: Final = frozenset((affine.ApplyOp, arith.ConstantOp, arith.AddiOp, arith.SubiOp, arith.MuliOp))
"""`Index.of` looks through these."""

Atom: TypeAlias = "SSAValue | Quotient | Remainder"


class Index:
    """`constant + sum(coefficient * atom)`, immutable."""

    __slots__ = ("_hash", "constant", "terms")

    def __init__(self, terms: Mapping[Atom, int], constant: int = 0) -> None:
        # Hashing the atoms again dominates the cost, so filter only if needed.
        some_zero = 0 in terms.values()
        self.terms: Mapping[Atom, int] = {a: f for a, f in terms.items() if f} if some_zero else dict(terms)
        self.constant = constant
        self._hash = 0

    @staticmethod
    def of(value: SSAValue | int, known: dict[SSAValue, Index] | None = None) -> Index:
        """Follows `affine.apply`, `arith.constant`, `addi`, `subi`, and `muli` by a constant; anything else is an
        atom. `known` memoizes traced values."""
        if isinstance(value, int):
            return Index({}, value)
        # `isinstance` of an abstract class costs more than the rest.
        if type(value) is not OpResult or (kind := type(value.op)) not in _TRACED:
            return _owning({value: 1}, 0)
        if kind is arith.ConstantOp:
            number = cast("arith.ConstantOp", value.op).value
            if type(value.type) is IndexType and isinstance(number, IntegerAttr):
                return Index({}, number.value.data)
            return _owning({value: 1}, 0)
        known = {} if known is None else known
        if value not in known:
            known[value] = _traced(value, known)
        return known[value]

    @staticmethod
    def of_expr(expr: AffineExpr, dims: Sequence[Index]) -> Index:
        """The index of an expression without symbols, with `dims[d]` for dimension d."""
        if type(expr) is AffineDimExpr:
            return dims[expr.position]
        terms: dict[Atom, int] = {}
        return _without_zeros(terms, _add_expr(expr, dims, 1, terms))

    @staticmethod
    def of_map(map_: AffineMap, operands: Sequence[SSAValue]) -> tuple[Index, ...]:
        dims = [Index.of(v) for v in operands]
        return tuple(Index.of_expr(expr, dims) for expr in over_dims(map_))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Index) and self.constant == other.constant and self.terms == other.terms

    def __hash__(self) -> int:
        if not self._hash:
            self._hash = hash((frozenset(self.terms.items()), self.constant))
        return self._hash

    def __repr__(self) -> str:
        def show(atom: Atom) -> str:
            if isinstance(atom, SSAValue):
                return f"%{atom.name_hint or hex(id(atom))[-5:]}"
            numerator = repr(atom.numerator)
            if atom.numerator.constant or tuple(atom.numerator.terms.values()) != (1,):
                numerator = f"({numerator})"
            return f"({numerator} {'//' if isinstance(atom, Quotient) else '%'} {atom.divisor})"

        parts = [f"{factor}*{show(atom)}" if factor != 1 else show(atom) for atom, factor in self.terms.items()]
        if self.constant or not parts:
            parts.append(str(self.constant))
        return " + ".join(parts)

    def __add__(self, other: Index | int) -> Index:
        if isinstance(other, int):
            return _owning(self.terms, self.constant + other)
        return _sum(self, other, 1)

    def __sub__(self, other: Index | int) -> Index:
        if isinstance(other, int):
            return _owning(self.terms, self.constant - other)
        return _sum(self, other, -1)

    def __mul__(self, factor: int) -> Index:
        if factor == 1:
            return self
        if factor == 0:
            return Index({})
        return _owning({atom: f * factor for atom, f in self.terms.items()}, self.constant * factor)

    def __neg__(self) -> Index:
        return self * -1

    def __floordiv__(self, divisor: int) -> Index:
        return quotient(self, divisor, _unbounded)

    def __mod__(self, divisor: int) -> Index:
        return remainder(self, divisor, _unbounded)

    @property
    def is_constant(self) -> bool:
        return not self.terms

    @property
    def single_value(self) -> SSAValue | None:
        if self.constant == 0 and len(self.terms) == 1:
            ((atom, factor),) = self.terms.items()
            if factor == 1 and isinstance(atom, SSAValue):
                return atom
        return None

    def coefficient(self, atom: Atom) -> int:
        return self.terms.get(atom, 0)

    def values(self) -> Iterator[SSAValue]:
        """The values, repeated if in several atoms."""
        for atom in self.terms:
            if type(atom) is Quotient or type(atom) is Remainder:
                yield from atom.numerator.values()
            else:
                yield cast("SSAValue", atom)

    def sources(self) -> set[SSAValue]:
        """Values that the index depends on, through ops."""
        return sources_in(self.values())

    def depends_on(self, values: Iterable[SSAValue]) -> bool:
        return not self.sources().isdisjoint(values)

    def mentions(self, values: Iterable[SSAValue]) -> bool:
        """Whether one of `values` is in an atom, not only in the ops that compute it."""
        wanted = set(values)
        return any(value in wanted for value in self.values())

    def range(self, range_of: RangeOf = range_of_index) -> Interval:
        low: int | None = self.constant
        high: int | None = self.constant
        for atom, factor in self.terms.items():
            least, most = _atom_range(atom, range_of)
            if factor < 0:
                least, most = most, least
            low = None if low is None or least is None else low + least * factor
            high = None if high is None or most is None else high + most * factor
        return low, high

    def evaluate(self, value_at: Callable[[SSAValue], int]) -> int:
        total = self.constant
        for atom, factor in self.terms.items():
            if type(atom) is Quotient:
                total += factor * (atom.numerator.evaluate(value_at) // atom.divisor)
            elif type(atom) is Remainder:
                total += factor * (atom.numerator.evaluate(value_at) % atom.divisor)
            else:
                total += factor * value_at(cast("SSAValue", atom))
        return total

    def substitute(self, mapping: Mapping[SSAValue, Index], range_of: RangeOf | None = None) -> Index:
        """Quotients and remainders are simplified again, with ranges if given."""
        if not self.terms:
            return self
        if len(self.terms) == 1 and not self.constant:  # as most subscripts
            ((atom, factor),) = self.terms.items()
            if factor == 1 and type(atom) is not Quotient and type(atom) is not Remainder:
                known = mapping.get(cast("SSAValue", atom), self)
                if not any(type(inner) is Remainder for inner in known.terms):
                    return known
        ranges = range_of or _unbounded
        terms: dict[Atom, int] = {}
        constant = self.constant
        changes = divides = False
        for atom, factor in self.terms.items():
            if type(atom) is Quotient:
                new = quotient(atom.numerator.substitute(mapping, range_of), atom.divisor, ranges)
            elif type(atom) is Remainder:
                new = remainder(atom.numerator.substitute(mapping, range_of), atom.divisor, ranges)
            else:
                known = mapping.get(cast("SSAValue", atom))
                if known is None:
                    terms[atom] = terms.get(atom, 0) + factor
                    continue
                new = known
            changes = True
            constant += new.constant * factor
            for inner, times in new.terms.items():
                terms[inner] = terms.get(inner, 0) + times * factor
                divides = divides or type(inner) is Remainder
        if not changes:
            return self
        result = _without_zeros(terms, constant)
        return _merge_pairs(result) if divides else result

    def renamed(self, names: Mapping[SSAValue, SSAValue]) -> Index:
        """Distinct values must stay distinct."""
        terms: dict[Atom, int] = {}
        for atom, factor in self.terms.items():
            if type(atom) is Quotient or type(atom) is Remainder:
                terms[type(atom)(atom.numerator.renamed(names), atom.divisor)] = factor
            else:
                terms[names.get(cast("SSAValue", atom), cast("SSAValue", atom))] = factor
        return _owning(terms, self.constant)

    def simplified(self, range_of: RangeOf = range_of_index) -> Index:
        """An equal function on the given ranges, with fewer quotients and remainders if possible."""
        once = _asked_once(range_of)
        zero: dict[SSAValue, Index] = {}
        for value in self.values():
            low, high = once(value)
            if low is not None and low == high:
                zero[value] = Index({}, low)
        if not zero and not any(type(atom) is Quotient or type(atom) is Remainder for atom in self.terms):
            return self
        return self.substitute(zero, once)

    def to_expr(self) -> tuple[AffineExpr, tuple[SSAValue, ...]]:
        order: dict[SSAValue, int] = {}
        expr = self._expr(order)
        return expr, tuple(order)

    def _expr(self, order: dict[SSAValue, int]) -> AffineExpr:
        result: AffineExpr | None = None
        for atom, factor in self.terms.items():
            if type(atom) is Quotient:
                part: AffineExpr = atom.numerator._expr(order) // atom.divisor
            elif type(atom) is Remainder:
                part = atom.numerator._expr(order) % atom.divisor
            else:
                part = AffineDimExpr(order.setdefault(cast("SSAValue", atom), len(order)))
            part = part * factor if factor != 1 else part
            result = part if result is None else result + part
        if result is None:
            return AffineConstantExpr(self.constant)
        return result + self.constant if self.constant else result


def _asked_once(range_of: RangeOf) -> RangeOf:
    """A memo, valid as long as no loop or symbol changes."""
    if isinstance(getattr(range_of, "__self__", None), _Answers):
        return range_of
    return _Answers(range_of).__getitem__


class _Answers(dict[SSAValue, Interval]):
    def __init__(self, range_of: RangeOf) -> None:
        self._range_of = range_of

    def __missing__(self, value: SSAValue) -> Interval:
        answer = self[value] = self._range_of(value)
        return answer


def _traced(value: OpResult, known: dict[SSAValue, Index]) -> Index:
    op = value.op
    if isinstance(op, affine.ApplyOp):
        operands = [Index.of(v, known) for v in op.operands]
        try:
            return Index.of_expr(over_dims(op.map.data)[0], operands)
        except CompileError as error:
            raise CompileError.at(op, error.message) from None
    if type(value.type) is not IndexType:
        return _owning({value: 1}, 0)
    left, right = [Index.of(v, known) for v in op.operands]
    if isinstance(op, arith.AddiOp):
        return left + right
    if isinstance(op, arith.SubiOp):
        return left - right
    if not right.terms:
        return left * right.constant
    return right * left.constant if not left.terms else _owning({value: 1}, 0)


def _owning(terms: Mapping[Atom, int], constant: int) -> Index:
    """Takes ownership of `terms`, none of which is zero."""
    index = Index.__new__(Index)
    index.terms = terms
    index.constant = constant
    index._hash = 0  # pyright: ignore[reportPrivateUsage]
    return index


def _without_zeros(terms: dict[Atom, int], constant: int) -> Index:
    if 0 in terms.values():
        terms = {atom: factor for atom, factor in terms.items() if factor}
    return _owning(terms, constant)


def _sum(left: Index, right: Index, factor: int) -> Index:
    constant = left.constant + right.constant * factor
    if not right.terms:
        return _owning(left.terms, constant)
    terms = dict(left.terms)
    for atom, f in right.terms.items():
        terms[atom] = terms.get(atom, 0) + f * factor
    return _without_zeros(terms, constant)


def _add_expr(expr: AffineExpr, dims: Sequence[Index], factor: int, terms: dict[Atom, int]) -> int:
    """Add the terms of `factor * expr` to `terms`; returns its constant."""
    if type(expr) is AffineDimExpr:
        index = dims[expr.position]
    elif type(expr) is AffineConstantExpr:
        return expr.value * factor
    elif type(expr) is not AffineBinaryOpExpr:
        raise InternalError(f"unknown affine expression {expr}")
    elif expr.kind is AffineBinaryOpKind.Add:
        return _add_expr(expr.lhs, dims, factor, terms) + _add_expr(expr.rhs, dims, factor, terms)
    elif expr.kind is AffineBinaryOpKind.Mul:
        right = Index.of_expr(expr.rhs, dims)
        if not right.terms:
            return _add_expr(expr.lhs, dims, factor * right.constant, terms)
        index = right * Index.of_expr(expr.lhs, dims).constant
    else:
        left, divisor = Index.of_expr(expr.lhs, dims), Index.of_expr(expr.rhs, dims).constant
        if divisor <= 0:
            raise CompileError(f"an index expression divides by positive constants only, got {expr}")
        if expr.kind is AffineBinaryOpKind.FloorDiv:
            index = left // divisor
        elif expr.kind is AffineBinaryOpKind.Mod:
            index = left % divisor
        else:
            index = (left + (divisor - 1)) // divisor
    for atom, f in index.terms.items():
        terms[atom] = terms.get(atom, 0) + f * factor
    return index.constant * factor


def exprs_of(indices: Sequence[Index]) -> tuple[list[AffineExpr], tuple[SSAValue, ...]]:
    order: dict[SSAValue, int] = {}
    exprs = [index._expr(order) for index in indices]  # pyright: ignore[reportPrivateUsage]
    return exprs, tuple(order)


def mixed_radix(digits: Iterable[tuple[int, _Digit, int | None]]) -> Iterator[tuple[int, _Digit, int | None]]:
    """Order the digits `(weight, digit, maximum)` of a sum, not negative, by weight, as `(weight, digit, reach)`:
    `reach` is the maximum of the preceding weighted sum, None if unbounded.

    The sum determines a digit if its weight and all larger ones exceed the reach. It takes every value up to its
    maximum if no weight exceeds the reach plus one.
    """
    reach: int | None = 0
    for weight, digit, maximum in sorted(digits, key=itemgetter(0)):
        yield weight, digit, reach
        reach = None if reach is None or maximum is None else reach + weight * maximum


def _unbounded(_: SSAValue) -> Interval:
    return None, None


def _atom_range(atom: Atom, range_of: RangeOf) -> Interval:
    if type(atom) is not Quotient and type(atom) is not Remainder:
        return range_of(cast("SSAValue", atom))
    low, high = atom.numerator.range(range_of)
    c = atom.divisor
    if type(atom) is Quotient:
        return None if low is None else low // c, None if high is None else high // c
    if low is not None and high is not None and low // c == high // c:
        return low % c, high % c
    return 0, c - 1


def _split_by(index: Index, factor: int, range_of: RangeOf) -> tuple[Index, Index] | None:
    """`index = factor * multiple + rest` with rest in 0 .. factor-1."""
    multiple: dict[Atom, int] = {}
    rest: dict[Atom, int] = {}
    low = high = index.constant % factor
    for atom, f in index.terms.items():
        if f % factor == 0:
            multiple[atom] = f // factor
            continue
        least, most = _atom_range(atom, range_of)
        if least is None or most is None:
            return None
        rest[atom] = f
        low += min(least * f, most * f)
        high += max(least * f, most * f)
    if low < 0 or high >= factor:
        return None
    return _owning(multiple, index.constant // factor), _owning(rest, index.constant % factor)


def _split_factors(index: Index, divisor: int) -> list[int]:
    factors = {divisor} | {gcd(f, divisor) for f in index.terms.values()}
    return sorted((f for f in factors if f > 1), reverse=True)


def quotient(index: Index, divisor: int, range_of: RangeOf) -> Index:
    """`index floordiv divisor`, simplified by the ranges. The divisor is positive."""
    if divisor <= 0:
        raise InternalError(f"floor division of an index by {divisor}")
    if divisor == 1:
        return index
    for factor in _split_factors(index, divisor):
        if (split := _split_by(index, factor, range_of)) is not None:
            multiple, _ = split
            return multiple if factor == divisor else quotient(multiple, divisor // factor, range_of)
    whole = {atom: f // divisor for atom, f in index.terms.items() if f % divisor == 0}
    rest = Index({atom: f for atom, f in index.terms.items() if f % divisor}, index.constant % divisor)
    outside = Index(whole, index.constant // divisor)
    if len(rest.terms) == 1:
        ((atom, f),) = rest.terms.items()
        if f == 1 and isinstance(atom, Quotient):
            return outside + quotient(atom.numerator + rest.constant * atom.divisor, atom.divisor * divisor, range_of)
    return outside + Index({Quotient(rest, divisor): 1})


def remainder(index: Index, divisor: int, range_of: RangeOf) -> Index:
    """`index mod divisor`, like `quotient`."""
    if divisor <= 0:
        raise InternalError(f"remainder of an index by {divisor}")
    if divisor == 1:
        return Index({})
    for factor in _split_factors(index, divisor):
        if (split := _split_by(index, factor, range_of)) is not None:
            multiple, rest = split
            if factor == divisor:
                return rest
            return remainder(multiple, divisor // factor, range_of) * factor + rest
    reduced = Index({atom: f for atom, f in index.terms.items() if f % divisor}, index.constant % divisor)
    if reduced.is_constant:
        return reduced
    return Index({Remainder(reduced, divisor): 1})


def _merge_pairs(index: Index) -> Index:
    """Replace `c * (x floordiv c) + x mod c` by x, even if x is a quotient."""
    # Terminates, because a round replaces a remainder by its numerator, whose remainders are less deep.
    changed = True
    while changed:
        changed = False
        for atom, factor in index.terms.items():
            if type(atom) is not Remainder:
                continue
            partner = _quotient_partner(atom)
            if index.terms.get(partner) == factor * atom.divisor:
                others = {a: f for a, f in index.terms.items() if a not in (atom, partner)}
                index = Index(others, index.constant) + atom.numerator * factor
                changed = True
                break
    return index


def _quotient_partner(atom: Remainder) -> Quotient:
    numerator = atom.numerator
    if len(numerator.terms) == 1:
        ((inner, f),) = numerator.terms.items()
        if f == 1 and isinstance(inner, Quotient):
            return Quotient(inner.numerator + numerator.constant * inner.divisor, inner.divisor * atom.divisor)
    return Quotient(numerator, atom.divisor)
