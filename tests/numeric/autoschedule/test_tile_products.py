"""Products by tile registers: bytes of all signs and bf16, of any shape, on any CPU."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product as pairs
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
from weft.autoschedule.tile_products import tile_products
from weft.interp.compare import compare_modules
from weft.passes.lower_tir_to_low import LowerTirToLowPass
from weft.support.narrow_floats import round_bf16
from weft.support.target import Target
from weft.te import ops

AMX = "llvm -mcpu=sapphirerapids -num-threads=1"
WIDE = {"bfloat16": "float32", "int8": "int32", "uint8": "int32"}


@dataclass(frozen=True)
class Product:
    """A matrix product, with the letters of its dimensions in memory; `d` is a dimension of 2 elements."""

    m: int
    n: int
    k: int
    left: str = "mk"
    right: str = "kn"
    out: str = "mn"
    types: tuple[str, str] = ("bfloat16", "bfloat16")

    def __str__(self) -> str:
        return f"{self.m}x{self.n}x{self.k}-{self.left}-{self.right}-{'-'.join(self.types)}"

    def shape(self, letters: str) -> tuple[int, ...]:
        extents = {"d": 2, "m": self.m, "n": self.n, "k": self.k}
        return tuple(extents[letter] for letter in letters)

    def module(self, *, is_relu: bool = False) -> ModuleOp:
        letters = zip((self.left, self.right), self.types, "AB", strict=True)
        a, b = (te.placeholder(self.shape(d), t, name=n) for d, t, n in letters)
        k, wide = te.reduce_axis((0, self.k), name="k"), WIDE[self.types[0]]

        def element(*indices: Any) -> Any:
            at = {**dict(zip(self.out, indices, strict=True)), "k": k}
            x, y = a[tuple(at[d] for d in self.left)], b[tuple(at[d] for d in self.right)]
            return te.sum(x.astype(wide) * y.astype(wide), axis=k)

        result = te.compute(self.shape(self.out), element, name="C")
        return te.create_func([a, b, ops.relu(result) if is_relu else result], name="product")

    def arrays(self) -> tuple[Any, Any]:
        """Numbers that the types hold; those of bf16 as float32."""
        rng = np.random.default_rng(0)
        left, right = (
            rounded(rng.standard_normal(self.shape(letters)))
            if type_ == "bfloat16"
            else rng.integers(np.iinfo(type_).min, np.iinfo(type_).max, self.shape(letters), dtype=type_, endpoint=True)
            for letters, type_ in zip((self.left, self.right), self.types, strict=True)
        )
        return left, right

    def expected(self) -> Any:
        a, b = (array.astype(np.float64) for array in self.arrays())
        return np.einsum(f"{self.left},{self.right}->{self.out}", a, b)


def rounded(numbers: Any) -> Any:
    return np.vectorize(round_bf16, otypes=[np.float32])(numbers)


def passed(numbers: Any) -> Any:
    """Numbers that bf16 holds as their bits; bytes as they are."""
    if numbers.dtype != np.float32:
        return numbers
    return (np.ascontiguousarray(numbers).view(np.uint32) >> 16).astype(np.uint16)


def check_against_numpy(product: Product, target: str = AMX, *, is_relu: bool = False) -> None:
    expected = np.maximum(product.expected(), 0) if is_relu else product.expected()
    found = np.empty(expected.shape, WIDE[product.types[0]])
    library, trace = build_scheduled_for(target, product.module(is_relu=is_relu))
    assert "tiles_" in trace
    library["product"](*map(passed, product.arrays()), found)
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5 * product.k)


def scheduled(product: Product, target: str = AMX) -> weft.Schedule | None:
    sch = weft.Schedule(product.module())
    return sch if tile_products(sch, sch.get_block("C"), Target.parse(target)) else None


SIGNS = [*pairs(("int8", "uint8"), repeat=2)]
SMALL = [
    Product(17, 34, 8),
    Product(9, 48, 13),
    Product(13, 17, 19, "km", "nk"),
    Product(24, 18, 8, "dmk", "dkn", "dmn"),
    Product(12, 18, 34, "mdk", "dkn", "mdn"),
    Product(12, 33, 9, "dmk", "kn", "dmn"),
    *(Product(17, 34, 8, types=types) for types in SIGNS),
]


@pytest.mark.parametrize("product", first_tier(SMALL, SMALL[1], SMALL[4], SMALL[7]), ids=str)
def test_scheduled_loops_mean_the_same(product: Product) -> None:
    """Interpreted and compiled; the trace replays."""
    sch = scheduled(product)
    assert sch is not None
    assert "low.tile_product" in str(sch.mod)
    check_schedule(product.module(), sch)


SHAPES = [(8, 263, 5), (310, 16, 1), (13, 63, 71), (100, 130, 1023), (64, 300, 2048), (33, 257, 1000), (48, 17, 96)]


@pytest.mark.parametrize("shape", first_tier(SHAPES, (13, 63, 71), (33, 257, 1000)), ids=str)
@pytest.mark.parametrize("types", first_tier([("bfloat16", "bfloat16"), *SIGNS], ("bfloat16", "bfloat16"), SIGNS[1]))
def test_any_shape(shape: tuple[int, int, int], types: tuple[str, str]) -> None:
    check_against_numpy(Product(*shape, types=types))


@pytest.mark.parametrize("types", [("bfloat16", "bfloat16"), ("uint8", "int8")])
def test_with_an_activation(types: tuple[str, str]) -> None:
    check_against_numpy(Product(40, 64, 64, types=types), is_relu=True)


@pytest.mark.parametrize("target", [AMX, "llvm -mcpu=haswell -num-threads=1"])
def test_threads(target: str) -> None:
    """What one target schedules, every other one computes."""
    product = Product(256, 512, 256)
    found = np.empty((256, 512), np.float32)
    library, trace = build_scheduled_for(AMX.replace("threads=1", "threads=2"), product.module())
    assert "parallel" in trace
    library["product"](*map(passed, product.arrays()), found)
    np.testing.assert_allclose(found, product.expected(), rtol=1e-4, atol=1e-3)


def test_rows_known_at_run_time() -> None:
    m = te.size_var("m")
    a, b = te.placeholder((m, 70), "bfloat16", name="A"), te.placeholder((70, 50), "bfloat16", name="B")
    module = te.create_func([a, b, ops.matmul(a, b, out_dtype="float32")], name="product")
    library, trace = build_scheduled_for(AMX, module)
    assert "tiles_" in trace
    for rows in (1, 33, 64):
        product = Product(rows, 50, 70)
        found = np.empty((rows, 50), np.float32)
        library["product"](*map(passed, product.arrays()), found)
        np.testing.assert_allclose(found, product.expected(), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("target", [AMX, "c -mcpu=sapphirerapids", "llvm -mcpu=haswell", "llvm -mcpu=neoverse-v1", "c"])
@pytest.mark.parametrize("types", [("bfloat16", "bfloat16"), ("int8", "uint8")])
def test_lowered_step_by_step(target: str, types: tuple[str, str]) -> None:
    """The low level of every target computes the same in the interpreter."""
    sch = scheduled(Product(8, 33, 20, types=types))
    assert sch is not None
    low = sch.mod.clone()
    target = target if target != "c" else "c -mcpu=haswell"
    LowerTirToLowPass(target).apply(Context(), low)
    assert ("low.tile_product" in str(low)) == ("sapphirerapids" in target)
    difference = compare_modules(sch.mod, low)
    assert difference is None, difference


@pytest.mark.slow
@pytest.mark.parametrize("types", [("bfloat16", "bfloat16"), *SIGNS])
def test_c_code_of_such_a_schedule(types: tuple[str, str]) -> None:
    product = Product(17, 34, 20, types=types)
    sch = scheduled(product)
    assert sch is not None
    found = np.empty((17, 34), WIDE[types[0]])
    library = weft.build(sch.mod, target="c", default_schedule=False)
    library["product"](*map(passed, product.arrays()), found)
    np.testing.assert_allclose(found, product.expected(), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("target", ["llvm -mcpu=cascadelake", "llvm -mcpu=znver4", "c -mcpu=haswell"])
def test_where_the_rule_does_not_apply(target: str) -> None:
    assert scheduled(Product(32, 32, 32), target) is None


def test_infinities_and_nan_pass_through_padding() -> None:
    """Rows, steps and columns are padded by zeros in both factors."""
    product = Product(19, 33, 5)
    a, b = product.arrays()
    a[2, 3], b[4, 7] = np.inf, np.nan
    found = np.empty((19, 33), np.float32)
    library, _ = build_scheduled_for(AMX, product.module())
    library["product"](passed(a), passed(b), found)
    with np.errstate(invalid="ignore"):
        expected = np.isfinite(a @ b)
    np.testing.assert_array_equal(np.isfinite(found), expected)


def test_without_permission_the_registers_are_absent(monkeypatch: pytest.MonkeyPatch) -> None:
    from weft.support import machine

    monkeypatch.setattr(machine, "_may_use_tiles", lambda: False)
    features = machine.process_features.__wrapped__()
    assert not any(features[name] for name in features if name.startswith("amx"))
