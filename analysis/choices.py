"""Reductions that choose between the old and a new value by comparing them: argmax, argmin and the like.

The combiner is a function of the order of the compared values. Every order of three values occurs among 0, 1 and 2, so
evaluation at these decides whether it is commutative and associative.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product

from xdsl.dialects import arith, memref, scf
from xdsl.dialects.builtin import IndexType, IntegerType
from xdsl.ir import Block, Operation, OpResult, SSAValue

from weft.analysis.index import Index
from weft.dialects.integer_arith import constant_integer
from weft.support.errors import InternalError, Violation

_MOST_ACCUMULATORS = 3
_INTEGER = ("eq", "ne", "slt", "sle", "sgt", "sge")
_FLOAT = ("", "oeq", "ogt", "oge", "olt", "ole", "one", "", "ueq", "ugt", "uge", "ult", "ule", "une")


class _Unknown(Exception):
    pass


@dataclass(frozen=True)
class Selection:
    """Selections of a block that store the old value of an accumulator or a new one."""

    selects: tuple[arith.SelectOp, ...]
    values: tuple[tuple[SSAValue, SSAValue], ...]

    @property
    def compares_floats(self) -> bool:
        """Whether NaN and signed zeros make the result depend on the order."""
        return any(not isinstance(old.type, IndexType | IntegerType) for old, _ in self.values)

    def why_in_order(self) -> Violation | None:
        if len(self.selects) > _MOST_ACCUMULATORS:
            return Violation(f"it chooses between values of {len(self.selects)} accumulators", "not proved")
        try:
            points = list(product(range(3), repeat=len(self.selects)))
            table = {(old, new): self._combined(old, new) for old in points for new in points}
        except _Unknown:
            detail = "its conditions are not comparisons of the old and the new value of an accumulator"
            return Violation(detail, "not proved")
        for one, other in product(points, repeat=2):
            if table[one, other] != table[other, one]:
                return _order_matters((one, other), table[one, other], table[other, one])
        for one, other, third in product(points, repeat=3):
            left, right = table[table[one, other], third], table[one, table[other, third]]
            if left != right:
                return _order_matters((one, other, third), left, right)
        return None

    def _combined(self, old: Sequence[int], new: Sequence[int]) -> tuple[int, ...]:
        return tuple(self._picked(at, old, new) for at in range(len(self.selects)))

    def _picked(self, at: int, old: Sequence[int], new: Sequence[int]) -> int:
        select = self.selects[at]
        is_old = _is_same(select.lhs, self.values[at][0]) == bool(self._condition(select.cond, old, new))
        return old[at] if is_old else new[at]

    def _condition(self, value: SSAValue, old: Sequence[int], new: Sequence[int]) -> int:
        constant = constant_integer(value)
        if constant is not None:
            return constant & 1
        op = value.owner
        if isinstance(op, arith.CmpiOp | arith.CmpfOp):
            names = _INTEGER if isinstance(op, arith.CmpiOp) else _FLOAT
            number = op.predicate.value.data
            name = names[number] if number < len(names) else ""
            return _compare(name, self._number(op.lhs, old, new), self._number(op.rhs, old, new))
        if isinstance(op, arith.AndIOp | arith.OrIOp | arith.XOrIOp):
            one, other = (self._condition(operand, old, new) for operand in op.operands)
            return (
                one & other
                if isinstance(op, arith.AndIOp)
                else one | other
                if isinstance(op, arith.OrIOp)
                else one ^ other
            )
        if isinstance(op, arith.SelectOp | scf.IfOp):
            holds = self._condition(op.cond, old, new)
            return self._condition(_branches(value)[0 if holds else 1], old, new)
        raise _Unknown

    def combined(self, at: int, known: Mapping[SSAValue, SSAValue], body: Block) -> SSAValue:
        select = self.selects[at]
        condition = self._copied(select.cond, known, body)
        made = arith.SelectOp(condition, *(self._copied(value, known, body) for value in (select.lhs, select.rhs)))
        body.add_op(made)
        return made.result

    def _copied(self, value: SSAValue, known: Mapping[SSAValue, SSAValue], body: Block) -> SSAValue:
        for pair in self.values:
            for old in pair:
                if _is_same(value, old):
                    return known[old]
        op = value.owner
        if not isinstance(op, Operation):
            raise InternalError(f"a choice depends on {value}")
        if isinstance(op, scf.IfOp):
            operands = [self._copied(part, known, body) for part in (op.cond, *_branches(value))]
            copy: Operation = arith.SelectOp(*operands)
        else:
            copy = op.clone({operand: self._copied(operand, known, body) for operand in op.operands})
        body.add_op(copy)
        return copy.results[0]

    def _number(self, value: SSAValue, old: Sequence[int], new: Sequence[int]) -> tuple[int, int]:
        for at, (before, after) in enumerate(self.values):
            for known, numbers in ((before, old), (after, new)):
                if _is_same(value, known):
                    return numbers[at], at
        raise _Unknown


def _branches(value: SSAValue) -> tuple[SSAValue, SSAValue]:
    op = value.owner
    if isinstance(op, arith.SelectOp):
        return op.lhs, op.rhs
    if not isinstance(op, scf.IfOp) or not isinstance(value, OpResult):
        raise _Unknown
    ends = [region.block.last_op if region.blocks else None for region in (op.true_region, op.false_region)]
    if not all(isinstance(end, scf.YieldOp) for end in ends):
        raise _Unknown
    one, other = (end.operands[value.index] for end in ends if end is not None)
    return one, other


def _order_matters(points: Sequence[tuple[int, ...]], one: tuple[int, ...], other: tuple[int, ...]) -> Violation:
    shown = ", ".join(str(point) for point in points)
    detail = f"combining {shown} gives {one} or {other}, depending on the order"
    legal = "a condition that also compares the indices of equal values"
    values = {f"value {at}": {f"accumulator {slot}": n for slot, n in enumerate(p)} for at, p in enumerate(points)}
    return Violation(detail, "refuted", values, legal)


def _compare(name: str, left: tuple[int, int], right: tuple[int, int]) -> int:
    (one, slot), (other, other_slot) = left, right
    if slot != other_slot or not name:
        raise _Unknown
    kind = name[-2:]
    results = {"eq": one == other, "ne": one != other, "lt": one < other, "le": one <= other}
    results |= {"gt": one > other, "ge": one >= other}
    return int(results[kind])


def _is_same(one: SSAValue, other: SSAValue) -> bool:
    """Compares scalars in one block, before its stores."""
    if one is other:
        return True
    if isinstance(one.type, IndexType) and isinstance(other.type, IndexType):
        return Index.of(one) == Index.of(other)
    first, second = one.owner, other.owner
    if not isinstance(first, Operation) or not isinstance(second, Operation) or type(first) is not type(second):
        return False
    if not (isinstance(first, memref.LoadOp) or first.name.startswith("arith.")) or first.regions:
        return False
    same = first.properties == second.properties and len(first.operands) == len(second.operands)
    return same and all(_is_same(a, b) for a, b in zip(first.operands, second.operands, strict=True))
