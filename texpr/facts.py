"""Facts about variables that programs rely on and calls check: `te.create_func([A, B], assume=[n % 32 == 0])`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from weft.dialects.tir_assume import AssumeOp, Relation
from weft.support.argument_types import shown
from weft.texpr.emit import ElementEmitter
from weft.texpr.expr import Compare, Expr, Predicate, error, is_extent
from weft.texpr.shapes import items

Facts: TypeAlias = "Sequence[Expr | bool] | Expr | bool"
"""Comparisons of extents by `==`, `<=`, `<`, `>=`, `>`."""

RELATIONS = {
    Predicate.EQ: Relation.EQUAL,
    Predicate.LE: Relation.AT_MOST,
    Predicate.LT: Relation.LESS,
    Predicate.GE: Relation.AT_MOST,
    Predicate.GT: Relation.LESS,
}
TURNED = (Predicate.GE, Predicate.GT)
"""Those that are stated from right to left."""


def checked_facts(assume: object) -> tuple[Compare, ...]:
    """The facts of `assume`. Raises CompileError for what is no comparison of extents."""
    return tuple(_checked(fact) for fact in items(assume))


def _checked(fact: object) -> Compare:
    if not isinstance(fact, Compare):
        raise error(f"assume takes comparisons of extents such as n % 32 == 0, got {shown(fact)}")
    if fact.predicate not in RELATIONS:
        raise error(f"assume compares by ==, <=, <, >= or >, got {fact}")
    for side in (fact.left, fact.right):
        if not is_extent(side):
            raise error(f"assume compares extents, made of integers and integer variables, got {side} in {fact}")
    return fact


def state_facts(emitter: ElementEmitter, facts: Sequence[Compare]) -> None:
    """Write the facts into the entry block of a function, after its extents are known."""
    for fact in facts:
        left, right = (fact.right, fact.left) if fact.predicate in TURNED else (fact.left, fact.right)
        (first, second), operands = emitter.affine_forms([left, right])
        emitter.finish(AssumeOp(first, RELATIONS[fact.predicate], second, operands))
