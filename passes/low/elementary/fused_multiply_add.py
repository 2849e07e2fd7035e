"""a * b + c of 16-bit floats, rounded once, in a wider format that holds a * b exactly.

The sum is rounded to odd (Boldo and Melquiond 2008): when it is inexact and its last bit is 0, it moves one step
towards what was lost. What has two more bits than the result is then rounded as the exact sum is. `f32` holds the
products of `f16`, and those of `bf16` between 2^-126 and 2^128; `f64` holds all of both.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from weft.passes.low.elementary.lanes import Lanes


def multiply_add(a: Lanes, b: Lanes, c: Lanes) -> Lanes:
    """What rounds to 16 bits as the exact a * b + c does."""
    product = a * b
    total = product + c
    shadow = total - product
    lost = (product - (total - shadow)) + (c - shadow)
    agreement = lost * total
    outwards, inwards = (total.bits | 1).numbers, ((total.bits - 1) | 1).numbers
    return (agreement > 0.0).choose(outwards, (agreement < 0.0).choose(inwards, total))
