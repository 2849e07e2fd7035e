"""Orthogonal polynomials by their recurrences, in float64."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final, TypeAlias

from weft.support.argument_types import shown
from weft.texpr import math
from weft.texpr.expr import Expr, error
from weft.texpr.extern import Result, Statements, Written, extern
from weft.texpr.ops.arguments import broadcast_shape, constant, floating, is_one_of, numeric, read_broadcast
from weft.texpr.ops.elementwise import cast as converted
from weft.texpr.tensor import Tensor

__all__ = ["orthogonal_polynomial"]

Step: TypeAlias = Callable[[Expr, Expr, Expr, Expr], Expr]
"""(degree k, x, polynomials of degree k and k - 1) -> that of degree k + 1."""


def _of_chebyshev(k: Expr, x: Expr, q: Expr, p: Expr) -> Expr:
    return 2.0 * x * q - p


_KINDS: Final[Mapping[str, tuple[Callable[[Expr], Expr], Step]]] = {
    "chebyshev_t": (lambda x: x, _of_chebyshev),
    "chebyshev_u": (lambda x: 2.0 * x, _of_chebyshev),
    "chebyshev_v": (lambda x: 2.0 * x - 1.0, _of_chebyshev),
    "chebyshev_w": (lambda x: 2.0 * x + 1.0, _of_chebyshev),
    "hermite_h": (lambda x: 2.0 * x, lambda k, x, q, p: 2.0 * x * q - 2.0 * k * p),
    "hermite_he": (lambda x: x, lambda k, x, q, p: x * q - k * p),
    "laguerre_l": (lambda x: 1.0 - x, lambda k, x, q, p: ((2.0 * k + 1.0 - x) * q - k * p) / (k + 1.0)),
    "legendre_p": (lambda x: x, lambda k, x, q, p: ((2.0 * k + 1.0) * x * q - k * p) / (k + 1.0)),
}
"""Kind -> polynomial of degree 1, and recurrence; that of degree 0 is 1."""


def orthogonal_polynomial(
    data: Tensor, degree: Tensor, kind: str, shifted: bool = False, *, name: str = "orthogonal_polynomial"
) -> Tensor:
    """The polynomial of a family with the given degree; 0 for negative degrees.

    Families: Chebyshev's `chebyshev_t`, `_u`, `_v` and `_w`, the physicists' `hermite_h`, the probabilists'
    `hermite_he`, `laguerre_l`, `legendre_p`. `shifted` evaluates at 2 x - 1. Degrees are truncated to integers; the
    work is proportional to them.

    Dtypes: floats; the degrees are numbers.
    Equals: `np.polynomial.chebyshev.chebval(data, [0] * degree + [1])`.
    """
    what = "orthogonal_polynomial"
    source, degrees = floating(data, f"{what}: data"), numeric(degree, f"{what}: degree")
    if not is_one_of(kind, list(_KINDS)):
        raise error(f"{what}: the kind is one of {', '.join(_KINDS)}, got {shown(kind)}")
    first, step = _KINDS[kind]
    shape = broadcast_shape(what, source.shape, degrees.shape)

    def write(code: Statements, at: Sequence[Expr], found: Written, before: Written) -> None:
        x = read_broadcast(source, shape, at).astype("float64")
        x = 2.0 * x - 1.0 if shifted else x
        n = read_broadcast(degrees, shape, at).astype("int64")
        one = constant(1.0, "float64")
        before.store(one, *at)
        found.store(math.select(n < 0, constant(0.0, "float64"), math.select(n == 0, one, first(x))), *at)
        with code.loop(math.select(n > 1, n - 1, 0), "k") as k:
            last = found.load(*at)
            found.store(step((k + 1).astype("float64"), x, last, before.load(*at)), *at)
            before.store(last, *at)

    label = name if source.dtype == "float64" else f"{name}_found"
    results = [Result(shape, "float64", label), Result(shape, "float64", f"{name}_before")]
    found = extern(shape, results, [source, degrees], write, name)[0]
    return found if source.dtype == "float64" else converted(found, source.dtype, name=name)
