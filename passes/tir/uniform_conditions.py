"""Comparisons in a vectorized loop that are uniform although their operands vary."""

from __future__ import annotations

from math import gcd

from xdsl.dialects import arith

from weft.analysis.index import Index, quotient
from weft.dialects.tir import ForOp
from weft.dialects.traversal import operations_in
from weft.passes.tir.guards import constraint_of
from weft.passes.tir.nest import compare_before, remembered_ranges


def free_conditions_of_lanes(loop: ForOp) -> None:
    """Let comparisons that hold for all iterations of `loop` or for none compare what does not change in it.

    `x >= 0` when `x floordiv c >= 0`, for each positive c. With c what all but the loop variable are multiples of, the
    variable may go:

        16 * %o + %lane < 16 * %n   ->   %n - %o - 1 >= 0      for %lane in 16, as c = 16 shows
    """
    ranges, variable = remembered_ranges(), loop.induction_variable
    for op in operations_in(loop.body):
        if type(op) is not arith.CmpiOp:
            continue
        constraint = constraint_of(op, ranges)
        if constraint is None or constraint.equality or not constraint.index.coefficient(variable):
            continue
        common = gcd(*(factor for atom, factor in constraint.index.terms.items() if atom is not variable))
        if common < 2:
            continue
        whole = quotient(constraint.index, common, ranges)
        if not whole.mentions([variable]):
            op.result.replace_all_uses_with(compare_before("sge", whole, Index({}), op))
            op.detach()
            op.erase()
