"""Special functions, functions of the bits of numbers, and divisors of integers.

Computed in float64: float32 results are within one ulp unless documented otherwise.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import exp, inf, nan, pi, sqrt
from typing import Final

from weft.dialects.graph_traits import Elementwise, declare
from weft.texpr import math
from weft.texpr.expr import Expr, bits, error, has_sign, is_float, is_integer, reinterpret
from weft.texpr.extern import Result, Statements, Written, extern
from weft.texpr.ops.arguments import (
    broadcast_shape,
    checked_tensor,
    compute,
    constant,
    elementwise,
    floating,
    read_broadcast,
)
from weft.texpr.ops.elementwise import Operand, UnaryOperator, mapped
from weft.texpr.tensor import Tensor

__all__ = ["erf_inv", "erfc", "erfcx", "frexp", "gcd", "ndtri", "nextafter", "signbit"]


def polynomial(x: Expr, coefficients: Sequence[float]) -> Expr:
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


def _squares(x: Expr) -> tuple[Expr, Expr]:
    """Two numbers whose sum is x * x, the first exact: the square of a float32."""
    leading = x.astype("float32").astype("float64")
    return leading * leading, (x - leading) * (x + leading)


def _tail_of_erfc(size: Expr, square: Expr | float) -> Expr:
    """erfc(size) exp(size * size - square), size non-negative."""
    t = 2.0 / (2.0 + size)
    argument = 4.0 * t - 2.0
    following, last = constant(0.0, "float64"), constant(0.0, "float64")
    for coefficient in reversed(_ERFC[1:]):
        following, last = argument * following - last + coefficient, following
    return t * math.exp(0.5 * (_ERFC[0] + argument * following) - last - square)


def _erfc(x: Expr) -> Expr:
    size = math.abs(x)
    # A square's rounding error would be multiplied by it.
    square, rest = _squares(size)
    tail = _tail_of_erfc(size, rest) * math.exp(-square)
    # The difference does not cancel near 0; the exponential is 0 beyond 28.
    found = math.select(size < 0.5, 1.0 - math.erf(size), math.select(size > 28.0, 0.0, tail))
    return math.select(math.isnan(x), x, math.select(x < 0.0, 2.0 - found, found))


def _erfcx(x: Expr) -> Expr:
    found = _tail_of_erfc(math.abs(x), 0.0)
    square, rest = _squares(x)
    # Larger squares overflow; their rest is NaN.
    grown = math.select(x < -27.0, inf, 2.0 * math.exp(square) * math.exp(rest) - found)
    return math.select(math.isnan(x), x, math.select(x < 0.0, grown, found))


_NDTRI_P0: Final = (-59.96335010141079, 98.00107541859997, -56.67628574690703, 13.931260938727968, -1.2391658386738125)
_NDTRI_Q0: Final = (
    *(1.0, 1.9544885833814176, 4.676279128988815, 86.36024213908905, -225.46268785411937, 200.26021238006066),
    *(-82.03722561683334, 15.90562251262117, -1.1833162112133),
)
_NDTRI_P1: Final = (
    *(4.0554489230596245, 31.525109459989388, 57.16281922464213, 44.08050738932008, 14.684956192885803),
    *(2.1866330685079025, -0.1402560791713545, -0.03504246268278482, -0.0008574567851546854),
)
_NDTRI_Q1: Final = (
    *(1.0, 15.779988325646675, 45.39076351288792, 41.3172038254672, 15.04253856929075, 2.504649462083094),
    *(-0.14218292285478779, -0.03808064076915783, -0.0009332594808954574),
)
_NDTRI_P2: Final = (
    *(3.2377489177694603, 6.915228890689842, 3.9388102529247444, 1.3330346081580755, 0.20148538954917908),
    *(0.012371663481782003, 0.00030158155350823543, 2.6580697468673755e-06, 6.239745391849833e-09),
)
_NDTRI_Q2: Final = (
    *(1.0, 6.02427039364742, 3.6798356385616087, 1.3770209948908132, 0.21623699359449663),
    *(0.013420400608854318, 0.00032801446468212774, 2.8924786474538068e-06, 6.790194080099813e-09),
)


def _middle_of_ndtri(x: Expr) -> Expr:
    """The quantile at 0.5 + x, accurate for small x, if 0.5 - |x| > exp(-2)."""
    square = x * x
    ratio = polynomial(square, _NDTRI_P0) / polynomial(square, _NDTRI_Q0)
    return (x + x * (square * ratio)) * sqrt(2 * pi)


def _tail_of_ndtri(p: Expr) -> Expr:
    """The quantile at 1 - p, for p <= exp(-2)."""
    x = math.sqrt(-2.0 * math.log(p))
    z = 1.0 / x
    tail = math.select(
        x < 8.0,
        polynomial(z, _NDTRI_P1) / polynomial(z, _NDTRI_Q1),
        polynomial(z, _NDTRI_P2) / polynomial(z, _NDTRI_Q2),
    )
    return x - math.log(x) * z - z * tail


def _erf_inv(y: Expr) -> Expr:
    """The quantile at (1 + y) / 2, over the square root of 2. The distance of y from 1 is exact."""
    size = math.abs(y)
    p = (1.0 - size) * 0.5
    x = math.select(p > _EXP_2, _middle_of_ndtri(size * 0.5), _tail_of_ndtri(p)) * sqrt(0.5)
    ends = math.select(size == 1.0, constant(inf, "float64"), constant(nan, "float64"))
    return math.copysign(math.select(size < 1.0, x, ends), y)


def _ndtri(y: Expr) -> Expr:
    is_upper = y > 1.0 - _EXP_2
    p = math.select(is_upper, 1.0 - y, y)
    far = _tail_of_ndtri(p)
    found = math.select(p > _EXP_2, _middle_of_ndtri(p - 0.5), math.select(is_upper, far, -far))
    ends = math.select(y == 0.0, constant(-inf, "float64"), constant(nan, "float64"))
    ends = math.select(y == 1.0, constant(inf, "float64"), ends)
    return math.select((y > 0.0) & (y < 1.0), found, ends)


_EXP_2: Final = exp(-2)


def special_function(label: str, doc: str, equals: str, scalar: Callable[[Expr], Expr]) -> UnaryOperator:
    def apply(data: Tensor, *, name: str | None = None) -> Tensor:
        source = floating(data, f"{label}: data")

        def element(x: Expr) -> Expr:
            return scalar(x.astype("float64")).astype(source.dtype)

        return mapped(source, element, label if name is None else name, wide=False)

    apply.__name__ = apply.__qualname__ = label
    apply.__doc__ = f"{doc}\n\nDtypes: floats.\nEquals: `{equals}`."
    return apply


erfc = special_function(
    "erfc", "1 - erf(x), without cancellation. The relative error in float64 is 1e-15.", "torch.erfc(data)", _erfc
)
erfcx = special_function(
    "erfcx",
    "exp(x * x) erfc(x), which does not underflow. The relative error in float64 is 1e-15.",
    "scipy.special.erfcx(data)",
    _erfcx,
)
ndtri = special_function(
    "ndtri",
    "The quantile function of the normal distribution; infinite at 0 and 1, NaN outside. The error in float64 is 1e-14 "
    "of the greater of the result and 1 (Cephes).",
    "scipy.special.ndtri(data)",
    _ndtri,
)
erf_inv = special_function(
    "erf_inv",
    "The inverse of erf; infinite at 1 and -1, NaN outside. The relative error in float64 is 1e-15 (Cephes).",
    "torch.erfinv(data)",
    _erf_inv,
)


def signbit(data: Tensor, *, name: str = "signbit") -> Tensor:
    """Whether the sign bit is set, including zeros and NaN.

    Dtypes: all.
    Equals: `np.signbit(data)`.
    """

    def element(x: Expr) -> Expr:
        if not is_float(x.dtype):
            return x < 0 if has_sign(x.dtype) else constant(False, "bool")
        return reinterpret(x, f"int{bits(x.dtype)}") < 0

    return mapped(checked_tensor(data, "signbit: data"), element, name, wide=False)


def frexp(data: Tensor, *, name: str = "frexp") -> tuple[Tensor, Tensor]:
    """Numbers as m * 2^e with m in [0.5, 1): m, and e as int32. For zeros, infinities and NaN, m is the number and e is
    0.

    Results: `<name>_mantissas`, `<name>_exponents`.

    Dtypes: floats.
    Equals: `np.frexp(data)`.
    """
    source = floating(data, "frexp: data")
    wide = "float64" if source.dtype == "float64" else "float32"
    code, fraction = ("int64", 52) if wide == "float64" else ("int32", 23)
    bias, ones = (1022, 2047) if wide == "float64" else (126, 255)

    def parts(*i: Expr) -> tuple[Expr, Expr, Expr]:
        """The number, its bits, and the exponent of the factor that makes a subnormal number normal."""
        x = source(*i).astype(wide)
        is_small = math.abs(x) < 2.0 ** (1 - bias)
        shift = math.select(is_small, constant(fraction, code), constant(0, code))
        return x, reinterpret(math.select(is_small, x * 2.0**fraction, x), code), shift

    def is_special(x: Expr) -> Expr:
        return (x == 0.0) | math.logical_not(math.isfinite(x))

    def mantissa(*i: Expr) -> Expr:
        x, word, _ = parts(*i)
        kept = word & constant(~(ones << fraction), code)
        found = reinterpret(kept | constant(bias << fraction, code), wide)
        return math.select(is_special(x), x, found).astype(source.dtype)

    def exponent(*i: Expr) -> Expr:
        x, word, shift = parts(*i)
        found = ((word >> constant(fraction, code)) & constant(ones, code)) - bias - shift
        return math.select(is_special(x), constant(0, code), found).astype("int32")

    return compute(source.shape, mantissa, f"{name}_mantissas"), compute(source.shape, exponent, f"{name}_exponents")


def nextafter(lhs: Operand, rhs: Operand, *, name: str = "nextafter") -> Tensor:
    """The next representable number after lhs in the direction of rhs.

    Dtypes: floats.
    Equals: `np.nextafter(lhs, rhs)`.
    """
    for operand in (lhs, rhs):
        if isinstance(operand, Tensor):
            floating(operand, "nextafter: operand")
    return elementwise("nextafter", math.next_after, (lhs, rhs), name)


def gcd(lhs: Tensor, rhs: Tensor, *, name: str = "gcd") -> Tensor:
    """The greatest common divisor of absolute values, 0 for two zeros, by Euclid's algorithm with the dtype's maximum
    number of steps.

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


declare(Elementwise(), erf_inv, erfc, erfcx, ndtri, nextafter, signbit)
