"""Unification of symbols of a model that its operators require to be equal."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from xdsl.ir import Operation, SSAValue

from weft.dialects.graph_shapes import (
    Extent,
    KnownExtent,
    ShapeError,
    is_signed,
    lone_name,
    names_in,
    substitute,
)
from weft.texpr.graph_operators import Operator


def assumed_equal(values: Iterable[SSAValue]) -> list[tuple[Extent, Extent]]:
    """Pairs of extents that operators require to be equal, in order."""
    found: list[tuple[Extent, Extent]] = []
    seen: set[Operation] = set()
    pending = [value.owner for value in values]
    while pending:
        op = pending.pop()
        if isinstance(op, Operation) and op not in seen:
            seen.add(op)
            pending += [operand.owner for operand in op.operands]
            if isinstance(op, Operator):
                found += op.assumed
    return list(dict.fromkeys(found))


def unified(
    pairs: Iterable[tuple[Extent, Extent]], known: Mapping[str, KnownExtent], order: Sequence[str]
) -> Mapping[str, KnownExtent]:
    """Solve `pairs`, given the solutions in `known`; the earlier name in `order` replaces the later one. Equations
    without a solution remain conditions of operators."""
    rank = {name: at for at, name in enumerate(order)}
    found = dict(known)
    for pair in pairs:
        try:
            sides = [substitute(side, found) for side in pair]
            if sides[0] == sides[1] or None in sides:
                continue
            for name, other in sorted(
                ((lone_name(a), b) for a, b in (sides, sides[::-1])), key=lambda side: -rank.get(side[0] or "", -1)
            ):
                is_size = other >= 0 if isinstance(other, int) else not any(map(is_signed, names_in(other)))
                if name in rank and other is not None and is_size and name not in names_in(other):
                    found = {key: substitute(extent, {name: other}) for key, extent in found.items()} | {name: other}
                    break
        except ShapeError:
            continue
    return found
