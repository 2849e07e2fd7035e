"""exp, exp2 and expm1.

    x = n ln 2 + r,  |r| <= ln 2 / 2,  exp(x) = 2^n exp(r)

The reduction is Cody and Waite's (Software Manual for the Elementary Functions, 1980): ln 2 in two parts, the first
with so few bits that its product with n is exact. n comes out of adding 1.5 * 2^mantissa, in whose low bits it then
stands. exp(r) is a minimax polynomial (Remez, relative error). 2^n is applied by an instruction where there is one (on
x86 with AVX-512, `vscalef`), else as two factors, each a normal number, of which only the second rounds, with the same
results: they may be subnormal, and arguments beyond the range, which are clamped to numbers just outside, overflow or
underflow by themselves.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from weft.passes.low.elementary.lanes import F32, F64, Format

if TYPE_CHECKING:
    from collections.abc import Mapping

    from weft.passes.low.elementary.lanes import Lanes


@dataclass(frozen=True)
class _Exp:
    """Constants of a format. `low` and `high` bound what does not round to 0 or overflow, for exp."""

    ln2_high: float
    ln2_low: float
    low: float
    high: float
    least: float
    """A power of 2 that is no number of the format: 2^least and anything below rounds to 0."""
    exp_adds_exactly: bool
    """Whether exp adds r in its two parts, of which the first is exact: two instructions for a tenth of an ulp."""
    exp: tuple[float, ...]
    """exp(r) = 1 + r + r^2 q(r)."""
    exp2: tuple[float, ...]
    """2^r = 1 + r q(r) for |r| <= 1/2."""
    expm1: tuple[float, ...]
    """As exp, with an error that is small relative to exp(r) - 1."""


LOG2_E: Final = 1.4426950408889634
_CONSTANTS: Final[Mapping[Format, _Exp]] = {
    # Errors of the polynomials: 2^-28.2, 2^-29.4, 2^-28.2.
    F32: _Exp(
        ln2_high=0.693359375,
        ln2_low=-2.12194440054690583e-4,
        low=-105.0,
        high=89.0,
        least=-151.0,
        exp_adds_exactly=False,
        exp=(
            *(0.4999999403953552, 0.16666516661643982, 0.04166810214519501, 0.008369192481040955),
            0.001383890281431377,
        ),
        exp2=(
            *(0.69314718246459961, 0.24022650718688965, 0.055504050105810165, 0.0096180979162454605),
            *(0.0013338148128241301, 0.00015441888535860926, 1.4134482626104727e-5),
        ),
        expm1=(
            *(0.5, 0.16666635870933533, 0.041666511446237564, 0.0083415098488330841),
            *(0.0013930540299043059, 0.00015046141925267875),
        ),
    ),
    # Errors: 2^-56.4, 2^-55.6, 2^-60.
    F64: _Exp(
        ln2_high=6.93147180369123816490e-01,
        ln2_low=1.90821492927058770002e-10,
        low=-746.0,
        high=710.0,
        least=-1076.0,
        exp_adds_exactly=True,
        exp=(
            *(0.50000000000000111, 0.16666666666666413, 0.041666666666530051, 0.0083333333334945948),
            *(0.0013888888943662621, 0.00019841269506367805, 2.4801493061525787e-5, 2.7557586490496558e-6),
            *(2.7630262874474155e-7, 2.5000047895701161e-8),
        ),
        exp2=(
            *(0.69314718055994529, 0.24022650695910072, 0.055504108664821687, 0.0096181291076283294),
            *(0.0013333558146392634, 0.00015403530393641191, 1.5252733854377574e-5, 1.3215486594635201e-6),
            *(1.0178051915056977e-7, 7.0549745429795844e-9, 4.4565748792114284e-10, 2.5625381467341545e-11),
        ),
        expm1=(
            *(0.5, 0.16666666666666677, 0.041666666666666512, 0.0083333333333216811, 0.0013888888888962374),
            *(0.00019841269885994208, 2.4801587172551525e-5, 2.7557244342869261e-6, 2.7557402608854429e-7),
            *(2.5108990710738338e-8, 2.0875348423576101e-9),
        ),
    ),
}


def _rounder(format_: Format) -> float:
    """Added to x, it leaves n + 2 * bias in the low bits."""
    return format_.rounder + 2 * format_.bias


def _scaled(p: Lanes, n: Lanes, shifted: Lanes) -> Lanes:
    """p * 2^n, where `shifted` is n + rounder. Where there is no instruction for it, the halves of n + 2 * bias are the
    exponents of two factors, with their biases."""
    if p.writer.has_ldexp:
        return p.ldexp(n)
    format_ = p.writer.format
    bits = shifted.bits
    half = bits >> 1
    first = (half << format_.mantissa_bits).numbers
    second = ((bits - half) << format_.mantissa_bits).numbers
    return p * first * second


def reduced(x: Lanes, rounder: float) -> tuple[Lanes, Lanes, Lanes]:
    """n + rounder, n, and r of x = n ln 2 + r."""
    constants = _CONSTANTS[x.writer.format]
    shifted = x * LOG2_E + rounder
    n = shifted - rounder
    return shifted, n, (x - n * constants.ln2_high) - n * constants.ln2_low


def exp(x: Lanes) -> Lanes:
    constants = _CONSTANTS[x.writer.format]
    x = x.at_least(constants.low).at_most(constants.high)
    shifted, n, r = reduced(x, _rounder(x.writer.format))
    if constants.exp_adds_exactly:
        tail = r * r * r.polynomial(constants.exp)
        return _scaled((tail - n.rounded_product(constants.ln2_low)) + (x - n * constants.ln2_high) + 1.0, n, shifted)
    # Horner's rule to its end: where sums and products are fused, fewer instructions than r and 1 added to the rest.
    return _scaled(r * (r * r.polynomial(constants.exp) + 1.0) + 1.0, n, shifted)


def exp_of_moderate(x: Lanes) -> Lanes:
    """exp(x) where that is a normal number: 2^n is one factor. Within 1.5 ulp."""
    format_ = x.writer.format
    shifted, _, r = reduced(x, format_.rounder + format_.bias)
    p = r * r * r.polynomial(_CONSTANTS[format_].expm1) + r + 1.0
    return p * (shifted.bits << format_.mantissa_bits).numbers


def exp2(x: Lanes) -> Lanes:
    constants = _CONSTANTS[x.writer.format]
    format_ = x.writer.format
    x = x.at_least(constants.least).at_most(format_.bias + 1.0)
    rounder = _rounder(format_)
    shifted = x + rounder
    n = shifted - rounder
    r = x - n
    return _scaled(r * r.polynomial(constants.exp2) + 1.0, n, shifted)


def expm1_reduced(x: Lanes, exponent: int) -> tuple[Lanes, Lanes]:
    """2^(n + exponent), which must be a normal number, and exp(r) - 1."""
    format_ = x.writer.format
    shifted, _, r = reduced(x, format_.rounder + (format_.bias + exponent))
    q = r * r * r.polynomial(_CONSTANTS[format_].expm1) + r
    return (shifted.bits << format_.mantissa_bits).numbers, q


def expm1(x: Lanes) -> Lanes:
    """2 (t (exp(r) - 1) + (t - 1/2)) with t = 2^(n - 1), which is normal wherever the result is finite."""
    format_ = x.writer.format
    # Where n <= -mantissa the result is -1.
    clamped = x.at_least(-1.0 * format_.mantissa_bits).at_most(_CONSTANTS[format_].high)
    t, q = expm1_reduced(clamped, -1)
    result = (t * q + (t - 0.5)) * 2.0
    # Half of a subnormal number may be none; -0 stays what it is.
    return (abs(x) < 0.5**format_.mantissa_bits).choose(x, result)
