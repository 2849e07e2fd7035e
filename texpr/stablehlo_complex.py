"""Elementwise ops on complex numbers, as formulas over real and imaginary parts (`texpr/stablehlo.py`).

Source: the StableHLO specification, "Ops"; Kahan, "Branch Cuts for Complex Elementary Functions" (1987); Smith,
"Algorithm 116: Complex Division" (1962).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final, TypeAlias

from weft.support.errors import CompileError
from weft.texpr.stablehlo import Apply

Value: TypeAlias = Any
"""A part of an element, or an array of parts."""
Pair: TypeAlias = tuple[Value, Value]
"""Real and imaginary part."""

PARTS: Final[Mapping[str, str]] = {"complex64": "float32", "complex128": "float64"}
"""Complex type -> type of the parts."""


def complex_elementwise(apply: Apply, name: str, *operands: Any) -> Any:
    """An op on pairs: a pair, or a real result. Raises `CompileError` without a formula."""
    if name not in _FORMULAS:
        raise CompileError("elements of complex types are not supported")
    return _FORMULAS[name](apply, *operands)


def complex_compared(apply: Apply, direction: str, x: Pair, y: Pair) -> Value:
    if direction == "EQ":
        return apply("bitwise_and", *(apply("equal", a, b) for a, b in zip(x, y, strict=True)))
    if direction == "NE":
        return apply("bitwise_or", *(apply("not_equal", a, b) for a, b in zip(x, y, strict=True)))
    raise CompileError(f"complex numbers have no order, got {direction}")


def _each(operator: str, apply: Apply, *operands: Pair) -> Pair:
    real, imaginary = (apply(operator, *parts) for parts in zip(*operands, strict=True))
    return real, imaginary


def _multiply(apply: Apply, x: Pair, y: Pair) -> Pair:
    (a, b), (c, d) = x, y
    real = apply("subtract", apply("multiply", a, c), apply("multiply", b, d))
    return real, apply("add", apply("multiply", a, d), apply("multiply", b, c))


def _divide(apply: Apply, x: Pair, y: Pair) -> Pair:
    """Smith's, scaled by the greater part of the divisor."""
    (a, b), (c, d) = x, y
    is_real = apply("greater_equal", apply("abs", c), apply("abs", d))
    great, small = apply("where", is_real, c, d), apply("where", is_real, d, c)
    ratio = apply("divide", small, great)
    below = apply("add", great, apply("multiply", small, ratio))
    first, second = apply("where", is_real, a, b), apply("where", is_real, b, a)
    real = apply("divide", apply("add", first, apply("multiply", second, ratio)), below)
    imaginary = apply("divide", apply("subtract", second, apply("multiply", first, ratio)), below)
    return real, apply("where", is_real, imaginary, apply("negative", imaginary))


def _modulus(apply: Apply, x: Pair) -> Value:
    a, b = apply("abs", x[0]), apply("abs", x[1])
    great, small = apply("maximum", a, b), apply("minimum", a, b)
    ratio = apply("divide", small, apply("where", apply("greater", great, 0.0), great, 1.0))
    found = apply("multiply", great, apply("sqrt", apply("add", apply("multiply", ratio, ratio), 1.0)))
    is_infinite = apply("bitwise_or", apply("isinf", a), apply("isinf", b))
    return apply("where", is_infinite, apply("where", apply("isinf", a), a, b), found)


def _exp(apply: Apply, x: Pair) -> Pair:
    size = apply("exp", x[0])
    imaginary = apply("multiply", size, apply("sin", x[1]))
    return apply("multiply", size, apply("cos", x[1])), apply("where", apply("equal", x[1], 0.0), x[1], imaginary)


def _angle(apply: Apply, x: Pair) -> Value:
    return apply("atan2", x[1], x[0])


def _log(apply: Apply, x: Pair) -> Pair:
    """Near 1, the modulus is computed from 1 + ((a - 1) (a + 1) + b^2)."""
    size = _modulus(apply, x)
    a, b = apply("abs", x[0]), x[1]
    beyond = apply("add", apply("multiply", apply("subtract", a, 1.0), apply("add", a, 1.0)), apply("multiply", b, b))
    near = apply("multiply", apply("log1p", apply("where", apply("less", apply("abs", beyond), 0.5), beyond, 0.0)), 0.5)
    return apply("where", apply("less", apply("abs", beyond), 0.5), near, apply("log", size)), _angle(apply, x)


def _log1p(apply: Apply, x: Pair) -> Pair:
    a, b = x
    moved = apply("add", a, 1.0)
    square = apply("multiply", b, b)
    excess = apply("add", apply("multiply", a, apply("add", a, 2.0)), square)
    is_near = apply("less", apply("abs", excess), 0.5)
    near = apply("multiply", apply("log1p", apply("where", is_near, excess, 0.0)), 0.5)
    return apply("where", is_near, near, apply("log", _modulus(apply, (moved, b)))), apply("atan2", b, moved)


def _expm1(apply: Apply, x: Pair) -> Pair:
    half = apply("sin", apply("multiply", x[1], 0.5))
    less = apply("multiply", apply("multiply", half, half), 2.0)
    real = apply("subtract", apply("multiply", apply("expm1", x[0]), apply("cos", x[1])), less)
    return real, _exp(apply, x)[1]


def _sqrt(apply: Apply, x: Pair) -> Pair:
    a, b = x
    root = apply("sqrt", apply("multiply", apply("add", apply("abs", a), _modulus(apply, x)), 0.5))
    is_zero = apply("equal", root, 0.0)
    other = apply("divide", apply("multiply", apply("abs", b), 0.5), apply("where", is_zero, 1.0, root))
    is_right = apply("greater_equal", a, 0.0)
    real = apply("where", is_right, root, other)
    return real, apply("copysign", apply("where", is_right, other, root), b)


def _rsqrt(apply: Apply, x: Pair) -> Pair:
    root = _sqrt(apply, x)
    zero = apply("multiply", x[0], 0.0)
    return _divide(apply, (apply("add", zero, 1.0), zero), root)


def _sine(apply: Apply, x: Pair) -> Pair:
    real = apply("multiply", apply("sin", x[0]), apply("cosh", x[1]))
    return real, apply("multiply", apply("cos", x[0]), apply("sinh", x[1]))


def _cosine(apply: Apply, x: Pair) -> Pair:
    real = apply("multiply", apply("cos", x[0]), apply("cosh", x[1]))
    return real, apply("negative", apply("multiply", apply("sin", x[0]), apply("sinh", x[1])))


def _sinh(apply: Apply, x: Pair) -> Pair:
    real = apply("multiply", apply("sinh", x[0]), apply("cos", x[1]))
    return real, apply("multiply", apply("cosh", x[0]), apply("sin", x[1]))


def _cosh(apply: Apply, x: Pair) -> Pair:
    real = apply("multiply", apply("cosh", x[0]), apply("cos", x[1]))
    return real, apply("multiply", apply("sinh", x[0]), apply("sin", x[1]))


def _tanh(apply: Apply, x: Pair) -> Pair:
    """(t (1 + u^2) + i u (1 - t^2)) / (1 + t^2 u^2), with t = tanh a and u = tan b; 1 - t^2 is 1 / cosh^2 a."""
    t, u = apply("tanh", x[0]), apply("tan", x[1])
    square = apply("multiply", u, u)
    cosh = apply("cosh", x[0])
    rest = apply("divide", apply("divide", u, cosh), cosh)
    below = apply("add", apply("multiply", apply("multiply", t, t), square), 1.0)
    real = apply("divide", apply("multiply", t, apply("add", square, 1.0)), below)
    return real, apply("divide", rest, below)


def _tan(apply: Apply, x: Pair) -> Pair:
    imaginary, real = _tanh(apply, (apply("negative", x[1]), x[0]))
    return real, apply("negative", imaginary)


def _one_with(apply: Apply, operator: str, x: Pair) -> Pair:
    real, imaginary = x
    if operator == "subtract":
        real, imaginary = apply("negative", real), apply("negative", imaginary)
    return apply("add", real, 1.0), imaginary


def _conjugate_product(apply: Apply, x: Pair, y: Pair) -> Pair:
    return _multiply(apply, _conjugate(apply, x), y)


def _asin(apply: Apply, x: Pair) -> Pair:
    """Kahan: atan2(a, Re(u v)) + i asinh(Im(conj(u) v)), with u = sqrt(1 - x) and v = sqrt(1 + x)."""
    u, v = (_sqrt(apply, _one_with(apply, operator, x)) for operator in ("subtract", "add"))
    real = apply("atan2", x[0], _multiply(apply, u, v)[0])
    return real, apply("asinh", _conjugate_product(apply, u, v)[1])


def _acos(apply: Apply, x: Pair) -> Pair:
    """Kahan: 2 atan2(Re u, Re v) + i asinh(Im(conj(v) u))."""
    u, v = (_sqrt(apply, _one_with(apply, operator, x)) for operator in ("subtract", "add"))
    real = apply("multiply", apply("atan2", u[0], v[0]), 2.0)
    return real, apply("asinh", _conjugate_product(apply, v, u)[1])


def _acosh(apply: Apply, x: Pair) -> Pair:
    """Kahan: asinh(Re(conj(u) v)) + 2 i atan2(Im u, Re v), with u = sqrt(x - 1) and v = sqrt(x + 1)."""
    u = _sqrt(apply, (apply("subtract", x[0], 1.0), x[1]))
    v = _sqrt(apply, _one_with(apply, "add", x))
    imaginary = apply("multiply", apply("atan2", u[1], v[0]), 2.0)
    return apply("asinh", _conjugate_product(apply, u, v)[0]), imaginary


def _atanh(apply: Apply, x: Pair) -> Pair:
    """log1p(4 a / ((1 - a)^2 + b^2)) / 4 of |a|, and atan2(2 b, (1 - a) (1 + a) - b^2) / 2."""
    size, b = apply("abs", x[0]), x[1]
    rest, square = apply("subtract", size, 1.0), apply("multiply", b, b)
    below = apply("add", apply("multiply", rest, rest), square)
    real = apply("multiply", apply("log1p", apply("divide", apply("multiply", size, 4.0), below)), 0.25)
    product = apply("negative", apply("multiply", rest, apply("add", size, 1.0)))
    angle = apply("atan2", apply("multiply", b, 2.0), apply("subtract", product, square))
    return apply("copysign", real, x[0]), apply("multiply", angle, 0.5)


def _turned(function: Callable[[Apply, Pair], Pair], apply: Apply, x: Pair) -> Pair:
    """-i f(i x), for an odd function: atan of atanh, asinh of asin."""
    real, imaginary = function(apply, (apply("negative", x[1]), x[0]))
    return imaginary, apply("negative", real)


def _atan2(apply: Apply, x: Pair, y: Pair) -> Pair:
    """-i log((y + i x) / sqrt(x^2 + y^2)), the angle of reals."""
    above = (apply("subtract", y[0], x[1]), apply("add", y[1], x[0]))
    squares = _each("add", apply, _square(apply, x), _square(apply, y))
    real, imaginary = _log(apply, _divide(apply, above, _sqrt(apply, squares)))
    return imaginary, apply("negative", real)


def _cbrt(apply: Apply, x: Pair) -> Pair:
    """The principal root; 0 for 0."""
    root = apply("cbrt", _modulus(apply, x))
    angle = apply("divide", _angle(apply, x), 3.0)
    return apply("multiply", root, apply("cos", angle)), apply("multiply", root, apply("sin", angle))


def _logistic(apply: Apply, x: Pair) -> Pair:
    real, imaginary = _exp(apply, _each("negative", apply, x))
    zero = apply("multiply", real, 0.0)
    return _divide(apply, (apply("add", zero, 1.0), zero), (apply("add", real, 1.0), imaginary))


def _power(apply: Apply, x: Pair, y: Pair) -> Pair:
    """exp(y log x); 0^y is 0, x^0 is 1."""
    found = _exp(apply, _multiply(apply, y, _log(apply, x)))
    is_zero = apply("bitwise_and", apply("equal", x[0], 0.0), apply("equal", x[1], 0.0))
    is_one = apply("bitwise_and", apply("equal", y[0], 0.0), apply("equal", y[1], 0.0))
    real = apply("where", is_one, 1.0, apply("where", is_zero, 0.0, found[0]))
    return real, apply("where", apply("bitwise_or", is_zero, is_one), 0.0, found[1])


def _sign(apply: Apply, x: Pair) -> Pair:
    size = _modulus(apply, x)
    divisor = apply("where", apply("equal", size, 0.0), 1.0, size)
    return apply("divide", x[0], divisor), apply("divide", x[1], divisor)


def _square(apply: Apply, x: Pair) -> Pair:
    return _multiply(apply, x, x)


def _conjugate(apply: Apply, x: Pair) -> Pair:
    return x[0], apply("negative", x[1])


def _of_parts(_: Apply, real: Value, imaginary: Value) -> Pair:
    return real, imaginary


def _part(side: int, _: Apply, x: Pair) -> Value:
    return x[side]


_FORMULAS: Final[Mapping[str, Callable[..., Any]]] = {
    "chlo.acos": _acos,
    "chlo.acosh": _acosh,
    "chlo.asin": _asin,
    "chlo.asinh": partial(_turned, _asin),
    "chlo.atan": partial(_turned, _atanh),
    "chlo.atanh": _atanh,
    "chlo.conj": _conjugate,
    "chlo.cosh": _cosh,
    "chlo.sinh": _sinh,
    "chlo.square": _square,
    "chlo.tan": _tan,
    "stablehlo.abs": _modulus,
    "stablehlo.add": partial(_each, "add"),
    "stablehlo.atan2": _atan2,
    "stablehlo.cbrt": _cbrt,
    "stablehlo.complex": _of_parts,
    "stablehlo.cosine": _cosine,
    "stablehlo.divide": _divide,
    "stablehlo.exponential": _exp,
    "stablehlo.exponential_minus_one": _expm1,
    "stablehlo.imag": partial(_part, 1),
    "stablehlo.log": _log,
    "stablehlo.log_plus_one": _log1p,
    "stablehlo.logistic": _logistic,
    "stablehlo.multiply": _multiply,
    "stablehlo.negate": partial(_each, "negative"),
    "stablehlo.power": _power,
    "stablehlo.real": partial(_part, 0),
    "stablehlo.rsqrt": _rsqrt,
    "stablehlo.sign": _sign,
    "stablehlo.sine": _sine,
    "stablehlo.sqrt": _sqrt,
    "stablehlo.subtract": partial(_each, "subtract"),
    "stablehlo.tan": _tan,
    "stablehlo.tanh": _tanh,
}
COMPLEX: Final = tuple(_FORMULAS)
