"""Elementary functions as formulas over `Lanes`. The comment before each family gives method and sources."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from xdsl.dialects import math as math_dialect

from weft.passes.low.elementary.lanes import F32, F64, Format

if TYPE_CHECKING:
    from collections.abc import Mapping

    from xdsl.ir import Operation

    from weft.passes.low.elementary.lanes import Bits, Lanes

# exp, exp2 and expm1.
#
#     x = n ln 2 + r,  |r| <= ln 2 / 2,  exp(x) = 2^n exp(r)
#
# Cody and Waite's reduction (Software Manual for the Elementary Functions, 1980): the first part of ln 2 is short
# enough for an exact product with n. Adding 1.5 * 2^mantissa rounds to n, then in the low bits. exp(r) is a minimax
# polynomial (Remez, relative error). 2^n is an instruction (`vscalef` of AVX-512), or two normal factors with the same
# results: only the second product rounds. Results may be subnormal; arguments are clamped just outside the range.


@dataclass(frozen=True)
class _Exp:
    """Constants of a format. `low` and `high` bound arguments that neither round to 0 nor overflow."""

    ln2_high: float
    ln2_low: float
    low: float
    high: float
    least: float
    """A power of 2 below the format: 2^least and anything below rounds to 0."""
    exp_adds_exactly: bool
    """Whether exp adds r in two parts, the first exact: two instructions for a tenth of an ulp."""
    exp: tuple[float, ...]
    """exp(r) = 1 + r + r^2 q(r)."""
    exp2: tuple[float, ...]
    """2^r = 1 + r q(r) for |r| <= 1/2."""
    expm1: tuple[float, ...]
    """As exp, with an error small relative to exp(r) - 1."""


LOG2_E: Final = 1.4426950408889634
_EXP: Final[Mapping[Format, _Exp]] = {
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
    """Leaves n + 2 * bias in the low bits of its sum with x."""
    return format_.rounder + 2 * format_.bias


def _scaled(p: Lanes, n: Lanes, shifted: Lanes) -> Lanes:
    """p * 2^n, with `shifted` = n + rounder. Without an instruction, the halves of n + 2 * bias are biased exponents of
    two factors.
    """
    return p.ldexp(n) if p.writer.has_ldexp else _by_halves(p, shifted)


def _by_halves(p: Lanes, shifted: Lanes) -> Lanes:
    format_ = p.writer.format
    bits = shifted.bits
    half = bits >> 1
    first = (half << format_.mantissa_bits).numbers
    second = ((bits - half) << format_.mantissa_bits).numbers
    return p * first * second


def ldexp(x: Lanes, n: Lanes) -> Lanes:
    """Products with powers of two, in two steps of up to twice the bias; a larger |n| gives 0 or infinity."""
    for _ in range(2):
        part = n.at_least(-2.0 * x.writer.format.bias + 2.0).at_most(2.0 * x.writer.format.bias)
        x, n = _by_halves(x, part + _rounder(x.writer.format)), n - part
    return x


def reduced(x: Lanes, rounder: float) -> tuple[Lanes, Lanes, Lanes]:
    """n + rounder, n, and r of x = n ln 2 + r."""
    constants = _EXP[x.writer.format]
    shifted = x * LOG2_E + rounder
    n = shifted - rounder
    return shifted, n, (x - n * constants.ln2_high) - n * constants.ln2_low


def exp(x: Lanes) -> Lanes:
    constants = _EXP[x.writer.format]
    x = x.at_least(constants.low).at_most(constants.high)
    shifted, n, r = reduced(x, _rounder(x.writer.format))
    if constants.exp_adds_exactly:
        tail = r * r * r.polynomial(constants.exp)
        return _scaled((tail - n.rounded_product(constants.ln2_low)) + (x - n * constants.ln2_high) + 1.0, n, shifted)
    # Horner's rule to its end: fewer fused multiply-adds than adding r and 1.
    return _scaled(r * (r * r.polynomial(constants.exp) + 1.0) + 1.0, n, shifted)


def two_sum(large: Lanes, small: Lanes | float) -> tuple[Lanes, Lanes]:
    """The sum and its rounding error (Dekker's Fast2Sum, 1971), for |large| >= |small|, or if one is 0 or a power of
    two. `small` may be an exact product.
    """
    total = large + small
    return total, (large - total) + small


def exp_of_moderate(x: Lanes) -> Lanes:
    """exp(x) if normal: 2^n is one factor. Within 1.5 ulp."""
    format_ = x.writer.format
    shifted, _, r = reduced(x, format_.rounder + format_.bias)
    p = r * r * r.polynomial(_EXP[format_].expm1) + r + 1.0
    return p * (shifted.bits << format_.mantissa_bits).numbers


def exp2(x: Lanes) -> Lanes:
    constants = _EXP[x.writer.format]
    format_ = x.writer.format
    x = x.at_least(constants.least).at_most(format_.bias + 1.0)
    rounder = _rounder(format_)
    shifted = x + rounder
    n = shifted - rounder
    r = x - n
    return _scaled(r * r.polynomial(constants.exp2) + 1.0, n, shifted)


def expm1_reduced(x: Lanes, exponent: int) -> tuple[Lanes, Lanes]:
    """2^(n + exponent), which must be normal, and exp(r) - 1."""
    format_ = x.writer.format
    shifted, _, r = reduced(x, format_.rounder + (format_.bias + exponent))
    q = r * r * r.polynomial(_EXP[format_].exp) + r
    return (shifted.bits << format_.mantissa_bits).numbers, q


def expm1(x: Lanes) -> Lanes:
    """2 (t (exp(r) - 1) + (t - 1/2)) with t = 2^(n - 1), normal if the result is finite. t r is added first; rounding
    errors of r and that sum are added to the polynomial.
    """
    format_ = x.writer.format
    constants = _EXP[format_]
    # For n <= -mantissa the result is -1.
    clamped = x.at_least(-1.0 * format_.mantissa_bits).at_most(constants.high)
    shifted, n, r = reduced(clamped, format_.rounder + (format_.bias - 1))
    t = (shifted.bits << format_.mantissa_bits).numbers
    first, missing = two_sum(t, -0.5)
    whole, lost = two_sum(first, t * r)
    lost_of_r = ((clamped - n * constants.ln2_high) - r) - n * constants.ln2_low
    tail = r * r * r.polynomial(constants.expm1) + lost_of_r
    result = (whole + (t * tail + (lost + missing))) * 2.0
    # Half of a subnormal number may be inexact; -0 is kept.
    return (abs(x) < 0.5 ** (format_.mantissa_bits + 1)).choose(x, result)


def logistic(x: Lanes) -> Lanes:
    """1 / (1 + exp(-x)) = 1 / (1 + t + t q), and a step of Newton's method. Divisors are scaled, finite if the result
    is subnormal.
    """
    scale, t, product = _logistic_terms(x)
    first, missing = two_sum(t, scale)
    divisor, lost = two_sum(first, product)
    inverse = 1.0 / divisor
    residue = (1.0 - inverse * divisor) - inverse * (lost + missing)
    return (inverse + inverse * residue) * scale


def short_logistic(x: Lanes) -> Lanes:
    """The logistic function within 2.5 ulp, for results that are rounded to 16 bits."""
    scale, t, product = _logistic_terms(x)
    return scale / (t + scale + product)


def _logistic_terms(x: Lanes) -> tuple[float, Lanes, Lanes]:
    """A scale s, and s t and s t q with exp(-x) = t + t q."""
    format_ = x.writer.format
    constants = _EXP[format_]
    exponent = (format_.bias + 1) // 4
    x = x.at_least(constants.low).at_most(2.0 + format_.mantissa_bits)
    shifted, _, r = reduced(-x, format_.rounder + (format_.bias - exponent))
    t = (shifted.bits << format_.mantissa_bits).numbers
    return 0.5**exponent, t, t * (r * r * r.polynomial(constants.exp) + r)


# log, log2, log10 and log1p.
#
#     x = 2^e m,  sqrt(1/2) <= m < sqrt(2),  f = m - 1,  log(x) = e ln 2 + log(1 + f)
#     log(1 + f) = f - f^2/2 + tail(f)
#
# e and m are bits of x (2^k x if subnormal). The tail is a minimax polynomial. In s = f / (2 + f), as in fdlibm (Sun,
# 1993), it is shorter, but dividing eight doubles takes as long as twenty terms. f - f^2/2 is added last, or, for other
# bases, multiplied in two parts with exact products, as in FreeBSD's e_log2.c.


@dataclass(frozen=True)
class _Base:
    """A logarithm to another base: the images of 1 and ln 2, each as a short part and a rest."""

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
    """Leaves few enough bits of a number for exact products."""
    log2: _Base
    log10: _Base


_LOG: Final[Mapping[Format, _Log]] = {
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
    """e and m of a finite x > 0, subnormal only if `least`, a lower bound, permits it."""
    format_ = x.writer.format
    constants = _LOG[format_]
    mantissa = format_.mantissa_bits
    # 2^mantissa has an integer in its low bits; `excess` keeps it positive.
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
    return (format_.bias + format_.mantissa_bits) << format_.mantissa_bits


def _finished(result: Lanes, x: Lanes, pole: float) -> Lanes:
    """Infinity and NaN stay, the pole gives -infinity, smaller arguments NaN."""
    below = (x < pole).choose(math.nan, -math.inf)
    number = (x > pole).choose(result, below)
    return x.compare("olt", math.inf).choose(number, x)


def log(x: Lanes) -> Lanes:
    e, m = _split(x, 0.0)
    return _finished(_natural(e, m - 1.0), x, 0.0)


def _natural(e: Lanes, f: Lanes) -> Lanes:
    return (f + _natural_rest(e, f)) + e * _LOG[f.writer.format].ln2_high


def _natural_rest(e: Lanes, f: Lanes) -> Lanes:
    """`_natural` without f and the high part of e ln 2. -1/2 is a coefficient: the rounding error of f^2 times it is
    small.
    """
    low = e.rounded_product(_LOG[f.writer.format].ln2_low)
    return f * f * f.polynomial((-0.5, *_TAILS[f.writer.format])) + low


def log2(x: Lanes) -> Lanes:
    return _other_base(x, _LOG[x.writer.format].log2)


def log10(x: Lanes) -> Lanes:
    return _other_base(x, _LOG[x.writer.format].log10)


def _other_base(x: Lanes, base: _Base) -> Lanes:
    e, m = _split(x, 0.0)
    f = m - 1.0
    half_square = f * f * 0.5
    high = ((f - half_square).bits & _LOG[x.writer.format].short).numbers
    low = ((f - high) - half_square) + f * (f * f) * f.polynomial(_TAILS[f.writer.format])
    rest = (low + high).rounded_product(base.one_low) + low * base.one_high
    if base.two_low:
        rest = rest + e * base.two_low
    power = e if base.two_high == 1.0 else e.rounded_product(base.two_high)
    product = high * base.one_high
    total = power + product
    return _finished(((power - total) + product + rest) + total, x, 0.0)


def log1p(x: Lanes) -> Lanes:
    """u = 1 + x; its rounding error is added to f: exactly x if 1 + x is near 1."""
    format_ = x.writer.format
    u = x + 1.0
    x_part = u - 1.0
    lost = (x - x_part) + (1.0 - (u - x_part))
    e, m = _split(u, 0.5**format_.mantissa_bits)
    # 2^-e; for large e the error is negligible.
    scale = ((format_.rounder + format_.bias) - e.at_most(format_.bias - 1.0)).bits << format_.mantissa_bits
    f, rest = two_sum(m - 1.0, lost * scale.numbers)
    whole, error = two_sum(e * _LOG[format_].ln2_high, f)
    result = whole + (_natural_rest(e, f) + (error + rest))
    tiny = abs(x) < 0.5 ** (format_.mantissa_bits + 1)
    return tiny.choose(x, _finished(result, x, -1.0))


# sin and cos.
#
#     |x| = q pi/2 + r,  |r| <= pi/4,  sin(x), cos(x) = +-sin(r) or +-cos(r), by the low bits of q
#
# Cody and Waite's reduction: the first parts of pi/2 are short enough for exact products with q, the last has full
# precision. The difference from the first product is exact; rounding errors of the others are summed (Dekker's
# Fast2Sum, 1971) and added to the polynomials: results are accurate to the last place even if nearly all of x cancels.
# Beyond `bound`, where products with q are inexact, a condition calls the C library.


@dataclass(frozen=True)
class _Sine:
    half_pi: tuple[float, float, float, float]
    """The parts of pi/2."""
    bound: float
    sine: tuple[float, ...]
    """sin(r) = r + r^3 p(r^2) for |r| <= 0.7865."""
    cosine: tuple[float, ...]
    """cos(r) = 1 - r^2/2 + r^4 p(r^2) there."""


_SINE: Final[Mapping[Format, _Sine]] = {
    # Errors of the polynomials: 2^-27.8, 2^-33.1; 2^-57.8, 2^-64.0. Parts of 11 and 32 bits.
    F32: _Sine(
        half_pi=(1.5703125, 0.0004837512969970703, 7.549533620476723e-08, 2.5633440682570896e-12),
        bound=12800.0,
        sine=(-0.16666655242443085, 0.008332187309861183, -0.00019517885812092572),
        cosine=(0.04166664555668831, -0.00138873013202101, 2.4430670237052254e-05),
    ),
    F64: _Sine(
        half_pi=(1.5707963267341256, 6.077100506303966e-11, 2.0222662487111665e-21, 8.4784276603689e-32),
        bound=3.0e6,
        sine=(
            *(-0.1666666666666663, 0.00833333333332184, -0.0001984126982935853, 2.755731353851617e-06),
            *(-2.505073438954086e-08, 1.5895433289255518e-10),
        ),
        cosine=(
            *(0.041666666666666595, -0.0013888888888873303, 2.4801587288947114e-05, -2.7557314191895323e-07),
            *(2.0875700737041844e-09, -1.135844634039271e-11),
        ),
    ),
}


def sin(x: Lanes) -> Lanes:
    size = abs(x)
    value, signs = _of_quadrant(size, 0)
    return _beyond(size, x, math_dialect.SinOp, (value.bits ^ (signs ^ (x.bits & _sign_bit(x)))).numbers)


def cos(x: Lanes) -> Lanes:
    """sin(x + pi/2), without the sum."""
    size = abs(x)
    value, signs = _of_quadrant(size, 1)
    return _beyond(size, x, math_dialect.CosOp, (value.bits ^ signs).numbers)


def _sign_bit(x: Lanes) -> int:
    return 1 << (x.writer.shape.integer_bits - 1)


def _beyond(size: Lanes, x: Lanes, call: type[Operation], result: Lanes) -> Lanes:
    is_large = (size > _SINE[x.writer.format].bound) & (size < math.inf)
    return x.writer.called_where(is_large, call, x, result)


def _of_quadrant(x: Lanes, quarter: int) -> tuple[Lanes, Bits]:
    """The magnitude of sin(x + quarter pi/2), and its sign bit, for x >= 0."""
    format_ = x.writer.format
    constants = _SINE[format_]
    shifted = x * (2.0 / math.pi) + format_.rounder
    q = shifted - format_.rounder
    r, rest = _reduced_by_quarters(x, q)
    square = r * r
    sine = r + (r * (square * square.polynomial(constants.sine)) + rest)
    tail = square * square * square.polynomial(constants.cosine) - r.rounded_product(rest)
    cosine = 1.0 - (square * 0.5 - tail)
    number = shifted.bits + quarter if quarter else shifted.bits
    is_odd = (number & 1).compare("ne", 0)
    return is_odd.choose(cosine, sine), (number & 2) << (x.writer.shape.integer_bits - 2)


def _reduced_by_quarters(x: Lanes, q: Lanes) -> tuple[Lanes, Lanes]:
    first, second, third, last = _SINE[x.writer.format].half_pi
    exact = x - q * first
    near = exact - q * second
    r = near - q * third
    lost = ((exact - near) - q * second) + ((near - r) - q * third)
    return r, lost - q * last


@dataclass(frozen=True)
class _Tanh:
    saturation: float
    """From here on tanh rounds to 1."""
    small: tuple[float, ...]
    """tanh(x) = x + x^3 p(x^2) for |x| <= 0.97."""


_TANH: Final[Mapping[Format, _Tanh]] = {
    # Errors: 2^-28.3, 2^-56.2.
    F32: _Tanh(
        saturation=10.0,
        small=(
            *(-0.3333330750465393, 0.13332608342170715, -0.053898971527814865, 0.021550437435507774),
            *(-0.008052892051637173, 0.002388916676864028, -0.00038640317507088184),
        ),
    ),
    F64: _Tanh(
        saturation=20.0,
        small=(
            *(-0.33333333333333154, 0.13333333333313413, -0.053968253960487406, 0.021869488382293863),
            *(-0.008863233708997552, 0.00359211394688189, -0.0014557590109922835, 0.000589738387869388),
            *(-0.00023831574845544878, 9.521174507020361e-05, -3.660214678640338e-05, 1.2757713842217992e-05),
            *(-3.6417256445426877e-06, 7.247672492537341e-07, -7.26858845160753e-08),
        ),
    ),
}


_TANH_BORDER: Final = 0.97
"""From here on the rounded quotient is less than 1/4 of the result."""


def tanh(x: Lanes) -> Lanes:
    """1 - 2 / (exp(2 |x|) + 1) with the sign of x for |x| >= 0.97, else a polynomial. exp(2 |x|) is t (q + 1) with an
    exact product t q: the divisor is rounded once.
    """
    constants = _TANH[x.writer.format]
    size = abs(x)
    square = x * x
    small = x * square * square.polynomial(constants.small) + x
    limited = size.at_most(constants.saturation)
    t, q = expm1_reduced(limited + limited, 0)
    large = 1.0 - 2.0 / (t * q + (t + 1.0))
    # -0 plus a zero product loses the sign.
    return (size < _TANH_BORDER).choose(small, large).with_sign_of(x)


@dataclass(frozen=True)
class _Erf:
    border: float
    saturation: float
    """From here on erf rounds to 1."""
    small: tuple[float, ...]
    """erf(x) = x + x p(x^2) up to the border."""
    large: tuple[float, ...]
    """Coefficients of erfc beyond the border; its form depends on the format."""


_ERF: Final[Mapping[Format, _Erf]] = {
    # Errors: 2^-30.0, 2^-32.1.
    F32: _Erf(
        border=0.93,
        saturation=3.95,
        small=(
            *(0.12837916612625122, -0.37612628936767578, 0.11283625662326813, -0.026855731382966042),
            *(0.0051924050785601139, -0.00080497673479840159, 7.9966339399106801e-5),
        ),
        large=(
            *(-0.12855704128742218, -0.63560092449188232, -0.10530966520309448, 0.022723354399204254),
            *(-0.0029604011215269566, 6.0480128013296053e-5, 4.3452404497656971e-5, -4.7641351557103917e-6),
        ),
    ),
    # Errors: 2^-56.3, 2^-57.7.
    F64: _Erf(
        border=1.0,
        saturation=6.0,
        small=(
            *(0.12837916709551259, -0.37612638903183748, 0.11283791670954857, -0.026866170645072896),
            *(0.0052239776247808714, -0.00085483269787424052, 0.000120553310369046, -1.4925593506969991e-5),
            *(1.6460972817818491e-6, -1.6350025226966545e-7, 1.4657879848309913e-8, -1.1365665908648842e-9),
            5.945261542736695e-11,
        ),
        large=(
            *(0.25539567631050575, -0.42718584741395838, 0.24165819424246673, -0.078978581015749408),
            *(0.0037328924041166679, 0.006997461740322816, -0.00084714322522967103, -0.0009819769788436065),
            *(4.3554667941169636e-5, 0.00017435649525447374, 2.7532498725986876e-5, -2.748594072104755e-5),
            *(-1.3829421321496935e-5, 9.308414800056683e-7, 2.2006968706825301e-6),
        ),
    ),
}


def erf(x: Lanes) -> Lanes:
    """x + x p(x^2) near 0; 1 - erfc(|x|) with the sign of x elsewhere."""
    constants = _ERF[x.writer.format]
    size = abs(x)
    square = x * x
    small = x * square.polynomial(constants.small) + x
    limited = size.at_most(constants.saturation)
    if x.writer.format is F32:  # erfc is exp(-t + t p(t)), as Juffa proposes, and exp(r) 2^n is an exact product
        t, q = expm1_reduced(limited * limited.polynomial(constants.large) - limited, 0)
        large = (1.0 - t) - t * q
    else:
        large = 1.0 - _erfc(limited, constants.large)
    return (size < constants.border).choose(small, large).with_sign_of(x)


def _erfc(t: Lanes, coefficients: tuple[float, ...]) -> Lanes:
    u = (t - 2.0) / (t + 2.0)
    return exp_of_moderate(-(t * t)) * u.polynomial(coefficients)


_ERF_BOUND: Final = 4.1
"""From here on the quotient rounds to more than 1."""
_ERF_QUOTIENT: Final = (
    # x p(x^2) / q(x^2): error 2^-26.0 up to 3.9, above 1 at the bound.
    (
        *(1.1283790323670293, 0.1919409159669336, 0.05296690168059298, 0.003836872055242581),
        *(0.000287457126665055, 2.050386634982646e-06),
    ),
    (
        *(1.0, 0.5034349859018267, 0.11475815935728553, 0.0151091947064102),
        *(0.0011817334808414534, 3.823073061092793e-05),
    ),
)


def one_plus_erf(x: Lanes) -> Lanes:
    """1 + erf(x) of f32, absolute error 4.1e-7; gelu is x / 2 times that. The sum cancels the last digits of small
    erf(x): one quotient of polynomials suffices. Exactly 0 and 2 beyond the bound.
    """
    inside = x.at_least(-_ERF_BOUND).at_most(_ERF_BOUND)
    square = inside * inside
    above, below = (square.polynomial(coefficients) for coefficients in _ERF_QUOTIENT)
    return (inside * above / below).at_least(-1.0).at_most(1.0) + 1.0


# pow of numbers narrower than double, in double: |x|^y = 2^(y log2 |x|).
#
# log2 and exp2 are accurate to 52 bits, the exponent is below 2^11: 40 bits before the only rounding.


_EVEN: Final = 2.0**30
"""Larger 32-bit floats are even integers; infinity counts as even for the sign of a power."""


def pow_in_double(x: Lanes, y: Lanes) -> Lanes:
    """x^y by the rules of C: 1 if x = 1 or y = 0, even for NaN, and if x = -1 and y is infinite; NaN for finite x < 0
    and non-integral y; the sign of x for odd y.
    """
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


# a * b + c of 16-bit floats, rounded once, in a format that holds a * b exactly.
#
# The sum is rounded to odd (Boldo and Melquiond 2008): an inexact one whose last bit is 0 moves one step towards the
# error. A number with two more bits than the result then rounds like the exact sum. `f32` represents products of `f16`,
# and those of `bf16` between 2^-126 and 2^128; `f64` all of both.


def multiply_add(a: Lanes, b: Lanes, c: Lanes) -> Lanes:
    """A number that rounds to 16 bits like the exact a * b + c."""
    product = a * b
    total = product + c
    shadow = total - product
    lost = (product - (total - shadow)) + (c - shadow)
    agreement = lost * total
    outwards, inwards = (total.bits | 1).numbers, ((total.bits - 1) | 1).numbers
    return (agreement > 0.0).choose(outwards, (agreement < 0.0).choose(inwards, total))
