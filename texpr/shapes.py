"""Shapes, extents and names as users give them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final, TypeAlias, cast

from weft.support.argument_types import shown
from weft.texpr.dtypes import is_integer
from weft.texpr.expr import Const, Expr, Var, as_expr, is_extent
from weft.texpr.operators import as_number
from weft.texpr.places import error

Extent: TypeAlias = "int | Expr"
"""An integer, or an expression over integer variables."""
Stride: TypeAlias = "int | Var | None"
"""Elements between neighbours; None where each call decides."""


def items(value: object) -> tuple[object, ...]:
    """The items of a list or tuple; anything else alone."""
    return tuple(cast("Sequence[object]", value)) if isinstance(value, list | tuple) else (value,)


def as_index(value: object, what: str) -> Expr:
    """`value` as an index or extent. Raises CompileError for what is no integer."""
    expr = as_expr(value)
    if not is_integer(expr.dtype):
        raise error(f"{what} must be an integer, got {expr.dtype} `{expr}`")
    return expr


MOST_DIMENSIONS: Final = 64
"""As many as NumPy's arrays have."""
MOST_ELEMENTS: Final = 1 << 59
"""Their bytes fit 64 bits, whatever the element type."""


def checked_shape(shape: object, what: str) -> tuple[Extent, ...]:
    """A shape as numbers and extents. Raises CompileError for negative ones and for what is no extent."""
    extents = tuple(checked_extent(extent, f"{what}: extent {d}") for d, extent in enumerate(items(shape)))
    if len(extents) > MOST_DIMENSIONS:
        raise error(f"{what}: arrays have at most {MOST_DIMENSIONS} dimensions, got {len(extents)}")
    count = math.prod(extent for extent in extents if isinstance(extent, int))
    if count > MOST_ELEMENTS:
        raise error(f"{what}: arrays have at most 2^{MOST_ELEMENTS.bit_length() - 1} elements, got {shown(count)}")
    return extents


def checked_extent(extent: object, what: str) -> Extent:
    """An extent as a number or an expression over variables."""
    number = as_number(extent)
    if number is None:
        expr = as_index(extent, what)
        if not isinstance(expr, Const):
            return _made_of_variables(expr, what)
        number = expr.value
    if isinstance(number, bool) or not isinstance(number, int):
        raise error(f"{what} must be an integer, got {shown(number)}")
    if number < 0:
        raise error(f"{what} must not be negative, got {number}")
    return number


def _made_of_variables(expr: Expr, what: str) -> Expr:
    if is_extent(expr):
        return expr
    raise error(f"{what} is `{expr}`: extents are made of integers and integer variables by + - * // and %")


def checked_strides(strides: object, rank: int, what: str) -> tuple[Stride, ...] | None:
    """Strides as integers, variables, and None for those that are free. Raises CompileError for others."""
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
    """The name of something, a word. Raises CompileError for others."""
    if name is None:
        return default
    if not isinstance(name, str) or not name or not (name[0].isalpha() or name[0] == "_"):
        raise error(f"names are words that start with a letter or an underscore, got {shown(name)}")
    if not all(character.isalnum() or character in "_.$" for character in name) or not name.isascii():
        raise error(f"names are words of letters, digits, underscores and dots, got {shown(name)}")
    return name


def value_name(name: str) -> str:
    """`name` as the name of a value in IR, where a number after an underscore means nothing: `x_1` is called `x1`."""
    head, underscore, tail = name.rpartition("_")
    return value_name(head + tail) if head and underscore and tail.isdigit() else name
