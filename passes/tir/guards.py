"""Conditions of `scf.if` as index constraints."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import IndexType
from xdsl.ir import Operation, OpResult, Region, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from weft.analysis.accesses import Conditions, loop_with_variable
from weft.analysis.block_scopes import ancestors
from weft.analysis.index import Index, RangeOf
from weft.analysis.integer_ranges import assumptions_about
from weft.analysis.questions import add_domain
from weft.analysis.sets import NotProved, System
from weft.dialects.integer_arith import constant_integer
from weft.dialects.tir import ForOp
from weft.dialects.traversal import operations_of
from weft.passes.index_builders import bool_constant, conjunction_before, detached_ops, erase_if_unused, insert_before
from weft.passes.tir.tir_pass import range_of, remembered_ranges

_MOST_CHOICES: Final = 32
"""Maxima and minima in a query on assumptions; with more, one of a loop's dozens of queries takes half a second."""


@dataclass(frozen=True)
class Constraint:
    """`index >= 0`; `index == 0` for an equality, `index != 0` if `negated`."""

    index: Index
    equality: bool = False
    negated: bool = False


def constraint_of(op: arith.CmpiOp, ranges: RangeOf = range_of) -> Constraint | None:
    """The constraint of a signed comparison."""
    if not isinstance(op.lhs.type, IndexType):
        return None
    left, right = Index.of(op.lhs), Index.of(op.rhs)
    predicate = arith.CMPI_COMPARISON_OPERATIONS[op.predicate.value.data]
    match predicate:
        case "eq" | "ne" | "sge":
            index = left - right
        case "sle":
            index = right - left
        case "slt":
            index = right - left - 1
        case "sgt":
            index = left - right - 1
        case _:
            return None
    return Constraint(index.simplified(ranges), predicate in ("eq", "ne"), predicate == "ne")


def conjuncts(condition: SSAValue) -> Iterator[SSAValue]:
    if isinstance(condition, OpResult) and isinstance(condition.op, arith.AndIOp):
        yield from conjuncts(condition.op.lhs)
        yield from conjuncts(condition.op.rhs)
    else:
        yield condition


def comparisons(condition: SSAValue, ranges: RangeOf = range_of) -> Iterator[tuple[arith.CmpiOp, Constraint]]:
    for part in conjuncts(condition):
        if isinstance(part, OpResult) and isinstance(part.op, arith.CmpiOp):
            constraint = constraint_of(part.op, ranges)
            if constraint is not None:
                yield part.op, constraint


def _truth(condition: SSAValue, ranges: RangeOf) -> bool | None:
    constant = constant_integer(condition)
    if constant is not None:
        return bool(constant)
    if not isinstance(condition, OpResult):
        return None
    op = condition.op
    if isinstance(op, arith.AndIOp | arith.OrIOp):
        absorbing = isinstance(op, arith.OrIOp)
        sides = (_truth(op.lhs, ranges), _truth(op.rhs, ranges))
        if absorbing in sides:
            return absorbing
        return None if None in sides else not absorbing
    if isinstance(op, arith.XOrIOp):
        left, right = _truth(op.lhs, ranges), _truth(op.rhs, ranges)
        return None if left is None or right is None else left != right
    constraint = constraint_of(op, ranges) if isinstance(op, arith.CmpiOp) else None
    return None if constraint is None else _truth_of(constraint, ranges)


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
    return True if _follows_from_assumptions(constraint.index, ranges) else None


def _follows_from_assumptions(index: Index, ranges: RangeOf) -> bool:
    if not any(assumptions_about(value) for value in index.values()):
        return False
    system = System()

    def naming(value: SSAValue) -> SSAValue:
        system.declare(value, *ranges(value))
        return value

    loops = [loop for value in dict.fromkeys(index.values()) if (loop := loop_with_variable(value)) is not None]
    dynamic = [loop for loop in loops if loop.dynamic_extent is not None]
    add_domain(system, dynamic, Conditions((-index - 1,)), naming)
    if system.choices > _MOST_CHOICES:
        return False
    try:
        return system.is_empty()
    except NotProved:
        return False


def decide_ifs(root: Operation | Region) -> None:
    """Fold each `scf.if` that ranges decide, and decided conjuncts."""
    ranges = remembered_ranges()
    for op in operations_of(root, scf.IfOp):
        if op.parent is None:
            continue
        condition = op.cond
        truths = {part: _truth(part, ranges) for part in conjuncts(condition)}
        undecided = [part for part, truth in truths.items() if truth is not True]
        if not undecided or False in truths.values():
            _replace_by_branch(op, op.false_region if undecided else op.true_region)
        elif len(undecided) < len(truths):
            op.operands[0] = conjunction_before(undecided, op)
        erase_if_unused([condition])


def decide_clamps(root: Operation | Region) -> None:
    """Replace each minimum and maximum of indices in a loop by the operand that is the result in all iterations.

    Extents outside of loops stay as assumptions about callees state them.
    """
    ranges = remembered_ranges()
    for op in operations_of(root, arith.MinSIOp, arith.MaxSIOp):
        if not isinstance(op.result.type, IndexType) or not any(isinstance(outer, ForOp) for outer in ancestors(op)):
            continue
        smaller, larger = (op.lhs, op.rhs) if isinstance(op, arith.MinSIOp) else (op.rhs, op.lhs)
        if _is_at_most(smaller, larger, op, ranges):
            op.result.replace_all_uses_with(op.lhs)
        elif _is_at_most(larger, smaller, op, ranges):
            op.result.replace_all_uses_with(op.rhs)
        erase_if_unused([op.result])


def _is_at_most(left: SSAValue, right: SSAValue, at: Operation, ranges: RangeOf) -> bool:
    """Whether ranges prove `left <= right` at an operation, given that the loops around it have iterations."""
    if isinstance(inner := right.owner, arith.MinSIOp):
        return all(_is_at_most(left, each, at, ranges) for each in inner.operands)
    index = (Index.of(right) - Index.of(left)).simplified(ranges)
    for value in [*index.values()]:
        loop = loop_with_variable(value)
        factor = index.coefficient(value)
        is_linear = not (index - Index({value: factor})).depends_on([value])
        if loop is not None and loop.dynamic_extent is not None and factor < 0 and is_linear:
            index = index.substitute({value: Index.of(loop.extent) - 1}).simplified(ranges)
    positive = {
        extent.single_value for op in ancestors(at) if isinstance(op, ForOp) and (extent := Index.of(op.extent)).terms
    }
    for value in [*index.values()]:
        factor = index.coefficient(value)
        if factor > 0 and value in positive:
            index = index - Index({value: factor}) + factor
    low, _ = index.range(ranges)
    return low is not None and low >= 0


def _replace_by_branch(op: scf.IfOp, region: Region) -> None:
    if region.blocks:
        *ops, end = detached_ops(region.block)
        for result, value in zip(op.results, end.operands, strict=True):
            result.replace_all_uses_with(value)
        Rewriter.insert_op(ops, InsertPoint.before(op))
        end.erase()
    Rewriter.erase_op(op)


def replace_by_truth(op: Operation, value: bool) -> None:
    constant = bool_constant(value)
    insert_before(op, [constant])
    op.results[0].replace_all_uses_with(constant.result)
    erase_if_unused([op])
