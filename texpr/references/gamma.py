"""Gamma, its derivatives and incomplete forms, and Hurwitz's zeta function."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Final

import numpy as np

from weft.texpr.references.arguments import Array


def _of_numbers(function: Callable[..., float]) -> Callable[..., Array]:
    return np.vectorize(function, otypes=[np.float64])


def _lgamma(x: float) -> float:
    if math.isinf(x) or (x <= 0 and x == math.floor(x)):
        return math.inf
    return math.inf if abs(x) > 1e305 else math.lgamma(x)


def _digamma(x: float) -> float:
    """Recurrence up to 20, then asymptotic series."""
    if x == 0 or math.isnan(x):
        return math.copysign(math.inf, -x) if x == 0 else x
    if x == -math.inf:
        return math.nan
    if x < 0:
        fraction = math.remainder(x, 1)
        return math.nan if fraction == 0 else _digamma(1 - x) - math.pi / math.tan(math.pi * fraction)
    steps: list[float] = []
    while x < 20:
        steps.append(-1 / x)
        x += 1
    rest = 1 / (x * x)
    series = rest * (1 / 12 - rest * (1 / 120 - rest * (1 / 252 - rest * (1 / 240 - rest / 132))))
    return math.log(x) - 1 / (2 * x) - series + math.fsum(steps)


def _zeta(s: float, q: float) -> float:
    """400 terms, and an integral with one correction; more terms for negative q."""
    if not s > 1 or math.isnan(q):
        return math.inf if s == 1 else math.nan
    if q <= 0 and (q == math.floor(q) or s != math.floor(s)):
        return math.inf if q == math.floor(q) else math.nan
    power = int(s) if s == math.floor(s) else s
    count = 400 + max(0, math.ceil(-q))
    end = q + count
    rest = end ** (1 - s) / (s - 1) + end**-s / 2 + s * end ** (-s - 1) / 12
    return math.fsum((q + k) ** -power for k in range(count)) + rest


def _polygamma(order: float, x: float) -> float:
    if order < 0 or order != math.floor(order):
        return math.nan
    return _digamma(x) if order == 0 else (-1) ** (int(order) + 1) * math.factorial(int(order)) * _zeta(order + 1, x)


def _igamma(a: float, x: float) -> float:
    """P(a, x) by its series."""
    if math.isnan(a) or math.isnan(x) or a < 0 or x < 0 or (a == 0 and x == 0) or (math.isinf(a) and math.isinf(x)):
        return math.nan
    if a == 0 or math.isinf(a) or x == 0 or math.isinf(x):
        return float((a == 0 or math.isinf(x)) and not math.isinf(a))
    terms, k = [math.exp(a * math.log(x) - x - math.lgamma(a + 1))], 1
    while k < 20 or (terms[-1] > 1e-20 * terms[0] and k < 100000):
        terms.append(terms[-1] * x / (a + k))
        k += 1
    return math.fsum(terms)


lgamma: Final = _of_numbers(_lgamma)
digamma: Final = _of_numbers(_digamma)
zeta: Final = _of_numbers(_zeta)
polygamma: Final = _of_numbers(_polygamma)


def igamma(a: Array, x: Array, complement: bool) -> Array:
    lower = _of_numbers(_igamma)(a, x)
    return 1 - lower if complement else lower
