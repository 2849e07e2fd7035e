"""Remainders and rounded quotients of floats: exact as C's `fmod`, in every front end and on every target."""

from __future__ import annotations

import itertools
from functools import partial
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from tiers import second_tier

import weft
from weft import te
from weft.interp.interpreter import Interpreter

INF, NAN = np.inf, np.nan
_DIVIDENDS = (1e20, 5.3e9, 7.0, -7.0, 0.3, -0.0, 0.0, INF, -INF, NAN, 5.0, 1e-40, 1e17, 0.9999999999999999, 60000.0)
_DIVISORS = (3.0, -3.0, 0.1, INF, -INF, 0.0, -0.0, 7.0, NAN, 1e-45, 1.0, 2e-7)
_PAIRS = np.array(list(itertools.product(_DIVIDENDS, _DIVISORS))).T


def _operands(dtype: str) -> tuple[Any, Any]:
    with np.errstate(all="ignore"):
        x, y = (part.astype(ml_dtypes.bfloat16 if dtype == "bfloat16" else dtype) for part in _PAIRS)
    return x, y


def _expected(x: Any, y: Any) -> list[Any]:
    wide = np.float64 if x.dtype == np.float64 else np.float32
    a, b = x.astype(wide), y.astype(wide)
    with np.errstate(all="ignore"):
        rest = np.fmod(a, b)
        floored = np.where((rest != 0) & ((rest < 0) != (b < 0)), rest + b, rest)
        found = [rest, floored, np.trunc(a / b), np.floor_divide(a, b), np.copysign(a, b)]
        return [array.astype(x.dtype) for array in found]


@pytest.mark.parametrize(
    "dtype, targets",
    [
        ("float32", ("llvm",)),
        *(second_tier(dtype, ("llvm", "c")) for dtype in ("float64", "float16", "bfloat16")),
        *(second_tier(dtype, ("c", "opencl")) for dtype in ("float32", "float64", "float16")),
    ],
)
def test_expressions(dtype: str, targets: tuple[str, ...]) -> None:
    if "opencl" in targets:
        pytest.importorskip("pyopencl")
    x, y = _operands(dtype)
    A, B = (te.placeholder(x.shape, dtype, name=name) for name in "AB")
    formulas = (te.truncmod, te.floormod, te.truncdiv, te.floordiv, te.copysign)
    computed = [te.compute(x.shape, lambda i, f=f: f(A(i), B(i)), name=f"C{at}") for at, f in enumerate(formulas)]
    module = te.create_func([A, B, *computed])
    keep = ~np.isnan(x.astype(np.float32)) & ~np.isnan(y.astype(np.float32))
    x, y = np.where(keep, x, np.ones_like(x)), np.where(keep, y, np.ones_like(y))  # the sign of NaN is any
    expected = _expected(x, y)
    calls: list[Any] = [partial(Interpreter(module).call, "main")]
    for call in (*calls, *(weft.build(module, target=target)["main"] for target in targets)):
        results = [np.zeros_like(array) for array in expected]
        call(x, y, *results)
        for found, wanted in zip(results, expected, strict=True):
            found, wanted = (array.astype(np.float64) for array in (found, wanted))
            np.testing.assert_array_equal(found, wanted)
            assert (np.signbit(found) == np.signbit(wanted))[wanted == 0].all()


@pytest.mark.parametrize("dtype, element", [("f32", "float32"), second_tier("f64", "float64")])
def test_stablehlo_and_arith(dtype: str, element: str) -> None:
    x, y = _operands(element)
    with np.errstate(all="ignore"):
        wanted = np.fmod(x, y)
    type_ = f"tensor<{len(x)}x{dtype}>"
    text = f"""func.func @main(%a: {type_}, %b: {type_}) -> {type_} {{
      %r = stablehlo.remainder %a, %b : {type_}
      func.return %r : {type_}
    }}"""
    np.testing.assert_array_equal(np.asarray(weft.build(text)["main"](x, y)), wanted)
    np.testing.assert_array_equal(np.asarray(Interpreter(weft.parse(text)).call("main", x, y)), wanted)
    buffer = f"memref<{len(x)}x{dtype}>"
    text = f"""func.func @main(%a: {buffer}, %b: {buffer}, %c: {buffer}) {{
      affine.for %i = 0 to {len(x)} {{
        %x = affine.load %a[%i] : {buffer}
        %y = affine.load %b[%i] : {buffer}
        %r = arith.remf %x, %y : {dtype}
        affine.store %r, %c[%i] : {buffer}
      }}
      func.return
    }}"""
    found = np.zeros_like(x)
    weft.build(text)["main"](x, y, found)
    np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_onnx_mod(dtype: str) -> None:
    onnx = pytest.importorskip("onnx")
    import weft.onnx

    x, y = _operands(dtype)
    kind = onnx.helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    given = [onnx.helper.make_tensor_value_info(name, kind, x.shape) for name in "xyz"]
    node = onnx.helper.make_node("Mod", ["x", "y"], ["z"], fmod=1)
    graph = onnx.helper.make_graph([node], "g", given[:2], given[2:])
    model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 18)], ir_version=9)
    found = weft.build(weft.onnx.from_onnx(model))["main"](x, y)
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(np.asarray(found), np.fmod(x, y))
