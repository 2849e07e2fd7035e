"""Products of bf16 by instructions for pairs: sums in float32, of any shape, on any CPU."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from machines import build_scheduled_for
from schedule_checks import check_schedule
from tiers import first_tier
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp

import weft
from weft import te
from weft.autoschedule.dot_products import dot_products
from weft.interp.compare import compare_modules
from weft.passes.lower_tir_to_low import LowerTirToLowPass
from weft.support.narrow_floats import round_bf16
from weft.support.target import Target
from weft.te import ops

AVX512 = "llvm -mcpu=znver4 -num-threads=1"


@dataclass(frozen=True)
class Product:
    """A matrix product of bf16, with the letters of its dimensions in memory."""

    m: int
    n: int
    k: int
    left: str = "mk"
    right: str = "kn"

    def __str__(self) -> str:
        return f"{self.m}x{self.n}x{self.k}-{self.left}-{self.right}"

    def shape(self, letters: str) -> tuple[int, ...]:
        extents = {"b": 3, "m": self.m, "n": self.n, "k": self.k}
        return tuple(extents[letter] for letter in letters)

    @property
    def out(self) -> str:
        return "bmn" if "b" in self.left + self.right else "mn"

    def module(self) -> ModuleOp:
        a, b = (te.placeholder(self.shape(d), "bfloat16", name=n) for d, n in ((self.left, "A"), (self.right, "B")))
        k = te.reduce_axis((0, self.k), name="k")

        def element(*indices: Any) -> Any:
            at = {**dict(zip(self.out, indices, strict=True)), "k": k}
            x, y = a[tuple(at[d] for d in self.left)], b[tuple(at[d] for d in self.right)]
            return te.sum(x.astype("float32") * y.astype("float32"), axis=k)

        return te.create_func([a, b, te.compute(self.shape(self.out), element, name="C")], name="product")

    def arrays(self) -> tuple[Any, Any]:
        """Numbers that bf16 holds, as float32."""
        rng = np.random.default_rng(0)
        return rounded(rng.standard_normal(self.shape(self.left))), rounded(rng.standard_normal(self.shape(self.right)))


def rounded(numbers: Any) -> Any:
    return np.vectorize(round_bf16, otypes=[np.float32])(numbers)


def bits(numbers: Any) -> Any:
    """Numbers that bf16 holds as their bits."""
    return (np.ascontiguousarray(numbers, np.float32).view(np.uint32) >> 16).astype(np.uint16)


def check_against_numpy(product: Product, target: str = AVX512) -> None:
    a, b = product.arrays()
    expected = np.einsum(f"{product.left},{product.right}->{product.out}", a.astype(np.float64), b.astype(np.float64))
    found = np.empty(expected.shape, np.float32)
    library, _ = build_scheduled_for(target, product.module())
    library["product"](bits(a), bits(b), found)
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5 * product.k)


def scheduled(product: Product, target: str = AVX512) -> weft.Schedule | None:
    sch = weft.Schedule(product.module())
    return sch if dot_products(sch, sch.get_block("C"), Target.parse(target)) else None


SMALL = [
    Product(17, 34, 8),
    Product(9, 48, 13),
    Product(13, 17, 19, "km", "nk"),
    Product(12, 18, 8, "bmk", "bkn"),
    Product(12, 18, 9, "bmk", "kn"),
    Product(12, 18, 7, "mk", "bnk"),
]


@pytest.mark.parametrize("product", first_tier(SMALL, SMALL[1], SMALL[2], SMALL[4]), ids=str)
def test_scheduled_loops_mean_the_same(product: Product) -> None:
    """Interpreted and compiled; the trace replays."""
    sch = scheduled(product)
    assert sch is not None
    assert "low.tile_dot" in str(sch.mod)
    check_schedule(product.module(), sch)


@pytest.mark.parametrize("cpu", first_tier(["znver4", "haswell", "x86-64", "sapphirerapids"], "znver4", "haswell"))
@pytest.mark.parametrize("right", ["kn", "nk"])
def test_every_cpu(cpu: str, right: str) -> None:
    check_against_numpy(Product(35, 47, 66, right=right), f"llvm -mcpu={cpu} -num-threads=1")


SHAPES = [(1, 130, 70), (2, 63, 5), (7, 16, 1), (13, 63, 71), (100, 130, 1023), (64, 300, 2048)]


@pytest.mark.parametrize("shape", first_tier(SHAPES, (2, 63, 5), (13, 63, 71)), ids=str)
def test_any_shape(shape: tuple[int, int, int]) -> None:
    check_against_numpy(Product(*shape))


def test_extents_known_at_run_time() -> None:
    m, n, k = (te.size_var(name) for name in "mnk")
    a, b = te.placeholder((m, k), "bfloat16", name="A"), te.placeholder((k, n), "bfloat16", name="B")
    module = te.create_func([a, b, ops.matmul(a, b, out_dtype="float32")], name="product")
    library, trace = build_scheduled_for(AVX512, module)
    assert "dot_16x2_bf16" in trace
    for product in (Product(1, 1, 1), Product(33, 65, 19)):
        x, y = product.arrays()
        found = np.empty((product.m, product.n), np.float32)
        library["product"](bits(x), bits(y), found)
        np.testing.assert_allclose(found, x @ y, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("target", [AVX512, "llvm -mcpu=haswell", "llvm -mcpu=neoverse-v1", "c"])
def test_lowered_step_by_step(target: str) -> None:
    """What one target schedules, every other one computes: the interpreter says so of its low level."""
    sch = scheduled(Product(8, 33, 18))
    assert sch is not None
    low = sch.mod.clone()
    LowerTirToLowPass(target).apply(Context(), low)
    assert ("low.dot" in str(low)) == (target in (AVX512, "llvm -mcpu=neoverse-v1"))
    difference = compare_modules(sch.mod, low)
    assert difference is None, difference


@pytest.mark.slow
def test_c_code_of_such_a_schedule() -> None:
    product = Product(17, 34, 9)
    sch = scheduled(product)
    assert sch is not None
    a, b = product.arrays()
    found = np.empty((17, 34), np.float32)
    weft.build(sch.mod, target="c", default_schedule=False)["product"](bits(a), bits(b), found)
    np.testing.assert_allclose(found, a @ b, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("target", ["llvm -mcpu=cascadelake", "llvm -mcpu=haswell", "c"])
def test_where_the_rule_does_not_apply(target: str) -> None:
    assert scheduled(Product(32, 32, 32), target) is None


def test_infinities_and_nan_pass_through_padding() -> None:
    """Steps and columns are padded by zeros in both factors."""
    product = Product(9, 33, 5)
    a, b = product.arrays()
    a[2, 3], b[4, 7] = np.inf, np.nan
    found = np.empty((9, 33), np.float32)
    library, _ = build_scheduled_for(AVX512, product.module())
    library["product"](bits(a), bits(b), found)
    with np.errstate(invalid="ignore"):
        expected = np.isfinite(a @ b)
    np.testing.assert_array_equal(np.isfinite(found), expected)
