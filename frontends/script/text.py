"""Expressions -> the Python text that evaluates to them again."""

from __future__ import annotations

import math
from collections.abc import Sequence

from weft.frontends.script.values import Buffer, BufferLoad, Leaf, Pointer, Stride, Symbol, reads
from weft.support.errors import InternalError
from weft.texpr.expr import Binary, Cast, Compare, Const, Expr, Select, Unary, binary
from weft.texpr.operators import SYMBOLS, BinaryKind

_OR, _AND, _NOT, _COMPARE, _BIT_OR, _BIT_XOR, _BIT_AND, _SHIFT, _SUM, _PRODUCT, _UNARY, _ATOM = range(12)
"""How tightly Python's operators bind, from loose to tight."""
_LEVELS = {
    BinaryKind.ADD: _SUM,
    BinaryKind.SUB: _SUM,
    BinaryKind.MUL: _PRODUCT,
    BinaryKind.DIV: _PRODUCT,
    BinaryKind.FLOORDIV: _PRODUCT,
    BinaryKind.FLOORMOD: _PRODUCT,
    BinaryKind.AND: _BIT_AND,
    BinaryKind.OR: _BIT_OR,
    BinaryKind.XOR: _BIT_XOR,
    BinaryKind.SHL: _SHIFT,
    BinaryKind.SHR: _SHIFT,
}


def expr_text(expr: Expr, context: int = _OR) -> str:
    """The text of `expr`, in parentheses where it binds more loosely than `context`."""
    text, level = _text(expr)
    return f"({text})" if level < context else text


def number_text(value: float, dtype: str) -> str:
    """A number of a dtype: `T.float32(0)`, `T.float32("inf")`."""
    if isinstance(value, bool) or dtype == "bool":
        return f"T.bool({bool(value)})"
    if isinstance(value, float) and not math.isfinite(value):
        return f'T.{dtype}("{value}")'
    short = isinstance(value, float) and value.is_integer() and abs(value) < 1e15 and math.copysign(1.0, value) > 0
    return f"T.{dtype}({int(value) if short else value!r})"


def element_text(buffer: Buffer, indices: Sequence[Expr]) -> str:
    """An element of a buffer."""
    return f"{buffer.name}[{', '.join(map(index_text, indices)) or '()'}]"


def range_text(low: Expr, size: int) -> str:
    """A slice of a number of elements."""
    high = Const(int(low.value) + size, "int64") if isinstance(low, Const) else binary(BinaryKind.ADD, low, size)
    return f"{index_text(low)}:{index_text(high)}"


def pointer_text(pointer: Pointer) -> str:
    """A pointer, with the box that it gives access to."""
    indices = pointer.indices
    parts = [index_text(index) for index in indices]
    if pointer.sizes is not None:
        parts = [range_text(low, size) for low, size in zip(indices, pointer.sizes, strict=True)]
    return f'T.access_ptr({pointer.buffer.name}[{", ".join(parts) or "()"}], "{pointer.access}")'


def shape_text(extents: Sequence[int | Expr | None]) -> str:
    """A shape as a tuple."""
    parts = [index_text(extent) if isinstance(extent, Expr) else str(extent) for extent in extents]
    return f"({', '.join(parts)}{',' if len(parts) == 1 else ''})"


def _text(expr: Expr) -> tuple[str, int]:
    """The text of an expression, and how tightly its outermost operator binds."""
    match expr:
        case Leaf() | Symbol():
            return expr.name, _ATOM
        case Const():
            return number_text(expr.value, expr.dtype), _ATOM
        case Stride():
            return f"{expr.buffer.name}.strides[{expr.dimension}]", _ATOM
        case BufferLoad():
            return element_text(expr.buffer, expr.indices), _ATOM
        case Binary():
            return _binary(expr)
        case Compare():
            plain = expr.left.is_index and expr.right.is_index and not _both_numbers(expr)
            sides = (_side(side, plain) for side in (expr.left, expr.right))
            left, right = (f"({text})" if level <= _COMPARE else text for text, level in sides)
            return f"{left} {SYMBOLS[expr.predicate]} {right}", _COMPARE
        case Unary(function="neg"):
            return f"-{expr_text(expr.operand, _UNARY)}", _UNARY
        case Unary():
            return f"T.{expr.function}({expr_text(expr.operand)})", _ATOM
        case Select():
            name = "if_then_else" if expr.lazy else "Select"
            return f"T.{name}({', '.join(map(expr_text, expr.parts))})", _ATOM
        case Cast():
            return f'T.Cast("{expr.dtype}", {expr_text(expr.operand)})', _ATOM
        case _:
            raise InternalError(f"no text for {type(expr).__name__} {expr}")


def _side(expr: Expr, is_index: bool) -> tuple[str, int]:
    """An operand: integers beside indices are plain."""
    if isinstance(expr, Const) and is_index:
        return str(expr.value), _ATOM if expr.value >= 0 else _UNARY
    return _text(expr)


def _both_numbers(expr: Binary | Compare) -> bool:
    """Whether Python would compute the expression if its numbers were plain."""
    return isinstance(expr.left, Const) and isinstance(expr.right, Const)


def _binary(expr: Binary) -> tuple[str, int]:
    sides = [_side(side, expr.is_index and not _both_numbers(expr)) for side in (expr.left, expr.right)]
    if (
        expr.kind is BinaryKind.XOR
        and expr.dtype == "bool"
        and isinstance(expr.right, Const)
        and expr.right.value is True
    ):
        return f"not {expr_text(expr.left, _NOT)}", _NOT
    if expr.kind not in _LEVELS:
        return f"T.{expr.kind.value}({sides[0][0]}, {sides[1][0]})", _ATOM
    symbol, level = SYMBOLS[expr.kind], _LEVELS[expr.kind]
    if expr.dtype == "bool" and expr.kind in (BinaryKind.AND, BinaryKind.OR) and not reads(expr.right):
        symbol, level = ("and", _AND) if expr.kind is BinaryKind.AND else ("or", _OR)
    (left, left_level), (right, right_level) = sides
    left = f"({left})" if left_level < level else left
    right = f"({right})" if right_level <= level else right
    return f"{left} {symbol} {right}", level


def index_text(expr: Expr) -> str:
    """An index: integers are plain."""
    return _side(expr, True)[0]
