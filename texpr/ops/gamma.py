"""The gamma function, derivatives and incomplete forms, and Hurwitz's zeta function, in float64."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import inf, log, nan, pi
from typing import Final

from weft.dialects.graph_traits import Elementwise, declare
from weft.texpr import math
from weft.texpr import reductions as te
from weft.texpr.expr import Expr, unified
from weft.texpr.extern import Result, Statements, Written, extern
from weft.texpr.ops.arguments import (
    broadcast_shape,
    constant,
    elementwise,
    floating,
    one_dtype,
    read_broadcast,
)
from weft.texpr.ops.elementwise import Operand
from weft.texpr.ops.elementwise import cast as converted
from weft.texpr.ops.special import polynomial, special_function
from weft.texpr.tensor import Tensor

__all__ = ["digamma", "igamma", "lgamma", "polygamma", "zeta"]

_LANCZOS: Final = (
    *(0.99999999999980993, 676.5203681218851, -1259.1392167224028, 771.32342877765313, -176.61502916214059),
    *(12.507343278686905, -0.13857109526572012, 9.9843695780195716e-6, 1.5056327351493116e-7),
)
"""Lanczos's approximation with g = 7 and n = 9."""


def _log_gamma(x: Expr) -> Expr:
    shifted = x - 1.0
    total: Expr = constant(_LANCZOS[0], "float64")
    for place, coefficient in enumerate(_LANCZOS[1:], 1):
        total = total + coefficient / (shifted + float(place))
    base = shifted + 7.5
    # Factors of base and logarithm are almost equal if large.
    return (shifted + 0.5) * (math.log(base) - 1.0) + (math.log(total) + (0.5 * log(2 * pi) - 7.0))


def _lgamma(x: Expr) -> Expr:
    is_low = x < 0.5
    inner = _log_gamma(math.select(is_low, 1.0 - x, x))
    distance = x - math.round(x)  # exact, unlike that from the next integer below
    size = math.abs(distance)
    sine = math.select(size < 1e-9, size, math.abs(math.sin(pi * distance)) * (1 / pi))
    found = math.select(is_low, -math.log(sine) - inner, inner)
    found = math.select((x == 1.0) | (x == 2.0), constant(0.0, "float64"), found)
    is_pole = (x <= 0.0) & (distance == 0.0)
    return math.select(is_pole | math.isinf(x), constant(inf, "float64"), found)


_DIGAMMA: Final = (*(-1.0 / 12, 1.0 / 120, -1.0 / 252, 1.0 / 240, -1.0 / 132, 691.0 / 32760, -1.0 / 12),)
"""B(2 k) / (2 k), coefficients of 1 / x**2 in the asymptotic series of digamma."""


def _digamma(x: Expr) -> Expr:
    is_low = x < 0.0
    y = math.select(is_low, 1.0 - x, x)
    steps: Expr = constant(0.0, "float64")
    for place in range(10):
        steps = steps + 1.0 / (y + float(place))
    large = y >= 10.0
    z = math.select(large, y, y + 10.0)
    inverse = 1.0 / (z * z)
    series = polynomial(inverse, (*reversed(_DIGAMMA), 0.0))
    found = math.log(z) - 0.5 / z + series - math.select(large, 0.0, steps)
    distance = x - math.round(x)  # the cotangent has the period 1
    found = math.select(is_low, found - pi / math.tan(pi * distance), found)
    found = math.select(is_low & (distance == 0.0), constant(float("nan"), "float64"), found)
    return math.select(x == 0.0, math.copysign(constant(inf, "float64"), -x), found)


_SHIFT: Final = 10
"""Terms summed before the remainder is approximated by an integral with corrections."""
_CORRECTIONS: Final = (1 / 12, -1 / 720, 1 / 30240, -1 / 1209600, 1 / 47900160, -691 / 1307674368000, 1 / 74724249600)
"""B(2 k) / (2 k)! in the Euler-Maclaurin formula."""


def _zeta_of_positive(s: Expr, q: Expr) -> Expr:
    total: Expr = constant(0.0, "float64")
    for place in range(_SHIFT):
        total = total + math.pow(q + float(place), -s)
    end = q + float(_SHIFT)
    power, terms = math.pow(end, -s), total
    total = total + power * end / (s - 1.0) + 0.5 * power
    factor, square = s * power / end, end * end
    for place, correction in enumerate(_CORRECTIONS):
        total = total + correction * factor
        factor = factor * (s + float(2 * place + 1)) * (s + float(2 * place + 2)) / square
    # Corrections diverge for large s; the remainder is then less than exp(-40) times the first term.
    return math.select(s > 4.0 * end, terms, total)


def _zeta(s: Expr, q: Expr) -> Expr:
    """For negative q and integer s: zeta(s, q) = zeta(s, f) + (-1)^s (zeta(s, 1 - f) - zeta(s, 1 - q)), f the fraction
    of q.
    """
    nothing, infinite = constant(nan, "float64"), constant(inf, "float64")
    f = q - math.floor(q)
    two = constant(2.0, "float64")
    sign = 1.0 - two * math.abs(math.floormod(s, two))
    f = math.select(f == 0.0, 0.5, f)
    low = math.select(q < 0.0, q, -0.5)
    negative = _zeta_of_positive(s, f) + sign * (_zeta_of_positive(s, 1.0 - f) - _zeta_of_positive(s, 1.0 - low))
    negative = math.select(q == math.floor(q), infinite, math.select(s == math.floor(s), negative, nothing))
    found = math.select(q > 0.0, _zeta_of_positive(s, math.select(q > 0.0, q, 1.0)), negative)
    found = math.select(s == 1.0, infinite, math.select(s < 1.0, nothing, found))
    return math.select(math.isnan(q), q, math.select(math.isnan(s), s, found))


def _zeta_of(s: object, q: object) -> Expr:
    x, y = unified("zeta", s, q)
    return _zeta(x.astype("float64"), y.astype("float64")).astype(x.dtype)


def _polygamma_of(order: object, data: object) -> Expr:
    n, x = unified("polygamma", order, data)
    wide, number = x.astype("float64"), n.astype("float64")
    two = constant(2.0, "float64")
    sign = two * math.abs(math.floormod(number, two)) - 1.0
    found = sign * math.exp(_log_gamma(number + 1.0)) * _zeta(number + 1.0, wide)
    found = math.select(number == 0.0, _digamma(wide), found)
    is_order = (number >= 0.0) & (number == math.floor(number))
    return math.select(is_order, found, constant(nan, "float64")).astype(x.dtype)


def zeta(s: Operand, q: Operand, *, name: str = "zeta") -> Tensor:
    """Hurwitz's zeta function: the sum of (q + k)^-s over k from 0.

    Infinite for s = 1 and q = 0, -1, ...; NaN for s below 1, and other negative q unless s is an integer. Relative
    error 1e-13 in float64.

    Dtypes: floats.
    Equals: `scipy.special.zeta(s, q)`.
    """
    return _of_floats("zeta", _zeta_of, s, q, name)


def polygamma(order: Operand, data: Operand, *, name: str = "polygamma") -> Tensor:
    """The derivative of `digamma` of the given order; NaN unless that is a whole number. Relative error 1e-12 in
    float64.

    Dtypes: floats.
    Equals: `scipy.special.polygamma(order, data)`.
    """
    return _of_floats("polygamma", _polygamma_of, order, data, name)


def _of_floats(
    what: str, function: Callable[[object, object], Expr], one: Operand, other: Operand, name: str
) -> Tensor:
    for operand in (one, other):
        if isinstance(operand, Tensor):
            floating(operand, f"{what}: operand")
    return elementwise(what, function, (one, other), name)


def igamma(a: Tensor, x: Tensor, complement: bool = False, *, name: str = "igamma") -> Tensor:
    """The regularized lower incomplete gamma function P(a, x), or Q = 1 - P with `complement`.

    Series of P for x below a + 1, else the continued fraction of Q, of at most 20 000 terms. Relative error in float64:
    1e-12 for a below 1e3, 1e-9 below 1e6. NaN for negative operands; limits for 0 and infinity are PyTorch's.

    Dtypes: floats, one for both.
    Equals: `scipy.special.gammainc(a, x)`, `scipy.special.gammaincc(a, x)`.
    """
    first, second = floating(a, "igamma: a"), floating(x, "igamma: x")
    dtype = one_dtype("igamma", first, second)
    extents = broadcast_shape("igamma", first.shape, second.shape)

    def write(code: Statements, at: Sequence[Expr], found: Written, term: Written, c: Written, d: Written) -> None:
        order, end = (read_broadcast(tensor, extents, at).astype("float64") for tensor in (first, second))
        is_regular = (order > 0.0) & (end > 0.0) & math.isfinite(order) & math.isfinite(end)
        one, zero, nothing = (constant(value, "float64") for value in (1.0, 0.0, nan))
        # limits of P
        limit = math.select(order == 0.0, math.select(end > 0.0, one, nothing), math.select(end == 0.0, zero, one))
        limit = math.select(math.isinf(order), math.select(math.isinf(end), nothing, zero), limit)
        is_number = (order >= 0.0) & (end >= 0.0)
        limit = math.select(is_number, 1.0 - limit if complement else limit, nothing)
        found.store(limit, *at)
        with code.when(is_regular):
            size = math.select(is_regular, te.min(200.0 + 12.0 * math.sqrt(order), 20000.0), zero)
            terms = size.astype("int64")
            factor = math.exp(order * math.log(end) - end - _log_gamma_of_positive(order))
            is_low = end < order + 1.0
            with code.when(is_low):
                term.store(1.0 / order, *at)
                found.store(1.0 / order, *at)
                with code.loop(terms, "k") as k, code.when(term.load(*at) > found.load(*at) * 1e-17):
                    term.store(term.load(*at) * end / (order + (k + 1).astype("float64")), *at)
                    found.store(found.load(*at) + term.load(*at), *at)
            with code.when(end >= order + 1.0):  # Lentz's method
                c.store(constant(1e300, "float64"), *at)
                d.store(1.0 / (end + 1.0 - order), *at)
                found.store(d.load(*at), *at)
                term.store(zero, *at)
                with code.loop(terms, "k") as k, code.when(math.abs(term.load(*at) - 1.0) > 3e-16):
                    i = (k + 1).astype("float64")
                    b, numerator = end + 1.0 - order + 2.0 * i, i * (order - i)
                    d.store(1.0 / (numerator * d.load(*at) + b), *at)
                    c.store(b + numerator / c.load(*at), *at)
                    term.store(c.load(*at) * d.load(*at), *at)
                    found.store(found.load(*at) * term.load(*at), *at)
            part = found.load(*at) * factor
            is_wanted = math.logical_not(is_low) if complement else is_low
            found.store(math.select(is_wanted, part, 1.0 - part), *at)

    labels = (f"{name}_found" if dtype != "float64" else name, f"{name}_term", f"{name}_c", f"{name}_d")
    results = [Result(extents, "float64", label) for label in labels]
    found = extern(extents, results, [first, second], write, name)[0]
    return found if dtype == "float64" else converted(found, dtype, name=name)


def _log_gamma_of_positive(x: Expr) -> Expr:
    return math.select(x < 0.5, _log_gamma(x + 1.0) - math.log(x), _log_gamma(math.select(x < 0.5, 1.0, x)))


lgamma = special_function(
    "lgamma",
    "The logarithm of the absolute value of the gamma function; infinite at 0 and negative integers. The error in "
    "float64 is 1e-14 of the greater of the result and 1.",
    "torch.lgamma(data)",
    _lgamma,
)
digamma = special_function(
    "digamma",
    "The derivative of `lgamma`; NaN at negative integers, and infinite at 0. The error in float64 is "
    "2e-13 of the greater of the result and 1, and larger near negative integers.",
    "torch.digamma(data)",
    _digamma,
)


declare(Elementwise(), digamma, lgamma, polygamma, zeta)
