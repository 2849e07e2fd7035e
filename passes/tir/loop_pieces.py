"""Restriction of loops to parts of their range."""

from __future__ import annotations

from xdsl.dialects import arith
from xdsl.ir import Operation
from xdsl.rewriter import InsertPoint, Rewriter

from weft.analysis.index import Index
from weft.dialects.tir import ForOp
from weft.dialects.traversal import copy_of
from weft.passes.index_builders import index_before, insert_before
from weft.passes.schedule.nest_builders import set_loop_extent
from weft.passes.tir.tir_pass import range_of, range_of_difference, replace_variable


def is_at_most(index: Index, limit: int) -> bool:
    _, most = range_of_difference(index, Index({}))
    return most is not None and most <= limit


def extreme(
    bounds: list[Index], start: Index, chooser: type[arith.MinSIOp | arith.MaxSIOp], anchor: Operation
) -> Index:
    result = start
    for bound in dict.fromkeys(bounds):
        bound = bound.simplified(range_of)
        least, most = range_of_difference(bound, result)
        smaller, larger = (bound, result) if chooser is arith.MinSIOp else (result, bound)
        if most is not None and most <= 0:
            result = smaller
        elif least is not None and least >= 0:
            result = larger
        else:
            op = chooser(index_before(result, anchor), index_before(bound, anchor))
            insert_before(anchor, [op])
            result = Index.of(op.results[0])
    return result


def copied_piece(loop: ForOp, start: Index, end: Index) -> ForOp | None:
    """Copy `loop` over `start .. end-1`, before it if `start` is 0, else after it."""
    if is_at_most((end - start).simplified(range_of), 0):
        return None
    copy = copy_of(loop)
    Rewriter.insert_op(copy, InsertPoint.before(loop) if start == Index({}) else InsertPoint.after(loop))
    return restrict(copy, start, end)


def restrict(loop: ForOp, start: Index, end: Index) -> ForOp | None:
    """Run `start .. end-1` only; erase an empty loop."""
    size = (end - start).simplified(range_of)
    if is_at_most(size, 0):
        Rewriter.erase_op(loop)
        return None
    set_loop_extent(loop, size.constant if size.is_constant else index_before(size, loop))
    variable = Index({}) if is_at_most(size, 1) else Index.of(loop.induction_variable)
    if variable + start != Index.of(loop.induction_variable):
        replace_variable(loop, variable + start)
    return loop
