"""Unsigned integers: what NumPy computes, on every level and compiled."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from cuda_on_cpu import ORDERS, cuda_on_cpu
from every_way import check_every_way
from tiers import first_tier
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp

import weft
from weft import graph as G
from weft import te
from weft.analysis.structural_equality import structural_equal
from weft.interp.interpreter import Interpreter
from weft.passes.convert.convert_stablehlo_to_te import convert_stablehlo
from weft.passes.lower_graph import LowerGraphPass
from weft.support.errors import CompileError
from weft.support.user_functions import unregister_intrinsic

UNSIGNED = ["uint8", "uint16", "uint32", "uint64"]
INTEGERS = ["int8", "int16", "int32", "int64", *UNSIGNED]
FLOATS = ["float16", "float32", "float64"]


def numbers(dtype: str, count: int = 21, low: int = 0) -> Any:
    """Numbers over the whole range, its ends among them."""
    most = np.iinfo(dtype).max
    drawn = np.random.default_rng(7).integers(max(low, np.iinfo(dtype).min), most, count, dtype, endpoint=True)
    drawn[:3] = most, max(low, np.iinfo(dtype).min), 1
    return drawn


BINARY: list[tuple[Callable[..., Any], Callable[..., Any]]] = [
    *((op, op) for op in (operator.add, operator.sub, operator.mul, operator.floordiv, operator.mod, operator.xor)),
    *((op, op) for op in (operator.lt, operator.le, operator.gt, operator.ge, operator.eq, operator.pow)),
    (te.truncdiv, operator.floordiv),
    (te.truncmod, operator.mod),
    (te.min, np.minimum),
    (te.max, np.maximum),
    (lambda x, y: x >> (y & 7), lambda x, y: x >> (y & 7)),
    (lambda x, y: x << (y & 7), lambda x, y: x << (y & 7)),
    (lambda x, y: te.abs(-x) + ~y, lambda x, y: -x + ~y),
    (lambda x, y: te.popcount(x) + te.clz(y), None),  # type: ignore[list-item]
]


@pytest.mark.parametrize("dtype", first_tier(UNSIGNED, "uint8"))
def test_operators(dtype: str) -> None:
    """One function with all; vectors of 16 and a rest."""
    x, y = numbers(dtype), numbers(dtype, low=1)[::-1].copy()
    A, B = te.placeholder(x.shape, dtype, "A"), te.placeholder(y.shape, dtype, "B")
    results: list[Any] = []
    expected: list[Any] = []
    for number, (op, reference) in enumerate(BINARY):
        results.append(te.compute(x.shape, lambda i, op=op: op(A[i], B[i]), name=f"C{number}"))
        if reference is None:
            width = 8 * x.itemsize
            counts = [bin(int(a)).count("1") + width - int(b).bit_length() for a, b in zip(x, y, strict=True)]
            expected.append(np.array(counts, dtype))
        else:
            expected.append(reference(x, y))
    check_every_way([A, B, *results], [x, y], expected, ("llvm", "c"))


@pytest.mark.parametrize("dtype", first_tier(UNSIGNED, "uint64"))
def test_reductions(dtype: str) -> None:
    x = numbers(dtype, 40).reshape(2, 20)
    A = te.placeholder(x.shape, dtype, "A")
    k = te.reduce_axis((0, 20), "k")

    def over(function: Callable[..., Any], name: str) -> Any:
        return te.compute((2,), lambda i: function(A[i, k], axis=k), name=name)

    results = [over(function, f"C{at}") for at, function in enumerate((te.sum, te.prod, te.max, te.min))]
    expected = [f(x, 1, dtype=dtype) for f in (np.sum, np.prod)] + [x.max(1), x.min(1)]
    for function, reference in ((te.argmax, np.argmax), (te.argmin, np.argmin)):
        value, place = over(function, function.__name__)
        results += [value, place]
        expected += [np.take_along_axis(x, reference(x, 1)[:, None], 1)[:, 0], reference(x, 1)]
    check_every_way([A, *results], [x], expected, ("llvm", "c"))


def cast_numbers(source: str, target: str) -> tuple[Any, Any]:
    """Numbers of `source` and what they are as `target`: floats within its range, integers of all."""
    if source in FLOATS:
        low, high = (-100.0, 100.0) if target in FLOATS else (0.0 if target in UNSIGNED else -100.0, 100.0)
        x = np.random.default_rng(3).uniform(low, high, 21).astype(source)
        return x, x.astype(target)
    x = numbers(source)
    with np.errstate(over="ignore"):
        return x, x.astype(target)


@pytest.mark.parametrize("source", first_tier([*UNSIGNED, *FLOATS, "int8", "int64"], "uint8", "float32"))
def test_casts(source: str) -> None:
    """To all types, in one function."""
    targets = [target for target in (*INTEGERS, *FLOATS, "bool") if target != source]
    placed: list[Any] = []
    results: list[Any] = []
    arrays: list[Any] = []
    expected: list[Any] = []
    for target in targets:
        x, wanted = cast_numbers(source, target)
        placed.append(te.placeholder(x.shape, source, f"x_{target}"))
        results.append(
            te.compute(x.shape, lambda i, x=placed[-1], target=target: x[i].astype(target), name=f"as_{target}")
        )
        arrays.append(x)
        expected.append(wanted)
    check_every_way([*placed, *results], arrays, expected, ("llvm", "c"))


@pytest.mark.slow
def test_on_kernels() -> None:
    """By OpenCL on PoCL, and by CUDA with threads in another order."""
    pytest.importorskip("pyopencl")
    x = numbers("uint8", 60).reshape(3, 20)
    A, k = te.placeholder(x.shape, "uint8", "A"), te.reduce_axis((0, 20), "k")
    quotient = te.compute(x.shape, lambda i, j: (A[i, j] // 3 >> 1) * 5 % 7, name="Q")
    most = te.compute((3,), lambda i: te.max(A[i, k], axis=k), name="M")
    wide = te.compute(
        x.shape, lambda i, j: A[i, j].astype("float32") + A[i, 0].astype("int64").astype("float32"), name="W"
    )
    expected = [(x // 3 >> 1) * np.uint8(5) % 7, x.max(1), x.astype("float32") + x[:, :1].astype("float32")]
    check_every_way([A, quotient, most, wide], [x], expected, ("opencl",))
    with cuda_on_cpu(ORDERS[2]):
        check_every_way([A, quotient, most, wide], [x], expected, ("cuda",))


def test_indices_scalars_and_constants() -> None:
    """Numbers past the signed range as index, as parameter, and beside an element."""
    table, at = numbers("int32", 256), np.array([255, 0, 128, 200], "uint8")
    T, X = te.placeholder((256,), "int32", "T"), te.placeholder((4,), "uint8", "X")
    s = te.var("s", "uint16")
    C = te.compute((4,), lambda i: T[X[i]] + (s + 60000).astype("int32") + (X[i] * 200).astype("int32"), name="C")
    expected = table[at] + np.int32((65000 + 60000) % 65536) + (at * np.uint8(200)).astype("int32")
    library = weft.build(te.create_func([T, X, s, C]))
    result = np.zeros(4, "int32")
    library["main"](table, at, 65000, result)
    np.testing.assert_array_equal(result, expected)
    result[:] = 0
    Interpreter(te.create_func([T, X, s, C])).call("main", table, at, 65000, result)
    np.testing.assert_array_equal(result, expected)


def test_arrays_of_other_types_are_refused() -> None:
    A = te.placeholder((4,), "uint8", "A")
    module = te.create_func([A, te.compute((4,), lambda i: A[i] + 1, name="B")])
    call = weft.build(module)["main"]
    for refuse in (call, lambda *given: Interpreter(module).call("main", *given)):
        with pytest.raises(TypeError, match=r"'A'.: expected elements of type uint8, got int8"):
            refuse(np.zeros(4, "int8"), np.zeros(4, "uint8"))


def test_what_expressions_refuse() -> None:
    A = te.placeholder((4,), "uint8", "A")
    weft.register_intrinsic("test_of_signed", override=True)
    outside = (
        'import weft.script.tir as T\n@T.prim_func\ndef f(A: T.Buffer((4,), "uint8")):\n    x = T.call_extern({})\n'
    )
    for make, message in (
        (
            lambda: te.call_intrin("int32", "test_of_signed", A[0]),
            "'test_of_signed' is called with uint8: intrinsics take",
        ),
        (lambda: te.call_intrin("uint32", "test_of_signed", te.const(1)), "'test_of_signed' is called with uint32"),
        (
            lambda: weft.script.parse(outside.format('"g", dtype="uint8"')),
            "functions from outside give .* not uint8: cast",
        ),
        (
            lambda: weft.script.parse("@T.prim_func\ndef f(s: T.int4):\n    ..."),
            "parameter s: elements of arrays alone are",
        ),
        (lambda: A[0] + te.const(1, "int8"), "mixes element types: `A.0.` is uint8 and `1` is int8"),
        (lambda: A[0] + 256, "256 beside `A.0.` does not fit uint8, which holds 0 to 255"),
        (lambda: A[0] + -1, "-1 beside `A.0.` does not fit uint8, which holds 0 to 255"),
    ):
        with pytest.raises(CompileError, match=message):
            make()
    unregister_intrinsic("test_of_signed")


@pytest.mark.parametrize("size", first_tier([64, 61], 61))
def test_products(size: int) -> None:
    """Of unsigned and of signed bytes, by dot products where the machine has them."""
    rng = np.random.default_rng(1)
    a, b = rng.integers(0, 255, (8, size), "uint8", True), rng.integers(-128, 127, (size, 32), "int8", True)
    A, B = te.placeholder(a.shape, "uint8", "A"), te.placeholder(b.shape, "int8", "B")
    C = te.ops.matmul(A, B, out_dtype="int32")
    check_every_way([A, B, C], [a, b], [a.astype("int32") @ b.astype("int32")])
    with pytest.raises(CompileError, match="matmul takes tensors of one dtype: A is uint8, B is int8"):
        te.ops.matmul(A, B)


@pytest.mark.parametrize("cpu", ["znver4", "haswell"])
def test_default_schedules_use_dot_products(cpu: str) -> None:
    A, B = te.placeholder((64, 256), "uint8", "A"), te.placeholder((256, 64), "int8", "B")
    library = weft.build(te.create_func([A, B, te.ops.matmul(A, B, out_dtype="int32")]), target=f"llvm -mcpu={cpu}")
    assert ("vpdpbusd" if cpu == "znver4" else "vpmaddwd") in library.get_source("asm")


SCRIPT = """
from weft.script import ir as I, tir as T

@I.ir_module
class Module:
    @T.prim_func
    def f(A: T.Buffer((16,), "uint8"), B: T.Buffer((16,), "uint8"), s: T.uint16, C: T.Buffer((16,), "uint32")):
        Y = T.alloc_buffer((16,), "uint8")
        for i in range(16):
            with T.block("Y"):
                vi = T.axis.spatial(16, i)
                x = A[vi] // B[vi]
                Y[vi] = T.max(x % T.uint8(200) + T.uint8(250), A[vi]) >> T.uint8(1)
        for i in range(16):
            with T.block("C"):
                vi = T.axis.spatial(16, i)
                y = Y[vi]
                if A[vi] < B[vi]:
                    z = y
                else:
                    z = y // T.uint8(2)
                C[vi] = T.uint32(z) * T.uint32(s) + T.uint32(A[y % T.uint8(16)])
"""


def test_script() -> None:
    """What a script computes, and that it is printed and read back equal, before and after lowering of expressions."""
    module = weft.script.parse(SCRIPT)
    text = weft.script.print_script(module)
    assert 'A: T.Buffer((16,), "uint8")' in text and 'Y = T.alloc_buffer((16,), "uint8")' in text
    assert "T.op" not in text
    assert structural_equal(weft.script.parse(text), module)
    a, b = numbers("uint8", 16), numbers("uint8", 16, low=1)[::-1].copy()
    y = np.maximum((a // b) % np.uint8(200) + np.uint8(250), a) >> np.uint8(1)
    z = np.where(a < b, y, y // np.uint8(2))
    expected = z.astype("uint32") * np.uint32(50000) + a[y % 16]
    for call in (weft.build(module)["f"], lambda *given: Interpreter(module).call("f", *given)):
        result = np.zeros(16, "uint32")
        call(a, b, 50000, result)
        np.testing.assert_array_equal(result, expected)
    A = te.placeholder((8,), "uint8", "A")
    k = te.reduce_axis((0, 8), "k")
    lowered = te.create_func([A, te.compute((8,), lambda i: A[i] // 3 + te.max(A[k], axis=k), name="C")])
    assert structural_equal(weft.script.parse(weft.script.print_script(lowered)), lowered)


STABLEHLO = """
func.func @main(%x: tensor<21xui8>, %y: tensor<21xui8>, %f: tensor<21xf32>) -> (tensor<21xui8>, tensor<21xui32>,
    tensor<21xui8>, tensor<21xi1>, tensor<ui8>) {
  %c = stablehlo.constant dense<200> : tensor<21xui8>
  %t = stablehlo.constant dense<[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 250]>
    : tensor<21xui8>
  %one = stablehlo.constant dense<1> : tensor<21xui8>
  %zero = stablehlo.constant dense<0> : tensor<ui8>
  %0 = stablehlo.divide %x, %y : tensor<21xui8>
  %1 = stablehlo.maximum %0, %c : tensor<21xui8>
  %2 = stablehlo.shift_right_logical %1, %one : tensor<21xui8>
  %3 = stablehlo.shift_right_arithmetic %x, %one : tensor<21xui8>
  %4 = stablehlo.sign %y : tensor<21xui8>
  %5 = stablehlo.power %x, %y : tensor<21xui8>
  %6 = stablehlo.add %2, %3 : tensor<21xui8>
  %7 = stablehlo.add %6, %4 : tensor<21xui8>
  %8 = stablehlo.add %7, %5 : tensor<21xui8>
  %9 = stablehlo.add %8, %t : tensor<21xui8>
  %wide = stablehlo.convert %x : (tensor<21xui8>) -> tensor<21xui32>
  %cut = stablehlo.convert %f : (tensor<21xf32>) -> tensor<21xui8>
  %less = stablehlo.compare LT, %x, %c, UNSIGNED : (tensor<21xui8>, tensor<21xui8>) -> tensor<21xi1>
  %max = stablehlo.reduce(%x init: %zero) applies stablehlo.maximum across dimensions = [0]
    : (tensor<21xui8>, tensor<ui8>) -> tensor<ui8>
  return %9, %wide, %cut, %less, %max : tensor<21xui8>, tensor<21xui32>, tensor<21xui8>, tensor<21xi1>, tensor<ui8>
}
"""


def test_stablehlo() -> None:
    def converted() -> ModuleOp:
        module = weft.parse(STABLEHLO)
        convert_stablehlo(module, strict=True)
        module.verify()
        return module

    x, y = numbers("uint8"), numbers("uint8", low=1)[::-1].copy()
    f = np.linspace(-300, 600, 21, dtype="float32")
    f[3:6] = np.nan, np.inf, -np.inf
    first = np.maximum(x // y, 200) >> np.uint8(1)
    first += (x.view("int8") >> 1).view("uint8") + np.uint8(1) + x**y
    first += np.array([*range(20), 250], "uint8")
    expected = [first, x.astype("uint32"), np.clip(np.nan_to_num(f, nan=0), 0, 255).astype("uint8"), x < 200, x.max()]
    results = [np.zeros_like(np.asarray(array)) for array in expected]
    weft.build(converted())["main"](x, y, f, *results)
    for found in (
        Interpreter(weft.parse(STABLEHLO)).call("main", x, y, f),
        Interpreter(converted()).call("main", x, y, f),
        results,
    ):
        for one, wanted in zip(found, expected, strict=True):
            assert one.dtype == wanted.dtype
            np.testing.assert_array_equal(one, wanted)


def test_graph_with_a_registered_function() -> None:
    """It gets arrays of uint8, from graphs, from their lowered form in the interpreter, and compiled."""
    given: list[Any] = []

    @weft.register_func("test.halve", override=True)
    def halve(x: Any, y: Any) -> None:
        given.append((x.dtype, y.dtype))
        y[...] = x // 2

    builder: Any = G.BlockBuilder()
    x = G.var("x", ("n",), "uint8")
    with builder.function("main", [x]):
        with builder.dataflow():
            half = builder.call_dps("test.halve", [builder.emit(G.add(x, x))], ("n",), "uint8")
            out = builder.emit_output(builder.emit(G.cast(half, "uint16")))
        builder.emit_func_output(out)
    module = builder.get()
    a = np.array([1, 100, 127, 128, 255], "uint8")
    expected = ((a + a) // 2).astype("uint16")
    compiled = weft.build(module.clone())["main"]
    np.testing.assert_array_equal(Interpreter(module).call("main", a), expected)
    LowerGraphPass().apply(Context(), module)
    for call in (compiled, lambda *given: Interpreter(module).call("main", *given)):
        result = np.zeros_like(expected)
        call(a, result)
        np.testing.assert_array_equal(result, expected)
    assert given == [(np.dtype("uint8"), np.dtype("uint8"))] * 3
