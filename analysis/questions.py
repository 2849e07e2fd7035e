"""Questions about instances of the program, such as whether two of them touch one element, in this order.

isl solves a `Question` as linear constraints; validation evaluates the IR at the point found (`Instance`), without
integer sets or the index algebra (docs/decisions/0008-counterexamples-and-fuzzing.md). A value that cannot be
evaluated refutes nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TypeAlias

from xdsl.dialects import affine, arith, func, memref, scf
from xdsl.dialects.builtin import DYNAMIC_INDEX, IntegerAttr, MemRefType
from xdsl.ir import BlockArgument, Operation, OpResult, SSAValue

from weft.analysis.accesses import Access, Conditions, Context, Domain, is_fixed, is_symbol
from weft.analysis.index import Index
from weft.analysis.sets import Naming, Point, Row, System, Variable
from weft.dialects.integer_arith import INTEGER_OPS, SIGNED_PREDICATES
from weft.dialects.intervals import Interval
from weft.dialects.low_access import AccessPtrOp
from weft.dialects.tir import BlockOp, ForOp, InitOp
from weft.dialects.tir_kinds import IterKind


class NotEvaluated(Exception):
    """A point does not determine a value: a loaded one, or the result of an unsupported op."""


def evaluated(question: Callable[[], bool], otherwise: bool = False) -> bool:
    try:
        return question()
    except NotEvaluated:
        return otherwise


@dataclass(frozen=True)
class Instance:
    """A point of the program: values of loop variables, symbols and, if needed, block iterators. Methods raise
    `NotEvaluated`."""

    given: Mapping[SSAValue, int]

    def value(self, value: SSAValue) -> int:
        """Evaluate an index or `i1` value."""
        number = self.given.get(value)
        if number is not None:
            return number
        if isinstance(value, BlockArgument):
            return self._argument(value)
        if isinstance(value, OpResult):
            return self._result(value.op)
        raise NotEvaluated

    def number(self, index: int | SSAValue | Index) -> int:
        if isinstance(index, Index):
            return index.evaluate(self.value)
        return index if isinstance(index, int) else self.value(index)

    def _argument(self, value: BlockArgument) -> int:
        """An iterator has the value of its binding, an unconstrained parameter 1."""
        owner = value.block.parent_op()
        if isinstance(owner, BlockOp):
            operands = [self.value(operand) for operand in owner.binding_operands]
            return owner.bindings.data.eval(operands, [])[value.index]
        if isinstance(owner, func.FuncOp) and not isinstance(value.type, MemRefType):
            return 1
        raise NotEvaluated

    def _result(self, op: Operation) -> int:
        if isinstance(op, arith.ConstantOp) and isinstance(op.value, IntegerAttr):
            return op.value.value.data
        if isinstance(op, affine.ApplyOp):
            map_, operands = op.map.data, [self.value(operand) for operand in op.mapOperands]
            return map_.eval(operands[: map_.num_dims], operands[map_.num_dims :])[0]
        if isinstance(op, memref.DimOp):
            return self._dimension(op)
        if isinstance(op, arith.SelectOp):
            return self.value(op.lhs if self.value(op.cond) else op.rhs)
        if isinstance(op, arith.IndexCastOp):
            return self.value(op.input)
        of_two = INTEGER_OPS.get(type(op))
        if isinstance(op, arith.CmpiOp):
            of_two = SIGNED_PREDICATES.get(op.predicate.value.data)
        if of_two is None:
            raise NotEvaluated
        try:
            return int(of_two(self.value(op.operands[0]), self.value(op.operands[1])))
        except ArithmeticError:
            raise NotEvaluated from None

    def _dimension(self, op: memref.DimOp) -> int:
        """The extent; 1 if unconstrained."""
        at, type_ = self.value(op.index), op.source.type
        if not isinstance(type_, MemRefType):
            raise NotEvaluated
        shape = type_.get_shape()
        if shape[at] != DYNAMIC_INDEX:
            return shape[at]
        source = op.source.owner
        if isinstance(source, memref.AllocOp):
            return self.value(source.dynamic_sizes[sum(extent == DYNAMIC_INDEX for extent in shape[:at])])
        return 1

    def runs(self, op: Operation) -> bool:
        """Whether `op` executes, within the block whose iterators are given or the function."""
        child, parent = op, op.parent_op()
        while parent is not None and not isinstance(parent, func.FuncOp):
            if isinstance(parent, ForOp):
                inside = 0 <= self.value(parent.induction_variable) < self.number(parent.extent)
            elif isinstance(parent, BlockOp):
                if len(parent.iter_vars) and all(variable in self.given for variable in parent.iter_vars):
                    return True
                inside = self._block_runs(parent)
            elif isinstance(parent, InitOp):
                inside = self._is_first_step(parent)
            elif isinstance(parent, scf.IfOp):
                inside = bool(self.value(parent.cond)) == (child.parent_region() is parent.true_region)
            else:
                raise NotEvaluated
            if not inside:
                return False
            child, parent = parent, parent.parent_op()
        return parent is not None

    def _block_runs(self, block: BlockOp) -> bool:
        operands = [self.value(operand) for operand in block.guard_operands]
        return all(left.eval(operands, []) < right.eval(operands, []) for left, right in block.guards)

    def _is_first_step(self, init: InitOp) -> bool:
        block = init.parent_op()
        if not isinstance(block, BlockOp):
            raise NotEvaluated
        steps = zip(block.iter_vars, block.kinds, strict=True)
        return all(self.value(variable) == 0 for variable, kind in steps if kind is IterKind.REDUCE)

    def element(self, access: Access) -> tuple[int, ...]:
        op = access.op
        if isinstance(op, memref.LoadOp | memref.StoreOp):
            return tuple(self.value(index) for index in op.indices)
        if isinstance(op, AccessPtrOp) and access.indices is not None:
            box = [loop for loop in access.loops if loop.parent is None]
            if all(0 <= self.value(loop.induction_variable) < self.number(loop.extent) for loop in box):
                steps = [self.value(loop.induction_variable) for loop in box]
                return tuple(self.value(i) + step for i, step in zip(op.indices, steps, strict=True))
        raise NotEvaluated

    def is_of(self, place: Access | Context | Domain) -> bool:
        """Whether the access executes and touches the element of its indices, or the conditions of loops and guards
        hold."""
        if isinstance(place, Access):
            if place.indices is None:
                raise NotEvaluated
            return self.element(place) == tuple(map(self.number, place.indices)) and self.runs(place.op)
        loops, conditions = place.loops, place.conditions
        return (
            all(0 <= self.value(loop.induction_variable) < self.number(loop.extent) for loop in loops)
            and all(self.number(index) >= 0 for index in conditions.inequalities)
            and all(self.number(index) == 0 for index in conditions.equalities)
        )


@dataclass(frozen=True)
class Missed:
    """An iterator point or element that no instance of some domains reaches."""

    place: tuple[int, ...]
    symbols: Mapping[SSAValue, int]
    domains: tuple[Domain, ...]

    def holds(self, otherwise: bool = False) -> bool:
        """Whether enumeration of loop points confirms it; `otherwise` past the limit."""
        return all(evaluated(lambda domain=domain: self._is_missed_by(domain), otherwise) for domain in self.domains)

    def _is_missed_by(self, domain: Domain) -> bool:
        instance = Instance(self.symbols)
        inside = all(0 <= at < instance.number(extent) for at, extent in zip(self.place, domain.extents, strict=False))
        loops = [*((loop.induction_variable, loop.extent) for loop in domain.loops), *domain.free_loops]
        return inside and not _PointSearch(loops, domain.bindings, domain.conditions, self.place).finds(self.symbols)


_TRIES = 4000
"""Partial loop points that one search evaluates."""


@dataclass
class _PointSearch:
    """Searches for a loop point with the wanted conditions and bindings, from the outermost loop inwards, pruned by
    ranges. Uses no integer sets."""

    loops: Sequence[tuple[SSAValue, int | SSAValue | Index]]
    bindings: Sequence[Index]
    conditions: Conditions
    wanted: Sequence[int]
    left: int = field(default=_TRIES)

    def finds(self, symbols: Mapping[SSAValue, int]) -> bool:
        """Raises `NotEvaluated` past the limit of points."""
        return self._below(0, dict(symbols))

    def _below(self, at: int, given: dict[SSAValue, int]) -> bool:
        self.left -= 1
        if self.left < 0:
            raise NotEvaluated
        instance = Instance(given)
        if not self._may_be(at, instance):
            return False
        if at == len(self.loops):
            return True
        value, extent = self.loops[at]
        return any(self._below(at + 1, {**given, value: number}) for number in range(instance.number(extent)))

    def _may_be(self, at: int, instance: Instance) -> bool:
        extents = dict(self.loops[at:])

        def range_of(value: SSAValue) -> Interval:
            extent = extents.get(value)
            try:
                number = instance.number(value if extent is None else extent)
            except NotEvaluated:
                return (None, None) if extent is None else (0, None)
            return (number, number) if extent is None else (0, number - 1)

        rooms = [index - number for index, number in zip(self.bindings, self.wanted, strict=True)]
        for index in (*rooms, *self.conditions.equalities):
            low, high = index.range(range_of)
            if (low is not None and low > 0) or (high is not None and high < 0):
                return False
        highs = (index.range(range_of)[1] for index in self.conditions.inequalities)
        return all(high is None or high >= 0 for high in highs)


Term: TypeAlias = tuple[Index, str]
"""An index expression, and the role of the instance at which it is evaluated."""


@dataclass(frozen=True)
class _Relation:
    left: Term
    right: Term
    by: int | None = None

    def holds(self, instances: Mapping[str, Instance]) -> bool:
        (left, one), (right, other) = self.left, self.right
        distance = instances[other].number(right) - instances[one].number(left)
        return distance == 0 if self.by is None else distance >= self.by


class Question(System):
    """Constraints on instances of the program, each with a *role*: of a pair, "first" and "second".

    A value is one variable per role, except values that are fixed in the function, those in `shared`, and, if given,
    those not in `own`. `values` are concrete values of symbols; values in `opaque` are unconstrained, even if
    computed.
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
        return partial(self._name, role)

    def _name(self, role: str, value: SSAValue) -> Variable:
        variable = self._named.get((role, value))
        if variable is None:
            is_same = is_fixed(value) if self._own is None else value not in self._own
            variable = value if is_same or value in self._shared else (role, value)
            self._named[role, value] = variable
            self.declare(variable, *self.ranges(value))
        return variable

    def _row(self, term: Term) -> Row:
        return self.row(term[0], self.naming(term[1]))

    def add(self, role: str, place: Access | Context | Domain) -> None:
        """Add an instance: its loops are within their extents, and its conditions hold."""
        self._places.append((role, place))
        add_domain(self, place.loops, place.conditions, self.naming(role))

    def share(self, values: Iterable[SSAValue], *roles: str) -> None:
        for value in values:
            self.declare(value, *self.ranges(value))
            self._named.update({(role, value): value for role in roles})

    def add_value(self, role: str, value: SSAValue, extent: int | SSAValue | Index) -> None:
        """Add a value in 0 .. extent-1 that is not a loop variable of a place."""
        end = extent if isinstance(extent, Index) else Index.of(extent)
        self.declare(self._name(role, value), 0, None)
        if end.is_constant:
            self._relations.append(_Relation((Index({}), role), (Index.of(value), role), 0))
            self._relations.append(_Relation((Index.of(value), role), (end, role), 1))
            self.declare(self._name(role, value), 0, end.constant - 1)
        else:
            self.order((Index.of(value), role), (end, role))

    def add_place(self, role: str, indices: Sequence[Index], free: Mapping[int, Index] | None = None) -> None:
        """Equate `places` with indices, bounded only by the given extents in `free` dimensions."""
        for at, index in enumerate(indices):
            if free is not None and at in free:
                self.bound_place(role, at, free[at])
            else:
                self.bounds.setdefault(("place", at), (None, None))
                self.equal(Row({("place", at): 1}, 0), self._row((index, role)))

    def bound_place(self, role: str, at: int, extent: Index) -> None:
        self.declare(("place", at), 0, extent.constant - 1 if extent.is_constant else None)
        if not extent.is_constant:
            self.less(Row({("place", at): 1}, 0), self._row((extent, role)))

    def equate(self, left: Term, right: Term) -> None:
        self._relations.append(_Relation(left, right))
        self.equal(self._row(left), self._row(right))

    def order(self, left: Term, right: Term, by: int = 1) -> None:
        self._relations.append(_Relation(left, right, by))
        self.less(self._row(left), self._row(right), by)

    def not_negative(self, term: Term) -> None:
        self.order((Index({}), term[1]), term, 0)

    def same_element(
        self, one: str, indices: Sequence[Index] | None, other: str, others: Sequence[Index] | None
    ) -> None:
        """Two roles touch one element; a missing index list means any."""
        if indices is not None and others is not None:
            for left, right in zip(indices, others, strict=True):
                self.equate((left, one), (right, other))

    def same(self, loop: ForOp, other: ForOp | None = None) -> None:
        """Put a pair in the same iteration of `loop`, the second of `other` if given."""
        self.equate(*_iterations(loop, other))

    def earlier(self, loop: ForOp, other: ForOp | None = None) -> None:
        """Put the first in an earlier iteration of `loop` than the second, which is of `other` if given."""
        self.order(*_iterations(loop, other))

    def later(self, loop: ForOp, other: ForOp | None = None) -> None:
        first, second = _iterations(loop, other)
        self.order(second, first)

    def counterexample(self) -> Counterexample | None:
        """Instances that satisfy all constraints. Raises `NotProved`."""
        point = self.find_point()
        return None if point is None else Counterexample(self, point)

    def instance(self, role: str, point: Point) -> Instance:
        """Loops without a value at the point are in iteration 0."""
        given = symbols_in(point)
        for (of, value), variable in self._named.items():
            if of == role and isinstance(value, BlockArgument) and not is_symbol(value):
                given[value] = point.get(variable, 0)
        return Instance(given)

    def value(self, role: str, point: Point, value: SSAValue) -> int:
        """The number of a value; 0 if unknown."""
        number = point.get(self._named.get((role, value), value))
        if number is not None:
            return number
        try:
            return self.instance(role, point).value(value)
        except NotEvaluated:
            return 0

    def holds(self, point: Point, otherwise: bool = False) -> bool:
        """Whether evaluation confirms all constraints; `otherwise` if a value cannot be evaluated."""

        def confirmed() -> bool:
            roles = dict.fromkeys([role for role, _ in self._named] + [role for role, _ in self._places])
            instances = {role: self.instance(role, point) for role in roles}
            return all(relation.holds(instances) for relation in self._relations) and all(
                instances[role].is_of(place) for role, place in self._places
            )

        return evaluated(confirmed, otherwise)


@dataclass(frozen=True)
class Counterexample:
    question: Question
    point: Point

    def value(self, role: str, value: SSAValue) -> int:
        return self.question.value(role, self.point, value)

    def named(self, role: str, values: Iterable[SSAValue]) -> list[tuple[str, int]]:
        return [(value.name_hint or "?", self.value(role, value)) for value in values]

    def iteration(self, role: str, loops: Iterable[ForOp]) -> list[tuple[str, int]]:
        return self.named(role, [loop.induction_variable for loop in loops])

    def holds(self, otherwise: bool = False) -> bool:
        return self.question.holds(self.point, otherwise)


def point_text(values: Iterable[tuple[str, int]]) -> str:
    return f"({', '.join(f'{name}={value}' for name, value in values)})"


def _iterations(loop: ForOp, other: ForOp | None) -> tuple[Term, Term]:
    return (Index.of(loop.induction_variable), "first"), (Index.of((other or loop).induction_variable), "second")


def symbols_in(point: Point) -> dict[SSAValue, int]:
    """Values of symbols; computed values are evaluated again."""
    return {key: number for key, number in point.items() if isinstance(key, SSAValue) and is_symbol(key)}


def add_domain(system: System, loops: Sequence[ForOp], conditions: Conditions, naming: Naming) -> None:
    for loop in loops:
        variable = naming(loop.induction_variable)
        if isinstance(loop.extent, int):
            system.declare(variable, 0, loop.extent - 1)
        else:
            system.less(Row({variable: 1}, 0), system.row(Index.of(loop.extent), naming))
    for index in conditions.inequalities:
        system.inequalities.append(system.row(index, naming))
    for index in conditions.equalities:
        system.equalities.append(system.row(index, naming))


def places(rank: int) -> list[Variable]:
    """Variables for iterators of a block, or indices of an element."""
    return [("place", at) for at in range(rank)]


def points_that_agree(
    values: Mapping[SSAValue, int | SSAValue | Index],
    indices: Sequence[Index],
    others: Sequence[Index] | None = None,
    *,
    own: Container[SSAValue] | None = None,
) -> Counterexample | None:
    """Different points of a box (value -> extent), "first" and "second", at which all `indices` are equal, or those
    of the first equal the `others` of the second. Raises `NotProved`."""
    orders = (("first", "second"),) if others is None else (("first", "second"), ("second", "first"))
    known: list[Index] = []
    for value in values:
        for smaller, larger in orders:
            question = Question(own=own)
            for other, extent in values.items():
                for role in ("first", "second"):
                    question.add_value(role, other, extent)
            question.same_element("first", [*indices, *known], "second", [*(others or indices), *known])
            question.order((Index.of(value), smaller), (Index.of(value), larger))
            found = question.counterexample()
            if found is not None:
                return found
        known.append(Index.of(value))
    return None


def instances_where(at: Access | Context, *inequalities: Index) -> Question:
    """Instances, in role "", at which no index of `inequalities` is negative. Each value is a separate variable."""
    question = Question(own=())
    question.add("", at)
    for index in inequalities:
        question.not_negative((index, ""))
    return question
