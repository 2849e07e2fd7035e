"""What is known of index values: between which numbers they lie, and what divides them.

The ranges decide where 32-bit arithmetic is enough, and what divides an index decides whether lanes may be accessed
together.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import gcd
from typing import Final

from xdsl.dialects import arith
from xdsl.ir import Operation

from weft.dialects.intervals import INTERVALS_OF_ARITH

_SMALLEST, _LARGEST = -(1 << 63), (1 << 63) - 1
_EXTENT: Final = 1 << 62
_INT_MAX: Final = (1 << 31) - 1
_QUOTIENTS: Final = (arith.DivSIOp, arith.FloorDivSIOp, arith.CeilDivSIOp)


@dataclass(frozen=True, slots=True)
class IndexRange:
    """`low <= x <= high`, and `divisor` divides x (0 divides only 0).

    `soft`: x comes from extents of arrays, whose arithmetic is known not to leave 64 bits; a number that came out of
    memory has no such promise.
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
        """Whether 32 bits hold x."""
        return self.low >= -_INT_MAX and self.high <= _INT_MAX

    @property
    def fits_long(self) -> bool:
        return self.low >= _SMALLEST and self.high <= _LARGEST

    @staticmethod
    def constant(value: int) -> IndexRange:
        return IndexRange(value, value, abs(value))

    @staticmethod
    def extent() -> IndexRange:
        """The extent of an array, which is not known."""
        return IndexRange(0, _EXTENT)

    @staticmethod
    def number() -> IndexRange:
        """An index that callers pass, of either sign."""
        return IndexRange(-_EXTENT, _EXTENT)

    def bounded(self) -> IndexRange:
        """This, after arithmetic: what is soft stays within 64 bits."""
        if not self.soft or (self.low >= -_EXTENT and self.high <= _EXTENT):
            return self
        return IndexRange(max(self.low, -_EXTENT), min(self.high, _EXTENT), self.divisor)

    @staticmethod
    def of(operation: type[Operation], a: IndexRange, b: IndexRange) -> IndexRange:
        """The range of the result of an `arith` op, before it wraps around."""
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
        """Of a value that is one or the other."""
        low, high = min(self.low, other.low), max(self.high, other.high)
        return IndexRange(low, high, gcd(self.divisor, other.divisor), self.soft and other.soft)


UNKNOWN: Final = IndexRange(_SMALLEST, _LARGEST, 1, False)


def of_width(bits: int) -> IndexRange:
    """A signed number of so many bits from memory."""
    return IndexRange(-(1 << bits - 1), (1 << bits - 1) - 1, 1, False)
