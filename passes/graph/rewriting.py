"""Rewriting of graph functions by rules, which replace an operator by others that compute its results."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation, OpResult, SSAValue
from xdsl.pattern_rewriter import PatternRewriter, RewritePattern
from xdsl.rewriter import Rewriter

from weft.analysis.graph_patterns import Match, Pattern
from weft.dialects.graph import DIALECT, CallDpsOp, CallTirOp, ConstantOp
from weft.dialects.graph_shapes import ShapeError
from weft.passes.graph.operators import detached_ops, name_of
from weft.support.rewrites import may_rewrite
from weft.texpr.graph_operators import Operator

if TYPE_CHECKING:
    from xdsl.ir import Attribute

Replacement: TypeAlias = "SSAValue | Operation | Sequence[SSAValue] | None"
"""The values that replace the results of an op, an op with these results, or None if a rule does not apply."""
Build: TypeAlias = Callable[[Match, OpResult], Replacement]
"""Returns the replacement of a matched value, as ops that are not inserted yet."""

_REWRITTEN = (Operator, CallTirOp, CallDpsOp)


@dataclass(frozen=True)
class Rule:
    """A rewrite of named ops, which creates ops, not inserted yet, only if it applies."""

    names: frozenset[str] | None
    """The names of the ops that the rule may replace, without the dialect, or None for all."""
    apply: Callable[[Operation], Replacement]


def pattern_rule(pattern: Pattern, build: Build, *, allow_shared: bool = False) -> Rule:
    """Replace matches, unless an inner operator has users outside, and thus remains (or `allow_shared`)."""

    def apply(op: Operation) -> Replacement:
        match = pattern.match(op.results[0]) if len(op.results) == 1 else None
        if match is None or not (allow_shared or is_closed(match, op)):
            return None
        return build(match, op.results[0])

    return Rule(pattern.heads, apply)


def is_closed(match: Match, root: Operation) -> bool:
    return all(op is root or match.owns(op) for op in match.ops)


def rewrite(function: FuncOp, rules: Sequence[Rule], *, until_done: bool = True) -> int:
    """Apply rules in order to the ops of a graph function. Returns the number of replacements.

    Ops are visited in order, and again after a replaced operand or user. Unless `until_done`, each op is visited
    once, in reverse order, so that a larger match is replaced first. Replacements of another type are rejected.
    Unused ops are erased.
    """
    by_name: dict[str, list[Rule]] = {}
    ops = [op for op in function.walk() if isinstance(op, _REWRITTEN)]
    work = _Work(ops if until_done else reversed(ops))
    count = 0
    try:
        while (op := work.next()) is not None:
            name = name_of(op)
            if name not in by_name:
                by_name[name] = [rule for rule in rules if rule.names is None or name in rule.names]
            found = next((values for rule in by_name[name] if (values := _applied(rule, op)) is not None), None)
            if found is not None and may_rewrite("a rule", op):
                count += 1
                around = _users(op)
                around += _replace(op, found)
                work.add(around if until_done else ())
    finally:
        _discard_detached(function)
    return count


class _Work:
    def __init__(self, ops: Iterable[Operation]) -> None:
        self._queue = deque(ops)
        self._waiting = set(self._queue)

    def next(self) -> Operation | None:
        while self._queue:
            op = self._queue.popleft()
            self._waiting.discard(op)
            if op.parent is not None:
                return op
        return None

    def add(self, ops: Iterable[Operation]) -> None:
        for op in ops:
            if op.parent is not None and op not in self._waiting and isinstance(op, _REWRITTEN):
                self._waiting.add(op)
                self._queue.append(op)


def _applied(rule: Rule, op: Operation) -> list[SSAValue] | None:
    try:
        found = rule.apply(op)
    except ShapeError:  # for operands that an operator does not accept
        return None
    if found is None:
        return None
    values = [found] if isinstance(found, SSAValue) else list(found.results if isinstance(found, Operation) else found)
    types: list[Attribute] = [value.type for value in values]
    if types == list(op.result_types) and not any(value.owner is op for value in values):
        return values
    for value in values:
        _discard(detached_ops(value))
    return None


def _discard(ops: Sequence[Operation]) -> None:
    for op in reversed(ops):
        op.drop_all_references()


def _discard_detached(function: FuncOp) -> None:
    pending = [value for op in function.walk() for value in op.results]
    pending += [argument for argument in function.args]
    for value in pending:
        for use in list(value.uses):
            if use.operation.parent is None and use.operation is not function:
                pending += use.operation.results
                use.operation.drop_all_references()


def _users(op: Operation) -> list[Operation]:
    return [use.operation for result in op.results for use in result.uses]


def _replace(op: Operation, values: Sequence[SSAValue]) -> list[Operation]:
    """Returns the inserted ops, and those whose users changed."""
    block = op.parent
    if block is None:
        return []
    new = [made for value in values for made in detached_ops(value)]
    for made in dict.fromkeys(new):
        made.location = op.location
        block.insert_op_before(made, op)
    for value, result in zip(values, op.results, strict=True):
        if value.owner in new:
            value.name_hint = result.name_hint
    operands = list(op.operands)
    Rewriter.replace_op(op, [], list(values))
    return [*new, *_erase_unused(operands)]


def _erase_unused(values: Iterable[SSAValue]) -> list[Operation]:
    """Returns the ops of values that are still used."""
    kept: list[Operation] = []
    pending = list(values)
    while pending:
        op = pending.pop().owner
        if not isinstance(op, Operator | ConstantOp | CallTirOp) or op.parent is None:
            continue
        if any(result.first_use is not None for result in op.results):
            kept.append(op)
            if all(result.has_one_use() for result in op.results):  # its user may be rewritten now
                kept += _users(op)
            continue
        pending += op.operands
        Rewriter.erase_op(op)
    return kept


class GraphRewritePattern(RewritePattern):
    def __init__(self, rule: Rule) -> None:
        self._rule = rule

    def match_and_rewrite(self, op: Operation, rewriter: PatternRewriter, /) -> None:
        if op.dialect_name() != DIALECT or (self._rule.names is not None and name_of(op) not in self._rule.names):
            return
        found = _applied(self._rule, op)
        if found is not None:
            new = dict.fromkeys(made for value in found for made in detached_ops(value))
            for made in new:
                made.location = op.location
            rewriter.replace(op, list(new), list(found))
