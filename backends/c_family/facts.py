"""What is known of index values: between which numbers they lie, and what divides them.

The ranges decide where 32-bit arithmetic is enough, and what divides an index decides whether lanes may be accessed
together.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import gcd
from typing import Final

_SMALLEST, _LARGEST = -(1 << 63), (1 << 63) - 1
_EXTENT: Final = 1 << 62
_INT_MAX: Final = (1 << 31) - 1


@dataclass(frozen=True, slots=True)
class Fact:
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
    def constant(value: int) -> Fact:
        return Fact(value, value, abs(value))

    @staticmethod
    def extent() -> Fact:
        """The extent of an array, which is not known."""
        return Fact(0, _EXTENT)

    @staticmethod
    def number() -> Fact:
        """An index that callers pass, of either sign."""
        return Fact(-_EXTENT, _EXTENT)

    def bounded(self) -> Fact:
        """This, after arithmetic: what is soft stays within 64 bits."""
        if not self.soft or (self.low >= -_EXTENT and self.high <= _EXTENT):
            return self
        return Fact(max(self.low, -_EXTENT), min(self.high, _EXTENT), self.divisor)


UNKNOWN: Final = Fact(_SMALLEST, _LARGEST, 1, False)


def of_width(bits: int) -> Fact:
    """A signed number of so many bits from memory."""
    return Fact(-(1 << bits - 1), (1 << bits - 1) - 1, 1, False)


def add(a: Fact, b: Fact) -> Fact:
    return Fact(a.low + b.low, a.high + b.high, gcd(a.divisor, b.divisor), a.soft and b.soft).bounded()


def subtract(a: Fact, b: Fact) -> Fact:
    return Fact(a.low - b.high, a.high - b.low, gcd(a.divisor, b.divisor), a.soft and b.soft).bounded()


def multiply(a: Fact, b: Fact) -> Fact:
    corners = [x * y for x in (a.low, a.high) for y in (b.low, b.high)]
    return Fact(min(corners), max(corners), a.divisor * b.divisor, a.soft and b.soft).bounded()


def floor_divide(a: Fact, b: Fact) -> Fact:
    """By a positive number; anything otherwise."""
    if b.low < 1:
        largest = max(abs(a.low), abs(a.high))
        return Fact(-largest, largest, 1, a.soft and b.soft)
    exact = b.is_constant and a.divisor % b.low == 0
    low, high = min(a.low // b.low, a.low // b.high), max(a.high // b.low, a.high // b.high)
    return Fact(low, high, a.divisor // b.low if exact else 1, a.soft and b.soft)


def ceil_divide(a: Fact, b: Fact) -> Fact:
    if b.low < 1:
        return floor_divide(a, b)
    low, high = min(-(-a.low // b.low), -(-a.low // b.high)), max(-(-a.high // b.low), -(-a.high // b.high))
    return Fact(low, high, 1, a.soft and b.soft)


def remainder(a: Fact, b: Fact) -> Fact:
    """With the sign of `a`."""
    largest = max(abs(b.low), abs(b.high)) - 1
    low = 0 if a.low >= 0 else max(a.low, -max(largest, 0))
    high = 0 if a.high <= 0 else min(a.high, max(largest, 0))
    return Fact(low, high, gcd(a.divisor, b.divisor), a.soft and b.soft)


def smaller(a: Fact, b: Fact) -> Fact:
    return Fact(min(a.low, b.low), min(a.high, b.high), gcd(a.divisor, b.divisor), a.soft and b.soft)


def larger(a: Fact, b: Fact) -> Fact:
    return Fact(max(a.low, b.low), max(a.high, b.high), gcd(a.divisor, b.divisor), a.soft and b.soft)


def either(a: Fact, b: Fact) -> Fact:
    return Fact(min(a.low, b.low), max(a.high, b.high), gcd(a.divisor, b.divisor), a.soft and b.soft)


def masked(a: Fact, b: Fact) -> Fact:
    """Bitwise and: within the numbers that are known not to be negative."""
    highs = [x.high for x in (a, b) if x.low >= 0]
    return Fact(0, min(highs), 1, a.soft and b.soft) if highs else UNKNOWN
