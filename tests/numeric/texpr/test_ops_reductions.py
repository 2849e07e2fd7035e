"""te.ops: reductions, normalisations and scans against NumPy."""

import itertools
from typing import Any

import numpy as np
import pytest
from operator_cases import DTYPES, FLOATS, NUMBERS, Case, Input, check, compare
from operator_references import normalized, softmax
from tiers import first_tier

import weft
from weft import graph as G
from weft import te
from weft.te import ops

OP: Any = ops
AXES: list[Any] = [None, 0, -1, (0, 2), (2, 0, 1)]


@pytest.mark.parametrize("dtype", first_tier(NUMBERS, "int8", "int32", "bfloat16", "float32"))
def test_reductions_of_numbers(dtype: str) -> None:
    cases: list[Case] = []
    for name, low in (("sum", -4), ("prod", 1), ("max", -4), ("min", -4)):
        kept = {"dtype": dtype} if dtype.startswith("int") and name in ("sum", "prod") else {}
        for axis, keepdims in zip(AXES, (False, True, False, True, False), strict=True):
            cases.append(
                Case(
                    f"{name} {axis} {keepdims}",
                    lambda a, n=name, x=axis, k=keepdims: getattr(OP, n)(a, x, k),
                    [Input((3, 2, 4), dtype, low, low + 1)],
                    lambda a, n=name, x=axis, k=keepdims, kept=kept: getattr(np, n)(a, axis=x, keepdims=k, **kept),
                )
            )
    check(cases)


@pytest.mark.parametrize("dtype", DTYPES)
def test_all_and_any(dtype: str) -> None:
    cases = [
        Case(
            f"{name} {axis}",
            lambda a, n=name, x=axis: getattr(OP, n)(a, x, x == 0),
            [Input((2, 3), dtype, 0, 1)],
            reference,
        )
        for name, axis, reference in (
            ("all", None, lambda a: np.all(a)),
            ("all", 0, lambda a: np.all(a, 0, keepdims=True)),
            ("any", -1, lambda a: np.any(a, -1)),
            ("any", (0, 1), lambda a: np.any(a)),
        )
    ]
    check(cases)


@pytest.mark.parametrize("dtype", first_tier(NUMBERS, "int8", "int32", "bfloat16", "float32"))
def test_places_of_extremes(dtype: str) -> None:
    cases = [
        Case(
            f"{name} {axis}",
            lambda a, n=name, x=axis: getattr(OP, n)(a, x, x == 1),
            [Input((3, 4, 2), dtype, -2, 2)],  # with equals
            lambda a, n=name, x=axis: getattr(np, n)(a, axis=x, keepdims=x == 1),
        )
        for name in ("argmax", "argmin")
        for axis in (None, 0, 1, -1)
    ]
    check(cases)


@pytest.mark.parametrize("dtype", first_tier(FLOATS, "bfloat16", "float32"))
def test_mean_and_variance(dtype: str) -> None:
    cases: list[Case] = []
    for axis, keepdims in zip(AXES, (True, False, True, False, False), strict=True):
        cases.append(
            Case(
                f"mean {axis}",
                lambda a, x=axis, k=keepdims: ops.mean(a, x, k),
                [Input((3, 2, 4), dtype)],
                lambda a, x=axis, k=keepdims: np.mean(a, x, keepdims=k),
            )
        )
        cases.append(
            Case(
                f"var {axis}",
                lambda a, x=axis, k=keepdims: ops.var(a, x, k, ddof=1),
                [Input((3, 2, 4), dtype)],
                lambda a, x=axis, k=keepdims: np.var(a, x, keepdims=k, ddof=1),
            )
        )
    check(cases)


def test_reductions_of_other_shapes() -> None:
    cases = [
        Case("sum of one number", ops.sum, [Input(())], np.sum),
        Case("argmax of one number", ops.argmax, [Input(())], np.argmax),
        Case("mean of one number", ops.mean, [Input(())], np.mean),
        Case("over no axis", lambda a: ops.sum(a, ()), [Input((2, 3))], lambda a: a),
        Case("sum over nothing", lambda a: ops.sum(a, 0), [Input((0, 3))], lambda a: np.sum(a, 0)),
        Case("prod over nothing", lambda a: ops.prod(a, 1), [Input((2, 0), "int32")], lambda a: np.prod(a, 1)),
        Case("all over nothing", lambda a: ops.all(a, 1), [Input((2, 0), "bool")], lambda a: np.all(a, 1)),
        Case("max of no rows", lambda a: ops.max(a, 1), [Input((0, 3))], lambda a: np.max(a, 1)),
        Case("size 1", lambda a: ops.var(a, 0), [Input((1, 3))], lambda a: np.var(a, 0)),
        Case("bools", lambda a: ops.sum(a, 0, dtype="int32"), [Input((5, 3), "bool")], lambda a: np.sum(a, 0)),
        Case("wider", lambda a: ops.sum(a, dtype="int64"), [Input((50,), "int8", 100, 120)], np.sum),
        Case("symbolic", lambda a: ops.sum(a, 1), [Input(("n", "m"))], lambda a: np.sum(a, 1), {"n": 3, "m": 7}),
        Case("symbolic mean", lambda a: ops.mean(a), [Input(("n", "m"))], np.mean, {"n": 3, "m": 7}),
        Case("symbolic place", lambda a: ops.argmin(a), [Input(("n", "m"))], np.argmin, {"n": 3, "m": 7}),
        Case("NaN", lambda a: ops.argmax(a), [Input((3,), values=[1.0, np.nan, 2.0])], np.argmax),
        Case("NaN wins", lambda a: ops.min(a), [Input((3,), values=[1.0, np.nan, 2.0])], np.min),
    ]
    check(cases)


# Softmax and norms


@pytest.mark.parametrize("dtype", first_tier(FLOATS, "bfloat16", "float32"))
def test_softmax(dtype: str) -> None:
    cases: list[Case] = []
    for shape, axis in (((2, 5, 3), 1), ((4,), 0), ((3, 1), -1))[: 3 if dtype == "float32" else 1]:
        x = [Input(shape, dtype)]
        cases.append(Case(f"softmax {shape}", lambda a, d=axis: ops.softmax(a, d), x, lambda a, d=axis: softmax(a, d)))
        cases.append(
            Case(f"log {shape}", lambda a, d=axis: ops.log_softmax(a, d), x, lambda a, d=axis: np.log(softmax(a, d)))
        )
    check(cases)


def test_softmax_of_large_and_infinite_numbers() -> None:
    big = [1e4, -1e4, 9999.0, -np.inf]
    cases = [
        Case("softmax", ops.softmax, [Input((2, 4), values=big)], softmax),
        Case(
            "log",
            lambda a: ops.log_softmax(a),
            [Input((4,), values=[1e4, 0, 9999.0, 5.0])],
            lambda a: a - a.max() - np.log1p(np.exp(-1)),
        ),
        Case("symbolic", ops.softmax, [Input(("n", "m"))], softmax, {"n": 3, "m": 5}),
        Case("no rows", ops.softmax, [Input((0, 4))], lambda a: a),
    ]
    check(cases)


@pytest.mark.parametrize("dtype", first_tier(FLOATS, "bfloat16", "float32"))
def test_norms(dtype: str) -> None:
    x, weight = Input((2, 6, 3, 5), dtype), Input((6,), dtype)
    last = Input((5,), dtype)

    def channels(a: Any) -> Any:
        return a.reshape(1, -1, 1, 1)

    def grouped(a: Any, g: int) -> Any:
        return normalized(a.reshape(2, g, -1), 2).reshape(a.shape)

    cases = [
        Case("layer", ops.layer_norm, [x, last, last], lambda a, g, b: normalized(a, -1) * g + b),
        Case(
            "layer, two axes",
            lambda a, g: ops.layer_norm(a, g, axis=(2, 3)),
            [x, Input((3, 5), dtype)],
            lambda a, g: normalized(a, (2, 3)) * g,
        ),
        Case("layer, an axis between", lambda a: ops.layer_norm(a, axis=1), [x], lambda a: normalized(a, 1)),
        Case("rms", ops.rms_norm, [x, last], lambda a, g: a / np.sqrt((a * a).mean(-1, keepdims=True) + 1e-5) * g),
        Case(
            "instance",
            ops.instance_norm,
            [x, weight, weight],
            lambda a, g, b: normalized(a, (2, 3)) * channels(g) + channels(b),
        ),
        Case(
            "group",
            lambda a, g, b: ops.group_norm(a, 3, g, b),
            [x, weight, weight],
            lambda a, g, b: grouped(a, 3) * channels(g) + channels(b),
        ),
        Case("one group", lambda a: ops.group_norm(a, 1), [Input((2, 6), dtype)], lambda a: grouped(a, 1)),
        Case(
            "batch",
            lambda a, g, b, m, v: ops.batch_norm(a, g, b, m, v),
            [x, weight, weight, weight, Input((6,), dtype, 0.5, 4)],
            lambda a, g, b, m, v: (a - channels(m)) / np.sqrt(channels(v) + 1e-5) * channels(g) + channels(b),
        ),
        Case(
            "batch, channels last",
            lambda a, m, v: ops.batch_norm(a, None, None, m, v, axis=-1),
            [x, last, Input((5,), dtype, 0.5, 4)],
            lambda a, m, v: (a - m) / np.sqrt(v + 1e-5),
        ),
    ]
    check(cases if dtype == "float32" else cases[:1] + cases[5:8:2])


def test_norms_of_symbolic_extents() -> None:
    cases = [
        Case(
            "layer",
            ops.layer_norm,
            [Input(("n", "m")), Input(("m",)), Input(("m",))],
            lambda a, g, b: normalized(a, -1) * g + b,
            {"n": 3, "m": 7},
        ),
        Case(
            "group",
            lambda a: ops.group_norm(a, 2),
            [Input(("n", 4, "h"))],
            lambda a: normalized(a.reshape(3, 2, -1), 2).reshape(a.shape),
            {"n": 3, "h": 5},
        ),
    ]
    check(cases)


def test_variance_beside_a_large_mean() -> None:
    """Sums of squares in float32 would lose all digits of this variance."""
    A = te.placeholder((4, 256), name="A")
    x = (4096 + np.random.default_rng(0).standard_normal((4, 256))).astype("float32")
    for name, build, expected in (
        ("layer_norm", lambda a: ops.layer_norm(a), normalized(x.astype("float64"), -1)),
        ("var", lambda a: ops.var(a, -1), x.astype("float64").var(-1)),
    ):
        out = np.empty(expected.shape, "float32")
        weft.build(te.create_func([A, build(A)]), target="llvm", default_schedule=False)["main"](x, out)
        compare(name, out, expected, "float32", 5e-4)


_SCANS = {"cumsum": np.cumsum, "cumprod": np.cumprod, "cummax": np.maximum.accumulate, "cummin": np.minimum.accumulate}


@pytest.mark.parametrize("exclusive", [False, True])
@pytest.mark.parametrize("reverse", first_tier([False, True], True))
@pytest.mark.parametrize("name", first_tier(_SCANS, "cumsum"))
def test_scans_of_symbolic_rows(name: str, reverse: bool, exclusive: bool) -> None:
    """Groups of eight elements, and the rest."""
    if exclusive and name in ("cummax", "cummin"):
        pytest.skip("extrema are not exclusive")
    builder, x = G.BlockBuilder(), G.var("x", ("m", "n"))
    options = {"exclusive": True} if exclusive else {}
    with builder.function("main", [x]):
        builder.emit_func_output(getattr(G, name)(x, axis=1, reverse=reverse, **options))
    main = weft.build(builder.get())["main"]
    for rows, columns in itertools.product((0, 1, 3), (0, 1, 7, 8, 9, 17, 40)):
        data = np.random.default_rng(columns).uniform(-1.5, 1.5, (rows, columns)).astype("float32")
        expected = _SCANS[name](data[:, ::-1] if reverse else data, axis=1)
        if exclusive and columns:
            first = np.full((rows, 1), name == "cumprod", "float32")
            expected = np.concatenate([first, expected[:, :-1]], 1)
        expected = expected[:, ::-1] if reverse else expected
        np.testing.assert_allclose(main(data), expected, rtol=1e-4, atol=1e-5, err_msg=f"{rows} x {columns}")


@pytest.mark.parametrize("dtype", first_tier(NUMBERS, "int8", "int32", "bfloat16", "float32"))
def test_cumsum(dtype: str) -> None:
    def sums(a: Any, axis: int | None) -> Any:
        return np.cumsum(a, axis, dtype=None if a.dtype.kind == "f" else a.dtype)

    cases = [
        Case(f"{shape} {axis}", lambda a, d=axis: ops.cumsum(a, d), [Input(shape, dtype)], lambda a, d=axis: sums(a, d))
        for shape, axis in (((7,), 0), ((3, 5), 1), ((2, 4, 3), -2), ((2, 3), None), ((1,), 0), ((0, 2), 0))
    ]
    cases.append(
        Case("exclusive", lambda a: ops.cumsum(a, 0, exclusive=True), [Input((6, 2), dtype)], lambda a: sums(a, 0) - a)
    )
    check(cases)
