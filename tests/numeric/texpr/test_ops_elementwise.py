"""te.ops: arithmetic, functions and activations, element by element, against NumPy."""

import math
from typing import Any

import numpy as np
import pytest
from operator_cases import DTYPES, FLOATS, INTEGERS, NUMBERS, Case, Input, check
from tiers import first_tier

from weft.te import ops

OP: Any = ops


def two(
    name: str, reference: Any, dtype: str, low: float = -4, high: float = 4, right_low: float | None = None
) -> Case:
    """An operator on operands that broadcast."""
    right = low if right_low is None else right_low
    inputs = [Input((3, 1, 5), dtype, low, high), Input((4, 1), dtype, right, high)]
    return Case(name, getattr(OP, name), inputs, reference)


@pytest.mark.parametrize("dtype", first_tier(NUMBERS, "int8", "int32", "bfloat16", "float32"))
def test_arithmetic(dtype: str) -> None:
    high = 100 if dtype.startswith("int") else 4  # integers wrap
    cases = [two(name, getattr(np, name), dtype, -high, high) for name in ("add", "subtract", "multiply")]
    cases += [two(name, getattr(np, name), dtype) for name in ("maximum", "minimum", "less", "less_equal", "greater")]
    cases += [two(name, getattr(np, name), dtype) for name in ("greater_equal", "equal", "not_equal")]
    cases += [
        two("power", np.power, dtype, 1, 3),
        Case("add 1", lambda a: ops.add(1, a), [Input((7,), dtype)], lambda a: 1 + a),
    ]
    with np.errstate(over="ignore"):
        check(cases)


@pytest.mark.parametrize("dtype", first_tier(FLOATS, "bfloat16", "float32"))
def test_divide(dtype: str) -> None:
    check([two("divide", np.divide, dtype, 0.5), two("atan2", np.arctan2, dtype)])


@pytest.mark.parametrize("dtype", INTEGERS)
def test_integer_division_and_bits(dtype: str) -> None:
    cases = [
        two("floor_divide", np.floor_divide, dtype, -90, 90, 1),
        two("floor_mod", np.mod, dtype, -90, 90, 1),
        Case("mod", ops.floor_mod, [Input((9,), dtype, -90, 90), Input((), dtype, values=-7)], np.mod),
        two("trunc_mod", np.fmod, dtype, -90, 90, 1),
        Case("trunc", lambda a: ops.trunc_divide(a, -7), [Input((9,), dtype, -90, 90)], lambda a: np.trunc(a / -7)),
        two("bitwise_and", np.bitwise_and, dtype, -90, 90),
        two("bitwise_or", np.bitwise_or, dtype, -90, 90),
        two("bitwise_xor", np.bitwise_xor, dtype, -90, 90),
        two("left_shift", np.left_shift, dtype, 0, 3),
        two("right_shift", np.right_shift, dtype, -90, 4, 0),
        Case("bitwise_not", ops.bitwise_not, [Input((9,), dtype, -90, 90)], np.bitwise_not),
    ]
    check(cases)


def test_logic() -> None:
    names = ["logical_and", "logical_or", "logical_xor", "bitwise_and", "bitwise_or", "bitwise_xor", "equal"]
    cases = [two(name, getattr(np, name), "bool") for name in names]
    cases += [
        Case(name, getattr(OP, name), [Input((9,), "bool")], getattr(np, name))
        for name in ("logical_not", "bitwise_not")
    ]
    check(cases)


@pytest.mark.parametrize("dtype", DTYPES)
def test_where_and_cast(dtype: str) -> None:
    cases = [
        Case("where", ops.where, [Input((4, 1), "bool"), Input((1, 3), dtype), Input((2, 1, 3), dtype)], np.where),
        *(
            Case(
                f"cast {target}",
                lambda a, target=target: ops.cast(a, target),
                [Input((11,), dtype, -9, 9)],
                lambda a, target=target: a.astype("float64" if target in FLOATS else target),
            )
            for target in DTYPES
        ),
    ]
    check(cases)


POSITIVE = {"log", "log2", "log10", "sqrt", "rsqrt", "reciprocal"}
RANGES = {name: (0.125, 4.0) for name in POSITIVE} | {name: (-0.875, 0.875) for name in ("asin", "acos", "atanh")}
RANGES |= {"acosh": (1.0, 4.0), "log1p": (-0.5, 4.0), "tan": (-1.25, 1.25)}
OTHER_NAMES = {"asin": np.arcsin, "acos": np.arccos, "atan": np.arctan, "asinh": np.arcsinh, "acosh": np.arccosh}
OTHER_NAMES |= {"atanh": np.arctanh, "rsqrt": lambda x: 1 / np.sqrt(x), "round": np.rint}
OTHER_NAMES |= {"sigmoid": lambda x: 1 / (1 + np.exp(-x)), "erf": np.vectorize(math.erf, otypes=[float])}
FUNCTIONS = ["exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "sqrt", "rsqrt", "cbrt", "sin", "cos", "tan"]
FUNCTIONS += ["asin", "acos", "atan", "sinh", "cosh", "tanh", "asinh", "acosh", "atanh", "erf", "sigmoid", "floor"]
FUNCTIONS += ["ceil", "round", "trunc", "reciprocal", "abs", "negative", "square", "sign"]


@pytest.mark.parametrize("dtype", first_tier(FLOATS, "bfloat16", "float32"))
def test_functions(dtype: str) -> None:
    cases: list[Case] = []
    for name in FUNCTIONS:
        low, high = RANGES.get(name, (-4.0, 4.0))
        reference = OTHER_NAMES.get(name) or getattr(np, name)
        cases.append(Case(name, getattr(OP, name), [Input((5, 3), dtype, low, high)], reference))
    cases += [
        Case("clip", lambda a: ops.clip(a, -1, 1.5), [Input((9,), dtype)], lambda a: np.clip(a, -1, 1.5)),
        Case("clip below", lambda a: ops.clip(a, a_max=1), [Input((9,), dtype)], lambda a: np.clip(a, None, 1)),
    ]
    check(cases)


@pytest.mark.parametrize("dtype", first_tier(FLOATS, "bfloat16", "float32"))
def test_numbers_that_are_not_finite(dtype: str) -> None:
    special = Input((6,), dtype, values=[math.nan, math.inf, -math.inf, 0.0, 1.5, -2.5])
    names = ["isnan", "isinf", "isfinite", "sign"]
    cases = [Case(name, getattr(OP, name), [special], getattr(np, name)) for name in names]
    cases += [
        Case("relu", ops.relu, [special], lambda x: np.maximum(x, 0)),
        Case("clip", lambda x: ops.clip(x, -1, 1), [special], lambda x: np.clip(x, -1, 1)),
        Case("maximum", lambda x: ops.maximum(x, 0), [special], lambda x: np.maximum(x, 0)),
    ]
    check(cases)


@pytest.mark.parametrize("dtype", INTEGERS)
def test_functions_of_integers(dtype: str) -> None:
    names = ["abs", "negative", "square", "sign"]
    cases = [Case(name, getattr(OP, name), [Input((9,), dtype, -11, 11)], getattr(np, name)) for name in names]
    cases += [
        Case("relu", ops.relu, [Input((9,), dtype)], lambda x: np.maximum(x, 0)),
        Case("clip", lambda a: ops.clip(a, -1, 2), [Input((9,), dtype)], lambda a: np.clip(a, -1, 2)),
    ]
    check(cases)


def erf(x: Any) -> Any:
    return OTHER_NAMES["erf"](x)


ACTIVATIONS: list[tuple[Any, Any]] = [
    (ops.relu, lambda x: np.maximum(x, 0)),
    (ops.leaky_relu, lambda x: np.where(x > 0, x, 0.01 * x)),
    (lambda x: ops.leaky_relu(x, 0.25), lambda x: np.where(x > 0, x, 0.25 * x)),
    (ops.elu, lambda x: np.where(x > 0, x, np.expm1(x))),
    (lambda x: ops.elu(x, 0.5), lambda x: np.where(x > 0, x, 0.5 * np.expm1(x))),
    (ops.gelu, lambda x: x / 2 * (1 + erf(x / np.sqrt(2)))),
    (
        lambda x: ops.gelu(x, "tanh"),
        lambda x: x / 2 * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3))),
    ),
    (ops.silu, lambda x: x / (1 + np.exp(-x))),
    (ops.hardsigmoid, lambda x: np.clip(x + 3, 0, 6) / 6),
    (ops.hardswish, lambda x: x * np.clip(x + 3, 0, 6) / 6),
    (ops.softplus, lambda x: np.logaddexp(x, 0)),
    (ops.mish, lambda x: x * np.tanh(np.logaddexp(x, 0))),
]


@pytest.mark.parametrize("dtype", first_tier(FLOATS, "bfloat16", "float32"))
def test_activations(dtype: str) -> None:
    check(
        [
            Case(f"activation {n}", build, [Input((4, 5), dtype, -8, 8)], expected)
            for n, (build, expected) in enumerate(ACTIVATIONS)
        ]
    )


def test_large_arguments_of_activations() -> None:
    x = Input((4,), values=[-1e4, -100.0, 100.0, 1e4])
    cases = [
        Case("silu", ops.silu, [x], lambda x: np.where(x > 0, x, 0)),
        Case("softplus", ops.softplus, [x], lambda x: np.where(x > 0, x, 0)),
        Case("elu", ops.elu, [x], lambda x: np.where(x > 0, x, -1)),
        Case("sigmoid", ops.sigmoid, [x], lambda x: np.where(x > 0, 1, 0)),
    ]
    with np.errstate(over="ignore"):
        check(cases)


@pytest.mark.parametrize("left, right", [((), ()), ((1,), (1,)), ((0, 3), (1, 3)), ((2, 1, 1), (1, 5, 4)), ((5,), ())])
def test_broadcasting(left: tuple[int, ...], right: tuple[int, ...]) -> None:
    check([Case("add", ops.add, [Input(left), Input(right)], np.add)])


def test_symbolic_broadcasting() -> None:
    cases = [
        Case("same", ops.add, [Input(("n", 3)), Input(("n", 1))], np.add, {"n": 5}),
        Case("row", ops.multiply, [Input(("n", "m")), Input(("m",))], np.multiply, {"n": 5, "m": 2}),
        Case("empty", ops.subtract, [Input(("n",)), Input((1,))], np.subtract, {"n": 0}),
    ]
    check(cases)
