"""Default schedule of concatenations: one loop per input array."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from math import prod
from typing import Final

from xdsl.dialects import arith, scf
from xdsl.ir import BlockArgument

from weft.analysis.block_patterns import BlockPattern, PatternKind, pattern_of
from weft.analysis.index import Index
from weft.autoschedule.executor import execute
from weft.autoschedule.nests import inner_plan, iterators_of
from weft.autoschedule.rules import Sampled, lanes_for, op_of, pays_threads
from weft.dialects.traversal import operations_in
from weft.schedule.recording import BlockHandle
from weft.schedule.schedule import Schedule
from weft.support.target import Target

_MOST_PIECES: Final = 16
"""Limit of the number of arrays that get a loop each, because each loop adds code."""
_LESS: Final = arith.CMPI_COMPARISON_OPERATIONS.index("slt")


def concatenation(sch: Schedule, block: BlockHandle, target: Target) -> bool:
    """Cut an elementwise nest that selects one of several arrays by an iterator into one loop per array, without
    conditions and vectors across arrays.

    ```
    for rows: for columns of the first array: out = first; for columns of the second one: out = second
    ```
    Not applicable to conditions on several iterators or on none, and to pieces shorter than a vector.
    """
    pattern, decisions = pattern_of(op_of(sch, block)), Sampled(sch)
    found = _pieces(pattern)
    if found is None:
        return False
    at, lengths = found
    inner = prod(pattern.extent_of(v) or 1 for v in iterators_of(pattern)[at + 1 :])
    pays = min(lengths) * inner >= lanes_for(pattern, target)
    if not decisions.decide(pays):
        return False
    plan, shared = inner_plan(pattern, at, target, decisions), pays_threads([pattern], target)
    if plan is None:
        return False
    parts = sch.loop_partition(sch.get_loops(block)[at], [*lengths])
    for part in parts:
        (piece,) = sch.get_child_blocks(part)
        execute(sch, piece, replace(plan, threads=None if at == 0 or part is parts[-1] else ()), target, pays=shared)
    return True


def _pieces(pattern: BlockPattern) -> tuple[int, list[int]] | None:
    if pattern.kind is not PatternKind.INJECTIVE or len({read.buffer for read in pattern.reads}) < 2:
        return None
    bounds: dict[BlockArgument, set[int]] = {}
    for branch in operations_in(pattern.block):
        if isinstance(branch, scf.IfOp):
            test = branch.cond.owner
            if not isinstance(test, arith.CmpiOp) or test.predicate.value.data != _LESS:
                return None
            value, bound = test.lhs, Index.of(test.rhs)
            if not isinstance(value, BlockArgument) or not bound.is_constant:
                return None
            bounds.setdefault(value, set()).add(bound.constant)
    if len(bounds) != 1 or not bounds.keys() <= {*iterators_of(pattern)}:
        return None
    ((iterator, places),) = bounds.items()
    extent = pattern.extent_of(iterator)
    if extent is None or not 0 < min(places) <= max(places) < extent or len(places) >= _MOST_PIECES:
        return None
    edges = [0, *sorted(places), extent]
    return iterator.index, [end - start for start, end in pairwise(edges)]
