"""Bessel functions of orders 0 and 1, and Airy's function, by quadrature of their integrals.

Source: NIST Digital Library of Mathematical Functions, 9.5.8, 10.9 and 10.32.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache, partial
from typing import Final

import numpy as np

from weft.texpr.references.arguments import Array

_ANGLES: Final = (np.arange(512) + 0.5) * math.pi / 512


def _each(function: Callable[[float], float]) -> Callable[[Array], Array]:
    return np.vectorize(function, otypes=[np.float64])


@cache
def _quadrature() -> tuple[Array, Array]:
    """Gauss-Legendre nodes and weights on [-1, 1]: eigenvalues of a matrix of 400 rows."""
    return np.polynomial.legendre.leggauss(400)


def _over(low: float, high: float, integrand: Callable[[Array], Array]) -> float:
    half = (high - low) / 2
    nodes, weights = _quadrature()
    return float(half * np.sum(weights * integrand(low + half * (nodes + 1))))


def _first(order: int, x: float) -> float:
    return float(np.mean(np.cos(order * _ANGLES - x * np.sin(_ANGLES))))


def _second(order: int, x: float) -> float:
    if not x > 0:
        return -math.inf if x == 0 else math.nan
    wave = _over(0.0, math.pi, lambda t: np.sin(x * np.sin(t) - order * t))
    end = math.asinh(745 / x)
    rest = _over(0.0, end, lambda t: (np.exp(order * t) + (-1) ** order * np.exp(-order * t)) * np.exp(-x * np.sinh(t)))
    return (wave - rest) / math.pi


def _modified_first(order: int, is_scaled: bool, x: float) -> float:
    """Power series up to 1, quadrature, asymptotic series from 700; infinite on overflow."""
    size = abs(x)
    if math.isnan(x):
        return x
    with np.errstate(over="ignore"):
        if size <= 1:
            half = x / 2
            found = sum(half ** (2 * k + order) / (math.factorial(k) * math.factorial(k + order)) for k in range(12))
            return found * math.exp(-size) if is_scaled else found
        if size < 700:
            shift = size if is_scaled else 0.0
            return float(np.mean(np.exp(x * np.cos(_ANGLES) - shift) * np.cos(order * _ANGLES)))
        term, terms = 1.0, [1.0]
        for k in range(1, 8):
            term *= ((2 * k - 1) ** 2 - 4 * order**2) / (k * 8 * size)
            terms.append(term)
        scaled = math.copysign(math.fsum(terms) / math.sqrt(2 * math.pi) / math.sqrt(size), x**order)
        growth = 1.0 if is_scaled else float(np.exp(size / 2))
        return math.copysign(math.inf, scaled) if math.isinf(growth) else scaled * growth * growth


def _modified_second(order: int, is_scaled: bool, x: float) -> float:
    if not x > 0:
        return math.inf if x == 0 else math.nan
    shift = x if is_scaled else 0.0
    end = math.acosh(1 + 745 / x)
    return _over(0.0, end, lambda t: np.exp(shift - x * np.cosh(t)) * np.cosh(order * t))


def _airy(x: float) -> float:
    if math.isinf(x) or math.isnan(x):
        return math.nan
    turn = np.exp(1j * math.pi / 6)
    end = 5.0 + 2.0 * math.sqrt(abs(x))
    return _over(0.0, end, lambda s: np.real(turn * np.exp(-(s**3) / 3 + 1j * x * s * turn))) / math.pi


bessel_j0: Final = _each(partial(_first, 0))
bessel_j1: Final = _each(partial(_first, 1))
bessel_y0: Final = _each(partial(_second, 0))
bessel_y1: Final = _each(partial(_second, 1))
bessel_i0: Final = _each(partial(_modified_first, 0, False))
bessel_i0e: Final = _each(partial(_modified_first, 0, True))
bessel_i1: Final = _each(partial(_modified_first, 1, False))
bessel_i1e: Final = _each(partial(_modified_first, 1, True))
bessel_k0: Final = _each(partial(_modified_second, 0, False))
bessel_k0e: Final = _each(partial(_modified_second, 0, True))
bessel_k1: Final = _each(partial(_modified_second, 1, False))
bessel_k1e: Final = _each(partial(_modified_second, 1, True))
airy_ai: Final = _each(_airy)


def spherical_bessel_j0(data: Array) -> Array:
    return np.sinc(np.asarray(data, np.float64) / math.pi)
