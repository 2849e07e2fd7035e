"""Text of printed scripts: names, expressions, and the heads of functions, loops and blocks."""

from __future__ import annotations

import keyword
import math
import re
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from itertools import groupby
from typing import TypeAlias

from xdsl.dialects.builtin import IndexType, MemRefType, NoneAttr, StringAttr
from xdsl.ir import Attribute

from weft.dialects.strides import strides_of, with_strides
from weft.dialects.tir import ForOp
from weft.dialects.tir_kinds import LoopKind
from weft.frontends.script import words
from weft.frontends.script.attributes import attributes_text
from weft.frontends.script.constructs import AXES, BUILTINS
from weft.frontends.script.values import (
    BlockAxis,
    Buffer,
    BufferLoad,
    Guard,
    Leaf,
    Opaque,
    Pointer,
    Stride,
    Symbol,
    is_scalar,
    reads,
    static_extent,
)
from weft.support.errors import InternalError
from weft.support.names import string_text
from weft.texpr.expr import (
    Binary,
    BinaryKind,
    Cast,
    Compare,
    Const,
    Expr,
    Predicate,
    Reinterpret,
    Select,
    Unary,
    binary,
    compare,
    name_of,
)

_RESERVED = frozenset({"T", "I", "cls", "self", *BUILTINS, *keyword.kwlist, *keyword.softkwlist})


def identifier(name: str | None, default: str) -> str:
    word = re.sub(r"\W", "_", name or "", flags=re.ASCII)
    if not word or word[0].isdigit():
        word = f"{default}{word}"
    return f"{word}_" if word in _RESERVED else word


class PythonNames:
    def __init__(self, taken: set[str]) -> None:
        self._scopes = [set(taken)]
        self._ended: set[str] = set()

    def new(self, name: str | None, default: str) -> str:
        """The name is reserved until its scope ends."""
        word = self._unused(name, default, self._scopes)
        self._scopes[-1].add(word)
        return word

    def keep(self, name: str | None, default: str) -> str:
        """The name is reserved to the end of the function, and no earlier scope had it: a variable that the function
        assigns twice is in a buffer."""
        word = self._unused(name, default, [*self._scopes, self._ended])
        self._scopes[0].add(word)
        return word

    def _unused(self, name: str | None, default: str, taken: Sequence[set[str]]) -> str:
        """IR would drop a number after an underscore."""
        word = candidate = identifier(name, default)
        number = 0
        while any(candidate in names for names in taken):
            number += 1
            candidate = word.rstrip("_") + str(number)
        return candidate

    @contextmanager
    def scope(self) -> Generator[None]:
        self._scopes.append(set())
        try:
            yield
        finally:
            self._ended |= self._scopes.pop()


_OR, _AND, _NOT, _COMPARE, _BIT_OR, _BIT_XOR, _BIT_AND, _SHIFT, _SUM, _PRODUCT, _UNARY, _ATOM = range(12)
"""Precedence in Python, from low to high."""
_LEVELS = {
    **dict.fromkeys(("+", "-"), _SUM),
    **dict.fromkeys(("*", "/", "//", "%"), _PRODUCT),
    **dict.fromkeys(("<<", ">>"), _SHIFT),
    **{"&": _BIT_AND, "|": _BIT_OR, "^": _BIT_XOR},
}


def expr_text(expr: Expr, context: int = _OR) -> str:
    text, level = _text(expr)
    return f"({text})" if level < context else text


def number_text(value: float, dtype: str) -> str:
    if isinstance(value, bool) or dtype == "bool":
        return f"T.bool({bool(value)})"
    if isinstance(value, float) and not math.isfinite(value):
        return f'T.{dtype}("{value}")'
    short = isinstance(value, float) and value.is_integer() and abs(value) < 1e15 and math.copysign(1.0, value) > 0
    return f"T.{dtype}({int(value) if short else value!r})"


def element_text(buffer: Buffer, indices: Sequence[Expr]) -> str:
    return f"{buffer.name}[{', '.join(map(index_text, indices)) or '()'}]"


def range_text(low: Expr, size: int) -> str:
    high = Const(int(low.value) + size, "int64") if isinstance(low, Const) else binary(BinaryKind.ADD, low, size)
    return f"{index_text(low)}:{index_text(high)}"


def pointer_text(pointer: Pointer) -> str:
    indices = pointer.indices
    parts = [index_text(index) for index in indices]
    if pointer.sizes is not None:
        parts = [range_text(low, size) for low, size in zip(indices, pointer.sizes, strict=True)]
    return f'T.access_ptr({pointer.buffer.name}[{", ".join(parts) or "()"}], "{pointer.access}")'


def shape_text(extents: Sequence[int | Expr | None]) -> str:
    parts = [extent_text(extent) for extent in extents]
    return f"({', '.join(parts)}{',' if len(parts) == 1 else ''})"


def _text(expr: Expr) -> tuple[str, int]:
    match expr:
        case Leaf() | Symbol() | Stride():
            return str(expr), _ATOM
        case Const():
            return number_text(expr.value, expr.dtype), _ATOM
        case BufferLoad():
            return element_text(expr.buffer, expr.indices), _ATOM
        case Binary():
            return _binary(expr)
        case Compare():
            plain = expr.left.is_index and expr.right.is_index and not _both_numbers(expr)
            sides = (_side(side, plain) for side in (expr.left, expr.right))
            left, right = (f"({text})" if level <= _COMPARE else text for text, level in sides)
            return f"{left} {expr.predicate.symbol} {right}", _COMPARE
        case Unary(function="neg"):
            return f"-{expr_text(expr.operand, _UNARY)}", _UNARY
        case Unary():
            return f"T.{expr.function}({expr_text(expr.operand)})", _ATOM
        case Select():
            name = "if_then_else" if expr.lazy else "Select"
            return f"T.{name}({', '.join(map(expr_text, expr.parts))})", _ATOM
        case Cast():
            return f'T.Cast("{expr.dtype}", {expr_text(expr.operand)})', _ATOM
        case Reinterpret():
            return f'T.reinterpret("{expr.dtype}", {expr_text(expr.operand)})', _ATOM
        case _:
            raise InternalError(f"no text for {type(expr).__name__} {expr}")


def _side(expr: Expr, is_index: bool) -> tuple[str, int]:
    if isinstance(expr, Const) and is_index:
        return str(expr.value), _ATOM if expr.value >= 0 else _UNARY
    return _text(expr)


def _both_numbers(expr: Binary | Compare) -> bool:
    """Python would fold them as plain numbers."""
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
    if not expr.kind.symbol:
        return f"T.{expr.kind.value}({sides[0][0]}, {sides[1][0]})", _ATOM
    symbol, level = expr.kind.symbol, _LEVELS[expr.kind.symbol]
    if expr.dtype == "bool" and expr.kind in (BinaryKind.AND, BinaryKind.OR) and not reads(expr.right):
        symbol, level = ("and", _AND) if expr.kind is BinaryKind.AND else ("or", _OR)
    (left, left_level), (right, right_level) = sides
    left = f"({left})" if left_level < level else left
    right = f"({right})" if right_level <= level else right
    return f"{left} {symbol} {right}", level


def index_text(expr: Expr) -> str:
    return _side(expr, True)[0]


def extent_text(extent: int | Expr | None) -> str:
    return index_text(extent) if isinstance(extent, Expr) else str(extent)


Operand: TypeAlias = Expr | Buffer | Pointer | Opaque


def operand_text(operand: Operand, type: Attribute) -> str:
    if isinstance(operand, Buffer | Opaque):
        return operand.name
    if isinstance(operand, Pointer):
        return pointer_text(operand)
    return index_text(operand) if isinstance(type, IndexType) else expr_text(operand)


WIDTH = 100
"""Maximum width of a signature; a longer one has one parameter per line."""


def signature(name: str, parameters: Sequence[str], result: str = "") -> list[str]:
    line = f"def {name}({', '.join(parameters)}){result}:"
    if len(line) <= WIDTH:
        return [line]
    return [f"def {name}(", *(f"    {parameter}," for parameter in parameters), f"){result}:"]


def is_plain_buffer(type: Attribute) -> bool:
    return is_declarable_buffer(type) and strides_of(type) is None


def is_declarable_buffer(type: Attribute) -> bool:
    strides = strides_of(type)
    return (
        isinstance(type, MemRefType)
        and is_scalar(type.element_type)
        and not isinstance(type.element_type, IndexType)
        and (type == with_strides(type, strides) if strides is not None else isinstance(type.layout, NoneAttr))
        and isinstance(type.memory_space, NoneAttr | StringAttr)
    )


def buffer_options(type: MemRefType[Attribute], dtype: str) -> str:
    scope = f", scope={string_text(type.memory_space.data)}" if isinstance(type.memory_space, StringAttr) else ""
    stated = strides_of(type)
    strides = "" if stated is None else f", strides={shape_text(stated)}"
    return f', "{dtype}"{scope}{strides}'


def type_annotation(type: Attribute, *, is_parameter: bool = False) -> str:
    """Parameters of T.int64 or T.int32 are indices."""
    if is_parameter and isinstance(type, IndexType):
        return "T.int64"
    if is_scalar(type) and type != IndexType() and not (is_parameter and name_of(type) in ("int32", "int64")):
        return f"T.{name_of(type)}"
    return f"T.type({string_text(str(type))})"


def is_bare(op: ForOp) -> bool:
    return op.kind.data is LoopKind.SERIAL and not op.attributes


def loop_text(op: ForOp, names: Sequence[str], extents: Sequence[Expr | int]) -> str:
    texts = [extent_text(extent) for extent in extents]
    if len(names) > 1:
        return f"for {', '.join(names)} in T.grid({', '.join(texts)}):"
    if is_bare(op):
        return f"for {names[0]} in range({texts[0]}):"
    thread = "" if op.thread_axis is None else f", thread={string_text(op.thread_axis.data)}"
    annotations = f", annotations={attributes_text(op.attributes)}" if op.attributes else ""
    return f"for {names[0]} in {words.LOOPS[op.kind.data]}({texts[0]}{thread}{annotations}):"


def block_head(axes: Sequence[BlockAxis], guards: Sequence[Guard], attributes: Mapping[str, Attribute]) -> list[str]:
    lines = _axis_lines(axes)
    if guards:
        lines.append(f"T.where({' and '.join(expr_text(compare(Predicate.LT, *guard)) for guard in guards)})")
    if attributes:
        lines.append(f"T.block_attr({attributes_text(attributes)})")
    return lines


def _axis_lines(axes: Sequence[BlockAxis]) -> list[str]:
    lines: list[str] = []
    for is_run, found in groupby(axes, lambda axis: _is_loop(axis[2], axis[3])):
        run = list(found)
        if is_run and len(run) > 1:
            names = ", ".join(name for name, *_ in run)
            kinds = "".join(AXES[kind][0] for _, kind, *_ in run)
            loops = ", ".join(expr_text(binding) for *_, binding in run)
            lines.append(f'{names} = T.axis.remap("{kinds}", [{loops}])')
        else:
            lines += [
                f"{name} = {AXES[kind][1]}({extent_text(extent)}, {index_text(binding)})"
                for name, kind, extent, binding in run
            ]
    return lines


def _is_loop(extent: int | Expr, binding: Expr) -> bool:
    if not isinstance(binding, Leaf) or binding.extent is None:
        return False
    ours, theirs = static_extent(extent), static_extent(binding.extent)
    if ours is not None or theirs is not None:
        return ours == theirs
    values = [e.value if isinstance(e, Leaf | Symbol) else None for e in (extent, binding.extent)]
    return values[0] is not None and values[0] is values[1]
