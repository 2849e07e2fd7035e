"""Rejects fusing a loop that restarts a reduction with the reduction's own loops: the restart point would be lost."""

from __future__ import annotations

from collections.abc import Sequence

from weft.analysis.checks import domain_of
from weft.analysis.coverage import Domain, repeated_instance
from weft.analysis.dependence import undecided
from weft.analysis.replay import runs_twice
from weft.analysis.sets import NotProved, Point
from weft.dialects.tir import BlockOp, ForOp
from weft.dialects.tir_kinds import IterKind
from weft.support.errors import Violation


def repeated_reduction(loops: Sequence[ForOp]) -> Violation | None:
    """Why `loops` of a chain, outermost first, may not become one: a reduction below goes on in one of them, and those
    outside of that run instances of it again, each time from the init."""
    for block in loops[-1].walk():
        if not isinstance(block, BlockOp) or block.init is None:
            continue
        domain = domain_of(block)
        reduced = {
            value
            for index, kind in zip(domain.bindings, block.kinds, strict=True)
            if kind is IterKind.REDUCE
            for value in index.sources()
        }
        first = next((at for at, loop in enumerate(loops) if loop.induction_variable in reduced), 0)
        if first == 0 or loops[0] not in domain.loops:
            continue
        outside = list(domain.loops[: domain.loops.index(loops[0])])
        if any(loop.induction_variable in reduced for loop in outside):
            continue  # then they are one run of the reduction already
        try:
            repeated = repeated_instance(domain, outside)
        except NotProved as error:
            return undecided(error)
        if repeated is not None:
            return _violation(block, domain, outside, repeated, loops[first])
    return None


def _violation(
    block: BlockOp, domain: Domain, outside: Sequence[ForOp], repeated: tuple[Point, Point], loop: ForOp
) -> Violation:
    iterations = {
        f"{role} iteration": {
            inner.induction_variable.name_hint or "?": point.get(inner.induction_variable, 0) for inner in domain.loops
        }
        for role, point in zip(("first", "second"), repeated, strict=True)
    }
    texts = ["(" + ", ".join(f"{name}={v}" for name, v in each.items()) + ")" for each in iterations.values()]
    return Violation(
        f'iterations {texts[0]} and {texts[1]} run the same instance of the reduction "{block.label}", the second time '
        "from its start",
        "refuted",
        iterations,
        f"loops outside of %{loop.induction_variable.name_hint or '?'} fused among themselves",
        replay=lambda: runs_twice(domain, outside, *repeated),
    )
