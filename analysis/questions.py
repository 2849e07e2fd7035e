"""Questions about instances of the program, such as: do two of them touch one element, in this order?

A `Question` is stated once, in indices. isl reads it as linear constraints, and validation evaluates it at the point
that isl finds: a counterexample is confirmed by the question that led to it.
"""

from __future__ import annotations

from collections.abc import Collection, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TypeAlias

from xdsl.ir import BlockArgument, SSAValue

from weft.analysis.accesses import Access, Conditions, Context, Domain, is_fixed, is_symbol, range_of
from weft.analysis.index import Index
from weft.analysis.sets import Naming, Point, Row, System, Variable
from weft.analysis.validation import Instance, NotEvaluated, evaluated
from weft.dialects.tir import ForOp

Term: TypeAlias = tuple[Index, str]
"""An index, and the role of the instance at which it is taken."""


@dataclass(frozen=True)
class _Relation:
    """`left == right`, or `left + by <= right`."""

    left: Term
    right: Term
    by: int | None = None

    def holds(self, instances: Mapping[str, Instance]) -> bool:
        (left, one), (right, other) = self.left, self.right
        distance = instances[other].number(right) - instances[one].number(left)
        return distance == 0 if self.by is None else distance >= self.by


class Question(System):
    """Constraints on instances of the program, each of which has a *role*. A pair has roles "first" and "second".

    A value is one variable in each role. What is fixed in the function, and the values in `shared`, are the same in all
    roles; with `own`, so are all values that are not in it. `values` are numbers for symbols, and values in `opaque`
    any numbers, whatever computes them.
    """

    def __init__(
        self,
        shared: Iterable[SSAValue] = (),
        *,
        own: Container[SSAValue] | None = None,
        values: Mapping[SSAValue, int] | None = None,
        opaque: Collection[SSAValue] = (),
    ) -> None:
        super().__init__(values=values or {}, opaque=opaque)
        self._shared = frozenset(shared)
        self._own = own
        self._named: dict[tuple[str, SSAValue], Variable] = {}
        self._places: list[tuple[str, Access | Context | Domain]] = []
        self._relations: list[_Relation] = []

    def naming(self, role: str) -> Naming:
        """The variables of a role, which are declared with their ranges."""
        return partial(self._name, role)

    def _name(self, role: str, value: SSAValue) -> Variable:
        variable = self._named.get((role, value))
        if variable is None:
            is_same = is_fixed(value) if self._own is None else value not in self._own
            variable = value if is_same or value in self._shared else (role, value)
            self._named[role, value] = variable
            self.declare(variable, *range_of(value))
        return variable

    def _row(self, term: Term) -> Row:
        return self.row(term[0], self.naming(term[1]))

    def add(self, role: str, place: Access | Context | Domain) -> None:
        """An instance of a place: its loops are in their extents, and its conditions hold."""
        self._places.append((role, place))
        add_domain(self, place.loops, place.conditions, self.naming(role))

    def share(self, values: Iterable[SSAValue], *roles: str) -> None:
        """The values are the same in some roles."""
        for value in values:
            self.declare(value, *range_of(value))
            self._named.update({(role, value): value for role in roles})

    def add_value(self, role: str, value: SSAValue, extent: int | SSAValue | Index) -> None:
        """A value from 0 to its extent, besides those of loops."""
        end = extent if isinstance(extent, Index) else Index.of(extent)
        self.declare(self._name(role, value), 0, None)
        if end.is_constant:
            self._relations.append(_Relation((Index({}), role), (Index.of(value), role), 0))
            self._relations.append(_Relation((Index.of(value), role), (end, role), 1))
            self.declare(self._name(role, value), 0, end.constant - 1)
        else:
            self.order((Index.of(value), role), (end, role))

    def add_place(self, role: str, indices: Sequence[Index], free: Mapping[int, Index] | None = None) -> None:
        """The variables of `places` have the values of indices; in `free` dimensions, given with their extents, any."""
        for at, index in enumerate(indices):
            if free is not None and at in free:
                self.bound_place(role, at, free[at])
            else:
                self.bounds.setdefault(("place", at), (None, None))
                self.equal(Row({("place", at): 1}, 0), self._row((index, role)))

    def bound_place(self, role: str, at: int, extent: Index) -> None:
        """A dimension of a place lies in 0 .. extent-1."""
        self.declare(("place", at), 0, extent.constant - 1 if extent.is_constant else None)
        if not extent.is_constant:
            self.less(Row({("place", at): 1}, 0), self._row((extent, role)))

    def equate(self, left: Term, right: Term) -> None:
        """left == right."""
        self._relations.append(_Relation(left, right))
        self.equal(self._row(left), self._row(right))

    def order(self, left: Term, right: Term, by: int = 1) -> None:
        """left + by <= right."""
        self._relations.append(_Relation(left, right, by))
        self.less(self._row(left), self._row(right), by)

    def not_negative(self, term: Term) -> None:
        """term >= 0."""
        self._relations.append(_Relation((Index({}), term[1]), term, 0))
        self.positives.append(self._row(term))

    def same_element(
        self, one: str, indices: Sequence[Index] | None, other: str, others: Sequence[Index] | None
    ) -> None:
        """The instances of two roles touch one element. Without indices they touch any."""
        if indices is not None and others is not None:
            for left, right in zip(indices, others, strict=True):
                self.equate((left, one), (right, other))

    def same(self, loop: ForOp, other: ForOp | None = None) -> None:
        """Both instances of a pair are in the same iteration of `loop`, the second of `other` if that is given."""
        self.equate(*_iterations(loop, other))

    def earlier(self, loop: ForOp, other: ForOp | None = None) -> None:
        """The first instance is in an earlier iteration of `loop` than the second is of it, or of `other`."""
        self.order(*_iterations(loop, other))

    def later(self, loop: ForOp, other: ForOp | None = None) -> None:
        """The first instance is in a later iteration of `loop` than the second is of it, or of `other`."""
        first, second = _iterations(loop, other)
        self.order(second, first)

    def counterexample(self) -> Counterexample | None:
        """Instances of the program for which all holds, or None when there are none. Raises `NotProved`."""
        point = self.find_point()
        return None if point is None else Counterexample(self, point)

    def instance(self, role: str, point: Point) -> Instance:
        """The instance of a role at a point. Loops that the point does not give are in iteration 0."""
        given = symbols_in(point)
        for (of, value), variable in self._named.items():
            if of == role and isinstance(value, BlockArgument) and not is_symbol(value):
                given[value] = point.get(variable, 0)
        return Instance(given)

    def value(self, role: str, point: Point, value: SSAValue) -> int:
        """The number that a value of a role is at a point; 0 where nothing is known of it."""
        number = point.get(self._named.get((role, value), value))
        if number is not None:
            return number
        try:
            return self.instance(role, point).value(value)
        except NotEvaluated:
            return 0

    def holds(self, point: Point, otherwise: bool = False) -> bool:
        """Whether evaluation confirms all at a point; `otherwise` where some value is not evaluated."""

        def confirmed() -> bool:
            roles = dict.fromkeys([role for role, _ in self._named] + [role for role, _ in self._places])
            instances = {role: self.instance(role, point) for role in roles}
            return all(relation.holds(instances) for relation in self._relations) and all(
                instances[role].is_of(place) for role, place in self._places
            )

        return evaluated(confirmed, otherwise)


@dataclass(frozen=True)
class Counterexample:
    """A point at which the constraints of a question hold."""

    question: Question
    point: Point

    def value(self, role: str, value: SSAValue) -> int:
        """The number that a value of a role is."""
        return self.question.value(role, self.point, value)

    def named(self, role: str, values: Iterable[SSAValue]) -> list[tuple[str, int]]:
        """The numbers that values of a role are, with their names."""
        return [(value.name_hint or "?", self.value(role, value)) for value in values]

    def iteration(self, role: str, loops: Iterable[ForOp]) -> list[tuple[str, int]]:
        """The iteration of some loops that a role is in."""
        return self.named(role, [loop.induction_variable for loop in loops])

    def holds(self, otherwise: bool = False) -> bool:
        """Whether evaluating the program confirms it; `otherwise` where some value is not evaluated."""
        return self.question.holds(self.point, otherwise)


def point_text(values: Iterable[tuple[str, int]]) -> str:
    """`(i=0, k=1)`."""
    return f"({', '.join(f'{name}={value}' for name, value in values)})"


def _iterations(loop: ForOp, other: ForOp | None) -> tuple[Term, Term]:
    return (Index.of(loop.induction_variable), "first"), (Index.of((other or loop).induction_variable), "second")


def symbols_in(point: Point) -> dict[SSAValue, int]:
    """The numbers that a point gives to symbols. Values that are computed are left out: they are computed again."""
    return {key: number for key, number in point.items() if isinstance(key, SSAValue) and is_symbol(key)}


def add_domain(system: System, loops: Sequence[ForOp], conditions: Conditions, naming: Naming) -> None:
    """Loop values lie in their extents, and the conditions hold."""
    for loop in loops:
        variable = naming(loop.induction_variable)
        if isinstance(loop.extent, int):
            system.declare(variable, 0, loop.extent - 1)
        else:
            system.less(Row({variable: 1}, 0), system.row(Index.of(loop.extent), naming))
    for index in conditions.positives:
        system.positives.append(system.row(index, naming))
    for index in conditions.zeros:
        system.zeros.append(system.row(index, naming))


def places(rank: int) -> list[Variable]:
    """The variables of a place: the iterators of a block, or the indices of an element."""
    return [("place", at) for at in range(rank)]


def points_that_agree(
    values: Mapping[SSAValue, int | SSAValue | Index],
    indices: Sequence[Index],
    *,
    own: Container[SSAValue] | None = None,
) -> Counterexample | None:
    """Two different points of a box, given by values and their extents, at which `indices` are equal, in roles "first"
    and "second"; None when there are none. Raises `NotProved`."""
    known: list[Index] = []
    for value in values:
        question = Question(own=own)
        for other, extent in values.items():
            for role in ("first", "second"):
                question.add_value(role, other, extent)
        question.same_element("first", [*indices, *known], "second", [*indices, *known])
        question.order((Index.of(value), "first"), (Index.of(value), "second"))
        found = question.counterexample()
        if found is not None:
            return found
        known.append(Index.of(value))
    return None


def instances_where(at: Access | Context, *positives: Index) -> Question:
    """The instances of an access, or of a place of the program, in which no index of `positives` is negative.

    Their role is ""; each value is a variable itself."""
    question = Question(own=())
    question.add("", at)
    for index in positives:
        question.not_negative((index, ""))
    return question
