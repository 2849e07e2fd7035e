"""Products of narrow integers by instructions for dot products: exact, for any shape, sign and CPU."""

from __future__ import annotations

import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from machines import build_scheduled_for, runnable
from schedule_checks import check_schedule
from tiers import first_tier
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp

import weft
from weft import te
from weft.autoschedule.dot_products import dot_products
from weft.interp.compare import compare_modules
from weft.interp.interpreter import Interpreter
from weft.passes.lower_tir_to_low import LowerTirToLowPass
from weft.support.target import Target
from weft.te import ops

VNNI = "llvm -mcpu=cascadelake -num-threads=1"
CPUS = ("x86-64", "haswell", "skylake-avx512", "alderlake", "cascadelake", "sierraforest")
"""Halves of 128, 256 and 512 bits; bytes of 256 and 512 bits, unsigned by signed; bytes of all signs."""


@dataclass(frozen=True)
class Product:
    """A matrix product of integers, with the letters of its dimensions in memory."""

    m: int
    n: int
    k: int
    left: str = "mk"
    right: str = "kn"
    signs: str = "ss"
    bits: int = 8

    def __str__(self) -> str:
        return f"{self.m}x{self.n}x{self.k}-{self.left}-{self.right}-{self.signs}{self.bits}"

    @property
    def extents(self) -> dict[str, int]:
        return {"b": 3, "m": self.m, "n": self.n, "k": self.k}

    def module(self) -> ModuleOp:
        dtype = f"int{self.bits}"
        A = te.placeholder(tuple(self.extents[d] for d in self.left), dtype, name="A")
        B = te.placeholder(tuple(self.extents[d] for d in self.right), dtype, name="B")
        k = te.reduce_axis((0, self.k), name="k")
        out = "bmn" if "b" in self.left + self.right else "mn"

        def element(*indices: Any) -> Any:
            at = {**dict(zip(out, indices, strict=True)), "k": k}
            a, b = A[tuple(at[d] for d in self.left)], B[tuple(at[d] for d in self.right)]
            return te.sum(a.astype("int32") * b.astype("int32"), axis=k)

        C = te.compute(tuple(self.extents[d] for d in out), element, name="C")
        text = str(te.create_func([A, B, C], name="product"))
        for sign in self.signs:  # unsigned numbers are signed ones that are widened in another way
            text = text.replace("arith.extsi", f"arith.ext.{sign}i", 1)
        return weft.parse(text.replace("arith.ext.", "arith.ext"))

    def arrays(self, seed: int = 0) -> tuple[Any, Any]:
        rng = np.random.default_rng(seed)
        half = 1 << (self.bits - 1)
        dtype = np.dtype(f"int{self.bits}")
        shapes = [tuple(self.extents[d] for d in letters) for letters in (self.left, self.right)]
        left, right = (rng.integers(-half, half, shape).astype(dtype) for shape in shapes)
        return left, right

    def expected(self, a: Any, b: Any) -> Any:
        """Sums that wrap to 32 bits."""
        x, y = (
            array.view(f"uint{self.bits}") if sign == "u" else array
            for array, sign in zip((a, b), self.signs, strict=True)
        )
        out = "bmn" if "b" in self.left + self.right else "mn"
        return np.einsum(f"{self.left},{self.right}->{out}", x.astype(np.int64), y.astype(np.int64)).astype(np.int32)


def scheduled(product: Product, target: str = VNNI) -> weft.Schedule | None:
    sch = weft.Schedule(product.module())
    return sch if dot_products(sch, sch.get_block("C"), Target.parse(target)) else None


def check_against_numpy(product: Product, target: str, *arrays: Any) -> None:
    a, b = arrays or product.arrays()
    expected = product.expected(a, b)
    c = np.empty_like(expected)
    library, _ = build_scheduled_for(target, product.module())
    library["product"](a, b, c)
    np.testing.assert_array_equal(c, expected)


SMALL = [
    Product(17, 34, 8),
    Product(9, 48, 13, signs="us"),
    Product(8, 33, 18, signs="su"),
    Product(8, 40, 15, signs="uu"),
    Product(13, 17, 19, "km", "nk"),
    Product(12, 18, 8, "bmk", "bkn"),
    Product(12, 18, 9, "bmk", "kn"),
    Product(12, 18, 7, "mk", "bnk"),
    Product(12, 18, 21, bits=16),
]


@pytest.mark.parametrize("product", first_tier(SMALL, SMALL[1], SMALL[4], SMALL[6], SMALL[8]), ids=str)
def test_scheduled_loops_mean_the_same(product: Product) -> None:
    """Interpreted and compiled; the trace replays."""
    sch = scheduled(product)
    assert sch is not None
    assert "low.tile_dot" in str(sch.mod)
    check_schedule(product.module(), sch)


@pytest.mark.parametrize("cpu", CPUS)
@pytest.mark.parametrize("signs", first_tier(["ss", "us", "su", "uu"], "us"))
def test_every_cpu(cpu: str, signs: str) -> None:
    check_against_numpy(Product(35, 47, 66, signs=signs), f"llvm -mcpu={cpu} -num-threads=1")


@pytest.mark.parametrize("k", first_tier([1, 3, 5, 64, 1023], 3))
@pytest.mark.parametrize("right", ["kn", "nk"])
def test_any_number_of_steps(k: int, right: str) -> None:
    check_against_numpy(Product(31, 65, k, right=right), VNNI)


SHAPES = [(1, 130), (2, 63), (7, 16), (8, 1), (12, 3), (13, 63), (100, 16), (100, 130)]


@pytest.mark.parametrize("shape", first_tier(SHAPES, (1, 130), (13, 63)), ids=str)
def test_any_shape(shape: tuple[int, int]) -> None:
    check_against_numpy(Product(*shape, 70), VNNI)


@pytest.mark.parametrize("signs", ["ss", "us", "uu"])
@pytest.mark.parametrize("cpu", ["cascadelake", "haswell"])
def test_extremes(signs: str, cpu: str) -> None:
    """No sum in between saturates, as `vpmaddubsw` would."""
    product = Product(16, 32, 99, signs=signs)
    a, b = product.arrays()
    lib, _ = build_scheduled_for(f"llvm -mcpu={cpu} -num-threads=1", product.module())
    for left, right in ((-128, -128), (-128, 127), (127, -128), (-1, -1), (0, -128)):
        x, y = np.full_like(a, left), np.full_like(b, right)
        c = np.empty((16, 32), np.int32)
        lib["product"](x, y, c)
        np.testing.assert_array_equal(c, product.expected(x, y))


def test_sums_wrap() -> None:
    """140000 times 128 * 128 is more than 32 bits hold."""
    product = Product(8, 32, 140_000)
    a, b = product.arrays()
    check_against_numpy(product, VNNI, np.full_like(a, -128), np.full_like(b, -128))


def test_halves_wrap() -> None:
    """Two times 32768 * 32768 is as much as 32 bits hold, and one more."""
    product = Product(8, 32, 6, bits=16)
    a, b = product.arrays()
    check_against_numpy(product, VNNI, np.full_like(a, -(1 << 15)), np.full_like(b, -(1 << 15)))


def test_two_threads() -> None:
    check_against_numpy(Product(301, 300, 302), "llvm -mcpu=cascadelake -num-threads=2")
    check_against_numpy(Product(120, 300, 302, "bmk", "bkn"), "llvm -mcpu=cascadelake -num-threads=2")


def test_extents_known_at_run_time() -> None:
    m, n, k = (te.size_var(name) for name in "mnk")
    a, b = te.placeholder((m, k), "int8", name="A"), te.placeholder((k, n), "int8", name="B")
    module = te.create_func([a, b, ops.matmul(a, b, out_dtype="int32")], name="product")
    lib, _ = build_scheduled_for(VNNI, module)
    for shape in (Product(1, 1, 1), Product(33, 65, 18), Product(64, 64, 64)):
        x, y = shape.arrays()
        c = np.empty((shape.m, shape.n), np.int32)
        lib["product"](x, y, c)
        np.testing.assert_array_equal(c, shape.expected(x, y))


def test_what_follows_runs_on_the_tile() -> None:
    """A quantized layer: bias, scale and rectifier of the sums."""
    a, b = te.placeholder((40, 50), "int8", name="A"), te.placeholder((30, 50), "int8", name="B")
    bias = te.placeholder((30,), "int32", name="bias")
    c = ops.matmul(a, b, False, True, out_dtype="int32")
    d = te.compute((40, 30), lambda i, j: te.max((c[i, j] + bias[j]).astype("float32") * 0.01, 0.0), name="D")
    lib, trace = build_scheduled_for(VNNI, te.create_func([a, b, bias, d], name="layer"))
    assert "tensorize" in trace
    rng = np.random.default_rng(0)
    x, y = (rng.integers(-128, 128, shape).astype(np.int8) for shape in ((40, 50), (30, 50)))
    z, out = rng.integers(-1000, 1000, 30).astype(np.int32), np.empty((40, 30), np.float32)
    lib["layer"](x, y, z, out)
    sums = x.astype(np.int32) @ y.astype(np.int32).T + z
    np.testing.assert_array_equal(out, np.maximum(sums.astype(np.float32) * np.float32(0.01), 0))


@pytest.mark.parametrize(
    ("product", "target"),
    [
        (Product(32, 32, 32), "llvm -mcpu=cortex-a72 -num-threads=1"),
        (Product(32, 32, 32, signs="su"), "llvm -mcpu=apple-m1 -num-threads=1"),
        (Product(32, 32, 32), "c"),
        (Product(1, 32, 32), VNNI),
        (Product(32, 5, 32), VNNI),
        (Product(3, 16, 8), VNNI),
        (Product(32, 32, 32, signs="us", bits=16), VNNI),
    ],
    ids=str,
)
def test_where_the_rule_has_nothing_to_say(product: Product, target: str) -> None:
    """No such instructions, or too little to do."""
    if "apple" in target:
        # One flipped bit is what it takes.
        assert scheduled(product, target) is not None
        return
    assert scheduled(product, target) is None


@pytest.mark.parametrize("target", [VNNI, "llvm -mcpu=haswell", "llvm -mcpu=neoverse-v1", "llvm -mcpu=cortex-a72", "c"])
@pytest.mark.parametrize("signs", first_tier(["ss", "us", "uu"], "us"))
def test_lowered_step_by_step(target: str, signs: str) -> None:
    """What one target schedules, every other one computes: the interpreter says so of its low level."""
    product = Product(8, 33, 18, signs=signs)
    sch = scheduled(product)
    assert sch is not None
    low = sch.mod.clone()
    LowerTirToLowPass(target).apply(Context(), low)
    assert ("low.dot" in str(low)) == (target not in ("llvm -mcpu=haswell", "llvm -mcpu=cortex-a72", "c"))
    difference = compare_modules(sch.mod, low)
    assert difference is None, difference


@pytest.mark.slow
def test_c_code_of_such_a_schedule() -> None:
    sch = scheduled(replace(SMALL[0], signs="us"))
    assert sch is not None
    a, b = SMALL[0].arrays()
    expected = replace(SMALL[0], signs="us").expected(a, b)
    c = np.empty_like(expected)
    weft.build(sch.mod, target="c", default_schedule=False)["product"](a, b, c)
    np.testing.assert_array_equal(c, expected)


def test_the_example_by_hand() -> None:
    sys.path.insert(0, str(Path(__file__).parents[3] / "examples"))
    try:
        from matmul_int8 import scheduled as by_hand
    finally:
        sys.path.pop(0)
    sch = by_hand(12, 64, 16)
    a, b = te.placeholder((12, 16), "int8", name="A"), te.placeholder((16, 64), "int8", name="B")
    check_schedule(te.create_func([a, b, ops.matmul(a, b, out_dtype="int32", name="C")], name="product"), sch)


@pytest.mark.parametrize("signs", first_tier(["ss", "us"], "ss"))
def test_a_long_reduction_runs_in_pieces(signs: str) -> None:
    """A panel stays in the second cache; results are summed in memory."""
    product = Product(8, 16, 801, signs=signs)
    sch = scheduled(product, f"{VNNI} -l2-bytes=4096")
    assert sch is not None
    assert "s8u8_global" in str(sch.trace) or "u8s8_global" in str(sch.trace)
    check_schedule(product.module(), sch)
    check_against_numpy(Product(20, 70, 9001, signs=signs), VNNI)


@pytest.mark.parametrize("cpu", ["haswell", "znver4"])
@pytest.mark.parametrize(
    ("left", "right"),
    [("ik", "j"), ("i", "kj"), ("ik", "kkj"), ("ikk", "kj")],
)
def test_steps_that_index_no_dimension_or_several_of_a_factor(left: str, right: str, cpu: str) -> None:
    """The rule packs along the one dimension that the steps index: it leaves others alone."""
    A, B = (te.placeholder((64,) * len(at), "int8", name=name) for name, at in (("A", left), ("B", right)))
    k = te.reduce_axis((0, 64), name="k")

    def element(i: te.IterVar, j: te.IterVar) -> te.Expr:
        place = {"i": i, "j": j, "k": k}
        a, b = (tensor[tuple(place[c] for c in at)] for tensor, at in ((A, left), (B, right)))
        return te.sum(te.cast(a, "int32") * te.cast(b, "int32"), axis=k)

    module = te.create_func([A, B, te.compute((64, 64), element, name="C")])
    library = weft.build(module, target=f"llvm -mcpu={cpu}")
    assert library.trace is not None
    assert "sched.tensorize" not in str(library.trace)


LOW_BITS = [(lanes, width) for lanes in (4, 24) for width in (1, 4, 7)]


def low_bits(lanes: int, width: int) -> str:
    """Sums of products of signed bytes and the low bits of bytes, added to C twice."""
    b, c = f"memref<{4 * lanes}xi8>", f"memref<{lanes}xi32>"
    dot = f"low.tile_dot %a as si8, %b as ui{width} onto %c {{lanes = {lanes} : i64, steps = 4 : i64}}"
    return f"""
      func.func @dots_{lanes}_{width}(%A: memref<4xi8>, %B: {b}, %C: {c}) {{
        %c0 = arith.constant 0 : index
        %a = low.access_ptr %A[%c0] read : memref<4xi8>
        %b = low.access_ptr %B[%c0] read : {b}
        %c = low.access_ptr %C[%c0] readwrite : {c}
        {dot}
        {dot}
        func.return
      }}"""


@pytest.mark.parametrize("target", (*(f"llvm -mcpu={cpu}" for cpu in ("haswell", "x86-64-v2", "znver4")), "c"))
def test_low_bits_of_bytes_are_exact(target: str) -> None:
    """Instructions that saturate to 16 bits give the extreme sums and ignore the high bits; so does the interpreter."""
    module = weft.parse("".join(low_bits(*case) for case in LOW_BITS))
    library = weft.build(module, target=runnable(target))
    for lanes, width in LOW_BITS:
        rng, name = np.random.default_rng(lanes), f"dots_{lanes}_{width}"
        b = rng.integers(-128, 128, 4 * lanes).astype(np.int8)
        b[: 2 * lanes] |= (1 << width) - 1
        c = rng.integers(-9, 9, lanes).astype(np.int32)
        for a in (np.full(4, -128, np.int8), np.full(4, 127, np.int8), rng.integers(-128, 128, 4).astype(np.int8)):
            low = (b & ((1 << width) - 1)).astype(np.int32).reshape(lanes, 4)
            expected, found, interpreted = c + 2 * (low * a).sum(axis=1), c.copy(), c.copy()
            library[name](a, b, found)
            Interpreter(module).call(name, a, b, interpreted)
            np.testing.assert_array_equal(found, expected)
            np.testing.assert_array_equal(interpreted, expected)
