"""Special functions, and functions of the bits of numbers and of the divisors of integers.

They are formed in float64 for all elements, so that results in float32 are within one unit in the last place of the
nearest number, unless their text states another error.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import inf, log, pi, sqrt
from typing import Final

from weft.dialects.graph_traits import Elementwise, declare
from weft.texpr import math
from weft.texpr.expr import Expr, bits, error, has_sign, is_float, is_integer, reinterpret, unified
from weft.texpr.extern import Result, Statements, Written, extern
from weft.texpr.ops.arguments import (
    broadcast_shape,
    checked_tensor,
    constant,
    elementwise,
    floating,
    read_broadcast,
)
from weft.texpr.ops.elementwise import Operand, UnaryOperator, mapped
from weft.texpr.tensor import Tensor

__all__ = ["digamma", "erf_inv", "erfc", "gcd", "lgamma", "nextafter", "signbit"]


def _polynomial(x: Expr, coefficients: Sequence[float]) -> Expr:
    """Horner's scheme, from the coefficient of the highest power on."""
    total: Expr = constant(coefficients[0], "float64")
    for coefficient in coefficients[1:]:
        total = total * x + coefficient
    return total


_ERFC: Final = (
    *(-1.3026537197817094, 6.4196979235649026e-1, 1.9476473204185836e-2, -9.561514786808631e-3),
    *(-9.46595344482036e-4, 3.66839497852761e-4, 4.2523324806907e-5, -2.0278578112534e-5, -1.624290004647e-6),
    *(1.303655835580e-6, 1.5626441722e-8, -8.5238095915e-8, 6.529054439e-9, 5.059343495e-9, -9.91364156e-10),
    *(-2.27365122e-10, 9.6467911e-11, 2.394038e-12, -6.886027e-12, 8.94487e-13, 3.13092e-13, -1.12708e-13),
    *(3.81e-16, 7.106e-15, -1.523e-15, -9.4e-17, 1.21e-16, -2.8e-17),
)
"""Chebyshev coefficients of log(erfc(x) exp(x * x) (1 + x / 2)) (Press et al., Numerical Recipes, 3rd edition, 6.2)."""


def _erfc(x: Expr) -> Expr:
    size = math.abs(x)
    t = 2.0 / (2.0 + size)
    argument = 4.0 * t - 2.0
    following, last = constant(0.0, "float64"), constant(0.0, "float64")
    for coefficient in reversed(_ERFC[1:]):
        following, last = argument * following - last + coefficient, following
    tail = t * math.exp(0.5 * (_ERFC[0] + argument * following) - last - size * size)
    # Near 0 the difference has no cancellation, and beyond 28 the exponential is 0.
    found = math.select(size < 0.5, 1.0 - math.erf(size), math.select(size > 28.0, 0.0, tail))
    return math.select(math.isnan(x), x, math.select(x < 0.0, 2.0 - found, found))


def _erf_inv(y: Expr) -> Expr:
    """Rational approximations of 1e-3, then two steps of Newton's method."""
    size = math.abs(y)
    square = y * y
    numerator = _polynomial(square, (-0.140543331, 0.914624893, -1.645349621, 0.886226899))
    denominator = _polynomial(square, (0.012229801, -0.329097515, 1.442710462, -2.118377725, 1.0))
    z = math.sqrt(-math.log((1.0 - size) * 0.5))
    outer = _polynomial(z, (1.641345311, 3.429567803, -1.624906493, -1.970840454))
    outer = math.copysign(outer / _polynomial(z, (1.637067800, 3.543889200, 1.0)), y)
    x = math.select(size <= 0.7, y * numerator / denominator, outer)
    for _ in range(2):
        x = x - (math.erf(x) - y) / (2.0 / sqrt(pi) * math.exp(-(x * x)))
    ends = math.select(size == 1.0, math.copysign(constant(inf, "float64"), y), constant(float("nan"), "float64"))
    return math.select(size < 1.0, x, ends)


_LANCZOS: Final = (
    *(0.99999999999980993, 676.5203681218851, -1259.1392167224028, 771.32342877765313, -176.61502916214059),
    *(12.507343278686905, -0.13857109526572012, 9.9843695780195716e-6, 1.5056327351493116e-7),
)
"""Coefficients of Lanczos's approximation of the gamma function with g = 7 and n = 9."""


def _log_gamma(x: Expr) -> Expr:
    """Of a number of at least 0.5."""
    shifted = x - 1.0
    total: Expr = constant(_LANCZOS[0], "float64")
    for place, coefficient in enumerate(_LANCZOS[1:], 1):
        total = total + coefficient / (shifted + float(place))
    base = shifted + 7.5
    # For large numbers base and its logarithm are multiplied by numbers that differ by little.
    return (shifted + 0.5) * (math.log(base) - 1.0) + (math.log(total) + (0.5 * log(2 * pi) - 7.0))


def _lgamma(x: Expr) -> Expr:
    is_low = x < 0.5
    inner = _log_gamma(math.select(is_low, 1.0 - x, x))
    distance = x - math.round(x)  # exact, unlike the distance from the next integer below
    sine = math.abs(math.sin(pi * distance))
    found = math.select(is_low, log(pi) - math.log(sine) - inner, inner)
    is_pole = (x <= 0.0) & (distance == 0.0)
    return math.select(is_pole | math.isinf(x), constant(inf, "float64"), found)


_DIGAMMA: Final = (*(-1.0 / 12, 1.0 / 120, -1.0 / 252, 1.0 / 240, -1.0 / 132, 691.0 / 32760, -1.0 / 12),)
"""Coefficients of the powers of 1 / x**2 in the asymptotic series of digamma, B(2 k) / (2 k)."""


def _digamma(x: Expr) -> Expr:
    is_low = x < 0.0
    y = math.select(is_low, 1.0 - x, x)
    steps: Expr = constant(0.0, "float64")
    for place in range(10):
        steps = steps + 1.0 / (y + float(place))
    large = y >= 10.0
    z = math.select(large, y, y + 10.0)
    inverse = 1.0 / (z * z)
    series = _polynomial(inverse, (*reversed(_DIGAMMA), 0.0))
    found = math.log(z) - 0.5 / z + series - math.select(large, 0.0, steps)
    distance = x - math.round(x)  # the cotangent has the period 1
    found = math.select(is_low, found - pi / math.tan(pi * distance), found)
    found = math.select(is_low & (distance == 0.0), constant(float("nan"), "float64"), found)
    return math.select(x == 0.0, math.copysign(constant(inf, "float64"), -x), found)


def _special(label: str, doc: str, equals: str, scalar: Callable[[Expr], Expr]) -> UnaryOperator:
    def apply(data: Tensor, *, name: str | None = None) -> Tensor:
        source = floating(data, f"{label}: data")

        def element(x: Expr) -> Expr:
            return scalar(x.astype("float64")).astype(source.dtype)

        return mapped(source, element, label if name is None else name, wide=False)

    apply.__name__ = apply.__qualname__ = label
    apply.__doc__ = f"{doc}\n\nDtypes: floats.\nEquals: `{equals}`."
    return apply


erfc = _special(
    "erfc", "1 - erf(x), exact where erf(x) is near 1: to 2e-13 of the result in float64.", "torch.erfc(data)", _erfc
)
erf_inv = _special(
    "erf_inv",
    "The inverse of erf; infinite at 1 and -1, NaN beyond. To 1e-14 of the result in float64, and less near 1.",
    "torch.erfinv(data)",
    _erf_inv,
)
lgamma = _special(
    "lgamma",
    "The logarithm of the absolute value of the gamma function; infinite at 0 and negative integers. To 1e-14 of the "
    "greater of the result and 1 in float64.",
    "torch.lgamma(data)",
    _lgamma,
)
digamma = _special(
    "digamma",
    "The derivative of `lgamma`; NaN at negative integers, and infinite at 0. To 2e-13 of the "
    "greater of the result and 1 in float64; less near negative integers.",
    "torch.digamma(data)",
    _digamma,
)


def signbit(data: Tensor, *, name: str = "signbit") -> Tensor:
    """Whether the sign of a number is negative, of zeros and NaN too.

    Dtypes: all.
    Equals: `np.signbit(data)`.
    """

    def element(x: Expr) -> Expr:
        if not is_float(x.dtype):
            return x < 0 if has_sign(x.dtype) else constant(False, "bool")
        return reinterpret(x, f"int{bits(x.dtype)}") < 0

    return mapped(checked_tensor(data, "signbit: data"), element, name, wide=False)


def _following(lhs: object, rhs: object) -> Expr:
    x, y = unified("nextafter", lhs, rhs)
    dtype = f"int{bits(x.dtype)}"
    code = reinterpret(x, dtype)
    # The codes of numbers of one sign count up with their size.
    away = math.select(math.abs(y) > math.abs(x), math.equal(x < 0.0, y < 0.0), False)
    moved = reinterpret(code + math.select(away, constant(1, dtype), constant(-1, dtype)), x.dtype)
    least = math.copysign(reinterpret(constant(1, dtype), x.dtype), y)
    found = math.select(x == 0.0, least, moved)
    found = math.select(x == y, y, found)
    return math.select(math.isnan(x), x, math.select(math.isnan(y), y, found))


def nextafter(lhs: Operand, rhs: Operand, *, name: str = "nextafter") -> Tensor:
    """The number next to lhs in the direction of rhs.

    Dtypes: floats.
    Equals: `np.nextafter(lhs, rhs)`.
    """
    for operand in (lhs, rhs):
        if isinstance(operand, Tensor):
            floating(operand, "nextafter: operand")
    return elementwise("nextafter", _following, (lhs, rhs), name)


def gcd(lhs: Tensor, rhs: Tensor, *, name: str = "gcd") -> Tensor:
    """The greatest common divisor of the absolute values of integers, 0 of two zeros. Euclid's algorithm, with as many
    steps as two numbers of the dtype can need.

    Dtypes: integers, one for both.
    Equals: `np.gcd(lhs, rhs)`.
    """
    first, second = checked_tensor(lhs, "gcd: lhs"), checked_tensor(rhs, "gcd: rhs")
    if not is_integer(first.dtype) or first.dtype != second.dtype:
        raise error(f"gcd takes integers of one dtype, got {first.dtype} and {second.dtype}")
    dtype = first.dtype
    shape = broadcast_shape("gcd", first.shape, second.shape)
    steps = 3 * bits(dtype) // 2

    def write(code: Statements, indices: Sequence[Expr], found: Written, rest: Written) -> None:
        for buffer, tensor in ((found, first), (rest, second)):
            value = read_broadcast(tensor, shape, indices)
            buffer.store(math.abs(value) if has_sign(dtype) else value, *indices)
        with code.loop(steps, "k"), code.when(math.not_equal(rest.load(*indices), constant(0, dtype))):
            divisor = rest.load(*indices)
            remainder = math.truncmod(found.load(*indices), divisor)
            rest.store(remainder, *indices)
            found.store(divisor, *indices)

    results = [Result(shape, dtype, name), Result(shape, dtype, f"{name}_rest")]
    return extern(shape, results, [first, second], write, name)[0]


declare(Elementwise(), digamma, erf_inv, erfc, lgamma, nextafter, signbit)
