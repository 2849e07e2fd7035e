"""Integer sets: satisfiability of conjunctions of constraints on index expressions. See
docs/decisions/0003-set-questions-as-one-conjunction.md.

A `System` is a conjunction of linear constraints over *variables* (any hashable key: a loop variable, that of the
second instance, a symbol). Quotients and remainders by constants are bounded variables. Emptiness is decided exactly,
except for products and quotients of symbols, within a budget of isl operations (Verdoolaege, "isl: An Integer Set
Library for the Polyhedral Model", ICMS 2010); past it, `NotProved` is raised.

Products and quotients by a symbol are cases (docs/decisions/0010-symbols.md): *parts* `whole == divisor * quotient +
rest` with the same divisor, which is at least 1, satisfy

- for equal quotients: `whole - whole' == rest - rest'`
- for a smaller quotient (of either part): `whole' - whole >= divisor + rest' - rest`

Maxima and minima are cases, too: one of two sides. A system is empty if it is so in every combination of cases.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache, reduce
from math import gcd
from typing import TYPE_CHECKING, TypeAlias, TypeVar

from xdsl.ir import Block, BlockArgument, SSAValue

from weft.analysis.index import Index, Quotient, Remainder, mixed_radix
from weft.analysis.integer_ranges import (
    Alternative,
    Choice,
    Computed,
    Division,
    Product,
    Ranges,
    is_fixed,
    is_not_negative,
    is_symbol,
    without_clamp,
)
from weft.dialects.intervals import Interval

if TYPE_CHECKING:
    import islpy as isl

Variable: TypeAlias = Hashable


@dataclass
class Row:
    """`constant + sum(coefficient * variable)`, constrained to be zero or non-negative."""

    terms: dict[Variable, int]
    constant: int

    def copy(self) -> Row:
        return Row(dict(self.terms), self.constant)

    def add(self, other: Row, factor: int = 1) -> None:
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
        return self.constant, frozenset(self.terms.items())


@dataclass(frozen=True)
class Part:
    """`whole == divisor * quotient + rest` with `0 <= rest < divisor`."""

    whole: Row
    quotient: Row
    rest: Row
    fixed: bool
    """Whether it is a product of symbols or a multiple of the divisor. Pairs of fixed parts add no constraint."""

    def distance(self, other: Part) -> tuple[Row, Row]:
        """Differences of quotients, and of multiples of the divisor: zero if equal, non-negative if this quotient is
        not smaller."""
        apart = self.whole.minus(other.whole)
        apart.add(self.rest, -1)
        apart.add(other.rest)
        return self.quotient.minus(other.quotient), apart

    def below(self, other: Part, divisor: Row) -> tuple[Row, Row]:
        """Rows, non-negative if this part has the smaller quotient."""
        quotients, apart = other.distance(self)
        quotients.constant -= 1
        apart.add(divisor, -1)
        return quotients, apart


class Divisions:
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
        """A divisor that may be 0 or less must be that of a division that executes."""
        self._divisors.setdefault(divisor.key, divisor)
        self._parts.setdefault(divisor.key, {}).setdefault((part.whole.key, part.quotient.key), part)

    def rows(self) -> Iterator[Row]:
        yield from self._divisors.values()
        for parts in self._parts.values():
            for part in parts.values():
                yield from (part.whole, part.quotient, part.rest)

    def bounds(self, inequalities: Sequence[Row]) -> Iterator[tuple[Row, Part, Part]]:
        """A divisor, a varying part, and one that may bound it: a product of symbols, or a multiple of the divisor
        in `inequalities`."""
        for key, parts in self._parts.items():
            divisor = self._divisors[key]
            varying = [part for part in parts.values() if not part.fixed]
            fixed = [part for part in parts.values() if part.fixed]
            fixed += [_multiple(divisor, factor) for factor in _multiples_in(divisor, inequalities)]
            for part, bound in itertools.product(varying, fixed):
                yield divisor, part, bound

    def pairs(self) -> list[tuple[Row, Part, Part]]:
        return [
            (self._divisors[key], one, other)
            for key, parts in self._parts.items()
            for one, other in itertools.combinations([part for part in parts.values() if not part.fixed], 2)
        ]


def _multiple(divisor: Row, factor: int) -> Part:
    whole = Row({}, 0)
    whole.add(divisor, factor)
    return Part(whole, Row({}, factor), Row({}, 0), fixed=True)


def _multiples_in(divisor: Row, inequalities: Sequence[Row]) -> list[int]:
    if len(divisor.terms) != 1:
        return []
    terms: Mapping[Variable, int] = divisor.terms
    ((variable, own),) = terms.items()
    factors = {row.terms[variable] // own for row in inequalities if row.terms.get(variable, 0) >= own > 0}
    return sorted(factors)[:3]


BUDGET = 60_000
"""isl operations for one question: about 50 ms. Beyond it the answer is "not proved"."""

CASES = 200
"""Cases of quotients by symbols that one question tries."""
WORK = 1_000_000
"""Coefficients of all cases that one question tries: about 0.1 s."""

_T = TypeVar("_T")
Naming: TypeAlias = Callable[[SSAValue], Variable]
"""Maps a value to its variable; two instances of one loop have two variables, or one if they are equal."""
Point: TypeAlias = Mapping[Variable, int]
_Alternatives: TypeAlias = tuple[tuple[Sequence[Row], Sequence[Row]], ...]
"""Cases of which one holds: rows that are zero, and rows that are non-negative."""


class NotProved(Exception):
    pass


@dataclass
class System:
    bounds: dict[Variable, Interval] = field(default_factory=dict[Variable, Interval])
    equalities: list[Row] = field(default_factory=list[Row])
    inequalities: list[Row] = field(default_factory=list[Row])
    values: Mapping[SSAValue, int] = field(default_factory=dict[SSAValue, int])
    """Concrete values of symbols, which make their products and quotients linear."""
    opaque: Collection[SSAValue] = ()
    """Unconstrained, even if they are computed."""
    ranges: Ranges = field(default_factory=Ranges)
    """The IR must not change while the system is in use."""
    _digits: dict[Variable, Row] = field(default_factory=dict[Variable, Row])
    _products: dict[Variable, Variable] = field(default_factory=dict[Variable, Variable])
    _divisions: Divisions = field(default_factory=Divisions)
    _choices: dict[Variable, tuple[Row, Row]] = field(default_factory=dict[Variable, "tuple[Row, Row]"])
    """A maximum, minimum or result of `arith.select` -> rows of which one is zero, since it equals one of its sides."""
    _assumed: list[list[Row]] = field(default_factory=list[list[Row]])
    """Disjunctions that the function assumes: one of the rows is non-negative."""
    _unknown: dict[SSAValue, None] = field(default_factory=dict[SSAValue, None])
    """Values that the constraints describe only partially: loaded values, results of other ops."""
    _learned: set[SSAValue] = field(default_factory=set[SSAValue])
    _described: dict[tuple[Naming, SSAValue], Row] = field(default_factory=dict[tuple[Naming, SSAValue], Row])
    """Memo of rows of quotients, products and choices, not mutated."""

    def declare(self, variable: Variable, low: int | None, high: int | None) -> None:
        old = self.bounds.get(variable)
        self.bounds[variable] = (
            (low, high) if old is None else (_tighter(old[0], low, max), _tighter(old[1], high, min))
        )

    def row(self, index: Index, naming: Naming) -> Row:
        result = Row({}, index.constant)
        for atom, factor in index.terms.items():
            if not isinstance(atom, Quotient | Remainder):
                result.add(self._value_row(atom, naming), factor)
            else:
                whole = self.row(atom.numerator, naming)
                result.add(self._digit(whole, atom.divisor, is_quotient=isinstance(atom, Quotient)), factor)
        return result

    def _value_row(self, value: SSAValue, naming: Naming) -> Row:
        if value not in self._learned:
            self._learned.add(value)
            self._learn(value, naming)
        if isinstance(value, BlockArgument) and not self.values:
            return self._variable(value, naming)
        number = self.values.get(value)
        if number is not None:
            return Row({}, number)
        meaning = None if value in self.opaque else self.ranges.meaning_of(value)
        if meaning is not None:
            # Memoized: an operand of several others would be described once per path to it.
            if (naming, value) not in self._described:
                self._described[naming, value] = self._description(value, meaning, naming)
            return self._described[naming, value]
        if not (isinstance(value, BlockArgument) or is_symbol(value) or value in self.opaque):
            self._unknown[value] = None
        return self._variable(value, naming)

    def _description(self, value: SSAValue, meaning: Computed, naming: Naming) -> Row:
        match meaning:
            case Division():
                return self._division(meaning, naming)
            case Product():
                return self._product(value, meaning, naming)
            case Choice():
                return self._choice(value, meaning, naming)
            case Alternative():
                return self._alternative(value, meaning, naming)

    def _learn(self, value: SSAValue, naming: Naming) -> None:
        for assumed in self.ranges.assumptions_about(value) if is_symbol(value) else ():
            negative = assumed.negative_alternatives()
            if len(negative) == 1:
                row = self.row(assumed.index, naming)
                (self.equalities if assumed.is_equality else self.inequalities).append(row)
            elif value in negative[0].sources():  # once for all symbols
                self._assumed.append([self.row(index * -1 - 1, naming) for index in negative])

    def _variable(self, value: SSAValue, naming: Naming) -> Row:
        variable = naming(value)
        self.bounds.setdefault(variable, (None, None))
        return Row({variable: 1}, 0)

    def _digit(self, whole: Row, divisor: int, *, is_quotient: bool) -> Row:
        """x = c*q + r with 0 <= r < c; the quotient is the row q, the remainder x - c*q."""
        key: Variable = ("quotient", divisor, whole.key)
        q = self._digits.get(key)
        if q is None:
            q = self._digits[key] = Row({key: 1}, 0)
            low, high = self._range(whole)
            self.declare(key, None if low is None else low // divisor, None if high is None else high // divisor)
            rest = whole.copy()
            rest.add(q, -divisor)
            self.inequalities.append(rest)
            above = Row({}, divisor - 1)
            above.add(rest, -1)
            self.inequalities.append(above)
        if is_quotient:
            return q
        remainder = whole.copy()
        remainder.add(q, -divisor)
        return remainder

    def _division(self, division: Division, naming: Naming) -> Row:
        whole, divisor = self.row(division.numerator, naming), self.row(division.divisor, naming)
        if not divisor.terms:
            if divisor.constant < 1:
                self.inequalities.append(Row({}, -1))  # the division never executes
                return Row({}, 0)
            return self._digit(whole, divisor.constant, is_quotient=division.is_quotient)
        keys: tuple[Variable, Variable] = (("quotient", divisor.key, whole.key), ("rest", divisor.key, whole.key))
        q, r = (self._digits.setdefault(key, Row({key: 1}, 0)) for key in keys)
        if keys[0] not in self.bounds:
            positive = is_not_negative(division.numerator, self.ranges)
            self.declare(keys[0], 0 if positive else None, None)
            self.declare(keys[1], 0, None)
            self.less(r, divisor)
            self._divisions.add(divisor, Part(whole, q, r, fixed=False))
            if positive:
                self.less(q, whole, by=0)
                self.less(r, whole, by=0)
        return q if division.is_quotient else r

    def _product(self, value: SSAValue, product: Product, naming: Naming) -> Row:
        """A variable whose quotient by one factor is the other; linear if a factor is constant."""
        left, right = self.row(product.left, naming), self.row(product.right, naming)
        for one, other in ((left, right), (right, left)):
            if not one.terms:
                result = Row({}, 0)
                result.add(other, one.constant)
                return result
        result = self._variable(value, naming)
        key: Variable = frozenset((left.key, right.key))
        known = self._products.setdefault(key, naming(value))
        if known != naming(value):
            self.equal(Row({known: 1}, 0), result)
            return Row({known: 1}, 0)  # equal divisors have one row
        fixed = all(is_fixed(v) for side in (product.left, product.right) for v in side.values())
        for index, other in ((product.left, right), (product.right, left)):
            if is_not_negative(index, self.ranges) and all(is_fixed(v) for v in index.values()):
                divisor = self.row(without_clamp(index), naming)
                self._divisions.add(divisor, Part(result, other, Row({}, 0), fixed=fixed))
        return result

    def _choice(self, value: SSAValue, choice: Choice, naming: Naming) -> Row:
        """A variable that bounds both sides; one of them if their difference is constant."""
        sides = [self.row(choice.left, naming), self.row(choice.right, naming)]
        distance = sides[0].minus(sides[1])
        if not distance.terms:
            return sides[0] if (distance.constant >= 0) == choice.larger else sides[1]
        result = self._variable(value, naming)
        variable = naming(value)
        if variable not in self._choices:
            for side in sides:
                self.less(*((side, result) if choice.larger else (result, side)), by=0)
            self._choices[variable] = result.minus(sides[0]), result.minus(sides[1])
        return result

    def _alternative(self, value: SSAValue, alternative: Alternative, naming: Naming) -> Row:
        """A variable that is one of both sides; the condition is not described."""
        self._unknown[value] = None
        result = self._variable(value, naming)
        sides = (self.row(alternative.left, naming), self.row(alternative.right, naming))
        self._choices.setdefault(naming(value), (result.minus(sides[0]), result.minus(sides[1])))
        return result

    def _range(self, row: Row) -> Interval:
        low: int | None = row.constant
        high: int | None = row.constant
        for variable, factor in row.terms.items():
            a, b = self.bounds.get(variable, (None, None))
            if factor < 0:
                a, b = b, a
            low = None if low is None or a is None else low + a * factor
            high = None if high is None or b is None else high + b * factor
        return low, high

    def equal(self, left: Row, right: Row) -> None:
        self.equalities.append(left.minus(right))

    def less(self, left: Row, right: Row, by: int = 1) -> None:
        difference = right.minus(left)
        difference.constant -= by
        self.inequalities.append(difference)

    def find_point(self) -> Point | None:
        """A feasible point that satisfies every constraint. Raises `NotProved` also if inexact constraints leave that
        open."""
        point = self.find_candidate()
        if point is None or self.is_exact:
            return point
        if self._unknown:
            raise NotProved(f"it depends on {value_text(next(iter(self._unknown)))}, which is not affine")
        raise NotProved("it depends on products or quotients of values that are known at run time only")

    def find_candidate(self) -> Point | None:
        """A point as of `find_point`, but possibly infeasible; small values are preferred."""
        if self._obviously_empty() or (self._divisions and self.is_empty()):
            return None
        case = self._case(self._alternatives())
        if case is None:
            return None
        variables = case._variables()
        return smallest_point(case._basic_set(variables), variables)

    def is_empty(self) -> bool:
        """Whether no point exists. With products and quotients by symbols, False means not proved."""
        if self._obviously_empty():
            return True
        if not self._divisions:
            return self._case(self._alternatives()) is None
        bounded = self._with_bounds()
        return bounded._obviously_empty() or bounded._case([*self._alternatives(), *self._quotient_cases()]) is None

    def _alternatives(self) -> list[_Alternatives]:
        sides = (((one,), (other,)) for one, other in self._choices.values())
        choices = [tuple((equalities, ()) for equalities in either) for either in sides]
        return [*choices, *(tuple(((), (row,)) for row in rows) for rows in self._assumed)]

    @property
    def choices(self) -> int:
        return len(self._choices) + len(self._assumed)

    def _quotient_cases(self) -> Iterator[_Alternatives]:
        for divisor, one, other in self._divisions.pairs():
            below, above = one.below(other, divisor), other.below(one, divisor)
            yield (one.distance(other), ()), ((), below), ((), above)

    @property
    def is_linear(self) -> bool:
        return not (self._products or self._divisions or self._choices)

    @property
    def is_affine(self) -> bool:
        return not (self._products or self._divisions)

    @property
    def is_exact(self) -> bool:
        """Whether each point is feasible in the program."""
        return self.is_affine and not self._unknown

    @property
    def variables(self) -> list[Variable]:
        return self._variables()

    def _with(self, equalities: Sequence[Row] = (), inequalities: Sequence[Row] = ()) -> System:
        return System(dict(self.bounds), [*self.equalities, *equalities], [*self.inequalities, *inequalities])

    def _with_bounds(self) -> System:
        """Add bounds by products of symbols: `f < n * m` bounds `f floordiv m`."""
        bounded = System(dict(self.bounds), list(self.equalities), list(self.inequalities))
        variables = self._variables(self._divisions.rows())
        points = self._basic_set(variables)
        done: set[Variable] = set()
        questions = CASES
        growing = True
        while growing:
            growing = False
            for divisor, part, bound in self._divisions.bounds(bounded.inequalities):
                key: Variable = (divisor.key, part.whole.key, bound.whole.key, bound.quotient.key)
                if key in done:
                    continue
                if not questions:  # fewer bounds are known than exist, so less is proved
                    return bounded
                questions -= 1
                if bounded._is_contradiction(points, variables, (), part.distance(bound)):
                    done.add(key)
                    below = part.below(bound, divisor)
                    bounded.inequalities.extend(below)
                    points = points.intersect(_from_rows(variables, (), below))
                    growing = True
        return bounded

    def _is_contradiction(
        self,
        points: isl.BasicSet,
        variables: Sequence[Variable],
        equalities: Sequence[Row],
        inequalities: Sequence[Row],
    ) -> bool:
        if self._with(equalities, inequalities)._obviously_empty():
            return True
        return within_budget(points.intersect(_from_rows(variables, equalities, inequalities)).is_empty)

    def _case(self, alternatives: Sequence[_Alternatives]) -> System | None:
        """A combination of cases with a solution. Raises `NotProved` past their limit."""
        variables = self._variables(row for cases in alternatives for case in cases for part in case for row in part)
        return self._case_of(self._basic_set(variables), variables, alternatives, [WORK])

    def _case_of(
        self, points: isl.BasicSet, variables: list[Variable], alternatives: Sequence[_Alternatives], left: list[int]
    ) -> System | None:
        left[0] -= max(WORK // CASES, len(variables) * (len(self.equalities) + len(self.inequalities)))
        if left[0] < 0:
            raise NotProved(f"quotients, maxima and minima make more than {CASES} cases, or fewer of large systems")
        if within_budget(points.is_empty):
            return None
        if not alternatives:
            return self
        for equalities, inequalities in alternatives[0]:
            case = self._with(equalities, inequalities)
            if case._obviously_empty():
                continue
            part = points.intersect(_from_rows(variables, equalities, inequalities))
            found = case._case_of(part, variables, alternatives[1:], left)
            if found is not None:
                return found
        return None

    def _choice_cases(self) -> Iterator[System]:
        if not self._choices:
            yield self
            return
        if 2 ** len(self._choices) > CASES:
            raise NotProved(f"maxima and minima make more than {CASES} cases")
        for equalities in itertools.product(*self._choices.values()):
            yield self._with(equalities=equalities)

    def limits(self, variable: Variable) -> tuple[int, int] | None:
        """Minimum and maximum; None if empty or unbounded. Raises `NotProved` also for quotients by symbols."""
        points = self.projection([variable])
        if within_budget(points.is_empty):
            return None
        return dimension_limits(points, 0)

    def _obviously_empty(self) -> bool:
        if any(low is not None and high is not None and low > high for low, high in self.bounds.values()):
            return True
        for row in self.equalities:
            low, high = self._range(row)
            if (low is not None and low > 0) or (high is not None and high < 0):
                return True
        for row in self.inequalities:
            high = self._range(row)[1]
            if high is not None and high < 0:
                return True
        return self._forced_equalities_contradict()

    def _forced_equalities_contradict(self) -> bool:
        """Whether a row is violated once variables that equations force to be equal are merged: commonly, digits of
        equal indices, which contradict a strict order of loops."""
        merged: dict[Variable, Variable] = {}
        for row in self.equalities:
            for kept, dropped in self._digits_of_difference(row):
                merged.setdefault(dropped, kept)
        if not merged:
            return False
        for row in self.inequalities:
            if not any(variable in merged for variable in row.terms):
                continue
            folded = Row({}, row.constant)
            for variable, factor in row.terms.items():
                folded.add(Row({merged.get(variable, variable): 1}, 0), factor)
            high = self._range(folded)[1]
            if high is not None and high < 0:
                return True
        return False

    def _digits_of_difference(self, row: Row) -> list[tuple[Variable, Variable]]:
        """Pairs (a, b) that `sum(c * (a - b)) == 0` forces to be equal: each weight c exceeds the greatest sum of
        smaller terms."""
        if row.constant:
            return []
        by_weight: dict[int, list[Variable]] = {}
        for variable, factor in row.terms.items():
            by_weight.setdefault(abs(factor), []).append(variable)
        digits: list[tuple[int, tuple[Variable, Variable], int | None]] = []
        for weight, both in by_weight.items():
            if len(both) != 2 or row.terms[both[0]] != -row.terms[both[1]]:
                return []
            (low, high), (other_low, other_high) = (self.bounds.get(v, (None, None)) for v in both)
            if low is None or high is None or other_low is None or other_high is None:
                maximum = None
            else:
                maximum = max(high - other_low, other_high - low)
            digits.append((weight, (both[0], both[1]), maximum))
        found = list(mixed_radix(digits))
        unique = all(reach is not None and weight > reach for weight, _, reach in found)
        return [pair for _, pair, _ in found] if unique else []

    def _variables(self, further: Iterable[Row] = ()) -> list[Variable]:
        seen: dict[Variable, None] = {}
        for row in (*self.equalities, *self.inequalities, *further):
            for variable in row.terms:
                seen.setdefault(variable)
        return list(seen)

    def _basic_set(self, variables: list[Variable]) -> isl.BasicSet:
        rows = list(self.inequalities)
        for variable in variables:
            low, high = self.bounds.get(variable, (None, None))
            if low is not None:
                rows.append(Row({variable: 1}, -low))
            if high is not None:
                rows.append(Row({variable: -1}, high))
        return _from_rows(variables, self.equalities, rows)

    def projection(self, keep: list[Variable], *, may_grow: bool = False) -> isl.Set:
        """The projection onto `keep`, in order. Quotients by symbols may make it an over-approximation: with
        `may_grow`, else `NotProved`."""
        import islpy as isl

        if self._divisions:
            if not may_grow:
                raise NotProved("quotients by values that are known at run time only")
            return self._with_bounds().projection(keep)
        variables = [*keep, *(v for v in self._variables() if v not in keep)]
        first, *others = (isl.Set.from_basic_set(case._basic_set(variables)) for case in self._choice_cases())
        points = reduce(isl.Set.union, others, first)
        return within_budget(lambda: points.project_out(isl.dim_type.set, len(keep), len(variables) - len(keep)))


def value_text(value: SSAValue) -> str:
    if value.name_hint:
        return f"%{value.name_hint}"
    return "an unnamed value" if isinstance(value.owner, Block) else f"the result of {value.owner.name}"


def _tighter(old: int | None, new: int | None, pick: Callable[[int, int], int]) -> int | None:
    if old is None or new is None:
        return new if old is None else old
    return pick(old, new)


def _from_rows(variables: Sequence[Variable], equalities: Sequence[Row], inequalities: Sequence[Row]) -> isl.BasicSet:
    import islpy as isl

    context = isl.DEFAULT_CONTEXT
    dims, position = len(variables), {variable: at for at, variable in enumerate(variables)}

    def matrix(rows: Sequence[Row], are_zero: bool) -> isl.Mat:
        parts: list[isl.Mat] = []
        for row in rows:
            common = _common_factor(row, are_zero)
            values = [(position[variable], factor // common) for variable, factor in row.terms.items()]
            parts.append(_row_matrix(dims, tuple(values), row.constant // common))
        while len(parts) > 1:  # Concatenate in a tree, because each operation copies both sides.
            parts = [
                parts[at].concat(parts[at + 1]) if at + 1 < len(parts) else parts[at] for at in range(0, len(parts), 2)
            ]
        return parts[0] if parts else isl.Mat.alloc(context, 0, dims + 1)

    kind = isl.dim_type
    space = isl.Space.set_alloc(context, 0, dims)
    return isl.BasicSet.from_constraint_matrices(
        space, matrix(equalities, True), matrix(inequalities, False), kind.set, kind.div, kind.param, kind.cst
    )


@lru_cache(maxsize=4096)
def _row_matrix(dims: int, values: tuple[tuple[int, int], ...], constant: int) -> isl.Mat:
    """Cached, because rows repeat and islpy leaks 32 bytes per argument that isl takes ownership of: two per
    element."""
    import islpy as isl

    result = isl.Mat.alloc(isl.DEFAULT_CONTEXT, 0, dims + 1).add_zero_rows(1)
    for place, value in (*values, (dims, constant)):
        result = result.set_element_val(0, place, _number(value))
    return result


@lru_cache(maxsize=4096)
def _number(value: int) -> isl.Val:
    """Cached, because construction from an int dominates the cost of a matrix."""
    import islpy as isl

    return isl.Val.read_from_str(isl.DEFAULT_CONTEXT, str(value))


def _common_factor(row: Row, is_zero: bool) -> int:
    """The factor by which the constant is divided and rounded down; 1 if that would change an equation. With common
    factors, isl's `lexmin` may report a non-empty set as empty."""
    common = gcd(*row.terms.values())
    return 1 if common == 0 or (is_zero and row.constant % common) else common


def within_budget(question: Callable[[], _T]) -> _T:
    import islpy as isl

    context = isl.DEFAULT_CONTEXT
    context.reset_operations()
    context.set_max_operations(BUDGET)
    try:
        return question()
    except isl.Error as error:
        if "maximal number of operations" in str(error):
            raise NotProved(f"the integer-set question needs more than {BUDGET} isl operations") from None
        raise
    finally:
        context.set_max_operations(0)


def dimension_limits(points: isl.Set, at: int) -> tuple[int, int] | None:
    """Minimum and maximum of a non-empty set, or None if unbounded."""
    low, high = (within_budget(lambda f=f: f(at)) for f in (points.dim_min_val, points.dim_max_val))
    return (low.to_python(), high.to_python()) if low.is_int() and high.is_int() else None


def index_of_aff(aff: isl.Aff, values: Sequence[SSAValue], scale: int = 1) -> Index:
    """`scale * aff`, with integer coefficients, over the values of its dimensions."""
    import islpy as isl

    kind = isl.dim_type

    def whole(value: isl.Val) -> int:
        scaled = value.mul(isl.Val(scale))
        if not scaled.is_int():
            raise NotProved("a coefficient is a fraction")
        return scaled.to_python()

    result = Index({}, whole(aff.get_constant_val()))
    for at, value in enumerate(values):
        factor = whole(aff.get_coefficient_val(kind.in_, at))
        result += Index({value: factor})
    for at in range(aff.dim(kind.div)):
        factor = whole(aff.get_coefficient_val(kind.div, at))
        if factor:
            inner = aff.get_div(at)
            divisor: int = inner.get_denominator_val().to_python()
            result += (index_of_aff(inner, values, divisor) // divisor) * factor
    return _with_remainders(result)


def _with_remainders(index: Index) -> Index:
    for atom, factor in index.terms.items():
        if not isinstance(atom, Quotient) or factor % atom.divisor:
            continue
        times = -factor // atom.divisor
        without = index - Index({atom: factor}) - atom.numerator * times
        if len(without.terms) + 1 < len(index.terms):
            return _with_remainders(without + Index({Remainder(atom.numerator, atom.divisor): times}))
    return index


def smallest_point(points: isl.BasicSet | isl.Set, variables: Sequence[Variable]) -> Point:
    """The lexicographic minimum of a non-empty set, or any point if there is none."""
    import islpy as isl

    try:
        least = within_budget(lambda: points.lexmin().sample_point())
    except (NotProved, isl.Error):  # past the budget, or the set is unbounded below
        return sample_point(points, variables)
    return sample_point(points, variables) if least.is_void() else _numbers(least, variables)


def sample_point(points: isl.BasicSet | isl.Set, variables: Sequence[Variable]) -> Point:
    return _numbers(within_budget(points.sample_point), variables)


def _numbers(point: isl.Point, variables: Sequence[Variable]) -> Point:
    import islpy as isl

    return {v: point.get_coordinate_val(isl.dim_type.set, at).to_python() for at, v in enumerate(variables)}
