"""What is known of products and quotients by a symbol, in linear rows.

`whole == divisor * quotient + rest` is not linear when the divisor is a symbol. Of one such *part* alone little can be
said; of two parts with the same divisor it is known how they compare, for the divisor is at least 1:

- equal quotients: `whole - whole' == rest - rest'`
- a smaller quotient: `whole' - whole >= divisor + rest' - rest`

One of three cases holds of each pair. A question has no answer when it has none in any combination of cases. Bounds
such as `f < n * m` are pairs too, of a quotient and of the product `n * m`, whose quotient by `m` is `n` and whose rest
is 0.
"""

from __future__ import annotations

import itertools
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

Variable: TypeAlias = Hashable
"""Anything that a system has a number for."""


@dataclass
class Row:
    """`constant + sum(coefficient * variable)`, to be zero or not negative."""

    terms: dict[Variable, int]
    constant: int

    def copy(self) -> Row:
        return Row(dict(self.terms), self.constant)

    def add(self, other: Row, factor: int = 1) -> None:
        """Add a multiple of another row to this one."""
        self.constant += other.constant * factor
        terms = self.terms
        for variable, f in other.terms.items():
            if variable not in terms:
                if factor:
                    terms[variable] = f * factor
                continue
            total = terms[variable] + f * factor
            if total:
                terms[variable] = total
            else:
                del terms[variable]

    def minus(self, other: Row) -> Row:
        result = self.copy()
        result.add(other, -1)
        return result

    @property
    def key(self) -> Hashable:
        """Equal for equal rows."""
        return self.constant, frozenset(self.terms.items())


@dataclass(frozen=True)
class Part:
    """`whole == divisor * quotient + rest` with `0 <= rest < divisor`."""

    whole: Row
    quotient: Row
    rest: Row
    fixed: bool
    """A product of symbols or a multiple of the divisor: pairs of such tell nothing new."""

    def same(self, other: Part) -> tuple[Row, Row]:
        """Two rows that are zero when both have the same quotient."""
        apart = self.whole.minus(other.whole)
        apart.add(self.rest, -1)
        apart.add(other.rest)
        return self.quotient.minus(other.quotient), apart

    def below(self, other: Part, divisor: Row) -> tuple[Row, Row]:
        """Two rows that are not negative when this one has the smaller quotient."""
        quotients = other.quotient.minus(self.quotient)
        quotients.constant -= 1
        apart = other.whole.minus(self.whole)
        apart.add(divisor, -1)
        apart.add(other.rest, -1)
        apart.add(self.rest)
        return quotients, apart

    def not_below(self, other: Part) -> tuple[Row, Row]:
        """Two rows that are not negative when this one has no smaller quotient."""
        apart = self.whole.minus(other.whole)
        apart.add(self.rest, -1)
        apart.add(other.rest)
        return self.quotient.minus(other.quotient), apart


class Divisions:
    """The parts of a system, by divisor."""

    def __init__(self) -> None:
        self._divisors: dict[Hashable, Row] = {}
        self._parts: dict[Hashable, dict[Hashable, Part]] = {}

    def __bool__(self) -> bool:
        return any(not part.fixed for parts in self._parts.values() for part in parts.values())

    def copy(self) -> Divisions:
        result = Divisions()
        result._divisors = dict(self._divisors)
        result._parts = {key: dict(parts) for key, parts in self._parts.items()}
        return result

    def add(self, divisor: Row, part: Part) -> None:
        """Note a part. A divisor that may be 0 or less must come from a division that is carried out."""
        self._divisors.setdefault(divisor.key, divisor)
        self._parts.setdefault(divisor.key, {}).setdefault((part.whole.key, part.quotient.key), part)

    def bounds(self, positives: Sequence[Row]) -> Iterator[tuple[Row, Part, Part]]:
        """A divisor, a part that varies, and a fixed part of it that may bound it: a product of symbols, or a multiple
        of the divisor that occurs in `positives`."""
        for key, parts in self._parts.items():
            divisor = self._divisors[key]
            varying = [part for part in parts.values() if not part.fixed]
            fixed = [part for part in parts.values() if part.fixed]
            fixed += [_multiple(divisor, factor) for factor in _multiples_in(divisor, positives)]
            for part, bound in itertools.product(varying, fixed):
                yield divisor, part, bound

    def pairs(self) -> list[tuple[Row, Part, Part]]:
        """The pairs of different parts that vary."""
        return [
            (self._divisors[key], one, other)
            for key, parts in self._parts.items()
            for one, other in itertools.combinations([part for part in parts.values() if not part.fixed], 2)
        ]


def _multiple(divisor: Row, factor: int) -> Part:
    whole = Row({}, 0)
    whole.add(divisor, factor)
    return Part(whole, Row({}, factor), Row({}, 0), fixed=True)


def _multiples_in(divisor: Row, positives: Sequence[Row]) -> list[int]:
    """The factors that a divisor has in rows that bound something from above."""
    if len(divisor.terms) != 1 or divisor.constant:
        return []
    terms: Mapping[Variable, int] = divisor.terms
    ((variable, own),) = terms.items()
    factors = {row.terms[variable] // own for row in positives if row.terms.get(variable, 0) >= own > 0}
    return sorted(factors)[:3]
