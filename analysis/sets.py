"""Integer-set questions: is there a point that satisfies these constraints on index expressions?

The one module that talks to isl. A `System` is a conjunction of linear constraints over *variables* (any hashable key:
a loop value, a loop value of the second instance, a symbol). Quotients and remainders become bounded variables of their
own, shared between equal expressions. Whether a point exists is decided exactly within a budget of isl operations
(Verdoolaege, "isl: An Integer Set Library for the Polyhedral Model", ICMS 2010).
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from math import gcd
from typing import TYPE_CHECKING, TypeAlias, TypeVar

from xdsl.ir import SSAValue

from weft.analysis.index import Index, Quotient, Remainder
from weft.dialects.index_map import Interval

if TYPE_CHECKING:
    import islpy as isl

BUDGET = 60_000
"""isl operations allowed for one question: about 50 ms. Beyond it the answer is "not proved"."""

_T = TypeVar("_T")
Variable: TypeAlias = Hashable
Naming: TypeAlias = Callable[[SSAValue], Variable]
"""Which variable a value is; two instances of one loop are two variables, or one where they are equal."""
Point: TypeAlias = Mapping[Variable, int]


class NotProved(Exception):
    """The question could not be decided within the budget."""


@dataclass
class Row:
    """`constant + sum(coefficient * variable)`, to be zero or not negative."""

    terms: dict[Variable, int]
    constant: int


@dataclass
class System:
    """A conjunction of constraints, and the ranges that variables are known to lie in."""

    bounds: dict[Variable, Interval] = field(default_factory=dict[Variable, Interval])
    zeros: list[Row] = field(default_factory=list[Row])
    positives: list[Row] = field(default_factory=list[Row])
    _digits: dict[tuple[Variable, ...], Row] = field(default_factory=dict[tuple[Variable, ...], Row])

    def declare(self, variable: Variable, low: int | None, high: int | None) -> None:
        """`low <= variable <= high`."""
        old = self.bounds.get(variable, (None, None))
        self.bounds[variable] = (_tighter(old[0], low, max), _tighter(old[1], high, min))

    def row(self, index: Index, naming: Naming) -> Row:
        """`index` as a linear row, with bounded variables for its quotients and remainders."""
        result = Row({}, index.constant)
        for atom, factor in index.terms.items():
            if isinstance(atom, SSAValue):
                variable = naming(atom)
                self.bounds.setdefault(variable, (None, None))
                _add(result, Row({variable: 1}, 0), factor)
            else:
                _add(result, self._quotient_row(atom, naming), factor)
        return result

    def _quotient_row(self, atom: Quotient | Remainder, naming: Naming) -> Row:
        """x = c*q + r with 0 <= r < c; the quotient is the row q, the remainder the row x - c*q."""
        numerator = self.row(atom.numerator, naming)
        key: tuple[Variable, ...] = (
            "quotient",
            atom.divisor,
            numerator.constant,
            frozenset(numerator.terms.items()),
        )
        q = self._digits.get(key)
        if q is None:
            q = self._digits[key] = Row({key: 1}, 0)
            low, high = self._range(numerator)
            self.declare(
                key,
                None if low is None else low // atom.divisor,
                None if high is None else high // atom.divisor,
            )
            rest = Row(dict(numerator.terms), numerator.constant)
            _add(rest, q, -atom.divisor)
            self.positives.append(rest)
            above = Row({}, atom.divisor - 1)
            _add(above, rest, -1)
            self.positives.append(above)
        if isinstance(atom, Quotient):
            return q
        remainder = Row(dict(numerator.terms), numerator.constant)
        _add(remainder, q, -atom.divisor)
        return remainder

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
        """left == right."""
        difference = Row(dict(left.terms), left.constant)
        _add(difference, right, -1)
        self.zeros.append(difference)

    def less(self, left: Row, right: Row, by: int = 1) -> None:
        """left + by <= right."""
        difference = Row(dict(right.terms), right.constant - by)
        _add(difference, left, -1)
        self.positives.append(difference)

    def find_point(self) -> Point | None:
        """A point that satisfies every constraint, or None when there is none; small values are preferred.

        Raises `NotProved` when the budget of isl operations is spent.
        """
        if self._obviously_empty():
            return None
        variables = self._variables()
        basic = self._basic_set(variables)
        return _sample(basic, variables)

    def is_empty(self) -> bool:
        """Whether no point satisfies the constraints. Raises `NotProved` past the budget."""
        if self._obviously_empty():
            return True
        return within_budget(self._basic_set(self._variables()).is_empty)

    def _obviously_empty(self) -> bool:
        """Whether intervals alone show that there is no point (no isl involved)."""
        if any(low is not None and high is not None and low > high for low, high in self.bounds.values()):
            return True
        for row in self.zeros:
            low, high = self._range(row)
            if (low is not None and low > 0) or (high is not None and high < 0):
                return True
        for row in self.positives:
            high = self._range(row)[1]
            if high is not None and high < 0:
                return True
        return self._forced_equalities_contradict()

    def _forced_equalities_contradict(self) -> bool:
        """Whether some row fails once variables that equations force to be equal are merged.

        The common case of two instances on one element: equal indices force equal digits, so that a loop that is said
        to be earlier in one instance is not.
        """
        merged: dict[Variable, Variable] = {}
        for row in self.zeros:
            for kept, dropped in self._digits_of_difference(row):
                merged.setdefault(dropped, kept)
        if not merged:
            return False
        for row in self.positives:
            if not any(variable in merged for variable in row.terms):
                continue
            folded = Row({}, row.constant)
            for variable, factor in row.terms.items():
                _add(folded, Row({merged.get(variable, variable): 1}, 0), factor)
            high = self._range(folded)[1]
            if high is not None and high < 0:
                return True
        return False

    def _digits_of_difference(self, row: Row) -> list[tuple[Variable, Variable]]:
        """Pairs (a, b) that `sum(c * (a - b)) == 0` forces to be equal: each weight c is more than what all smaller
        ones can make up for, as the digits of a number."""
        if row.constant:
            return []
        by_weight: dict[int, list[Variable]] = {}
        for variable, factor in row.terms.items():
            by_weight.setdefault(abs(factor), []).append(variable)
        pairs: list[tuple[Variable, Variable]] = []
        reach: int | None = 0
        for weight in sorted(by_weight):
            both = by_weight[weight]
            if len(both) != 2 or row.terms[both[0]] != -row.terms[both[1]] or reach is None or weight <= reach:
                return []
            pairs.append((both[0], both[1]))
            (low, high), (other_low, other_high) = (self.bounds.get(v, (None, None)) for v in both)
            if low is None or high is None or other_low is None or other_high is None:
                reach = None
            else:
                reach += weight * max(high - other_low, other_high - low)
        return pairs

    def _variables(self) -> list[Variable]:
        seen: dict[Variable, None] = {}
        for row in (*self.zeros, *self.positives):
            for variable in row.terms:
                seen.setdefault(variable)
        return list(seen)

    def _basic_set(self, variables: list[Variable]) -> isl.BasicSet:
        position = {variable: at for at, variable in enumerate(variables)}
        rows = list(self.positives)
        for variable in variables:
            low, high = self.bounds.get(variable, (None, None))
            if low is not None:
                rows.append(Row({variable: 1}, -low))
            if high is not None:
                rows.append(Row({variable: -1}, high))
        return _from_rows(len(variables), position, self.zeros, rows)

    def projection(self, keep: list[Variable]) -> isl.Set:
        """The set of values that `keep` takes over all points, in that order of dimensions.

        Raises `NotProved` past the budget.
        """
        import islpy as isl

        variables = [*keep, *(v for v in self._variables() if v not in keep)]
        points = isl.Set.from_basic_set(self._basic_set(variables))
        return within_budget(lambda: points.project_out(isl.dim_type.set, len(keep), len(variables) - len(keep)))


def _tighter(old: int | None, new: int | None, pick: Callable[[int, int], int]) -> int | None:
    if old is None or new is None:
        return new if old is None else old
    return pick(old, new)


def _add(row: Row, other: Row, factor: int) -> None:
    row.constant += other.constant * factor
    for variable, f in other.terms.items():
        total = row.terms.get(variable, 0) + f * factor
        if total:
            row.terms[variable] = total
        else:
            row.terms.pop(variable, None)


def _from_rows(dims: int, position: Mapping[Variable, int], zeros: list[Row], positives: list[Row]) -> isl.BasicSet:
    import islpy as isl

    context = isl.DEFAULT_CONTEXT

    def matrix(rows: list[Row], are_zero: bool) -> isl.Mat:
        result = isl.Mat.alloc(context, 0, dims + 1).add_zero_rows(len(rows))
        for at, row in enumerate(rows):
            common = _common_factor(row, are_zero)
            for variable, factor in row.terms.items():
                result = result.set_element_val(at, position[variable], factor // common)
            if row.constant:
                result = result.set_element_val(at, dims, row.constant // common)
        return result

    kind = isl.dim_type
    space = isl.Space.set_alloc(context, 0, dims)
    return isl.BasicSet.from_constraint_matrices(
        space, matrix(zeros, True), matrix(positives, False), kind.set, kind.div, kind.param, kind.cst
    )


def _common_factor(row: Row, is_zero: bool) -> int:
    """What every coefficient of a row can be divided by, the constant rounded down; 1 when a zero row would change.

    isl expects rows without common factors: its `lexmin` may find a set with them empty that is not.
    """
    common = gcd(*row.terms.values())
    return 1 if common == 0 or (is_zero and row.constant % common) else common


def within_budget(question: Callable[[], _T]) -> _T:
    """Run `question` on isl with the budget; raises `NotProved` when it is spent."""
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


def _sample(basic: isl.BasicSet, variables: list[Variable]) -> Point | None:
    import islpy as isl

    if within_budget(basic.is_empty):
        return None
    point = _smallest_point(basic) or within_budget(basic.sample_point)
    return {v: point.get_coordinate_val(isl.dim_type.set, at).to_python() for at, v in enumerate(variables)}


def _smallest_point(basic: isl.BasicSet) -> isl.Point | None:
    """The lexicographically smallest point, when it can be found."""
    import islpy as isl

    try:
        point = within_budget(lambda: basic.lexmin().sample_point())
    except NotProved:
        return None
    except isl.Error:  # the set is unbounded below
        return None
    return None if point.is_void() else point


def sample_point(points: isl.Set, variables: Sequence[Variable]) -> Point:
    """Some point of a set that is not empty, by variable."""
    import islpy as isl

    point = within_budget(points.sample_point)
    return {v: point.get_coordinate_val(isl.dim_type.set, at).to_python() for at, v in enumerate(variables)}
