"""Edge values: numbers for which rewrites that are valid for ordinary numbers fail, planted among ordinary
arguments.

A run has one kind, since kinds would mask each other, and few values that spread: one NaN turns a sum into NaN.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from math import isfinite, prod
from typing import TYPE_CHECKING, Any, Final, TypeAlias, cast

import numpy as np
from xdsl.dialects.builtin import AnyFloat, BFloat16Type, Float16Type, IntegerType
from xdsl.dialects.utils.fast_math import FastMathAttrBase, FastMathFlag

from weft.dialects.element_types import TYPES, element_name, is_unsigned
from weft.support.narrow_floats import SMALL_FLOATS, small_float

if TYPE_CHECKING:
    from xdsl.ir import Attribute, Operation

    from weft.interp.values import Array

Parameter: TypeAlias = tuple[str, tuple[int, ...] | int | None]
"""Element type, and the shape of an array, the value of an index, or None for a number to draw."""
FastMath = frozenset[FastMathFlag]
"""Flags that relax floating-point arithmetic, as in the `fastmath` of operations."""
NOT_EXACT: Final[FastMath] = frozenset({FastMathFlag.REASSOC, FastMathFlag.ALLOW_CONTRACT})
_NEVER_FINITE: Final[FastMath] = frozenset({FastMathFlag.NO_NANS, FastMathFlag.NO_INFS})
SIGN_OF_ZERO: Final[FastMath] = NOT_EXACT | {FastMathFlag.NO_SIGNED_ZEROS}
"""Flags that may change the sign of a zero."""


@dataclass(frozen=True)
class EdgeKind:
    name: str
    values: Callable[[IntegerType | AnyFloat], Sequence[float]]
    """The values for an element type; empty if it has none of this kind."""
    share: float
    """The fraction of array elements with such values; 0 for a few, because they spread."""
    excluded_by: FastMath = frozenset()
    """Flags that leave results undefined or dependent on the order of operations."""

    def is_compared(self, fast_math: FastMath) -> bool:
        return not self.excluded_by & fast_math


@dataclass(frozen=True)
class _Limits:
    largest: float
    smallest_normal: float
    smallest: float


@cache
def _limits(name: str) -> _Limits:
    if name == "bfloat16":
        return _Limits(255 * 2.0**120, 2.0**-126, 2.0**-133)
    if name in SMALL_FLOATS:
        type_ = small_float(name)
        numbers = [type_.decode_bits(bits) for bits in range(1 << type_.bitwidth)]
        positive = sorted(number for number in numbers if isfinite(number) and number > 0)
        return _Limits(positive[-1], positive[0] * 2.0**type_.SEMANTICS.mantissa_bits, positive[0])
    info = np.finfo(name)
    return _Limits(float(info.max), float(info.smallest_normal), float(info.smallest_subnormal))


def _of_floats(values: Callable[[_Limits], Sequence[float]]) -> Callable[[IntegerType | AnyFloat], Sequence[float]]:
    def of(type_: IntegerType | AnyFloat) -> Sequence[float]:
        return () if isinstance(type_, IntegerType) else values(_limits(element_name(type_) or "float64"))

    return of


def _range(type_: IntegerType) -> tuple[int, int]:
    width = type_.width.data
    return (0, (1 << width) - 1) if is_unsigned(type_) else (-(1 << (width - 1)), (1 << (width - 1)) - 1)


def _saturating(type_: IntegerType | AnyFloat) -> Sequence[float]:
    if not isinstance(type_, IntegerType):
        narrow = isinstance(type_, BFloat16Type | Float16Type) or element_name(type_) in SMALL_FLOATS
        largest = _limits(element_name(type_) or "float64").largest
        values = (6.5, -6.5, 8.0, 3.5, -3.5, *((20.0, -20.0) if narrow else (300.0, -300.0)))
        return [value for value in values if abs(value) <= largest]
    low, high = _range(type_)
    values = (7, -7, 9, 127, -128, 128, -129, 255, 256)
    return [value for value in values if low <= value <= high] if high > 1 else ()


def _extreme_integers(type_: IntegerType | AnyFloat) -> Sequence[float]:
    if not isinstance(type_, IntegerType) or type_.width.data == 1:
        return ()
    low, high = _range(type_)
    return tuple(dict.fromkeys((high, low, high - 1, low + 1, 0, 1 if low == 0 else -1)))


SATURATING: Final = EdgeKind("saturating values", _saturating, share=0.5)
INTEGERS: Final = EdgeKind("extreme integers", _extreme_integers, share=0.5)
NAN: Final = EdgeKind("NaN", _of_floats(lambda _: (np.nan,)), 0.0, _NEVER_FINITE | {FastMathFlag.REASSOC})
ZEROS: Final = EdgeKind("zeros of both signs", _of_floats(lambda _: (-0.0, 0.0)), share=0.5)
INFINITE: Final = EdgeKind(
    "infinities", _of_floats(lambda _: (np.inf, -np.inf)), 0.0, _NEVER_FINITE | {FastMathFlag.REASSOC}
)
LARGE: Final = EdgeKind(
    "the largest numbers",
    _of_floats(lambda limits: (limits.largest, -limits.largest, limits.largest / 2)),
    0.0,
    NOT_EXACT | {FastMathFlag.NO_INFS, FastMathFlag.APPROX_FUNC},
)
TINY: Final = EdgeKind(
    "subnormal numbers",
    _of_floats(lambda limits: (limits.smallest, -limits.smallest, limits.smallest_normal, limits.smallest_normal / 2)),
    1.0,  # larger ones would round differences
    NOT_EXACT | {FastMathFlag.APPROX_FUNC},
)
KINDS: Final = (SATURATING, INTEGERS, NAN, ZEROS, INFINITE, LARGE, TINY)
"""In the order of the runs, which end when the time is used up."""
EXTENTS_OF_EDGES: Final[Sequence[Sequence[int]]] = ((1,), (0, 3), (3, 0), (67, 35, 130))
"""Extents for functions of symbolic sizes: all 1, alternately 0, and several tiles with remainders."""


@dataclass(frozen=True)
class Planting:
    """Parameters with values of a kind, and the index of the first value."""

    kind: EdgeKind
    parameters: frozenset[int]
    first: int = 0

    def into(self, position: int, array: Array, type_: Attribute, generator: np.random.Generator) -> None:
        """Put values into a selected parameter's array, in the interpreter's representation."""
        if position not in self.parameters or not array.size:
            return
        values = self.kind.values(cast("IntegerType | AnyFloat", type_))
        count, size = _count(self.kind, len(values), array.size), array.size
        # Distinct, if cheap.
        places = generator.permutation(size)[:count] if size <= _SMALL else generator.integers(size, size=count)
        if not self.kind.share and size >= _SMALLEST_WITH_TAIL:
            places = np.append(places, size - 1)  # vectorized loops treat the last element separately
        # different parameters get different values at the same element
        chosen = [values[(self.first + position + n) % len(values)] for n in range(len(places))]
        with np.errstate(all="ignore"):
            array.flat[places] = np.array(chosen, _exact_dtype(type_)).astype(array.dtype)


_SMALL: Final = 4096
"""Positions in arrays up to this size are drawn without repetition."""
_SMALLEST_WITH_TAIL: Final = 16
"""From this size on, the last element also gets a value."""


def _exact_dtype(type_: Attribute) -> type[Any]:
    if isinstance(type_, IntegerType):
        return np.uint64 if is_unsigned(type_) else np.int64
    return np.float64


def _count(kind: EdgeKind, values: int, size: int) -> int:
    return max(int(size * kind.share), 1) if kind.share else values * max(1, round(size**0.5 / 8))


def plantings(parameters: Sequence[Parameter], has_indices: bool, kind: EdgeKind) -> Iterator[Planting]:
    """One run for arrays large enough for all values of a kind. Scalars and small arrays, which would mask
    differences, have separate runs per value, alone and together. Integers are skipped if `has_indices`."""
    wide: set[int] = set()
    narrow: dict[int, int] = {}
    for position, (dtype, given) in enumerate(parameters):
        values = len(kind.values(TYPES[dtype]))
        if not values or isinstance(given, int) or (has_indices and isinstance(TYPES[dtype], IntegerType)):
            continue
        if given is not None and prod(given) >= values * (2 if kind.share else 4):
            wide.add(position)
        elif given is None or prod(given):
            narrow[position] = values
    if wide:
        yield Planting(kind, frozenset(wide))
    for first in range(max(narrow.values(), default=0)):
        yield Planting(kind, frozenset(narrow), first)
        for position in narrow if len(narrow) > 1 else ():
            yield Planting(kind, frozenset({position}), first)


def restricted(planting: Planting, is_valid: Callable[[Planting], bool]) -> Planting | None:
    """The valid part: divisors, subscripts and shift amounts are not defined for every value."""
    if is_valid(planting):
        return planting
    if len(planting.parameters) == 1:
        return None
    alone = [frozenset({position}) for position in sorted(planting.parameters)]
    taken = [one for one in (replace(planting, parameters=part) for part in alone) if is_valid(one)]
    if len(taken) < 2:
        return taken[0] if taken else None
    together = replace(planting, parameters=frozenset[int]().union(*(one.parameters for one in taken)))
    return together if is_valid(together) else taken[0]


def liberties(operation: Operation) -> FastMath:
    flags = operation.properties.get("fastmath")
    return flags.data if isinstance(flags, FastMathAttrBase) else frozenset()
