"""Orthogonal polynomials, by NumPy's series."""

from __future__ import annotations

import numpy as np
from numpy.polynomial import chebyshev, hermite, hermite_e, laguerre, legendre

from weft.texpr.references.arguments import Array


def orthogonal_polynomial(data: Array, degree: Array, kind: str, shifted: bool) -> Array:
    def one(x: float, n: float) -> float:
        if n < 0:
            return 0.0
        x, count = 2 * x - 1 if shifted else x, int(n)
        series = [0.0] * count + [1.0]
        if kind == "chebyshev_u":  # U(n) = 2 (T(n) + T(n - 2) + ...), with T(0) not doubled
            series = [2.0 * ((count - k) % 2 == 0) for k in range(count + 1)]
            series[0] /= 2
        elif kind in ("chebyshev_v", "chebyshev_w"):  # V(n) = U(n) - U(n - 1), W(n) = U(n) + U(n - 1)
            sign = -1.0 if kind == "chebyshev_v" else 1.0
            series = [2.0 * (1.0 if (count - k) % 2 == 0 else sign) for k in range(count + 1)]
            series[0] /= 2
        values = {
            "hermite_h": hermite.hermval,
            "hermite_he": hermite_e.hermeval,
            "laguerre_l": laguerre.lagval,
            "legendre_p": legendre.legval,
        }
        return float(values.get(kind, chebyshev.chebval)(x, series))

    return np.vectorize(one, otypes=[np.float64])(np.asarray(data, np.float64), degree)
