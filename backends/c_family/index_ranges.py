"""Ranges of index values: bounds and divisors.

Bounds determine whether 32-bit arithmetic suffices, divisors whether lanes are accessed as one vector. Preconditions
(`low.assume`), which calls check, bound parameters: `n % 32 == 0` proves alignment, `m <= 1024` that arithmetic on m
fits 32 bits. Other forms are ignored. Kernel parameters have the ranges of launch arguments.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from math import gcd, lcm
from typing import TYPE_CHECKING, Final

from xdsl.dialects import arith
from xdsl.dialects.builtin import IndexType, IntegerAttr
from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation, SSAValue

from weft.dialects.intervals import INTERVALS_OF_ARITH
from weft.dialects.low import PARAMS, params_of, preconditions_of, stride_symbols, symbols_of
from weft.dialects.low_kernel import LaunchOp

if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp

_SMALLEST, _LARGEST = -(1 << 63), (1 << 63) - 1
_EXTENT: Final = 1 << 62
_INT_MAX: Final = (1 << 31) - 1
_QUOTIENTS: Final = (arith.DivSIOp, arith.FloorDivSIOp, arith.CeilDivSIOp)


@dataclass(frozen=True, slots=True)
class IndexRange:
    """`low <= x <= high`, and `divisor` divides x (0 divides only 0).

    `soft`: x is computed from array extents, so that it does not overflow 64 bits; values loaded from memory may.
    """

    low: int
    high: int
    divisor: int = 1
    soft: bool = True

    @property
    def is_constant(self) -> bool:
        return self.low == self.high

    @property
    def fits_int(self) -> bool:
        return self.low >= -_INT_MAX and self.high <= _INT_MAX

    @property
    def fits_long(self) -> bool:
        return self.low >= _SMALLEST and self.high <= _LARGEST

    @staticmethod
    def constant(value: int) -> IndexRange:
        return IndexRange(value, value, abs(value))

    @staticmethod
    def extent() -> IndexRange:
        return IndexRange(0, _EXTENT)

    @staticmethod
    def number() -> IndexRange:
        """An index parameter."""
        return IndexRange(-_EXTENT, _EXTENT)

    def bounded(self) -> IndexRange:
        """Soft ranges are limited to 64 bits."""
        if not self.soft or (self.low >= -_EXTENT and self.high <= _EXTENT):
            return self
        return IndexRange(max(self.low, -_EXTENT), min(self.high, _EXTENT), self.divisor)

    @staticmethod
    def of(operation: type[Operation], a: IndexRange, b: IndexRange) -> IndexRange:
        """The exact result, before wrap-around."""
        if operation is arith.AndIOp:
            highs = [x.high for x in (a, b) if x.low >= 0]
            return IndexRange(0, min(highs), 1, a.soft and b.soft) if highs else UNKNOWN
        low, high = INTERVALS_OF_ARITH[operation]((a.low, a.high), (b.low, b.high))
        if low is None or high is None:
            return UNKNOWN
        divisor = gcd(a.divisor, b.divisor)
        if operation is arith.MuliOp:
            divisor = a.divisor * b.divisor
        elif operation in _QUOTIENTS:
            is_exact = b.is_constant and b.low > 0 and a.divisor % b.low == 0
            divisor = a.divisor // b.low if is_exact else 1
        return IndexRange(low, high, divisor, a.soft and b.soft).bounded()

    def __add__(self, other: IndexRange) -> IndexRange:
        return IndexRange.of(arith.AddiOp, self, other)

    def __or__(self, other: IndexRange) -> IndexRange:
        low, high = min(self.low, other.low), max(self.high, other.high)
        return IndexRange(low, high, gcd(self.divisor, other.divisor), self.soft and other.soft)


UNKNOWN: Final = IndexRange(_SMALLEST, _LARGEST, 1, False)


def of_width(bits: int) -> IndexRange:
    return IndexRange(-(1 << bits - 1), (1 << bits - 1) - 1, 1, False)


_MULTIPLE = re.compile(r"([^\W\d]\w*) % (\d+) == 0")
_BOUND = re.compile(r"([^\W\d]\w*) (<=|<|==) (\d+)")


def assumed(function: FuncOp) -> dict[SSAValue, IndexRange]:
    """Extents are not negative."""
    if PARAMS not in function.attributes:
        return {}
    names = [param.label.data for param in params_of(function)]
    symbols = symbols_of(function)
    extents = set(symbols) - stride_symbols(function)
    arguments = dict(zip((*names, *symbols), function.args, strict=True))
    found: dict[SSAValue, IndexRange] = {
        argument: IndexRange.extent() if name in extents else IndexRange.number()
        for name, argument in arguments.items()
        if isinstance(argument.type, IndexType)
    }
    for precondition in preconditions_of(function):
        match = _MULTIPLE.fullmatch(precondition.relation) or _BOUND.fullmatch(precondition.relation)
        known = None if match is None else found.get(arguments[match[1]])
        if match is None or known is None:
            continue
        if match.re is _MULTIPLE:
            found[arguments[match[1]]] = IndexRange(known.low, known.high, lcm(known.divisor, int(match[2])))
        else:
            bound = int(match[3]) - (match[2] == "<")
            low = max(known.low, bound) if match[2] == "==" else known.low
            found[arguments[match[1]]] = IndexRange(low, max(min(known.high, bound), low), known.divisor)
    return found


def assumed_of_kernels(module: ModuleOp) -> dict[str, dict[int, IndexRange]]:
    """Kernel -> ranges by parameter position, valid for all launches."""
    found: dict[str, dict[int, IndexRange]] = {}
    for host in module.ops:
        if not isinstance(host, FuncOp):
            continue
        known = assumed(host)
        for op in host.walk():
            if isinstance(op, arith.ConstantOp) and isinstance(op.value, IntegerAttr):
                known[op.result] = IndexRange.constant(op.value.value.data)
            elif isinstance(op, LaunchOp):
                here = {
                    position: known[argument] for position, argument in enumerate(op.arguments) if argument in known
                }
                before = found.setdefault(op.kernel.string_value(), here)
                either = {position: a | here[position] for position, a in before.items() if position in here}
                found[op.kernel.string_value()] = either
    return found
