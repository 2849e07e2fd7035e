"""Validates counterexamples by evaluating the IR at concrete iterations.

A refusal names concrete iterations, which integer sets found. Here the index operations of the IR are carried out with
these numbers, without sets and without the index algebra. What cannot be evaluated refutes nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from xdsl.dialects import affine, arith, func, memref, scf
from xdsl.dialects.builtin import DYNAMIC_INDEX, IntegerAttr, MemRefType
from xdsl.ir import BlockArgument, Operation, OpResult, SSAValue

from weft.analysis.accesses import Access, Conditions, Context, Domain
from weft.analysis.index import Index
from weft.dialects.integer_arith import INTEGER_OPS, SIGNED_PREDICATES
from weft.dialects.intervals import Interval
from weft.dialects.low_access import AccessPtrOp
from weft.dialects.tir import BlockOp, ForOp, InitOp
from weft.dialects.tir_kinds import IterKind


class NotEvaluated(Exception):
    """A value that a point does not determine: a loaded one, or the result of an op that is not evaluated here."""


def evaluated(question: Callable[[], bool], otherwise: bool = False) -> bool:
    """The answer to a question about instances; `otherwise` where a value of it is not evaluated."""
    try:
        return question()
    except NotEvaluated:
        return otherwise


@dataclass(frozen=True)
class Instance:
    """A point of the program: numbers for loop values, for block iterators if need be, and for symbols."""

    given: Mapping[SSAValue, int]

    def value(self, value: SSAValue) -> int:
        """The number that an index or `i1` value is. Raises `NotEvaluated`."""
        number = self.given.get(value)
        if number is not None:
            return number
        if isinstance(value, BlockArgument):
            return self._argument(value)
        if isinstance(value, OpResult):
            return self._result(value.op)
        raise NotEvaluated

    def number(self, index: int | SSAValue | Index) -> int:
        """The number that an index expression or an extent is. Raises `NotEvaluated`."""
        if isinstance(index, Index):
            return index.evaluate(self.value)
        return index if isinstance(index, int) else self.value(index)

    def _argument(self, value: BlockArgument) -> int:
        """An iterator is the value of its binding. A parameter of the function without constraints may be 1."""
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
        """An extent of a parameter is 1 where the point does not give it: it has no constraints then."""
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
        """Whether `op` is executed at this point: in the block around it whose iterators are given, or in the function.
        Raises `NotEvaluated`."""
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
        """The element of its buffer that an access touches. Raises `NotEvaluated`."""
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
        """Whether the point is an instance of a place: the access runs and touches the element that its indices are, or
        the conditions of loops and guards hold. Raises `NotEvaluated`."""
        if isinstance(place, Access):
            if place.indices is None:
                raise NotEvaluated
            return self.element(place) == tuple(map(self.number, place.indices)) and self.runs(place.op)
        loops, conditions = place.loops, place.conditions
        return (
            all(0 <= self.value(loop.induction_variable) < self.number(loop.extent) for loop in loops)
            and all(self.number(index) >= 0 for index in conditions.positives)
            and all(self.number(index) == 0 for index in conditions.zeros)
        )


@dataclass(frozen=True)
class Missed:
    """A place that no instance of some domains reaches: iterators of a block, or an element of a buffer."""

    place: tuple[int, ...]
    symbols: Mapping[SSAValue, int]
    domains: tuple[Domain, ...]

    def holds(self, otherwise: bool = False) -> bool:
        """Whether evaluation confirms it, by trying all loop points; `otherwise` where that takes too many tries."""
        return all(evaluated(lambda domain=domain: self._is_missed_by(domain), otherwise) for domain in self.domains)

    def _is_missed_by(self, domain: Domain) -> bool:
        instance = Instance(self.symbols)
        inside = all(0 <= at < instance.number(extent) for at, extent in zip(self.place, domain.extents, strict=False))
        loops = [*((loop.induction_variable, loop.extent) for loop in domain.loops), *domain.free_loops]
        return inside and not _Search(loops, domain.bindings, domain.conditions, self.place).finds(self.symbols)


_TRIES = 4000
"""Partial loop points that one search evaluates."""


@dataclass
class _Search:
    """Looks for a loop point at which the conditions hold and the bindings are what is wanted.

    Loops are fixed from the outermost one inwards; points that ranges exclude are left out. No sets take part.
    """

    loops: Sequence[tuple[SSAValue, int | SSAValue | Index]]
    bindings: Sequence[Index]
    conditions: Conditions
    wanted: Sequence[int]
    left: int = field(default=_TRIES)

    def finds(self, symbols: Mapping[SSAValue, int]) -> bool:
        """Whether there is one. Raises `NotEvaluated` when that takes too many tries."""
        return self._below(0, dict(symbols))

    def _below(self, at: int, given: dict[SSAValue, int]) -> bool:
        """Whether there is one with these values of the first `at` loops."""
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
        """Whether ranges leave room for such a point."""
        extents = dict(self.loops[at:])

        def range_of(value: SSAValue) -> Interval:
            extent = extents.get(value)
            try:
                number = instance.number(value if extent is None else extent)
            except NotEvaluated:
                return (None, None) if extent is None else (0, None)
            return (number, number) if extent is None else (0, number - 1)

        rooms = [index - number for index, number in zip(self.bindings, self.wanted, strict=True)]
        for index in (*rooms, *self.conditions.zeros):
            low, high = index.range(range_of)
            if (low is not None and low > 0) or (high is not None and high < 0):
                return False
        highs = (index.range(range_of)[1] for index in self.conditions.positives)
        return all(high is None or high >= 0 for high in highs)
