"""`if` statements -> `scf.if`: around stores, and with results where both branches give a name a value."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence

from xdsl.dialects.scf import YieldOp
from xdsl.ir import Block

from weft.frontends.script import tir
from weft.frontends.script.part_parser import StatementPartParser
from weft.frontends.script.values import Buffer, Leaf, hint_of
from weft.texpr.expr import Const, Expr, default_number
from weft.texpr.operators import as_number


class ConditionParser(StatementPartParser):
    """Reads the conditions of a function; `read_body` reads the statements in them.

    A condition that is known while the script is read chooses one branch. A name that both branches give a value, and
    that is used after the condition, is a result of it:

    ```python
    if vi < 4:
        x = A[vi]
    else:
        x = T.float32(0)
    B[vi] = x
    ```
    """

    def parse(self, node: ast.If) -> None:
        """The condition. Raises CompileError where it is no bool, or where branches give a name two dtypes."""
        test = self._evaluator.evaluate(node.test)
        if not isinstance(test, Expr):
            if isinstance(test, Buffer):
                self._evaluator.scalar(node.test, test)
            self._read_body(node.body if test else node.orelse)
            return
        if test.dtype != "bool":
            raise self._error(node.test, f"a condition is a bool, `{test}` is {test.dtype}: compare it")
        condition = self._emitter.value(test)
        then, chosen = self._branch(node.body)
        otherwise, other = self._branch(node.orelse) if node.orelse else (None, {})
        names = self._joined(node, chosen, other)
        if otherwise is not None and names:
            self._yield(node, then, otherwise, names, chosen, other)
        self._place(node)
        op = self._emitter.conditional(condition, then, otherwise, len(names))
        self._emitter.effect(op)
        for name, result in zip(names, op.results, strict=True):
            result.name_hint = hint_of(name)
            self._evaluator.bind(name, Leaf.of(result, name))

    def _branch(self, statements: Sequence[ast.stmt]) -> tuple[Block, dict[str, object]]:
        """The ops of a branch, and the names that it binds."""
        block = Block()
        with self._emitter.body(block), self._evaluator.scope() as names:
            self._read_body(statements)
            return block, names

    def _joined(self, node: ast.If, chosen: Mapping[str, object], other: Mapping[str, object]) -> list[str]:
        """The names that both branches give an element or index to, and that are used after the condition."""
        end = node.end_lineno or node.lineno
        later = {
            use.id
            for use in ast.walk(self._function.node)
            if isinstance(use, ast.Name) and isinstance(use.ctx, ast.Load) and use.lineno > end
        }
        return [name for name in chosen if name in other and name in later]

    def _yield(
        self,
        node: ast.If,
        then: Block,
        otherwise: Block,
        names: Sequence[str],
        chosen: Mapping[str, object],
        other: Mapping[str, object],
    ) -> None:
        pairs = [self._unified(node, name, chosen[name], other[name]) for name in names]
        are_indices = [all(_is_index(side[name]) for side in (chosen, other)) for name in names]
        for side, block in enumerate((then, otherwise)):
            with self._emitter.inside(block):
                values = [
                    self._emitter.index(pair[side]) if is_index else self._emitter.value(pair[side], pair[0].dtype)
                    for pair, is_index in zip(pairs, are_indices, strict=True)
                ]
                self._emitter.finish(YieldOp(*values))

    def _unified(self, node: ast.If, name: str, left: object, right: object) -> tuple[Expr, Expr]:
        """What the two branches give `name`, of one dtype."""
        a, b = as_number(left), as_number(right)
        if a is not None and b is not None:
            return default_number(a), default_number(b)
        pair = [self._evaluator.scalar(node, side) for side in (left, right)]
        x, y = (side.dtype if isinstance(side, Expr) else None for side in pair)
        one, two = (
            side if isinstance(side, Expr) else self._evaluator.apply(node, tir.Cast, x or y, side) for side in pair
        )
        if one.dtype != two.dtype and not (one.is_index and two.is_index):
            raise self._error(node, f"{name} is {one.dtype} in one branch and {two.dtype} in the other: cast one")
        return one, two


def _is_index(value: object) -> bool:
    """Whether a branch gives an index: an integer, or an expression of indices."""
    if isinstance(value, Expr):
        return value.is_index and not isinstance(value, Const)
    return isinstance(value, int) and not isinstance(value, bool)
