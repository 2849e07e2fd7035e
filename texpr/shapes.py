"""Shapes, extents, strides and names: checks, which raise CompileError, and extents as polynomials."""

from __future__ import annotations

import math
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import partial, reduce
from itertools import count
from typing import Final, TypeAlias, cast

from weft.dialects import graph_shapes
from weft.dialects.graph_shapes import Atom, KnownExtent
from weft.support.argument_types import shown
from weft.texpr.expr import (
    Binary,
    BinaryKind,
    Compare,
    Const,
    Expr,
    Predicate,
    Var,
    as_expr,
    as_number,
    binary,
    compare,
    error,
    is_extent,
    is_integer,
)

Extent: TypeAlias = "int | Expr"
Stride: TypeAlias = "int | Var | None"
"""The stride of a dimension in elements; None if calls determine it."""


def items(value: object) -> tuple[object, ...]:
    """A sequence's items, or the value."""
    return tuple(cast("Sequence[object]", value)) if isinstance(value, list | tuple) else (value,)


def as_index(value: object, what: str) -> Expr:
    expr = as_expr(value)
    if not is_integer(expr.dtype):
        raise error(f"{what} must be an integer, got {expr.dtype} `{expr}`")
    return expr


MOST_DIMENSIONS: Final = 64
"""The maximum rank of NumPy's arrays."""
MOST_ELEMENTS: Final = 1 << 59
"""The size in bytes fits in 64 bits for every element type."""


def checked_shape(shape: object, what: str) -> tuple[Extent, ...]:
    extents = tuple(checked_extent(extent, f"{what}: extent {d}") for d, extent in enumerate(items(shape)))
    if len(extents) > MOST_DIMENSIONS:
        raise error(f"{what}: arrays have at most {MOST_DIMENSIONS} dimensions, got {len(extents)}")
    count = math.prod(extent for extent in extents if isinstance(extent, int))
    if count > MOST_ELEMENTS:
        raise error(f"{what}: arrays have at most 2^{MOST_ELEMENTS.bit_length() - 1} elements, got {shown(count)}")
    return extents


def checked_extent(extent: object, what: str) -> Extent:
    number = as_number(extent)
    if number is None:
        expr = as_index(extent, what)
        if not isinstance(expr, Const):
            if not is_extent(expr):
                made_of = "integers and integer variables by + - * // %, min and max"
                raise error(f"{what} is `{expr}`: extents are made of {made_of}")
            return checked_sign(expr)
        number = expr.value
    if isinstance(number, bool) or not isinstance(number, int):
        raise error(f"{what} must be an integer, got {shown(number)}")
    if number < 0:
        raise error(f"{what} must not be negative, got {number}")
    return number


def checked_strides(strides: object, rank: int, what: str) -> tuple[Stride, ...] | None:
    """None for strides determined by calls."""
    if strides is None:
        return None
    values = items(strides)
    if len(values) != rank:
        raise error(f"{what} has rank {rank}, and {len(values)} strides are given")
    return tuple(_checked_stride(value, f"{what}: stride {d}") for d, value in enumerate(values))


def _checked_stride(value: object, what: str) -> Stride:
    if value is None or (isinstance(value, Var) and value.is_index):
        return value
    number = as_number(value)
    if number is None and not isinstance(value, str):
        expr = as_index(value, what)
        number = expr.value if isinstance(expr, Const) else None
    if isinstance(number, bool) or not isinstance(number, int):
        raise error(f"{what} is an integer, a variable, or None for one that calls decide, got {shown(value)}")
    return number


def checked_name(name: object, default: str) -> str:
    if name is None:
        return default
    if not isinstance(name, str) or not name or not (name[0].isalpha() or name[0] == "_"):
        raise error(f"names are words that start with a letter or an underscore, got {shown(name)}")
    if not all(character.isalnum() or character in "_.$" for character in name) or not name.isascii():
        raise error(f"names are words of letters, digits, underscores and dots, got {shown(name)}")
    return name


def value_name(name: str) -> str:
    """A name hint: xDSL strips a number after an underscore, so `x_1` becomes `x1`."""
    head, underscore, tail = name.rpartition("_")
    return value_name(head + tail) if head and underscore and tail.isdigit() else name


def value_names(names: Sequence[str]) -> list[str]:
    """A distinct `value_name` per name. Valid hints stay: `x_1`, `x1`, `x11` become `x12`, `x1`, `x11`."""
    taken = {name for name in names if value_name(name) == name}
    left, found = set(taken), list[str]()
    for name in names:
        word = value_name(name)
        if name in left:
            left.remove(name)
        elif word in taken:
            word = next(free for number in count(1) if (free := f"{word}{number}") not in taken)
        taken.add(word)
        found.append(word)
    return found


class UnknownExtent(Var):
    """Equal to every extent in checks."""

    __slots__ = ()

    def __init__(self) -> None:
        super().__init__("?", "int64")


_COMBINE = {
    BinaryKind.ADD: graph_shapes.add,
    BinaryKind.SUB: graph_shapes.subtract,
    BinaryKind.MUL: graph_shapes.multiply,
    BinaryKind.FLOORDIV: graph_shapes.floordiv,
    BinaryKind.FLOORMOD: graph_shapes.modulo,
    BinaryKind.MIN: partial(graph_shapes.choose, "min"),
    BinaryKind.MAX: partial(graph_shapes.choose, "max"),
}
_KINDS = {
    "floordiv": BinaryKind.FLOORDIV,
    "mod": BinaryKind.FLOORMOD,
    "min": BinaryKind.MIN,
    "max": BinaryKind.MAX,
}


class ExtentVariables:
    """A unique name for each variable and subexpression outside extent arithmetic."""

    def __init__(self, given: Mapping[str, Expr] | None = None) -> None:
        self._exprs = dict(given or {})
        self._names = {id(expr): name for name, expr in self._exprs.items()}

    def polynomial(self, extent: Extent) -> KnownExtent:
        if isinstance(extent, int):
            return extent
        if isinstance(extent, Const):
            return int(extent.value)
        if isinstance(extent, Binary) and extent.kind in _COMBINE:
            left, right = self.polynomial(extent.left), self.polynomial(extent.right)
            divides = extent.kind in (BinaryKind.FLOORDIV, BinaryKind.FLOORMOD)
            found = None if divides and right == 0 else _COMBINE[extent.kind](left, right)
            if found is not None:
                return found
        return graph_shapes.symbol(self.name(extent))

    def name(self, expr: Expr) -> str:
        if id(expr) not in self._names:
            name = str(expr)
            while name in self._exprs:
                name += "'"
            self._exprs[name] = expr
            self._names[id(expr)] = name
        return self._names[id(expr)]

    def extent(self, polynomial: KnownExtent) -> Extent:
        """Positive terms, negative terms, the constant last."""
        if isinstance(polynomial, int):
            return polynomial
        result: Extent | None = None
        for monomial, coefficient in sorted(polynomial.terms, key=lambda term: (not term[0], term[1] < 0)):
            factors = [self._atom(atom) for atom in monomial]
            size = -coefficient if coefficient < 0 else coefficient
            term: Extent = reduce(lambda x, y: x * y, factors) if factors else size
            if factors and size != 1:
                term = term * size
            if result is None:
                result = term if coefficient > 0 else 0 - term
            else:
                result = result + term if coefficient > 0 else result - term
        return 0 if result is None else result

    def _atom(self, atom: Atom) -> Expr:
        if isinstance(atom, str):
            return self._exprs[atom]
        return binary(_KINDS[atom.kind], self.extent(atom.left), self.extent(atom.right))


def simplified(extent: Extent) -> Extent:
    """A sum of products, or a number: `(2 * n + 3) // 2` is `n + 1`."""
    if isinstance(extent, int):
        return extent
    names = ExtentVariables()
    return names.extent(names.polynomial(extent))


def is_same(left: Extent, right: Extent) -> bool:
    """Equality for all variables, as polynomials over quotients and remainders."""
    if isinstance(left, int) and isinstance(right, int):
        return left == right
    if left is right or isinstance(left, UnknownExtent) or isinstance(right, UnknownExtent):
        return True
    names = ExtentVariables()
    return names.polynomial(left) == names.polynomial(right)


_COLLECTED: ContextVar[list[Compare] | None] = ContextVar("collected", default=None)


@contextmanager
def assumptions() -> Generator[list[Compare]]:
    """Collect relations that operators require and calls check."""
    found: list[Compare] = []
    token = _COLLECTED.set(found)
    try:
        yield found
    finally:
        _COLLECTED.reset(token)


def agree(left: Extent, right: Extent) -> bool:
    """Whether extents are equal polynomials, or in `assumptions` may be equal and are checked at calls."""
    if is_same(left, right):
        return True
    collected = _COLLECTED.get()
    if collected is None:
        return False
    names = ExtentVariables()
    difference = names.polynomial(left) - names.polynomial(right)
    if any(map(graph_shapes.is_not_negative, (difference - 1, -1 - difference))):
        return False  # for all sizes
    collected.append(cast("Compare", compare(Predicate.EQ, left, right)))
    return True


def is_not_negative(extent: Extent) -> bool:
    """Whether provable for non-negative extents of tensors."""
    return graph_shapes.is_not_negative(ExtentVariables().polynomial(extent))


def checked_sign(extent: Extent) -> Extent:
    """Calls check a sign that depends on numbers that may be negative (`graph_shapes.is_signed`)."""
    collected = _COLLECTED.get()
    if collected is not None and not isinstance(extent, int):
        polynomial = ExtentVariables().polynomial(extent)
        names = graph_shapes.names_in(polynomial)
        if any(map(graph_shapes.is_signed, names)) and not graph_shapes.is_not_negative(polynomial):
            collected.append(cast("Compare", compare(Predicate.LE, 0, extent)))
    return extent


def assume_at_most(left: Extent, right: Extent) -> None:
    collected = _COLLECTED.get()
    if collected is not None:
        collected.append(cast("Compare", compare(Predicate.LE, left, right)))


def at_most(left: Extent, right: Extent) -> bool:
    """`left <= right`, or may be and is checked at calls."""
    if is_same(left, right):
        return True
    names = ExtentVariables()
    room = names.polynomial(right) - names.polynomial(left)
    if graph_shapes.is_not_negative(room):
        return True
    if graph_shapes.is_not_negative(-1 - room):
        return False  # for all sizes
    collected = _COLLECTED.get()
    if collected is None:
        return False
    collected.append(cast("Compare", compare(Predicate.LE, left, right)))
    return True


def known_of(left: Extent, right: Extent) -> Extent:
    """The number of two agreeing extents, else the first."""
    return right if isinstance(right, int) else left


def product(extents: Sequence[Extent]) -> Extent:
    return simplified(reduce(lambda x, y: x * y, extents, 1))


def is_empty(shape: Sequence[Extent]) -> bool:
    return any(isinstance(extent, int) and extent == 0 for extent in map(simplified, shape))


def quotient(total: Extent, divisor: Extent) -> Extent | None:
    """The quotient if provably exact: of numbers, or by a factor of every term."""
    names = ExtentVariables()
    found = graph_shapes.exact_quotient(names.polynomial(total), names.polynomial(divisor))
    return None if found is None else names.extent(found)


def agreed_quotient(total: Extent, divisor: Extent) -> Extent | None:
    """The quotient; calls check that it is exact (`agree`). Common factors are canceled, even if they may be 0: `n * m`
    by `3 * n` is `m // 3`.
    """
    found = quotient(total, divisor)
    if found is not None or (isinstance(divisor, int) and divisor <= 0):
        return found
    names = ExtentVariables()
    polynomials = graph_shapes.without_common_factors(names.polynomial(total), names.polynomial(divisor))
    total, divisor = map(names.extent, polynomials)
    return simplified(as_expr(total) // divisor) if agree(simplified(as_expr(total) % divisor), 0) else None


def shape_text(shape: Sequence[Extent]) -> str:
    return f"({', '.join(map(str, shape))}{',' if len(shape) == 1 else ''})"
