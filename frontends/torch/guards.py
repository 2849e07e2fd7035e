"""The sizes for which PyTorch exported a program, as call preconditions (`weft.support.call_preconditions`).

`torch.export` records guards, the conditions on sizes under which it traced the program, as Python: `L['x'].size()[0] %
8 == 0`, where `x` is a parameter of `forward`. The program is wrong for sizes that violate one.
"""

from __future__ import annotations

import ast
import operator
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial, reduce
from itertools import chain, product
from types import SimpleNamespace
from typing import Any, Final, cast

from weft.dialects.graph_shapes import (
    Choice,
    Expression,
    KnownExtent,
    Shape,
    add,
    choose_size,
    floordiv,
    multiply,
    substitute,
    sum_text,
    symbol,
)
from weft.frontends.torch.library import pytree
from weft.frontends.torch.symbols import UnsupportedError, ratio
from weft.support.errors import CompileError

_REASON: Final = "PyTorch exported the model for such sizes"
_RELATIONS: Final[Mapping[type[ast.cmpop], tuple[str, Callable[[Any, Any], bool]]]] = {
    ast.Eq: ("{0} == {1}", operator.eq),
    ast.NotEq: ("{2} <= {1} or {3} <= {0}", operator.ne),
    ast.LtE: ("{0} <= {1}", operator.le),
    ast.Lt: ("{2} <= {1}", operator.lt),
    ast.GtE: ("{1} <= {0}", operator.ge),
    ast.Gt: ("{3} <= {0}", operator.gt),
}
"""The text of a relation of two sides, 0 and 1 (2 and 3 are one more than these), and its truth for numbers."""

_OPPOSITES: Final[Mapping[type[ast.cmpop], type[ast.cmpop]]] = {
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.LtE: ast.Gt,
    ast.Gt: ast.LtE,
    ast.Lt: ast.GtE,
    ast.GtE: ast.Lt,
}


class _Sizes:
    def __init__(self, shape: Shape) -> None:
        self._shape = shape

    def size(self) -> Shape:
        return self._shape


class _Quotient:
    """A float computed from sizes: an extent divided by a number."""

    def __init__(self, numerator: KnownExtent, denominator: int = 1) -> None:
        self._numerator, self._denominator = numerator, denominator

    def __mul__(self, other: float) -> _Quotient:
        numerator, denominator = ratio(other)
        return _Quotient(multiply(self._numerator, numerator), self._denominator * denominator)

    __rmul__ = __mul__

    def floor(self) -> KnownExtent:
        return floordiv(self._numerator, self._denominator)

    def ceil(self) -> KnownExtent:
        return floordiv(add(self._numerator, self._denominator - 1), self._denominator)


_FUNCTIONS: Final = {
    "math": SimpleNamespace(trunc=_Quotient.floor, floor=_Quotient.floor, ceil=_Quotient.ceil),
    "torch": SimpleNamespace(sym_float=_Quotient),
}


def call_preconditions(program: Any, leaves: Sequence[Any], equal: Mapping[str, KnownExtent]) -> list[str]:
    """The guards and the ranges of sizes of an exported program.

    `leaves` has the inputs in order: shapes of tensors, extents of sizes, other values. `equal` has the extents that
    replace symbols. Raises `CompileError` for a guard that is not a comparison of integer arithmetic.
    """
    facts: list[str] = []
    for size, bounds in program.range_constraints.items():
        # Sizes 0 and 1 are accepted, as in PyTorch, although it exports for sizes of at least 2 by default.
        if not size.is_Symbol:
            continue
        extent = sum_text(substitute(symbol(str(size)), equal))
        if bounds.lower > 2:
            facts.append(f"{int(bounds.lower)} <= {extent}")
        if bounds.upper.is_Integer:
            facts.append(f"{extent} <= {int(bounds.upper)}")
    sources = _sources(program, leaves)
    for code in program._guards_code:
        try:
            facts += _facts(ast.parse(code, mode="eval").body, sources)
        except (ArithmeticError, LookupError, NameError, SyntaxError, TypeError, UnsupportedError, ValueError) as error:
            raise CompileError(f"from_torch: calls cannot check the condition of PyTorch that {code}") from error
    return [f"{fact} # {_REASON}" for fact in dict.fromkeys(facts)]


def _sources(program: Any, leaves: Sequence[Any]) -> dict[str, Any]:
    """Inputs by parameter name, `L` of guards; `*xs` is `xs`, and `flat_args` has all in order."""
    values = [_Sizes(cast("Shape", leaf)) if isinstance(leaf, tuple) else leaf for leaf in leaves]
    args, keywords = pytree.tree_unflatten(values, program.call_spec.in_spec)
    names = program.module_call_graph[0].signature.forward_arg_names or ()
    named = dict(zip(names, args, strict=False)) | keywords
    for name in names:
        variadic = re.fullmatch(r"(.+)_(\d+)", name)
        if variadic and name in named:
            named.setdefault(variadic[1], {})[int(variadic[2])] = named[name]
    return named | {"flat_args": values}


def _facts(condition: ast.expr, sources: Mapping[str, Any]) -> Iterator[str]:
    """Clauses (disjunctions of comparisons), except those that are always true."""
    for clause in _clauses(condition, sources):
        if not clause:
            raise ValueError("no size fits")
        yield " or ".join(clause)


def _clauses(condition: ast.expr, sources: Mapping[str, Any]) -> list[list[str]]:
    """Conjunctive normal form: no clauses are true, an empty clause is false."""
    match condition:
        case ast.UnaryOp(op=ast.Not()):
            return _clauses(_negated(condition.operand), sources)
        case ast.BoolOp(op=ast.And()):
            return [clause for part in condition.values for clause in _clauses(part, sources)]
        case ast.BoolOp():
            parts = [_clauses(part, sources) for part in condition.values]
            return [list(dict.fromkeys(chain.from_iterable(clauses))) for clauses in product(*parts)]
        case ast.Compare(ops=[op]):
            left, right = (_extent(side, sources) for side in (condition.left, condition.comparators[0]))
            text, holds = _RELATIONS[type(op)]
            if isinstance(left, int) and isinstance(right, int):
                return [] if holds(left, right) else [[]]
            if left == right:
                return [] if holds(0, 0) else [[]]
            return [text.format(*map(sum_text, (left, right, add(left, 1), add(right, 1)))).split(" or ")]
        case _:
            raise TypeError("no comparison")


def _negated(condition: ast.expr) -> ast.expr:
    """Raises `TypeError` unless a condition consists of comparisons."""
    match condition:
        case ast.UnaryOp(op=ast.Not()):
            return condition.operand
        case ast.BoolOp():
            op = ast.Or() if isinstance(condition.op, ast.And) else ast.And()
            return ast.BoolOp(op, [_negated(part) for part in condition.values])
        case ast.Compare(ops=[op]):
            return ast.Compare(condition.left, [_OPPOSITES[type(op)]()], condition.comparators)
        case _:
            raise TypeError("no comparison")


def _extent(side: ast.expr, sources: Mapping[str, Any]) -> KnownExtent:
    names: dict[str, Any] = {"__builtins__": {}, "L": sources, **_FUNCTIONS}
    names |= {"min": partial(_chosen, "min"), "max": partial(_chosen, "max")}
    found: object = eval(compile(ast.Expression(side), "<guard>", "eval"), names)
    if not isinstance(found, int | Expression):
        raise TypeError("no integer")
    return found


def _chosen(kind: Choice, *extents: KnownExtent) -> KnownExtent:
    return reduce(partial(choose_size, kind), extents)
