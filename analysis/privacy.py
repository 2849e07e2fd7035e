"""Is a temporary private to each iteration of a loop? Are the reads of a program covered by what was written before?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from xdsl.ir import Operation, SSAValue

from weft.analysis.accesses import Access, accesses, is_fixed, is_loop_value, is_symbol, range_of
from weft.analysis.dependence import add_domain, is_temporary
from weft.analysis.index import Index
from weft.analysis.sets import NotProved, Row, System, Variable, within_budget
from weft.dialects.tir import ForOp

if TYPE_CHECKING:
    pass


def is_private(buffer: SSAValue, loop: ForOp, found: Sequence[Access] | None = None) -> bool:
    """Whether each iteration of `loop` can have its own `buffer`: no value of it crosses an iteration.

    True only when proved: the buffer is a temporary used nowhere outside the loop, and every element that an iteration
    reads was surely written earlier in the same iteration.
    """
    if not is_temporary(buffer) or not all(_is_inside(use.operation, loop) for use in buffer.uses):
        return False
    inside = [a for a in (found if found is not None else accesses(loop)) if a.buffer is buffer]
    try:
        return all(a.is_write or read_is_covered(a, inside, loop) for a in inside)
    except NotProved:
        return False


def _is_inside(op: Operation, ancestor: Operation) -> bool:
    parent = op.parent_op()
    while parent is not None:
        if parent is ancestor:
            return True
        parent = parent.parent_op()
    return False


def read_is_covered(read: Access, found: Sequence[Access], loop: ForOp | None) -> bool:
    """Whether every element that `read` touches was surely written before, in the same iteration of `loop`.

    A write counts when it stands before the read in program order; loops that are around both are in the same
    iteration. `found` is in program order. Raises `NotProved`.
    """
    if read.indices is None or not _is_affine(read):
        return False
    writes = [a for a in _before(read, found) if a.is_write and _is_affine(a) and a.conditions.exact]
    if any(_surely_same(write, read) for write in writes):
        return True
    if not writes:
        return False
    return _uncovered_is_empty(read, writes)


def _before(read: Access, found: Sequence[Access]) -> list[Access]:
    """Writes that run before `read` in the same iteration of the loops around both.

    The init of the read's own block counts without its condition: it runs at the first step of the reduction, and a
    legal program has that step first.
    """
    result: list[Access] = []
    for access in found:
        if access.op is read.op:
            break
        if access.in_init and access.block is read.block and not read.in_init:
            result.append(replace(access, conditions=replace(access.conditions, zeros=())))
        else:
            result.append(access)
    return result


def _surely_same(write: Access, read: Access) -> bool:
    """The common case: the same element in the same iteration, under no more conditions than the read."""
    return (
        write.indices == read.indices
        and write.loops == read.loops
        and set(write.conditions.positives) <= set(read.conditions.positives)
        and set(write.conditions.zeros) <= set(read.conditions.zeros)
    )


def _is_affine(access: Access) -> bool:
    if access.indices is None:
        return False
    parts = (*access.indices, *access.conditions.positives, *access.conditions.zeros)
    return all(is_loop_value(v) or is_symbol(v) for index in parts for v in index.values())


def _uncovered_is_empty(read: Access, writes: Sequence[Access]) -> bool:
    outer: list[Variable] = [loop.induction_variable for loop in read.loops]
    places: list[Variable] = [("place", d) for d in range(len(read.indices or ()))]
    symbols = _symbols([read, *writes])
    keep = [*symbols, *outer, *places]
    remaining = _touched(read, read, keep)
    for write in writes:
        touched = _touched(write, read, keep)
        remaining = within_budget(lambda r=remaining, t=touched: r.subtract(t))
        if within_budget(remaining.is_empty):
            return True
    return False


def _symbols(found: Sequence[Access]) -> list[Variable]:
    seen: dict[Variable, None] = {}
    for access in found:
        parts = (*(access.indices or ()), *access.conditions.positives, *access.conditions.zeros)
        for index in parts:
            for value in index.values():
                if is_symbol(value):
                    seen.setdefault(value)
        for loop in access.loops:
            if not isinstance(loop.extent, int):
                for value in Index.of(loop.extent).values():
                    if is_symbol(value):
                        seen.setdefault(value)
    return list(seen)


def _touched(access: Access, reference: Access, keep: list[Variable]):
    """The elements that `access` touches, as a set over the symbols, the loops of `reference`, and the place."""
    common = {loop.induction_variable for loop in access.loops if loop in reference.loops}
    system = System()

    def naming(value: SSAValue) -> Variable:
        variable: Variable = value if value in common or is_fixed(value) else ("own", value)
        system.declare(variable, *range_of(value))
        return variable

    add_domain(system, access.loops, access.conditions, naming)
    for d, index in enumerate(access.indices or ()):
        place: Variable = ("place", d)
        system.bounds.setdefault(place, (None, None))
        system.equal(Row({place: 1}, 0), system.row(index, naming))
    return within_budget(lambda: system.projection(keep))
