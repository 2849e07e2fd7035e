"""The iterations at which comparisons change, and which of two nested loops is cheaper to partition for them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import prod
from typing import Final

from xdsl.dialects import arith
from xdsl.ir import BlockArgument, Operation, OpResult, SSAValue

from weft.analysis.index import Index, RangeOf
from weft.analysis.threads import runs_over_threads
from weft.dialects.tir import ForOp
from weft.dialects.tir_kinds import LoopKind
from weft.dialects.traversal import operations_in
from weft.passes.tir.guards import Constraint, constraint_of
from weft.passes.tir.nest import divided_up, is_defined_inside

_MUCH: Final = 4
"""A part of a body is small when the rest of it is at least so many times as large."""


@dataclass
class Edge:
    """Where one comparison changes in a loop: it is `value` for all iterations from `low` on and below `high`."""

    low: Index | None
    high: Index | None
    value: bool
    exact: bool
    """On the other side it is surely the opposite."""


def edge_of(loop: ForOp, constraint: Constraint, ranges: RangeOf) -> Edge | None:
    """Where `constraint`, of a comparison somewhere in `loop`, changes as the loop runs: on one side it holds, whatever
    loops inside do."""
    parts = _parts_of(loop, constraint)
    if parts is None:
        return None
    factor, outer, inner = parts
    low, high = inner.range(ranges)
    if constraint.equality:
        return _edge_of_equality(loop, constraint, factor, outer, (low, high))
    if low is None or constraint.negated:
        return None
    exact = low == high
    if factor > 0:
        return Edge(divided_up(-(outer + low), factor), None, True, exact)
    return Edge(None, (outer + low) // -factor + 1, True, exact)


def edge_of_none(loop: ForOp, constraint: Constraint, ranges: RangeOf) -> Edge | None:
    """Where a side begins on which `constraint` never holds, whatever loops inside do."""
    parts = _parts_of(loop, constraint)
    if parts is None or constraint.equality or constraint.negated:
        return None
    factor, outer, inner = parts
    low, high = inner.range(ranges)
    if high is None:
        return None
    exact = low == high
    if factor > 0:
        return Edge(None, divided_up(-(outer + high), factor), False, exact)
    return Edge((outer + high) // -factor + 1, None, False, exact)


def _parts_of(loop: ForOp, constraint: Constraint) -> tuple[int, Index, Index] | None:
    """The factor of the variable of `loop` in a constraint, and the rest of it: what stays in an iteration, and what
    varies. None where the variable is not in it, or is in quotients."""
    variable = loop.induction_variable
    factor = constraint.index.coefficient(variable)
    rest = constraint.index - Index({variable: factor})
    if factor == 0 or rest.depends_on([variable]):
        return None
    inner = Index({atom: f for atom, f in rest.terms.items() if _is_inner(Index({atom: 1}), loop)})
    return factor, rest - inner, inner


def _edge_of_equality(
    loop: ForOp, constraint: Constraint, factor: int, outer: Index, inner: tuple[int | None, int | None]
) -> Edge | None:
    """An equality can hold for a few iterations only: it is false after them, when they are the first, or before."""
    low, high = inner
    extent = loop.extent
    if low is None or high is None or not outer.is_constant or not isinstance(extent, int):
        return None
    # factor * i lies in least .. most; counted with a positive factor.
    least, most = -(outer.constant + high), -(outer.constant + low)
    if factor < 0:
        factor, least, most = -factor, -most, -least
    first, last = -(-least // factor), most // factor
    if last < first or last < 0 or first >= extent:
        return None
    if first <= 0:
        return Edge(Index({}, last + 1), None, constraint.negated, False)
    if last >= extent - 1:
        return Edge(None, Index({}, first), constraint.negated, False)
    return None


def _is_inner(index: Index, loop: ForOp) -> bool:
    """Whether an index varies inside of the loop; threads all run the same iterations of it, so it does if they do."""
    return any(is_defined_inside(value, loop) or _is_thread(value) for value in index.values())


def _is_thread(value: SSAValue) -> bool:
    loop = value.block.parent_op() if isinstance(value, BlockArgument) else None
    return isinstance(loop, ForOp) and runs_over_threads(loop)


def vectorized_loop_around(loop: ForOp) -> ForOp | None:
    parent = loop.parent_op()
    while parent is not None:
        if isinstance(parent, ForOp) and parent.kind.data is LoopKind.VECTORIZED:
            return parent
        parent = parent.parent_op()
    return None


def differs_between_lanes(edge: Edge, vector: ForOp) -> bool:
    """Whether lanes would run different numbers of iterations: then a mask is better than a cut."""
    values = [v for bound in (edge.low, edge.high) if bound is not None for v in bound.values()]
    return any(
        value is vector.induction_variable or (isinstance(value, OpResult) and is_defined_inside(value, vector))
        for value in values
    )


def is_in_small_parts(loop: ForOp, comparisons: Iterable[Operation]) -> bool:
    """Whether the parts of the body of `loop` that hold `comparisons` are small beside the rest, as code: operations in
    unrolled loops count as often as they are repeated."""
    parts = {part for part in loop.body.block.ops if any(part.is_ancestor(op) for op in comparisons)}
    small = sum(map(_code_size, parts))
    return _MUCH * small <= sum(_code_size(part) for part in loop.body.block.ops if part not in parts)


def _code_size(root: Operation) -> int:
    def repeated(op: Operation) -> int:
        around: list[int] = []
        while op is not root and (parent := op.parent_op()) is not None:
            op = parent
            if isinstance(op, ForOp) and op.kind.data is LoopKind.UNROLLED and isinstance(op.extent, int):
                around.append(op.extent)
        return prod(around)

    return sum(repeated(op) for op in operations_in(root))


def row_loop_of(loop: ForOp, comparison: arith.CmpiOp, ranges: RangeOf) -> tuple[ForOp, Edge] | None:
    """The outermost serial loop in `loop`, of rows, that has a side of `comparison` in each part when it is cut.

    Rows are more than bounds cost that are computed before them: an iteration holds a loop. Lanes run the same ones.
    """
    constraint = constraint_of(comparison, ranges)
    found: tuple[ForOp, Edge] | None = None
    inner = comparison.parent_op()
    while constraint is not None and inner is not None and inner is not loop:
        if isinstance(inner, ForOp) and inner.kind.data is LoopKind.SERIAL and _is_of_rows(inner):
            edge = edge_of(inner, constraint, ranges)
            if edge is not None and edge.exact:
                found = inner, edge
        inner = inner.parent_op()
    return found


def _is_of_rows(loop: ForOp) -> bool:
    return vectorized_loop_around(loop) is None and any(isinstance(op, ForOp) for op in operations_in(loop.body))
