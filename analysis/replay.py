"""Validates counterexamples by evaluating the IR at concrete iterations.

A refusal names concrete iterations. Sets found them; here the index operations of the IR are carried out with these
numbers, without sets and without the index algebra, to see whether both instances run and touch what is claimed. What
cannot be tried out refutes nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, TypeAlias

from xdsl.dialects import affine, arith, func, memref, scf
from xdsl.dialects.builtin import DYNAMIC_INDEX, IntegerAttr, MemRefType
from xdsl.ir import BlockArgument, Operation, OpResult, SSAValue

from weft.analysis.accesses import Access, is_symbol
from weft.analysis.index import Index, Quotient
from weft.dialects.effects import underlying
from weft.dialects.low_access import AccessPtrOp
from weft.dialects.tir import BlockOp, ForOp, InitOp
from weft.dialects.tir_kinds import IterKind

if TYPE_CHECKING:
    from weft.analysis.coverage import Domain
    from weft.analysis.sets import Point


class NotTried(Exception):
    """Something that the point does not tell: a loaded value, or an operation that is not carried out here."""


class Order(Protocol):
    """How two instances lie to each other: constraints to some, claims to be checked to others."""

    def same(self, loop: ForOp, other: ForOp | None = None) -> None:
        """The first is in the iteration of `loop` that the second is in of `other`, or of the same loop."""
        ...

    def earlier(self, loop: ForOp, other: ForOp | None = None) -> None:
        """The first is in an earlier iteration of `loop`."""
        ...

    def later(self, loop: ForOp, other: ForOp | None = None) -> None:
        """The first is in a later iteration of `loop`."""
        ...


@dataclass(frozen=True)
class Instance:
    """A point of the program: numbers for loop values, for block iterators if need be, and for symbols."""

    given: Mapping[SSAValue, int]

    def value(self, value: SSAValue) -> int:
        """The number that an index or `i1` value is. Raises `NotTried`."""
        number = self.given.get(value)
        if number is not None:
            return number
        if isinstance(value, BlockArgument):
            return self._argument(value)
        if isinstance(value, OpResult):
            return self._result(value.op)
        raise NotTried

    def number(self, index: Index) -> int:
        """The number that an index expression is. Raises `NotTried`."""
        total = index.constant
        for atom, factor in index.terms.items():
            if isinstance(atom, SSAValue):
                total += factor * self.value(atom)
            else:
                whole = self.number(atom.numerator)
                total += factor * (whole // atom.divisor if isinstance(atom, Quotient) else whole % atom.divisor)
        return total

    def _argument(self, value: BlockArgument) -> int:
        """An iterator is what its binding gives; a parameter of the function that nothing is said of may be 1."""
        owner = value.block.parent_op()
        if isinstance(owner, BlockOp):
            operands = [self.value(operand) for operand in owner.binding_operands]
            return owner.bindings.data.eval(operands, [])[value.index]
        if isinstance(owner, func.FuncOp) and not isinstance(value.type, MemRefType):
            return 1
        raise NotTried

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
        if isinstance(op, arith.CmpiOp):
            return int(self._compared(op))
        if (carried_out := _BINARY.get(type(op))) is not None:
            return carried_out(self.value(op.operands[0]), self.value(op.operands[1]))
        raise NotTried

    def _dimension(self, op: memref.DimOp) -> int:
        """An extent that no one gives is 1, if it is a parameter's: constraints would have given it."""
        at, type_ = self.value(op.index), op.source.type
        if not isinstance(type_, MemRefType):
            raise NotTried
        shape = type_.get_shape()
        if shape[at] != DYNAMIC_INDEX:
            return shape[at]
        source = op.source.owner
        if isinstance(source, memref.AllocOp):
            return self.value(source.dynamic_sizes[sum(extent == DYNAMIC_INDEX for extent in shape[:at])])
        return 1

    def _compared(self, op: arith.CmpiOp) -> bool:
        left, right = self.value(op.lhs), self.value(op.rhs)
        outcomes = (left == right, left != right, left < right, left <= right, left > right, left >= right)
        predicate = op.predicate.value.data
        if predicate < len(outcomes):
            return outcomes[predicate]
        raise NotTried  # unsigned

    def runs(self, op: Operation) -> bool:
        """Whether `op` is carried out at this point. Raises `NotTried`."""
        child, parent = op, op.parent_op()
        while parent is not None and not isinstance(parent, func.FuncOp):
            if isinstance(parent, ForOp):
                inside = 0 <= self.value(parent.induction_variable) < self.extent(parent.extent)
            elif isinstance(parent, BlockOp):
                inside = self._block_runs(parent)
            elif isinstance(parent, InitOp):
                inside = self._first_step(parent)
            elif isinstance(parent, scf.IfOp):
                inside = bool(self.value(parent.cond)) == (child.parent_region() is parent.true_region)
            else:
                raise NotTried
            if not inside:
                return False
            child, parent = parent, parent.parent_op()
        return parent is not None

    def extent(self, extent: int | SSAValue | Index) -> int:
        """The number that an extent is. Raises `NotTried`."""
        if isinstance(extent, Index):
            return self.number(extent)
        return extent if isinstance(extent, int) else self.value(extent)

    def _block_runs(self, block: BlockOp) -> bool:
        operands = [self.value(operand) for operand in block.guard_operands]
        return all(left.eval(operands, []) < right.eval(operands, []) for left, right in block.guards)

    def _first_step(self, init: InitOp) -> bool:
        block = init.parent_op()
        if not isinstance(block, BlockOp):
            raise NotTried
        steps = zip(block.iter_vars, block.kinds, strict=True)
        return all(self.value(variable) == 0 for variable, kind in steps if kind is IterKind.REDUCE)

    def element(self, access: Access) -> tuple[SSAValue, tuple[int, ...]]:
        """The buffer and the element of it that an access touches. Raises `NotTried`."""
        op = access.op
        if isinstance(op, memref.LoadOp | memref.StoreOp):
            return underlying(op.memref), tuple(self.value(index) for index in op.indices)
        if isinstance(op, AccessPtrOp) and access.indices is not None:
            box = [loop for loop in access.loops if loop.parent is None]
            if all(0 <= self.value(loop.induction_variable) < self.extent(loop.extent) for loop in box):
                steps = [self.value(loop.induction_variable) for loop in box]
                return op.buffer, tuple(self.value(i) + step for i, step in zip(op.indices, steps, strict=True))
        raise NotTried


def _quotient(left: int, right: int) -> int:
    """Truncated, as `arith.divsi`."""
    if right == 0:
        raise NotTried
    return abs(left) // abs(right) * (1 if (left < 0) == (right < 0) else -1)


def _floor(left: int, right: int) -> int:
    if right == 0:
        raise NotTried
    return left // right


_BINARY: dict[type[Operation], Callable[[int, int], int]] = {
    arith.AddiOp: lambda a, b: a + b,
    arith.SubiOp: lambda a, b: a - b,
    arith.MuliOp: lambda a, b: a * b,
    arith.DivSIOp: _quotient,
    arith.RemSIOp: lambda a, b: a - b * _quotient(a, b),
    arith.FloorDivSIOp: _floor,
    arith.CeilDivSIOp: lambda a, b: -_floor(-a, b),
    arith.MinSIOp: min,
    arith.MaxSIOp: max,
    arith.AndIOp: lambda a, b: a & b,
    arith.OrIOp: lambda a, b: a | b,
    arith.XOrIOp: lambda a, b: a ^ b,
}


def symbols_in(point: Point) -> dict[SSAValue, int]:
    """The numbers that a point of a set gives to symbols. Values that are computed are left out: they are computed
    again."""
    return {key: number for key, number in point.items() if isinstance(key, SSAValue) and is_symbol(key)}


def instance_at(
    point: Point, role: str, loops: Sequence[ForOp], more: Mapping[SSAValue, int] | None = None
) -> Instance:
    """The instance of a role in a point of a set: its loop values (0 where the point says nothing), and the symbols."""
    given = symbols_in(point)
    for loop in loops:
        value = loop.induction_variable
        given[value] = point.get((role, value), point.get(value, 0))
    return Instance(given | dict(more or {}))


@dataclass
class Claims:
    """An `Order` of two instances, checked with numbers."""

    first: Instance
    second: Instance
    hold: bool = True

    def same(self, loop: ForOp, other: ForOp | None = None) -> None:
        one, two = self._pair(loop, other)
        self.hold &= one == two

    def earlier(self, loop: ForOp, other: ForOp | None = None) -> None:
        one, two = self._pair(loop, other)
        self.hold &= one < two

    def later(self, loop: ForOp, other: ForOp | None = None) -> None:
        one, two = self._pair(loop, other)
        self.hold &= one > two

    def _pair(self, loop: ForOp, other: ForOp | None) -> tuple[int, int]:
        return self.first.value(loop.induction_variable), self.second.value((other or loop).induction_variable)


def tried(question: Callable[[], bool], otherwise: bool = False) -> bool:
    """The answer to a question about instances; `otherwise` where something cannot be tried out."""
    try:
        return question()
    except NotTried:
        return otherwise


def really_conflict(
    accesses: tuple[Access, Access],
    point: Point,
    shared: Collection[ForOp],
    ordered: Callable[[Order], object],
    otherwise: bool = False,
) -> bool:
    """Whether both instances run, in the order that is claimed, and touch one element that one of them writes."""
    first, second = accesses

    def question() -> bool:
        one, other = instance_at(point, "first", first.loops), instance_at(point, "second", second.loops)
        claims = Claims(one, other)
        for loop in shared:
            if loop in first.loops and loop in second.loops:
                claims.same(loop)
        ordered(claims)
        return (
            claims.hold
            and (first.op is not second.op or one != other)
            and (first.is_write or second.is_write)
            and one.runs(first.op)
            and other.runs(second.op)
            and one.element(first) == other.element(second)
        )

    return tried(question, otherwise)


def _values(point: Point) -> dict[SSAValue, int]:
    return {value: number for value, number in point.items() if isinstance(value, SSAValue)}


def same_instance(block: BlockOp, first: Point, second: Point) -> bool:
    """Whether two different loop points both run a block, with the same iterators."""

    def question() -> bool:
        one, other = Instance(_values(first)), Instance(_values(second))
        inner = block.body.block.first_op or block
        return (
            first != second
            and one.runs(inner)
            and other.runs(inner)
            and all(one.value(v) == other.value(v) for v in block.iter_vars)
        )

    return tried(question)


def runs_twice(domain: Domain, fixed: Sequence[ForOp], first: Point, second: Point, otherwise: bool = False) -> bool:
    """Whether two different points of the loops of a domain, equal in the fixed ones, both run one instance of it."""

    def question() -> bool:
        one, other = Instance(_values(first)), Instance(_values(second))
        same = all(one.number(index) == other.number(index) for index in domain.bindings)
        held = all(first[loop.induction_variable] == second[loop.induction_variable] for loop in fixed)
        return first != second and same and held and all(_holds(domain, instance) for instance in (one, other))

    return tried(question, otherwise)


def starts_late(domain: Domain, steps: Sequence[int], first: Point, second: Point) -> bool:
    """Whether the second point of the loops of a domain runs later than the first one, and starts the reduction over
    the iterators at the positions `steps` that the first one is a step of."""

    def question() -> bool:
        one, other = Instance(_values(first)), Instance(_values(second))
        same = (index for at, index in enumerate(domain.bindings) if at not in steps)
        order = [[instance.value(loop.induction_variable) for loop in domain.loops] for instance in (one, other)]
        return (
            order[0] < order[1]
            and all(one.number(index) == other.number(index) for index in same)
            and all(other.number(domain.bindings[at]) == 0 for at in steps)
            and all(_holds(domain, instance) for instance in (one, other))
        )

    return tried(question)


def run_one(first: Domain, at: Point, second: Domain, other_at: Point) -> bool:
    """Whether a point of the loops of each of two domains run one instance; True where that cannot be tried out."""

    def question() -> bool:
        one, other = Instance(_values(at)), Instance(_values(other_at))
        same = zip(first.bindings, second.bindings, strict=True)
        return (
            all(one.number(index) == other.number(twin) for index, twin in same)
            and _holds(first, one)
            and _holds(second, other)
        )

    return tried(question, True)


def is_outside(access: Access, dimension: int, extent: int, point: Point) -> bool:
    """Whether an access runs at a point and leaves its buffer there; True where that cannot be tried out."""

    def question() -> bool:
        instance = instance_at(point, "", access.loops)
        index = instance.element(access)[1][dimension]
        return instance.runs(access.op) and (index < 0 or (extent != DYNAMIC_INDEX and index >= extent))

    return tried(question, True)


Box: TypeAlias = tuple[Sequence[Index], Sequence[int]]
"""The corner of a region of a buffer, and its sizes."""


def is_uncovered(access: Access, boxes: Sequence[Box], point: Point) -> bool:
    """Whether an access runs at a point and touches an element there that none of the boxes has."""

    def question() -> bool:
        instance = instance_at(point, "", access.loops)
        element = instance.element(access)[1]
        return instance.runs(access.op) and not any(
            all(0 <= at - instance.number(low) < size for at, low, size in zip(element, corner, sizes, strict=True))
            for corner, sizes in boxes
        )

    return tried(question)


def leaves_region(access: Access, dimension: int, first: Index, size: int, point: Point) -> bool:
    """Whether an access touches an element outside of `first .. first + size - 1` in a dimension of its buffer, at a
    point; True where that cannot be tried out."""

    def question() -> bool:
        instance = Instance({value: n for value, n in point.items() if isinstance(value, SSAValue)})
        return not 0 <= instance.element(access)[1][dimension] - instance.number(first) < size

    return tried(question, True)


def _holds(domain: Domain, instance: Instance) -> bool:
    """Whether a loop point lies in the loops of a domain and satisfies its conditions."""
    conditions = domain.conditions
    return (
        all(0 <= instance.value(loop.induction_variable) < instance.extent(loop.extent) for loop in domain.loops)
        and all(instance.number(index) >= 0 for index in conditions.positives)
        and all(instance.number(index) == 0 for index in conditions.zeros)
    )


def is_one_place(
    iterators: Sequence[tuple[SSAValue, int | SSAValue]],
    indices: Sequence[Index],
    first: Mapping[SSAValue, int],
    second: Mapping[SSAValue, int],
) -> bool:
    """Whether indices are the same at two different points of some iterators with these extents."""

    def question() -> bool:
        one, other = Instance(first), Instance(second)
        inside = all(
            0 <= instance.value(value) < instance.extent(extent)
            for instance in (one, other)
            for value, extent in iterators
        )
        return inside and first != second and all(one.number(index) == other.number(index) for index in indices)

    return tried(question)
