"""Index maps as Python functions: trace or parse `lambda n, c: (n, c // 4, c % 4)`, and check layouts.

A function is called once, on stand-ins for the indices that support `+`, `-`, and `*`, `//`, `%` by constants; casts to
int32 and int64 do not change them. Text is parsed, not executed.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from inspect import Parameter, signature
from typing import NoReturn, cast

from xdsl.ir.affine import (
    AffineBinaryOpExpr,
    AffineBinaryOpKind,
    AffineConstantExpr,
    AffineDimExpr,
    AffineExpr,
    AffineMap,
)

from weft.analysis.index import Index
from weft.analysis.layout_maps import LayoutMap
from weft.analysis.questions import point_text
from weft.dialects.tir import BlockOp
from weft.passes.schedule.checks import iterator_names, place_text
from weft.passes.schedule.primitive import Primitive
from weft.support.errors import CompileError, InternalError, Violation
from weft.texpr.expr import Binary, BinaryKind, Cast, Const, Expr

_LEGAL = "an index map is built with +, -, and *, //, % by constants"
_TOKENS = {
    AffineBinaryOpKind.Add: "+",
    AffineBinaryOpKind.Mul: "*",
    AffineBinaryOpKind.FloorDiv: "//",
    AffineBinaryOpKind.Mod: "%",
}


class Traced(Expr):
    __slots__ = ("expr",)

    def __init__(self, expr: AffineExpr) -> None:
        self.expr, self.dtype, self.is_index = expr, "int64", True

    def text(self, depth: int) -> str:
        return str(self.expr)

    def __add__(self, other: object) -> Traced:
        return Traced(self.expr + _expr(other))

    __radd__ = __add__

    def __sub__(self, other: object) -> Traced:
        return Traced(self.expr + _expr(other) * -1)

    def __rsub__(self, other: object) -> Traced:
        return Traced(_expr(other) + self.expr * -1)

    def __mul__(self, other: object) -> Traced:
        right = _expr(other)
        if not isinstance(self.expr, AffineConstantExpr) and not isinstance(right, AffineConstantExpr):
            raise CompileError(f"an index times an index is not affine: {_LEGAL}")
        return Traced(self.expr * right)

    __rmul__ = __mul__

    def __neg__(self) -> Traced:
        return Traced(self.expr * -1)

    def __floordiv__(self, other: object) -> Traced:
        return Traced(self.expr // _divisor(other))

    def __mod__(self, other: object) -> Traced:
        return Traced(self.expr % _divisor(other))

    def __rfloordiv__(self, other: object) -> NoReturn:
        raise CompileError(f"a division by an index is not affine: {_LEGAL}")

    __rmod__ = __rfloordiv__

    def __truediv__(self, other: object) -> NoReturn:
        raise CompileError(f"indices are divided by //: {_LEGAL}")

    __rtruediv__ = __truediv__

    def __bool__(self) -> NoReturn:
        raise CompileError(f"an index map does not decide by the values of indices: {_LEGAL}")

    def __eq__(self, other: object) -> NoReturn:
        self.__bool__()

    __lt__ = __le__ = __gt__ = __ge__ = __eq__

    def __hash__(self) -> int:
        return hash(self.expr)


def _expr(value: object) -> AffineExpr:
    match value:
        case Traced(expr=expr):
            return expr
        case Const(value=int(constant)):
            return AffineConstantExpr(constant)
        case Cast(operand=operand, dtype="int32" | "int64"):
            return _expr(operand)
        case Binary(kind=kind, left=left, right=right) if kind in _BINARY:
            return _BINARY[kind](Traced(_expr(left)), right).expr
        case _:
            pass
    if isinstance(value, int) and not isinstance(value, bool):
        return AffineConstantExpr(value)
    if hasattr(value, "__index__"):
        return AffineConstantExpr(int(cast("int", value)))
    raise CompileError(f"an index map gives indices, got {value!r}: {_LEGAL}")


_BINARY: Mapping[BinaryKind, Callable[[Traced, object], Traced]] = {
    BinaryKind.ADD: Traced.__add__,
    BinaryKind.SUB: Traced.__sub__,
    BinaryKind.MUL: Traced.__mul__,
    BinaryKind.FLOORDIV: Traced.__floordiv__,
    BinaryKind.FLOORMOD: Traced.__mod__,
}
"""For expressions over indices: `T.floordiv(i, 4)`, `T.Cast("int64", i) * 4`."""


def _divisor(value: object) -> int:
    expr = _expr(value)
    if not isinstance(expr, AffineConstantExpr) or expr.value < 1:
        shown = expr.value if isinstance(expr, AffineConstantExpr) else "an index"
        raise CompileError(f"an index is divided by {shown}: divisors are constants of at least 1")
    return expr.value


def index_map_of(function: Callable[..., object] | AffineMap, rank: int | None) -> AffineMap:
    """`rank` defaults to the number of parameters. Raises `CompileError` if the function is not affine."""
    if isinstance(function, AffineMap):
        return function
    if rank is None:
        rank = len(_parameters(function))
    return AffineMap(rank, 0, tuple(_results(_call(function, rank))))


def ranges_of(function: Callable[..., object] | AffineMap, rank: int, dimensions: int | None) -> AffineMap:
    """Begin and end of each dimension, in turn, from a flat list, pairs, or single indices."""
    if isinstance(function, AffineMap):
        return function
    found = _call(function, rank)
    parts: Sequence[object] = cast("Sequence[object]", found) if isinstance(found, list | tuple) else [found]
    flat = dimensions is not None and len(parts) == 2 * dimensions
    ends: list[AffineExpr] = []
    for pair in map(_results, parts):
        ends.extend(pair if flat or len(pair) != 1 else [pair[0], pair[0] + 1])
    return AffineMap(rank, 0, tuple(ends))


def value_of(function: Callable[..., object], rank: int) -> AffineMap | int | float:
    result = _call(function, rank)
    if isinstance(result, int | float):
        return result
    return AffineMap(rank, 0, (_expr(result),))


def _call(function: Callable[..., object], rank: int) -> object:
    given = _parameters(function)
    needed = [p.name for p in given if p.kind is Parameter.KEYWORD_ONLY and p.default is Parameter.empty]
    if needed:
        raise CompileError(f"the index map takes indices only, but needs the keyword {needed[0]}=")
    given = [p for p in given if p.kind not in (Parameter.KEYWORD_ONLY, Parameter.VAR_KEYWORD)]
    several = any(parameter.kind is Parameter.VAR_POSITIONAL for parameter in given)
    least = sum(p.default is Parameter.empty and p.kind is not Parameter.VAR_POSITIONAL for p in given)
    if least > rank or (len(given) < rank and not several):
        raise CompileError(f"the index map takes {len(given)} indices, there are {rank}")
    return function(*(Traced(AffineDimExpr(at)) for at in range(rank)))


def _parameters(function: Callable[..., object]) -> list[Parameter]:
    if not callable(function):
        raise CompileError(f"an index map is a function of indices, got {function!r}")
    try:
        return list(signature(function).parameters.values())
    except (TypeError, ValueError):
        raise CompileError(f"an index map is a Python function of indices, got {function!r}") from None


def _results(result: object) -> list[AffineExpr]:
    elements: Sequence[object] = cast("Sequence[object]", result) if isinstance(result, list | tuple) else [result]
    return [_expr(element) for element in elements]


def parse_function(text: str | ast.Lambda) -> AffineMap:
    """Raises `CompileError` if the text is not an index map."""
    node: ast.expr | ast.Lambda
    if isinstance(text, str):
        try:
            node = ast.parse(text.strip(), mode="eval").body
        except SyntaxError:
            raise CompileError(f"an index map is written lambda n, c: (n, c // 4, c % 4), got '{text}'") from None
    else:
        node = text
    if not isinstance(node, ast.Lambda) or node.args.vararg or node.args.kwonlyargs or node.args.defaults:
        raise CompileError("an index map is written lambda n, c: (n, c // 4, c % 4)")
    names = [argument.arg for argument in node.args.args]
    indices = {name: Traced(AffineDimExpr(at)) for at, name in enumerate(names)}
    body = node.body.elts if isinstance(node.body, ast.Tuple | ast.List) else [node.body]
    return AffineMap(len(names), 0, tuple(_expr(_evaluate(element, indices)) for element in body))


_OPERATORS: Mapping[type[ast.operator], Callable[[Traced, object], Traced]] = {
    ast.Add: Traced.__add__,
    ast.Sub: Traced.__sub__,
    ast.Mult: Traced.__mul__,
    ast.FloorDiv: Traced.__floordiv__,
    ast.Mod: Traced.__mod__,
}


def _evaluate(node: ast.expr, names: dict[str, Traced]) -> object:
    match node:
        case ast.Name(id=name) if name in names:
            return names[name]
        case ast.Constant(value=int(value)) if not isinstance(value, bool):
            return value
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return -_traced(operand, names)
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _OPERATORS:
            return _OPERATORS[type(op)](_traced(left, names), _traced(right, names))
        case _:
            raise CompileError(f"'{ast.unparse(node)}' in an index map: {_LEGAL}")


def _traced(node: ast.expr, names: dict[str, Traced]) -> Traced:
    return Traced(_expr(_evaluate(node, names)))


def function_text(map_: AffineMap) -> str:
    names = [f"d{at}" for at in range(map_.num_dims)]
    results = [_text(expr, 0) for expr in map_.results]
    body = results[0] if len(results) == 1 else f"({', '.join(results)})"
    return f"lambda {', '.join(names)}: {body}" if names else f"lambda: {body}"


def _text(expr: AffineExpr, context: int) -> str:
    if isinstance(expr, AffineConstantExpr):
        return str(expr.value) if expr.value >= 0 else f"({expr.value})"
    if isinstance(expr, AffineDimExpr):
        return f"d{expr.position}"
    if not isinstance(expr, AffineBinaryOpExpr):
        raise InternalError(f"an index map with {expr}")
    if expr.kind is AffineBinaryOpKind.CeilDiv:
        return f"(-(-{_text(expr.lhs, 2)} // {_text(expr.rhs, 2)}))"
    precedence = 0 if expr.kind is AffineBinaryOpKind.Add else 1
    text = f"{_text(expr.lhs, precedence)} {_TOKENS[expr.kind]} {_text(expr.rhs, precedence + 1)}"
    return f"({text})" if precedence < context else text


def why_not_function(map_: AffineMap, rank: int) -> str | None:
    """Maps written by hand may have symbols or invalid divisors."""
    if map_.num_dims != rank or map_.num_symbols:
        return f"it takes {map_.num_dims + map_.num_symbols} indices, there are {rank}"
    if not map_.results:
        return "it gives no index"
    for expr in map_.results:
        for node in expr.dfs():
            if isinstance(node, AffineConstantExpr) and not -(1 << 63) <= node.value < 1 << 63:
                return f"{node.value} is not an index of 64 bits"
            if not isinstance(node, AffineBinaryOpExpr) or node.kind is AffineBinaryOpKind.Add:
                continue
            sides = [side for side in (node.lhs, node.rhs) if isinstance(side, AffineConstantExpr)]
            if node.kind is AffineBinaryOpKind.Mul:
                if not sides:
                    return f"{node} is not affine"
            elif not isinstance(node.rhs, AffineConstantExpr) or node.rhs.value < 1:
                return f"{node} is not divided by a constant of at least 1"
    return None


@dataclass(frozen=True)
class Points:
    names: tuple[str, ...]
    text: Callable[[Sequence[int]], str]
    """`B[0, 1]`, or `instance (i=0, j=1)`."""
    meet: str
    """`would both be stored at`, or `would both run as`."""
    what: str
    """`element` or `instance`."""
    whole: str
    """`B is memref<6x10xf32>`."""

    def named(self, point: Sequence[int]) -> dict[str, int]:
        return dict(zip(self.names, point, strict=True))


def missed_place(layout: LayoutMap, missed: Sequence[int], detail: str, legal: str) -> Violation:
    """A new index to which no old one is mapped."""
    index = {f"d{at}": value for at, value in enumerate(missed)}
    validate = partial(layout.really_missed, missed)
    return Violation(detail, counterexample={"index": index}, legal=legal, validate=validate)


def points_of_iterators(block: BlockOp, what: str, meet: str) -> Points:
    """`what` precedes the values of the iterators."""
    names = iterator_names(block)
    whole = f"the iterators are {', '.join(names) or 'none'}"
    return Points(
        tuple(names), lambda point: f"{what}{point_text(zip(names, point, strict=True))}", meet, "instance", whole
    )


def required_layout(
    primitive: Primitive, requirements: tuple[int, int], map_: AffineMap, extents: Sequence[Index], points: Points
) -> LayoutMap:
    """Refuses unless the map is valid on the box and injective (the two requirements)."""
    boxed, apart = requirements
    why = why_not_function(map_, len(extents))
    primitive.require(boxed, why, legal=points.whole)
    with primitive.deciding(boxed):
        layout = LayoutMap(map_, extents)
        negative = layout.negative()
    if negative is not None:
        index, dimension = negative
        detail = f"it takes {points.text(index)} below 0, in dimension {dimension}"
        place = {points.what: points.named(index)}
        violation = Violation(detail, counterexample=place, validate=lambda: layout.at(index)[dimension] < 0)
        primitive.refuse(boxed, violation)
    known = layout.new_extents
    if known is None or any(extent.is_constant and extent.constant < 1 for extent in known):
        primitive.refuse(boxed, Violation("an extent is not an expression in the old ones", "not proved"))
    with primitive.deciding(apart):
        both = layout.collision()
    if both is not None:
        first, second = both
        detail = f"{points.text(first)} and {points.text(second)} {points.meet} {place_text(layout.at(first))}"
        places = {f"first {points.what}": points.named(first), f"second {points.what}": points.named(second)}
        violation = Violation(
            detail,
            counterexample=places,
            validate=lambda: first != second and layout.at(first) == layout.at(second),
        )
        primitive.refuse(apart, violation)
    return layout
