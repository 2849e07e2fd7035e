"""Conditions of `scf.if` as index constraints, and the folding of conditions that ranges decide."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeAlias

from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import IndexType
from xdsl.ir import BlockArgument, Operation, OpResult, SSAValue
from xdsl.rewriter import Rewriter

from weft.analysis.index import Index, RangeOf
from weft.analysis.integer_ranges import assumptions_about
from weft.analysis.sets import NotProved, System
from weft.dialects.integer_arith import constant_integer
from weft.dialects.tir import ForOp
from weft.dialects.traversal import operations_in
from weft.passes.index_ops import (
    bool_constant,
    conjunction_before,
    detached_ops,
    erase_if_unused,
    insert_before,
)
from weft.passes.tir.nest import range_of, remembered_ranges


@dataclass(frozen=True)
class Constraint:
    """`index >= 0`, or `index == 0` for an equality; the opposite of it when `negated`."""

    index: Index
    equality: bool = False
    negated: bool = False


def constraint_of(op: arith.CmpiOp, ranges: RangeOf = range_of) -> Constraint | None:
    """The signed comparison of two index values as a constraint. `ranges` may remember (`remembered_ranges`)."""
    if not isinstance(op.lhs.type, IndexType):
        return None
    left, right = Index.of(op.lhs), Index.of(op.rhs)
    match op.predicate.value.data:
        case 0:
            return Constraint((left - right).simplified(ranges), equality=True)
        case 1:
            return Constraint((left - right).simplified(ranges), equality=True, negated=True)
        case 2:
            return Constraint((right - left - 1).simplified(ranges))
        case 3:
            return Constraint((right - left).simplified(ranges))
        case 4:
            return Constraint((left - right - 1).simplified(ranges))
        case 5:
            return Constraint((left - right).simplified(ranges))
        case _:
            return None


def conjuncts(condition: SSAValue) -> Iterator[SSAValue]:
    """The conditions whose conjunction `condition` is."""
    if isinstance(condition, OpResult) and isinstance(condition.op, arith.AndIOp):
        yield from conjuncts(condition.op.lhs)
        yield from conjuncts(condition.op.rhs)
    else:
        yield condition


def comparisons(condition: SSAValue, ranges: RangeOf = range_of) -> Iterator[tuple[arith.CmpiOp, Constraint]]:
    """The index comparisons among the conjuncts of `condition`."""
    for part in conjuncts(condition):
        if isinstance(part, OpResult) and isinstance(part.op, arith.CmpiOp):
            constraint = constraint_of(part.op, ranges)
            if constraint is not None:
                yield part.op, constraint


Truths: TypeAlias = dict[SSAValue, "bool | None"]
"""What is known of comparisons, to be asked again."""


def truth(condition: SSAValue, ranges: RangeOf = range_of, known: Truths | None = None) -> bool | None:
    """What the ranges of loops say of `condition`, or None when they do not decide it. What `known` has of comparisons
    is not asked for again, and more is added to it."""
    constant = constant_integer(condition)
    if constant is not None:
        return bool(constant)
    if not isinstance(condition, OpResult):
        return None
    op = condition.op
    if isinstance(op, arith.AndIOp | arith.OrIOp):
        absorbing = isinstance(op, arith.OrIOp)
        sides = (truth(op.lhs, ranges, known), truth(op.rhs, ranges, known))
        if absorbing in sides:
            return absorbing
        return None if None in sides else not absorbing
    if isinstance(op, arith.XOrIOp):
        left, right = truth(op.lhs, ranges, known), truth(op.rhs, ranges, known)
        return None if left is None or right is None else left != right
    if not isinstance(op, arith.CmpiOp):
        return None
    if known is None or condition not in known:
        constraint = constraint_of(op, ranges)
        outcome = None if constraint is None else _truth_of(constraint, ranges)
        if known is None:
            return outcome
        known[condition] = outcome
    return known[condition]


def _truth_of(constraint: Constraint, ranges: RangeOf) -> bool | None:
    low, high = constraint.index.range(ranges)
    if constraint.equality:
        if low is not None and low == high:
            return (low == 0) != constraint.negated
        excluded = (low is not None and low > 0) or (high is not None and high < 0)
        return constraint.negated if excluded else None
    if low is not None and low >= 0:
        return True
    if high is not None and high < 0:
        return False
    return True if _follows_from_assumptions(constraint.index) else None


def _follows_from_assumptions(index: Index) -> bool:
    """Whether what the function assumes of its symbols (`tir.assume`) proves that an index is not negative."""
    if not any(assumptions_about(value) for value in index.values()):
        return False
    system = System()

    def naming(value: SSAValue) -> SSAValue:
        system.declare(value, *range_of(value))
        return value

    for value in dict.fromkeys(index.values()):
        loop = value.block.parent_op() if isinstance(value, BlockArgument) else None
        if isinstance(loop, ForOp) and loop.dynamic_extent is not None:
            extent = system.row(Index.of(loop.dynamic_extent), naming)
            system.less(system.row(Index({value: 1}), naming), extent)
    system.positives.append(system.row(-index - 1, naming))
    try:
        return system.is_empty()
    except NotProved:
        return False


def decide_ifs(root: Operation) -> None:
    """Replace every `scf.if` in `root` whose condition ranges decide, and drop decided conjuncts of the others."""
    ranges = remembered_ranges()
    known: Truths = {}
    for op in [op for op in operations_in(root) if isinstance(op, scf.IfOp)]:
        if op.parent is not None:
            decide_if(op, truth(op.cond, ranges, known), ranges, known)


def decide_if(op: scf.IfOp, decided: bool | None, ranges: RangeOf = range_of, known: Truths | None = None) -> None:
    """Put the region that runs in the place of `op`; without a decision, drop the conjuncts that ranges prove."""
    if decided is None:
        _weaken(op, ranges, known)
        return
    region = op.true_region if decided else op.false_region
    condition = op.cond.owner
    parent = op.parent
    if region.blocks and parent is not None:
        ops = detached_ops(region.block)
        terminator = ops.pop()
        for result, value in zip(op.results, terminator.operands, strict=True):
            result.replace_all_uses_with(value)
        parent.insert_ops_before(ops, op)
        terminator.erase()
    Rewriter.erase_op(op)
    if isinstance(condition, Operation):
        erase_if_unused([condition])


def _weaken(op: scf.IfOp, ranges: RangeOf, known: Truths | None) -> None:
    parts = list(conjuncts(op.cond))
    undecided = [part for part in parts if truth(part, ranges, known) is not True]
    if len(undecided) == len(parts):
        return
    condition = op.cond.owner
    op.operands[0] = conjunction_before(undecided, op)
    if isinstance(condition, Operation):
        erase_if_unused([condition])


def replace_by_truth(op: Operation, value: bool) -> None:
    """Replace the only result of `op`, a condition, by a constant."""
    constant = bool_constant(value)
    insert_before(op, [constant])
    op.results[0].replace_all_uses_with(constant.result)
    erase_if_unused([op])
