"""Writes that fill a box around a read: the common case of a copy, decided without isl."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from xdsl.ir import SSAValue

from weft.analysis.accesses import Access, is_fixed, range_of
from weft.analysis.index import Index, Quotient, Remainder


def fills_box_around(write: Access, read: Access) -> bool:
    """Whether the loops of `write` that are not around `read` too write every element of a box that holds what `read`
    touches, in each iteration of the loops around both. False when that does not meet the eye.

    In a dimension, `write` touches `base + v`, with v in 0 .. size-1 made of loops that no other dimension uses, and
    `base` the same in `read`; then `read - base` has to lie in 0 .. size-1.
    """
    if write.indices is None or read.indices is None or write.conditions.positives or write.conditions.zeros:
        return False
    common = {loop.induction_variable for loop in write.loops if loop in read.loops}
    extents: dict[SSAValue, int] = {}
    for loop in write.loops:
        if loop.induction_variable not in common:
            if not isinstance(loop.extent, int) or loop.extent < 1:
                return False
            extents[loop.induction_variable] = loop.extent
    used: set[SSAValue] = set()
    for written, wanted in zip(write.indices, read.indices, strict=True):
        parts = _parts(written, extents, common)
        if parts is None or not used.isdisjoint(parts[1]):
            return False
        base, steps = parts
        used.update(steps)
        size = _size({value: (factor, extents[value]) for value, factor in steps.items()})
        low, high = (wanted - base).simplified(range_of).range(range_of)
        if size is None or low is None or high is None or low < 0 or high >= size:
            return False
    return True


def _parts(
    index: Index, loops: Collection[SSAValue], common: Collection[SSAValue]
) -> tuple[Index, dict[SSAValue, int]] | None:
    """An index as what is the same in one iteration of the `common` loops, and coefficients of `loops`."""
    base = Index({}, index.constant)
    steps: dict[SSAValue, int] = {}
    for atom, factor in index.terms.items():
        if not isinstance(atom, Quotient | Remainder) and atom in loops:
            steps[atom] = factor
            continue
        part = Index({atom: factor})
        if not all(value in common or is_fixed(value) for value in part.values()):
            return None
        base = base + part
    return base, steps


def _size(steps: Mapping[SSAValue, tuple[int, int]]) -> int | None:
    """How many numbers from 0 on a sum of digits takes, given factor and extent of each; None if it leaves some out."""
    size = 1
    for factor, extent in sorted(steps.values()):
        if extent == 1:
            continue
        if factor != size:
            return None
        size *= extent
    return size
