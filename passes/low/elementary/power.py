"""pow of numbers narrower than double, in double: |x|^y = 2^(y log2 |x|).

log2 and exp2 are good to 52 bits and the exponent is below 2^11: the result has 40 bits before it is rounded once.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

from weft.passes.low.elementary.exponential import exp2
from weft.passes.low.elementary.logarithm import log2

if TYPE_CHECKING:
    from weft.passes.low.elementary.lanes import Lanes

_EVEN: Final = 2.0**30
"""Beyond this all numbers of 32 bits are even integers, as infinity is for the sign of a power."""


def pow_in_double(x: Lanes, y: Lanes) -> Lanes:
    """x^y by the rules of C: 1 where x = 1 or y = 0, even for NaN, and where x = -1 and y is infinite; NaN where a
    finite x < 0 has a y that is no integer; with the sign of x where y is odd."""
    format_ = x.writer.format
    size = abs(x)
    power = exp2(y * log2(size))

    limited = y.at_least(-_EVEN).at_most(_EVEN)
    shifted = limited + format_.rounder
    is_integer = (shifted - format_.rounder).compare("oeq", limited)
    odd_bit = shifted.bits << (format_.integer_type.width.data - 1)
    signed = (power.bits | (odd_bit & x.bits)).numbers

    is_root = (x < 0.0) & (x > -math.inf)
    result = is_integer.choose(signed, is_root.choose(math.nan, power))
    neutral = x.compare("oeq", 1.0) | y.compare("oeq", 0.0)
    neutral = neutral | (size.compare("oeq", 1.0) & abs(y).compare("oeq", math.inf))
    return neutral.choose(1.0, result)
