"""Types that elements have in memory only: floats of 8 and 4 bits and integers of 4 convert as `ml_dtypes` does."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cuda_on_cpu import ORDERS, cuda_on_cpu
from every_way import bits, check_every_way
from exported_programs import needs_compiler
from tiers import first_tier

import weft
from weft import graph as G
from weft import te
from weft.analysis.structural_equality import structural_equal
from weft.dialects.element_types import STORED
from weft.interp.interpreter import Interpreter
from weft.support.errors import CompileError

ml_dtypes: Any = pytest.importorskip("ml_dtypes")
FLOATS = sorted(name for name in STORED if name.startswith("float"))
OTHERS = ["int8", "uint16", "int32", "float16", "float32", "float64", "bool"]


def dtype_of(name: str) -> Any:
    return np.dtype(getattr(ml_dtypes, name)) if name in STORED else np.dtype(name)


def codes(name: str) -> Any:
    """All numbers of a type of storage."""
    bits = int(name.lstrip("abcdefghijklmnopqrstuvwxyz")[0])
    return np.arange(1 << bits, dtype=np.uint8).view(dtype_of(name))


def float_numbers() -> Any:
    """Numbers of all sizes, ties between neighbours, and what is no number."""
    rng = np.random.default_rng(5)
    sized = rng.normal(size=3000) * 2.0 ** rng.integers(-24, 20, 3000)
    ties = [np.asarray(codes(name), np.float32) for name in FLOATS]
    ties = [(each[1:].astype(float) + each[:-1].astype(float)) / 2 for each in ties]
    any_bits = rng.integers(0, 1 << 32, 500, np.uint32).view(np.float32)
    special = [np.nan, -np.nan, np.inf, -np.inf, 0.0, -0.0, 1e-40, -1e-40, 3e38, 464, 480, 57344 * 1.07, 61440, 248]
    with np.errstate(invalid="ignore"):
        return np.concatenate([sized, *ties, any_bits, special]).astype(np.float32)


def converted(x: Any, name: str) -> Any:
    with np.errstate(all="ignore"):
        # `ml_dtypes` has no casts between some of its types: both hold few of the numbers of float32.
        is_direct = np.can_cast(x.dtype, dtype_of(name), "unsafe")
        return (x if is_direct else x.astype(np.float32)).astype(dtype_of(name))


def compare_casts(sources: list[Any], names: list[str], targets: tuple[str, ...]) -> None:
    """Each array cast to each type: what every way to run it gives is what `ml_dtypes` gives."""
    placed: list[Any] = []
    results: list[Any] = []
    expected: list[Any] = []
    for number, source in enumerate(sources):
        placed.append(te.placeholder(source.shape, source.dtype.name, f"x{number}"))
        for name in names:
            read = lambda i, x=placed[-1], name=name: x[i].astype(name)  # noqa: E731
            results.append(te.compute(source.shape, read, name=f"y{number}_{name}"))
            expected.append(converted(source, name))
    check_every_way([*placed, *results], sources, expected, targets)


@pytest.mark.parametrize("name", first_tier(FLOATS, "float8_e4m3fn"))
def test_every_float(name: str) -> None:
    compare_casts([codes(name)], ["float32", "float64", "float16"], ("llvm", "c"))


@pytest.mark.parametrize("name", first_tier(FLOATS, "float8_e4m3fnuz"))
def test_rounding(name: str) -> None:
    x = float_numbers()
    compare_casts([x], [name], ("llvm", "c"))
    compare_casts([x.astype(np.float64)], [name], ())


def test_integers_of_4_and_2_bits() -> None:
    bytes_ = np.arange(256, dtype=np.uint8)
    wide = np.arange(-300, 300, dtype=np.int32)
    compare_casts(
        [bytes_.view(dtype_of(name)) for name in ("int2", "int4", "uint2", "uint4")],
        ["int8", "uint16", "float32"],
        ("c",),
    )
    compare_casts([wide], ["int2", "int4", "uint2", "uint4"], ("llvm", "c"))
    signed = np.arange(-128, 128, dtype=np.float32)  # also where no sign is stored
    compare_casts([signed], ["int2", "int4", "uint2", "uint4"], ("llvm", "c"))


@pytest.mark.slow
@pytest.mark.parametrize("source", sorted(STORED))
def test_every_pair(source: str) -> None:
    """Numbers that every type holds."""
    least = 1 if source == "float8_e8m0fnu" else 0
    x = np.array([least, 1, 2, 3, 4, 6, 1, least], np.float32).astype(dtype_of(source))
    compare_casts([x], [name for name in [*sorted(STORED), *OTHERS] if name != source], ("llvm", "c"))


@pytest.mark.slow
def test_on_kernels() -> None:
    pytest.importorskip("pyopencl")
    for name in sorted(STORED):
        compare_casts([codes(name)], ["float32"], ("opencl",))
    compare_casts([float_numbers()], FLOATS, ("opencl",))
    with cuda_on_cpu(ORDERS[2]):
        compare_casts([float_numbers()], FLOATS, ("cuda",))


def test_scales_and_choices() -> None:
    """A product with weights of four bits, each row with its scale: what quantized layers compute."""
    rng = np.random.default_rng(2)
    w, s = rng.integers(-8, 7, (24, 16)).astype(dtype_of("int4")), rng.uniform(0.5, 2, 24).astype("float8_e5m2")
    x = rng.integers(-4, 5, (8, 16)).astype("float8_e4m3fn")
    W, S, X = (te.placeholder(a.shape, a.dtype.name, n) for a, n in ((w, "W"), (s, "S"), (x, "X")))
    product = te.ops.dense(X, W, out_dtype="float32")
    scaled = te.compute((8, 24), lambda i, j: product[i, j] * S[j].astype("float32"), name="Y")
    chosen = te.compute((8, 16), lambda i, j: te.if_then_else(i < 4, X[i, j], X[7 - i, j]), name="Z")
    bordered = te.ops.pad(X, 1, constant_values=-0.75)
    expected = [(x.astype("float32") @ w.astype("float32").T) * s.astype("float32"), x.copy()]
    expected[1][4:] = x[3::-1]
    expected.append(np.pad(x.astype("float32"), 1, constant_values=-0.75).astype(x.dtype))
    check_every_way([W, S, X, scaled, chosen, bordered], [w, s, x], expected)


def test_graph_and_constants() -> None:
    weights = np.linspace(-3, 3, 12).reshape(4, 3).astype("float8_e4m3fn")
    builder: Any = G.BlockBuilder()
    x = G.var("x", ("n", 4), "float8_e5m2")
    with builder.function("main", [x]):
        with builder.dataflow():
            w = G.transpose(G.transpose(G.const(weights)))
            y = G.matmul(x, w, out_dtype="float32")
            out = builder.emit_output(builder.emit(G.cast(y, "float4_e2m1fn")))
        builder.emit_func_output(out)
    module = builder.get()
    text = str(module)
    assert "tensor<?x4xf8E5M2, #graph.dims<n>>" in text
    assert str(weft.parse(text)) == text
    given = np.array([[1, 0, 0.5, 2], [0, 1, 0, -1]], "float8_e5m2")
    expected = converted(given.astype("float32") @ weights.astype("float32"), "float4_e2m1fn")
    np.testing.assert_array_equal(bits(Interpreter(module).call("main", given)), bits(expected))
    np.testing.assert_array_equal(bits(weft.build(module)["main"](given)), bits(expected))


@needs_compiler
def test_exported_library(tmp_path: Path) -> None:
    """Loaded again, it takes the same arrays; the header has bytes."""
    A, U, s = te.placeholder((8,), "float8_e4m3fn", "A"), te.placeholder((8,), "uint8", "U"), te.var("s", "uint16")
    C = te.compute((8,), lambda i: A[i].astype("float32") + U[i].astype("float32") * s.astype("float32"), name="C")
    D = te.compute((8,), lambda i: C[i].astype("float8_e5m2"), name="D")
    library = weft.build(te.create_func([A, U, s, D]))
    library.export(tmp_path / "library.so")
    library.export(tmp_path / "library.h")
    a, u = np.linspace(-400, 400, 8).astype("float8_e4m3fn"), np.arange(240, 248).astype("uint8")
    found = weft.load(tmp_path / "library.so")["main"](a, u, 60000)
    wide = a.astype("float32") + u.astype("float32") * np.float32(60000)
    np.testing.assert_array_equal(bits(found), bits(converted(wide, "float8_e5m2")))
    header = " ".join((tmp_path / "library.h").read_text().split())
    assert (
        "const uint8_t *WEFT_RESTRICT A, const uint8_t *WEFT_RESTRICT U, uint16_t s, uint8_t *WEFT_RESTRICT D" in header
    )
    assert "A: float8_e4m3fn[8]" in header


SCRIPT = """
from weft.script import ir as I, tir as T

@I.ir_module
class Module:
    @T.prim_func
    def f(A: T.Buffer((16,), "float8_e4m3fn"), B: T.Buffer((16,), "int4"), C: T.Buffer((16,), "float8_e5m2")):
        for i in range(16):
            with T.block("C"):
                vi = T.axis.spatial(16, i)
                C[vi] = T.float8_e5m2(T.float32(A[vi]) * T.float32(B[vi]))
"""


def test_script() -> None:
    module = weft.script.parse(SCRIPT)
    assert structural_equal(weft.script.parse(weft.script.print_script(module)), module)
    a, b = np.arange(16).astype("float8_e4m3fn"), np.arange(-8, 8).astype(dtype_of("int4"))
    result = np.zeros(16, "float8_e5m2")
    weft.build(module)["f"](a, b, result)
    np.testing.assert_array_equal(
        bits(result), bits(converted(a.astype("float32") * b.astype("float32"), "float8_e5m2"))
    )


def test_what_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    A, N = te.placeholder((4,), "float8_e4m3fn", "A"), te.placeholder((4,), "int4", "N")
    k = te.reduce_axis((0, 4), "k")
    for make, message in (
        (
            lambda: A[0] + A[1],
            r"`\+` takes no float8_e4m3fn, which is stored only: cast `A\[0\]`, for example",
        ),
        (lambda: N[0] < N[1], r"`<` takes no int4, which is stored only"),
        (lambda: te.exp(A[0]), r"exp takes no float8_e4m3fn"),
        (lambda: te.max(A[k], axis=k), r"te.max takes no float8_e4m3fn"),
        (lambda: te.argmin(N[k], axis=k), r"te.argmin takes no int4"),
        (
            lambda: te.if_then_else(te.const(True), A[0], 449.0),
            r"449.0 beside .* beyond the greatest float8_e4m3fn, 448",
        ),
        (lambda: te.select(te.const(True), N[0], 8), r"8 beside `N\[0\]` does not fit int4, which holds -8 to 7"),
        (lambda: te.var("v", "int4"), r"variable v: elements of arrays alone are int4, numbers are not"),
        (lambda: te.ops.relu(A), r"`max` takes no float8_e4m3fn"),
        (lambda: te.ops.sum(N), r"te.sum takes no int4"),
    ):
        with pytest.raises(CompileError, match=message):
            make()
    module = te.create_func([A, te.compute((4,), lambda i: A[i].astype("float32"), name="B")])
    call = weft.build(module)["main"]
    result = np.zeros(4, "float32")
    with pytest.raises(TypeError, match=r"'A'.: expected elements of type float8_e4m3fn, got uint8"):
        call(np.zeros(4, np.uint8), result)
    monkeypatch.setitem(sys.modules, "ml_dtypes", None)
    message = r"type float8_e4m3fn, got uint8: arrays of float8_e4m3fn need the package ml_dtypes: pip install 'weft\[t"
    for refuse in (call, lambda *given: Interpreter(module).call("main", *given)):
        with pytest.raises(TypeError, match=message):
            refuse(np.zeros(4, np.uint8), result)
