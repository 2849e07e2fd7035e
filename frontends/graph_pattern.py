"""Patterns over values of `weft.graph`, and their rewrites: `weft.graph.pattern`.

    from weft import graph as G

    P = G.pattern
    x, w, b = P.var("x"), P.var("w"), P.var("b")
    count = P.rewrite(module, P.matmul(x, P.transpose(w, axes=None)) + b, lambda v: G.dense(v["x"], v["w"], v["b"]))

`weft.analysis.graph_patterns` documents the elements of patterns.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TypeAlias

from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import OpResult
from xdsl.pattern_rewriter import RewritePattern

from weft.analysis import graph_patterns
from weft.analysis.graph_patterns import Match, Pattern, const, factors, op, optional, terms, var
from weft.dialects.graph import DIALECT
from weft.dialects.graph_shapes import ShapeError
from weft.frontends.graph_builder import Value
from weft.passes.graph.functions import graph_functions
from weft.passes.graph.rewriting import GraphRewritePattern, Replacement, Rule, pattern_rule
from weft.passes.graph.rewriting import rewrite as rewrite_function
from weft.support.argument_types import shown
from weft.support.errors import CompileError

__all__ = ["Pattern", "const", "factors", "find", "match", "op", "optional", "rewrite", "rewrite_pattern"]
__all__ += ["terms", "var"]

Captures: TypeAlias = dict[str, Value]
"""Values named by a pattern; names in optional parts may be absent."""
Build: TypeAlias = Callable[[Captures], "Value | None"]


def match(pattern: Pattern, value: Value) -> Captures | None:
    found = pattern.match(value)
    return None if found is None else _captures(found)


def find(target: ModuleOp | FuncOp, pattern: Pattern) -> Iterator[Mapping[str, Value]]:
    for function in _functions(target):
        for operation in function.walk():
            for result in operation.results if operation.dialect_name() == DIALECT else ():
                found = pattern.match(result)
                if found is not None:
                    yield _captures(found)


def rewrite(target: ModuleOp | FuncOp, pattern: Pattern, build: Build, *, allow_shared: bool = False) -> int:
    """Replace matches by the result of `build` on the values that the pattern names, in place, in graph functions of a
    module or in a function. Returns the number of replacements.

    `build` returns a value of the same type, created by the operators of `weft.graph`, or None to keep the match.
    Matching starts at the last operator; new operators are not matched again. Matches end in operators of one result.
    Unless `allow_shared`, a match whose inner operator has other uses is kept, because that operator would be computed
    in addition to the replacement.

    Raises `CompileError` for a replacement of another type, and if an operator rejects its operands; earlier
    replacements remain.
    """
    rule = _rule(pattern, build, allow_shared)
    return sum(rewrite_function(function, [rule], until_done=False) for function in _functions(target))


def rewrite_pattern(pattern: Pattern, build: Build, *, allow_shared: bool = False) -> RewritePattern:
    """`rewrite` as an xDSL pattern, for `PatternRewriteWalker` and passes."""
    return GraphRewritePattern(_rule(pattern, build, allow_shared))


def _functions(target: ModuleOp | FuncOp) -> list[FuncOp]:
    return [target] if isinstance(target, FuncOp) else list(graph_functions(target))


def _captures(found: Match) -> Captures:
    return {name: Value(value) for name, value in found.captures.items()}


def _rule(pattern: Pattern, build: Build, allow_shared: bool) -> Rule:
    def built(found: Match, root: OpResult) -> Replacement:
        try:
            value = build(_captures(found))
        except ShapeError as error:
            raise CompileError.at(root.op, f"rewrite: {error}") from None
        if value is None:
            return None
        if not isinstance(value, Value):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise CompileError(f"rewrite: the function gives a value of a graph or None, got {shown(value)}")
        if value.type != root.type:
            raise CompileError.at(
                root.op, f"rewrite: the replacement is {value.type}, but {root.op.name} gives {root.type}"
            )
        return value.ssa

    return pattern_rule(pattern, built, allow_shared=allow_shared)


def __getattr__(name: str) -> Callable[..., Pattern]:
    return getattr(graph_patterns, name)
