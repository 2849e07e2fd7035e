"""log, log2, log10 and log1p.

    x = 2^e m,  sqrt(1/2) <= m < sqrt(2),  f = m - 1,  log(x) = e ln 2 + log(1 + f)
    log(1 + f) = f - f^2/2 + tail(f)

e and m come out of the bits of x (of 2^k x where x is subnormal). The tail is a minimax polynomial; with
s = f / (2 + f), as in fdlibm (Sun, 1993), it is shorter, but a division of eight doubles takes as long as twenty terms.
f - f^2/2 is added last, or, for the other bases, is multiplied in two parts whose products are exact, as in FreeBSD's
e_log2.c.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from weft.passes.low.elementary.lanes import F32, F64, Format

if TYPE_CHECKING:
    from collections.abc import Mapping

    from weft.passes.low.elementary.lanes import Lanes


@dataclass(frozen=True)
class _Base:
    """A logarithm to another base than e: what 1 and ln 2 become, each in a short part and a rest."""

    one_high: float
    one_low: float
    two_high: float
    two_low: float


@dataclass(frozen=True)
class _Log:
    ln2_high: float
    ln2_low: float
    root_half: int
    """The bits of sqrt(1/2)."""
    short: int
    """A mask of the bits of a number that are few enough for exact products."""
    log2: _Base
    log10: _Base


_CONSTANTS: Final[Mapping[Format, _Log]] = {
    F32: _Log(
        ln2_high=0.693359375,
        ln2_low=-2.12194440054690583e-4,
        root_half=0x3F3504F3,
        short=0xFFFFF000,
        log2=_Base(1.4428710938e00, -1.7605285393e-04, 1.0, 0.0),
        log10=_Base(4.3432617188e-01, -3.1689971365e-05, 3.0102920532e-01, 7.9034151668e-07),
    ),
    F64: _Log(
        ln2_high=6.93147180369123816490e-01,
        ln2_low=1.90821492927058770002e-10,
        root_half=0x3FE6A09E667F3BCD,
        short=0xFFFFFFFF00000000,
        log2=_Base(1.44269504072144627571e00, 1.67517131648865118353e-10, 1.0, 0.0),
        log10=_Base(
            *(4.34294481878168880939e-01, 2.50829467116452752298e-11),
            *(3.01029995663611771306e-01, 3.69423907715893078616e-13),
        ),
    ),
}

# tail(f) = f^3 p(f). Errors: 2^-29.3, 2^-58.2.
_TAILS: Final[Mapping[Format, tuple[float, ...]]] = {
    F32: (
        *(0.33333313465118408, -0.25000166893005371, 0.20002222061157227, -0.16659373044967651, 0.1420963853597641),
        *(-0.12549567222595215, 0.1210789829492569, -0.10917078703641891, 0.053426545113325119),
    ),
    F64: (
        *(0.33333333333333454, -0.2499999999999892, 0.19999999999946114, -0.16666666666914548, 0.14285714293844032),
        *(-0.12499999982006851, 0.11111110515867022, -0.10000000383682488, 0.090909335124245941),
        *(-0.083333457551925783, 0.076917143276145558, -0.071420000205604711, 0.066751500882935577),
        *(-0.062698032412566981, 0.058177676741334096, -0.053267562197185071, 0.054160079057421047),
        *(-0.062751339160129871, 0.056968489051836699, -0.02427532666450653),
    ),
}


def _split(x: Lanes, least: float) -> tuple[Lanes, Lanes]:
    """e and m of a finite x > 0. `least` bounds it: no care is taken of subnormal numbers where there are none."""
    format_ = x.writer.format
    constants = _CONSTANTS[format_]
    mantissa = format_.mantissa_bits
    # 2^mantissa has an integer in its low bits; `excess` keeps that positive.
    excess = format_.bias + 1
    taken: Lanes | float = 2.0**mantissa + excess
    if least < format_.smallest_normal:
        is_subnormal = x < format_.smallest_normal
        taken = is_subnormal.choose(taken + mantissa + 1, taken)
        x = is_subnormal.choose(x * 2.0 ** (mantissa + 1), x)
    moved = x.bits + ((excess << mantissa) - constants.root_half)
    e = ((moved >> mantissa) | _bits_of_power(format_)).numbers - taken
    m = ((moved & ((1 << mantissa) - 1)) + constants.root_half).numbers
    return e, m


def _bits_of_power(format_: Format) -> int:
    """The bits of 2^mantissa."""
    return (format_.bias + format_.mantissa_bits) << format_.mantissa_bits


def _finished(result: Lanes, x: Lanes, pole: float) -> Lanes:
    """`result` with its special cases: infinity and NaN stay, the pole gives -infinity, less gives NaN."""
    below = (x < pole).choose(math.nan, -math.inf)
    number = (x > pole).choose(result, below)
    return x.compare("olt", math.inf).choose(number, x)


def log(x: Lanes) -> Lanes:
    e, m = _split(x, 0.0)
    return _finished(_natural(e, m - 1.0), x, 0.0)


def _natural(e: Lanes, f: Lanes) -> Lanes:
    """e ln 2 + log(1 + f). -1/2 is a coefficient of the polynomial: f^2 times its rounding is little."""
    constants = _CONSTANTS[f.writer.format]
    rest = f * f * f.polynomial((-0.5, *_TAILS[f.writer.format])) + e.rounded_product(constants.ln2_low)
    return (f + rest) + e * constants.ln2_high


def log2(x: Lanes) -> Lanes:
    return _other_base(x, _CONSTANTS[x.writer.format].log2)


def log10(x: Lanes) -> Lanes:
    return _other_base(x, _CONSTANTS[x.writer.format].log10)


def _other_base(x: Lanes, base: _Base) -> Lanes:
    e, m = _split(x, 0.0)
    f = m - 1.0
    half_square = f * f * 0.5
    high = ((f - half_square).bits & _CONSTANTS[x.writer.format].short).numbers
    low = ((f - high) - half_square) + f * (f * f) * f.polynomial(_TAILS[f.writer.format])
    rest = (low + high).rounded_product(base.one_low) + low * base.one_high
    if base.two_low:
        rest = rest + e * base.two_low
    power = e if base.two_high == 1.0 else e.rounded_product(base.two_high)
    product = high * base.one_high
    total = power + product
    return _finished(((power - total) + product + rest) + total, x, 0.0)


def log1p(x: Lanes) -> Lanes:
    """u = 1 + x and what its rounding lost, which is added to f: exactly x where 1 + x is near 1."""
    format_ = x.writer.format
    u = x + 1.0
    x_part = u - 1.0
    lost = (x - x_part) + (1.0 - (u - x_part))
    e, m = _split(u, 0.5**format_.mantissa_bits)
    # 2^-e; where e is large, what was lost does not count.
    scale = ((format_.rounder + format_.bias) - e.at_most(format_.bias - 1.0)).bits << format_.mantissa_bits
    result = _natural(e, (m - 1.0) + lost * scale.numbers)
    tiny = abs(x) < 0.5 ** (format_.mantissa_bits + 1)
    return tiny.choose(x, _finished(result, x, -1.0))
