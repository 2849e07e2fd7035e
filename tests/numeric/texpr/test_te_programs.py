"""Tensor expressions from Python: the te and tir levels interpreted, the compiled function and NumPy agree."""

from typing import Any

import numpy as np
import pytest
from xdsl.dialects.builtin import BFloat16Type
from xdsl.dialects.func import FuncOp

import weft
from weft import te
from weft.interp.errors import InterpreterError
from weft.interp.interpreter import Interpreter

DTYPES = ["bool", "int8", "int16", "int32", "int64", "float16", "bfloat16", "float32", "float64"]
NUMBERS = DTYPES[1:]
FLOATS = DTYPES[5:]


def to_bf16(array: Any) -> Any:
    """Bits of the nearest bfloat16, ties to even."""
    bits = np.asarray(array, np.float32).view(np.uint32).astype(np.uint64)
    return ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype(np.uint16)


def from_bf16(bits: Any) -> Any:
    """Of bits, or of elements of ml_dtypes, which results are where another test loads it."""
    return (bits.view(np.uint16).astype(np.uint32) << 16).view(np.float32)


def data(shape: Any, dtype: str, seed: int = 0, low: float = -4, high: float = 4) -> Any:
    """Random numbers; floats are exact in bfloat16, which arrays of float32 stand for."""
    generator = np.random.default_rng(seed)
    if dtype == "bool":
        return generator.integers(0, 2, shape).astype(bool)
    if dtype.startswith("int"):
        return generator.integers(int(low), int(high) + 1, shape).astype(dtype)
    values = np.round(generator.uniform(low, high, shape) * 8) / 8
    return values.astype("float32" if dtype == "bfloat16" else dtype)


def is_bf16(type: Any) -> bool:
    return isinstance(getattr(type, "element_type", None), BFloat16Type)


ROUNDING = {"float16": 2e-3, "bfloat16": 1e-2, "float32": 1e-5, "float64": 1e-12}
"""What contraction of a multiplication and an addition, and another library of functions, may change."""


def run(inputs: list[Any], outputs: list[Any], arrays: list[Any], *, compiled: bool = True) -> Any:
    """Compute `outputs` from `inputs`: both levels agree bit by bit, machine code up to rounding."""
    te_module = te.create_te_func([*inputs, *outputs])
    te_module.verify()
    tir_module = te.create_func([*inputs, *outputs])
    tir_module.verify()
    function = tir_module.body.block.first_op
    assert isinstance(function, FuncOp)
    arguments = [
        to_bf16(array) if is_bf16(argument.type) else array
        for array, argument in zip(arrays, function.body.block.args, strict=False)
    ]
    first = Interpreter(te_module).call("main", *arguments)
    expected = list(first) if isinstance(first, tuple) else [first]
    results = [np.ones_like(array) for array in expected]
    Interpreter(tir_module).call("main", *arguments, *results)
    bf16 = [is_bf16(argument.type) for argument in function.body.block.args[-len(outputs) :]]
    values = [from_bf16(result) if narrow else result for result, narrow in zip(results, bf16, strict=True)]
    for got, wanted, narrow in zip(values, expected, bf16, strict=True):
        np.testing.assert_array_equal(got, from_bf16(wanted) if narrow else wanted, strict=True)
    if compiled:
        native = [np.ones_like(array) for array in expected]
        weft.build(tir_module)["main"](*arguments, *native)
        for got, wanted, narrow, output in zip(native, values, bf16, outputs, strict=True):
            tolerance = ROUNDING.get(output.dtype, 0)
            np.testing.assert_allclose(from_bf16(got) if narrow else got, wanted, rtol=tolerance, atol=tolerance)
    return values if len(values) > 1 else values[0]


# Elementwise


@pytest.mark.parametrize("dtype", NUMBERS)
def test_arithmetic(dtype: str) -> None:
    A, B = te.placeholder((5, 6), dtype, "A"), te.placeholder((5, 6), dtype, "B")
    C = te.compute((5, 6), lambda i, j: te.max(A[i, j] + B[i, j] * 2 - 1, -3) - te.min(A[i, j], 1), name="C")
    a, b = data((5, 6), dtype, 1), data((5, 6), dtype, 2)
    np.testing.assert_array_equal(run([A, B], [C], [a, b]), np.maximum(a + b * 2 - 1, -3) - np.minimum(a, 1))


@pytest.mark.parametrize("dtype", NUMBERS)
def test_integers_wrap_and_floats_round(dtype: str) -> None:
    A = te.placeholder((9,), dtype, "A")
    C = te.compute((9,), lambda i: A[i] * A[i] * A[i], name="C")
    a = data((9,), dtype, 3, -100, 100) if dtype.startswith("int") else data((9,), dtype, 3)
    with np.errstate(over="ignore"):
        expected = a * a * a if dtype != "bfloat16" else from_bf16(to_bf16(from_bf16(to_bf16(a * a)) * a))
        np.testing.assert_array_equal(run([A], [C], [a]), expected)


def test_bool_logic() -> None:
    A, B = te.placeholder((4, 4), "bool", "A"), te.placeholder((4, 4), "bool", "B")
    C = te.compute(
        (4, 4),
        lambda i, j: te.any(te.all(A[i, j], ~B[i, j]), A[i, j] ^ B[i, j], i == j) & te.logical_not(i > 2),
        name="C",
    )
    a, b = data((4, 4), "bool", 1), data((4, 4), "bool", 2)
    i, j = np.indices((4, 4))
    np.testing.assert_array_equal(run([A, B], [C], [a, b]), ((a & ~b) | (a ^ b) | (i == j)) & ~(i > 2))


@pytest.mark.parametrize("source", DTYPES)
@pytest.mark.parametrize("target", DTYPES)
def test_casts(source: str, target: str) -> None:
    A = te.placeholder((20,), source, "A")
    C = te.compute((20,), lambda i: A[i].astype(target), name="C")
    a = data((20,), source, 5, -9, 9)
    got = run([A], [C], [a])
    if target == "bool":
        expected = a != 0
    elif target == "bfloat16":
        expected = a.astype("float32")
    else:
        expected = a.astype(target)
    np.testing.assert_array_equal(got, expected)


@pytest.mark.parametrize("dtype", ["int8", "int32", "int64"])
def test_division_and_modulo_by_their_rounding(dtype: str) -> None:
    A, B = te.placeholder((60,), dtype, "A"), te.placeholder((60,), dtype, "B")
    quotients = te.compute(
        (60,),
        lambda i: (A[i] // B[i], A[i] % B[i], te.truncdiv(A[i], B[i]), te.truncmod(A[i], B[i]), A[i] // 3, A[i] % 3),
        name="Q",
    )
    a, b = data((60,), dtype, 1, -20, 20), data((60,), dtype, 2, -5, 5)
    b[b == 0] = 7
    truncated = np.trunc(a / b).astype(dtype)
    results = run([A, B], list(quotients), [a, b])
    for got, expected in zip(results, [a // b, a % b, truncated, a - truncated * b, a // 3, a % 3], strict=True):
        np.testing.assert_array_equal(got, expected)


def test_integer_bits_and_powers() -> None:
    A = te.placeholder((16,), "int32", "A")
    results = te.compute(
        (16,),
        lambda i: (A[i] & 6, A[i] | 1, ~A[i], A[i] << 2, A[i] >> 1, A[i] ** 3, abs(A[i]), -A[i], te.popcount(A[i])),
        name="R",
    )
    a = np.arange(-8, 8, dtype=np.int32)
    ones = np.array([int(value).bit_count() for value in a.view(np.uint32)])
    expected = [a & 6, a | 1, ~a, a << 2, a >> 1, a**3, abs(a), -a, ones]
    for got, wanted in zip(run([A], list(results), [a]), expected, strict=True):
        np.testing.assert_array_equal(got, wanted)


FUNCTIONS: dict[str, Any] = {
    "exp": np.exp,
    "exp2": np.exp2,
    "expm1": np.expm1,
    "log": np.log,
    "log2": np.log2,
    "log10": np.log10,
    "log1p": np.log1p,
    "sqrt": np.sqrt,
    "rsqrt": lambda x: 1 / np.sqrt(x),
    "cbrt": np.cbrt,
    "sin": np.sin,
    "cos": np.cos,
    "tan": np.tan,
    "asin": lambda x: np.arcsin(x),
    "acos": lambda x: np.arccos(x),
    "atan": np.arctan,
    "sinh": np.sinh,
    "cosh": np.cosh,
    "tanh": np.tanh,
    "asinh": np.arcsinh,
    "atanh": lambda x: np.arctanh(x),
    "erf": np.vectorize(lambda x: __import__("math").erf(x)),
    "sigmoid": lambda x: 1 / (1 + np.exp(-x)),
    "floor": np.floor,
    "ceil": np.ceil,
    "round": np.round,
    "trunc": np.trunc,
    "abs": np.abs,
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions(name: str) -> None:
    A = te.placeholder((40,), "float64", "A")
    C = te.compute((40,), lambda i: getattr(te, name)(A[i] / 8) + getattr(te, name)(A[i] / 8), name="C")
    low = 0.25 if name in ("log", "log2", "log10", "sqrt", "rsqrt") else -7
    a = data((40,), "float64", 4, low, 7)
    np.testing.assert_allclose(run([A], [C], [a]), 2 * FUNCTIONS[name](a / 8), rtol=1e-13, atol=1e-15)


@pytest.mark.parametrize("dtype", FLOATS)
def test_functions_round_to_the_type(dtype: str) -> None:
    A = te.placeholder((30,), dtype, "A")
    C = te.compute((30,), lambda i: te.tanh(A[i]) * te.sigmoid(A[i]) + te.pow(te.exp(A[i]), 0.5), name="C")
    a = data((30,), dtype, 6)
    wide = a.astype("float64")
    expected = np.tanh(wide) / (1 + np.exp(-wide)) + np.exp(wide) ** 0.5
    tolerance = {"float16": 4e-3, "bfloat16": 3e-2, "float32": 1e-6, "float64": 1e-14}[dtype]
    np.testing.assert_allclose(run([A], [C], [a]).astype("float64"), expected, rtol=tolerance, atol=tolerance)


def test_nan_and_infinity() -> None:
    A = te.placeholder((6,), "float32", "A")
    results = te.compute(
        (6,),
        lambda i: (
            te.isnan(A[i]),
            te.isinf(A[i]),
            te.isfinite(A[i]),
            te.max(A[i], 0.0),
            A[i] == A[i],
            A[i] != A[i],
            A[i] < te.infinity("float32"),
        ),
        name="R",
    )
    a = np.array([1, np.nan, np.inf, -np.inf, 0, -2], np.float32)
    expected = [np.isnan(a), np.isinf(a), np.isfinite(a), np.maximum(a, 0), a == a, a != a, a < np.inf]
    for got, wanted in zip(run([A], list(results), [a]), expected, strict=True):
        np.testing.assert_array_equal(got, wanted)


def test_comparisons_and_choices() -> None:
    A, B = te.placeholder((30,), "int32", "A"), te.placeholder((30,), "int32", "B")
    results = te.compute(
        (30,),
        lambda i: (
            A[i] < B[i],
            A[i] <= B[i],
            A[i] > B[i],
            A[i] >= B[i],
            A[i] == B[i],
            A[i] != B[i],
            te.select(A[i] > B[i], A[i], B[i] * 2),
            te.if_then_else(te.all(i >= 3, A[i] > 0), A[i] + i.astype("int32"), 7),
        ),
        name="R",
    )
    a, b, i = data((30,), "int32", 1), data((30,), "int32", 2), np.arange(30)
    expected = [a < b, a <= b, a > b, a >= b, a == b, a != b]
    expected += [np.where(a > b, a, b * 2), np.where((i >= 3) & (a > 0), a + i, 7)]
    for got, wanted in zip(run([A, B], list(results), [a, b]), expected, strict=True):
        np.testing.assert_array_equal(got, wanted)


# Index arithmetic


def test_index_arithmetic_reverses_tiles_and_rolls() -> None:
    A = te.placeholder((12,), "int64", "A")
    reversed_ = te.compute((12,), lambda i: A[11 - i], name="reversed_")
    tiles = te.compute((3, 4), lambda i, j: A[4 * i + (3 - j)], name="tiles")
    back = te.compute((12,), lambda i: tiles[i // 4, i % 4], name="back")
    rolled = te.compute((12,), lambda i: A[(i - 5) % 12] + i, name="rolled")
    a = data((12,), "int64", 1)
    got = run([A], [reversed_, tiles, back, rolled], [a])
    tiled = a.reshape(3, 4)[:, ::-1]
    for result, expected in zip(got, [a[::-1], tiled, tiled.reshape(12), np.roll(a, 5) + np.arange(12)], strict=True):
        np.testing.assert_array_equal(result, expected)


@pytest.mark.parametrize("dtype", ["int8", "int32", "int64"])
def test_gather(dtype: str) -> None:
    table, at = te.placeholder((10, 3), name="table"), te.placeholder((7,), dtype, "at")
    out = te.compute((7, 3), lambda i, j: table[at[i], j], name="out")
    clipped = te.compute((7, 3), lambda i, j: table[te.min(te.max(at[i].astype("int64") - 5, 0), 9), j], name="clipped")
    t, index = data((10, 3), "float32", 1), np.array([0, 9, 3, 3, 5, 1, 8], dtype)
    got, near = run([table, at], [out, clipped], [t, index])
    np.testing.assert_array_equal(got, t[index])
    np.testing.assert_array_equal(near, t[np.clip(index.astype(int) - 5, 0, 9)])


def test_index_as_value() -> None:
    n = te.var("n", "int32")
    A = te.placeholder((n,), "float32", "A")
    out = te.compute((n,), lambda i: A[i] * i.astype("float32") + (n - i).astype("float32"), name="out")
    plain = te.compute((n,), lambda i: i * i - 2 * n, name="plain")
    a = data((6,), "float32", 1)
    i = np.arange(6)
    got, squares = run([A], [out, plain], [a])
    np.testing.assert_array_equal(got, a * i + (6 - i))
    np.testing.assert_array_equal(squares, i * i - 12)
    assert squares.dtype == np.int64


def test_guarded_reads_are_not_executed() -> None:
    A = te.placeholder((5,), "int32", "A")
    out = te.compute(
        (9,), lambda i: te.if_then_else(i >= 2, te.if_then_else(i < 7, A[i - 2], -1), te.const(-2, "int32")), name="out"
    )
    a = data((5,), "int32", 1)
    np.testing.assert_array_equal(run([A], [out], [a]), [-2, -2, *a, -1, -1])


# Reductions


@pytest.mark.parametrize("dtype", NUMBERS)
@pytest.mark.parametrize("kind", ["sum", "prod", "min", "max"])
def test_reductions(kind: str, dtype: str) -> None:
    A = te.placeholder((4, 5, 6), dtype, "A")
    j, k = te.reduce_axis((0, 5), "j"), te.reduce_axis((1, 5), "k")
    whole = te.compute((4,), lambda i: getattr(te, kind)(A[i, j, k], axis=[j, k]), name="whole")
    part = te.compute((4, 6), lambda i, c: getattr(te, kind)(A[i, j, c], axis=j), name="part")
    a = data((4, 5, 6), dtype, 7, -2, 2)
    numpy_kind = getattr(np, kind)
    got, partial = run([A], [whole, part], [a])
    exact = dtype.startswith("int") or kind in ("min", "max")
    wide = a if exact else a.astype("float64")
    options = {"dtype": a.dtype} if exact and kind in ("sum", "prod") else {}
    tolerance = 0 if exact else {"float16": 1e-2, "bfloat16": 1e-1, "float32": 1e-5, "float64": 1e-13}[dtype]
    for result, expected in (
        (got, numpy_kind(wide[:, :, 1:5], axis=(1, 2), **options)),
        (partial, numpy_kind(wide, axis=1, **options)),
    ):
        np.testing.assert_allclose(result.astype(wide.dtype), expected, rtol=tolerance, atol=tolerance)


def test_empty_reductions_give_the_identity() -> None:
    A = te.placeholder((3, 4), "float32", "A")
    k = te.reduce_axis((2, 2), "k")
    results = te.compute(
        (3,),
        lambda i: (te.sum(A[i, k], k), te.prod(A[i, k], k), te.min(A[i, k], axis=k), te.max(A[i, k], axis=k)),
        name="R",
    )
    a = data((3, 4), "float32")
    for got, expected in zip(run([A], list(results), [a]), [0, 1, np.inf, -np.inf], strict=True):
        np.testing.assert_array_equal(got, np.full(3, expected))


def test_any_and_all() -> None:
    A = te.placeholder((6, 4), "int32", "A")
    k = te.reduce_axis((0, 4), "k")
    some = te.compute((6,), lambda i: te.any(A[i, k] > 2, axis=k), name="some")
    every = te.compute((6,), lambda i: te.all(A[i, k] > -3, A[i, k] < 4, axis=k), name="every")
    a = data((6, 4), "int32", 3)
    got, all_ = run([A], [some, every], [a])
    np.testing.assert_array_equal(got, (a > 2).any(axis=1))
    np.testing.assert_array_equal(all_, ((a > -3) & (a < 4)).all(axis=1))


@pytest.mark.parametrize("dtype", NUMBERS)
@pytest.mark.parametrize("kind", ["argmax", "argmin"])
def test_argmax(kind: str, dtype: str) -> None:
    A = te.placeholder((8, 9), dtype, "A")
    k = te.reduce_axis((0, 9), "k")
    value, place = te.compute((8,), lambda i: getattr(te, kind)(A[i, k], k, dtype="int32"), name="best")
    a = data((8, 9), dtype, 2, -2, 2)
    if not dtype.startswith("int"):
        a[3, 4] = a[3, 6] = np.nan
        a[4, 2], a[5, :] = np.inf, -np.inf
    best, at = run([A], [value, place], [a])
    expected = getattr(np, kind)(a, axis=1)
    np.testing.assert_array_equal(at, expected)
    np.testing.assert_array_equal(best, a[np.arange(8), expected])
    only = run([A], [place], [a])
    np.testing.assert_array_equal(only, expected)


def test_argmax_over_two_axes_is_a_row_major_place() -> None:
    A = te.placeholder((4, 3, 5), name="A")
    j, k = te.reduce_axis((0, 3), "j"), te.reduce_axis((0, 5), "k")
    place = te.compute((4,), lambda i: te.argmax(A[i, j, k], [j, k])[1], name="place")
    a = data((4, 3, 5), "float32", 9)
    np.testing.assert_array_equal(run([A], [place], [a]), a.reshape(4, 15).argmax(axis=1))


def test_users_combiner_with_several_accumulators() -> None:
    def fcombine(x: Any, y: Any) -> Any:
        better = te.any(x[1] > y[1], te.all(x[1] == y[1], x[0] < y[0]))
        return te.select(better, x[0], y[0]), te.select(better, x[1], y[1])

    argmax = te.comm_reducer(fcombine, lambda t0, t1: (te.max_value(t0), te.min_value(t1)), name="argmax")
    m, n = te.var("m"), te.var("n")
    index, value = te.placeholder((m, n), "int32", "index"), te.placeholder((m, n), "int32", "value")
    k = te.reduce_axis((0, n), "k")
    T0, T1 = te.compute((m,), lambda i: argmax((index[i, k], value[i, k]), axis=k), name="T")
    v = data((5, 7), "int32", 1)
    ids = np.broadcast_to(np.arange(7, dtype=np.int32), (5, 7)).copy()
    got, best = run([index, value], [T0, T1], [ids, v])
    np.testing.assert_array_equal(got, v.argmax(axis=1))
    np.testing.assert_array_equal(best, v.max(axis=1))


def test_users_combiner_of_one_value() -> None:
    logsumexp = te.comm_reducer(
        lambda x, y: te.max(x, y) + te.log1p(te.exp(te.min(x, y) - te.max(x, y))),
        lambda dtype: te.min_value(dtype),
        name="logsumexp",
    )
    A = te.placeholder((4, 6), "float64", "A")
    k = te.reduce_axis((0, 6), "k")
    out = te.compute((4,), lambda i: logsumexp(A[i, k], axis=k) + 1.0, name="out")
    a = data((4, 6), "float64", 8)
    np.testing.assert_allclose(run([A], [out], [a]), np.log(np.exp(a).sum(axis=1)) + 1, rtol=1e-14)


def test_reduction_where() -> None:
    A = te.placeholder((4, 6), "int64", "A")
    k = te.reduce_axis((0, 9), "k")
    out = te.compute((4,), lambda i: te.sum(A[i, k], axis=k, where=te.all(k < 6, k % 2 == 0)), name="out")
    top = te.compute((4,), lambda i: te.max(A[i, k], axis=k, where=k < 3), name="top")
    a = data((4, 6), "int64", 8)
    got, greatest = run([A], [out, top], [a])
    np.testing.assert_array_equal(got, a[:, ::2].sum(axis=1))
    np.testing.assert_array_equal(greatest, a[:, :3].max(axis=1))


# Reductions within larger expressions


def test_reduction_with_a_bias() -> None:
    W, X, b = te.placeholder((5, 7), name="W"), te.placeholder((7,), name="X"), te.placeholder((5,), name="b")
    j = te.reduce_axis((0, 7), "j")
    linear = te.compute((5,), lambda i: te.sum(W[i, j] * X[j], axis=j) + b[i], name="linear")
    Y = te.compute((5,), lambda i: te.max(linear[i], 0.0), name="Y")
    w, x, bias = data((5, 7), "float32", 1), data((7,), "float32", 2), data((5,), "float32", 3)
    np.testing.assert_allclose(run([W, X, b], [Y], [w, x, bias]), np.maximum(w @ x + bias, 0), rtol=1e-6)


def test_softmax_in_one_expression() -> None:
    A = te.placeholder((5, 8), "float64", "A")
    k, m, n = (te.reduce_axis((0, 8), name) for name in "kmn")

    def softmax(i: Any, j: Any) -> Any:
        shifted = te.exp(A[i, j] - te.max(A[i, k], axis=k))
        return shifted / te.sum(te.exp(A[i, n] - te.max(A[i, m], axis=m)), axis=n)

    out = te.compute((5, 8), softmax, name="softmax")
    a = data((5, 8), "float64", 1)
    e = np.exp(a - a.max(axis=1, keepdims=True))
    np.testing.assert_allclose(run([A], [out], [a]), e / e.sum(axis=1, keepdims=True), rtol=1e-14)


def test_nested_reductions_that_depend_on_the_outer_axis() -> None:
    A = te.placeholder((3, 4, 5), "int64", "A")
    j, k = te.reduce_axis((0, 4), "j"), te.reduce_axis((0, 5), "k")
    out = te.compute((3,), lambda i: te.sum(te.max(A[i, j, k], axis=k) * j, axis=j), name="out")
    a = data((3, 4, 5), "int64", 1)
    np.testing.assert_array_equal(run([A], [out], [a]), (a.max(axis=2) * np.arange(4)).sum(axis=1))


def test_reductions_under_a_condition_read_nothing_else() -> None:
    A = te.placeholder((3, 4), "int64", "A")
    k = te.reduce_axis((0, 4), "k")
    edge = te.compute(
        (6,),
        lambda i: te.if_then_else(te.all(i >= 1, i < 4), te.sum(A[i - 1, k] * i, axis=k), te.const(-1, "int64")),
        name="edge",
    )
    nested = te.compute(
        (6,),
        lambda i: te.if_then_else(
            i >= 1,
            te.if_then_else(i < 4, te.argmax(A[i - 1, k], k)[1] + te.sum(A[i - 1, k], axis=k), te.const(7, "int64")),
            te.const(8, "int64"),
        ),
        name="nested",
    )
    a = data((3, 4), "int64", 2)
    got, deep = run([A], [edge, nested], [a])
    sums = a.sum(axis=1)
    np.testing.assert_array_equal(got, [-1, *(sums * [1, 2, 3]), -1, -1])
    np.testing.assert_array_equal(deep, [8, *(a.argmax(axis=1) + sums), 7, 7])


def test_reduction_under_a_condition_inside_a_reduction() -> None:
    A = te.placeholder((3, 4), "int64", "A")
    j, k = te.reduce_axis((0, 5), "j"), te.reduce_axis((0, 4), "k")
    out = te.compute(
        (2,),
        lambda i: te.sum(te.if_then_else(j < 3, te.max(A[j, k] + i, axis=k), te.const(100, "int64")), axis=j),
        name="out",
    )
    a = data((3, 4), "int64", 2)
    rows = a.max(axis=1)
    np.testing.assert_array_equal(run([A], [out], [a]), [rows.sum() + 200, (rows + 1).sum() + 200])


def test_users_combiner_under_a_condition() -> None:
    product = te.comm_reducer(lambda x, y: x * y, lambda dtype: te.const(1, dtype), name="product")
    A = te.placeholder((3, 4), "int64", "A")
    k = te.reduce_axis((0, 4), "k")
    out = te.compute(
        (5,), lambda i: te.if_then_else(i < 3, product(A[i, k], axis=k) + 1, te.const(0, "int64")), name="out"
    )
    a = data((3, 4), "int64", 2)
    np.testing.assert_array_equal(run([A], [out], [a]), [*(a.prod(axis=1) + 1), 0, 0])


def test_scalar_results() -> None:
    A = te.placeholder((6, 5), "float64", "A")
    i, j = te.reduce_axis((0, 6), "i"), te.reduce_axis((0, 5), "j")
    total = te.compute((), lambda: te.sum(A[i, j], axis=[i, j]), name="total")
    mean = te.compute((), lambda: total() / 30.0, name="mean")
    centred = te.compute((6, 5), lambda r, c: A[r, c] - mean[()], name="centred")
    a = data((6, 5), "float64", 1)
    got, average, rest = run([A], [total, mean, centred], [a])
    np.testing.assert_allclose(got, a.sum(), rtol=1e-14)
    np.testing.assert_allclose(average, a.mean(), rtol=1e-14)
    np.testing.assert_allclose(rest, a - a.mean(), rtol=1e-13, atol=1e-15)


# Whole operators


def test_convolution_with_padding_and_stride() -> None:
    n, ci, h, w, co, kernel, stride, pad = 2, 3, 7, 6, 4, 3, 2, 1
    out_h, out_w = (h + 2 * pad - kernel) // stride + 1, (w + 2 * pad - kernel) // stride + 1
    D, W = te.placeholder((n, ci, h, w), "int64", "D"), te.placeholder((co, ci, kernel, kernel), "int64", "W")
    padded = te.compute(
        (n, ci, h + 2 * pad, w + 2 * pad),
        lambda b, c, y, x: te.if_then_else(
            te.all(y >= pad, y < h + pad, x >= pad, x < w + pad), D[b, c, y - pad, x - pad], te.const(0, "int64")
        ),
        name="padded",
    )
    rc, ry, rx = te.reduce_axis((0, ci), "rc"), te.reduce_axis((0, kernel), "ry"), te.reduce_axis((0, kernel), "rx")
    conv = te.compute(
        (n, co, out_h, out_w),
        lambda b, o, y, x: te.sum(
            padded[b, rc, y * stride + ry, x * stride + rx] * W[o, rc, ry, rx], axis=[rc, ry, rx]
        ),
        name="conv",
    )
    d, weight = data((n, ci, h, w), "int64", 1), data((co, ci, kernel, kernel), "int64", 2)
    wide = np.pad(d, ((0, 0), (0, 0), (pad, pad), (pad, pad)))
    expected = np.zeros((n, co, out_h, out_w), np.int64)
    for y in range(out_h):
        for x in range(out_w):
            window = wide[:, :, y * stride : y * stride + kernel, x * stride : x * stride + kernel]
            expected[:, :, y, x] = np.einsum("bcyx,ocyx->bo", window, weight)
    np.testing.assert_array_equal(run([D, W], [conv], [d, weight]), expected)


@pytest.mark.parametrize(("m", "n", "k"), [(3, 4, 5), (1, 1, 1), (0, 2, 3)])
def test_symbolic_shapes(m: int, n: int, k: int) -> None:
    M, N, K = te.var("M"), te.var("N", "int32"), te.var("K")
    A, B, b = te.placeholder((M, K), name="A"), te.placeholder((K, N), name="B"), te.placeholder((N,), name="b")
    r = te.reduce_axis((0, K), "r")
    C = te.compute((M, N), lambda i, j: te.sum(A[i, r] * B[r, j], axis=r) + b[j], name="C")
    wide = te.compute((M + 1, N * 2), lambda i, j: te.if_then_else(i < M, C[i, j // 2], 0.0), name="wide")
    narrow = te.compute((M, N), lambda i, j: wide[i + 1, 2 * j + 1], name="narrow")
    a, bb, bias = data((m, k), "float32", 1), data((k, n), "float32", 2), data((n,), "float32", 3)
    got, below = run([A, B, b], [C, narrow], [a, bb, bias])
    _, twice = run([A, B, b], [C, wide], [a, bb, bias], compiled=False)  # calls check extents, not sums of them, so far
    np.testing.assert_array_equal(below, np.concatenate([got[1:], np.zeros((min(m, 1), n), np.float32)]))
    np.testing.assert_allclose(got, a @ bb + bias, rtol=1e-5, atol=1e-5)
    np.testing.assert_array_equal(twice[:m], np.repeat(got, 2, axis=1))
    np.testing.assert_array_equal(twice[m:], 0)


def test_symbolic_shapes_that_disagree_are_told() -> None:
    n = te.var("n")
    A, B = te.placeholder((n,), name="A"), te.placeholder((n,), name="B")
    C = te.compute((n,), lambda i: A[i] + B[i], name="C")
    four, five = np.zeros(4, np.float32), np.zeros(5, np.float32)
    for module, outputs in ((te.create_te_func([A, B, C]), []), (te.create_func([A, B, C]), [np.zeros(4, np.float32)])):
        with pytest.raises((InterpreterError, ValueError), match=r"shape|extent"):
            Interpreter(module).call("main", four, five, *outputs)


def test_scalar_parameters() -> None:
    n, alpha = te.var("n"), te.var("alpha", "float32")
    shift = te.var("shift")
    X, Y = te.placeholder((n,), name="X"), te.placeholder((n,), name="Y")
    out = te.compute((n,), lambda i: alpha * X[(i + shift) % n] + Y[i], name="out")
    x, y = data((6,), "float32", 1), data((6,), "float32", 2)
    te_result = Interpreter(te.create_te_func([alpha, shift, X, Y, out])).call("main", 0.5, 2, x, y)
    result = np.zeros(6, np.float32)
    Interpreter(te.create_func([alpha, shift, X, Y, out])).call("main", 0.5, 2, x, y, result)
    np.testing.assert_array_equal(result, 0.5 * np.roll(x, -2) + y)
    np.testing.assert_array_equal(te_result, result)


def test_results_in_any_place_of_the_list_and_passed_intermediates() -> None:
    A = te.placeholder((4,), "int32", "A")
    B = te.compute((4,), lambda i: A[i] + 1, name="B")
    C = te.compute((4,), lambda i: B[i] * B[i], name="C")
    module = te.create_func([C, A, B], name="f")
    module.verify()
    a, b, c = np.arange(4, dtype=np.int32), np.zeros(4, np.int32), np.zeros(4, np.int32)
    Interpreter(module).call("f", c, a, b)
    np.testing.assert_array_equal(b, a + 1)
    np.testing.assert_array_equal(c, (a + 1) ** 2)
    Interpreter(module).call("f", A=a, B=b, C=c)


def test_one_result_of_a_tuple() -> None:
    A = te.placeholder((5,), "int32", "A")
    first, second = te.compute((5,), lambda i: (A[i] + 1, A[i] * 2), name="two")
    third = te.compute((5,), lambda i: first[i] + second[i], name="third")
    a = np.arange(5, dtype=np.int32)
    got, sum_ = run([A], [second, third], [a])
    np.testing.assert_array_equal(got, a * 2)
    np.testing.assert_array_equal(sum_, a * 3 + 1)


def test_rank_zero_inputs_and_many_dimensions() -> None:
    s = te.placeholder((), "float32", "s")
    A = te.placeholder((2,) * 6, name="A")
    out = te.compute(A.shape, lambda *i: A(*i) * s(), name="out")
    a = data((2,) * 6, "float32", 1)
    np.testing.assert_array_equal(run([s, A], [out], [np.array(3, np.float32), a]), a * 3)


def test_reads_out_of_bounds_are_told_at_both_levels() -> None:
    A = te.placeholder((4,), "int32", "A")
    C = te.compute((4,), lambda i: A[i + 1], name="C")
    a = np.arange(4, dtype=np.int32)
    with pytest.raises(InterpreterError, match=r"A.*4"):
        Interpreter(te.create_te_func([A, C])).call("main", a)
    with pytest.raises(InterpreterError, match=r"A.*4"):
        Interpreter(te.create_func([A, C])).call("main", a, np.zeros(4, np.int32))


def test_compiled_reductions_over_an_empty_dynamic_axis_give_the_identity() -> None:
    M, K = te.var("M"), te.var("K")
    A, r = te.placeholder((M, K), name="A"), te.reduce_axis((0, K), "r")
    C = te.compute((M,), lambda i: te.max(A[i, r], axis=r), name="C")
    result, empty = np.ones(3, np.float32), np.zeros((3, 0), np.float32)
    weft.build(te.create_func([A, C]))["main"](empty, result)
    np.testing.assert_array_equal(result, np.full(3, -np.inf))
    np.testing.assert_array_equal(Interpreter(te.create_te_func([A, C])).call("main", empty), result)
