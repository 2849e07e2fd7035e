"""The rule for contractions: any shape, type and order of dimensions computes what the plain loops do."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import pytest
from schedule_checks import check_schedule
from tiers import first_tier
from xdsl.dialects.builtin import ModuleOp

import weft
from weft import te
from weft.autoschedule.contraction import contraction, vector_times_matrix
from weft.support.target import Target

ONE_THREAD = "llvm -num-threads=1"
AVX512 = "llvm -mcpu=cascadelake -num-threads=1"


@dataclass(frozen=True)
class Product:
    """A matrix product, with the letters of its dimensions in memory: `left` of m and k, `right` of k and n."""

    m: Any
    n: Any
    k: Any
    left: str = "mk"
    right: str = "kn"
    dtype: str = "float32"
    wide: str = ""
    relu: bool = False

    def module(self) -> ModuleOp:
        extents = {"b": 3, "m": self.m, "n": self.n, "k": self.k}
        A = te.placeholder(tuple(extents[d] for d in self.left), self.dtype, name="A")
        B = te.placeholder(tuple(extents[d] for d in self.right), self.dtype, name="B")
        k = te.reduce_axis((0, self.k), name="k")
        out = "bmn" if "b" in self.left + self.right else "mn"

        def element(*indices: Any) -> Any:
            at = {**dict(zip(out, indices, strict=True)), "k": k}
            a, b = A[tuple(at[d] for d in self.left)], B[tuple(at[d] for d in self.right)]
            return te.sum((a.astype(self.wide) * b.astype(self.wide)) if self.wide else a * b, axis=k)

        shape = tuple(extents[d] for d in out)
        C = te.compute(shape, element, name="C")
        if not self.relu:
            return te.create_func([A, B, C], name="product")
        bias = te.placeholder((self.n,), self.wide or self.dtype, name="bias")
        D = te.compute(shape, lambda *indices: te.max(C[indices] + bias[indices[-1]], 0), name="D")
        return te.create_func([A, B, bias, D], name="product")

    def expected(self, a: Any, b: Any) -> Any:
        out = "bmn" if "b" in self.left + self.right else "mn"
        wide = self.wide or ("float64" if self.dtype.startswith("float") else self.dtype)
        return np.einsum(f"{self.left},{self.right}->{out}", a.astype(wide), b.astype(wide))


def scheduled(module: ModuleOp, target: str = ONE_THREAD) -> weft.Schedule | None:
    sch = weft.Schedule(module)
    return sch if contraction(sch, sch.get_block("C"), Target.parse(target)) else None


SMALL = [
    Product(30, 33, 5),
    Product(30, 33, 5, relu=True),
    Product(7, 17, 3),
    Product(2, 63, 9, relu=True),
    Product(31, 20, 4, "km", "nk"),
    Product(25, 17, 3, "bmk", "bkn", relu=True),
    Product(25, 17, 3, "bmk", "kn"),
    Product(26, 19, 3, "mk", "bnk"),
    Product(24, 18, 6, dtype="int8", wide="int32"),
    Product(24, 18, 6, dtype="float16", wide="float32"),
    Product(24, 18, 6, dtype="float64"),
]


@pytest.mark.parametrize("product", SMALL, ids=str)
@pytest.mark.parametrize("target", first_tier([ONE_THREAD, "llvm -num-threads=3"], "llvm -num-threads=3"))
def test_interpreted_and_compiled(product: Product, target: str) -> None:
    module = product.module()
    sch = scheduled(module, target)
    assert sch is not None
    check_schedule(module, sch)


SIZES = [
    (1, 3, 17),
    (3, 17, 63),
    (17, 63, 65),
    (63, 65, 127),
    (65, 127, 1),
    (127, 17, 3),
    (1023, 17, 5),
    (64, 64, 2050),
]


@pytest.mark.parametrize("size", SIZES, ids=str)
@pytest.mark.parametrize("dtype", first_tier(["float32", "float64", "int32", "int8"], "float32", "int8"))
def test_sizes_against_numpy(size: tuple[int, int, int], dtype: str) -> None:
    product = Product(*size, dtype=dtype, wide="int32" if dtype == "int8" else "")
    check_against_numpy(product)


@pytest.mark.parametrize("left", ["mk", "km", "bmk", "kbm"])
@pytest.mark.parametrize("right", first_tier(["kn", "nk", "bkn", "nbk"], "kn", "nbk"))
def test_orders_against_numpy(left: str, right: str) -> None:
    check_against_numpy(Product(29, 70, 67, left, right))


def check_against_numpy(product: Product, target: str = "llvm -num-threads=2") -> None:
    sch = scheduled(product.module(), target)
    assert sch is not None
    random = np.random.default_rng(0)
    extents = {"b": 3, "m": product.m, "n": product.n, "k": product.k}
    a, b = (
        random.integers(-100, 100, tuple(extents[d] for d in dims)).astype(product.dtype)
        for dims in (product.left, product.right)
    )
    expected = product.expected(a, b)
    result = np.full(expected.shape, 77, product.wide or product.dtype)
    weft.build(sch.mod, target=target)["product"](a, b, result)
    np.testing.assert_allclose(result, expected, rtol=1e-5)


def test_more_than_two_dimensions_of_each_kind() -> None:
    A, B = te.placeholder((2, 5, 7, 4), "float32", name="A"), te.placeholder((7, 4, 2, 19), "float32", name="B")
    k, l = te.reduce_axis((0, 7), name="k"), te.reduce_axis((0, 4), name="l")  # noqa: E741
    C = te.compute((2, 5, 2, 19), lambda i, j, p, q: te.sum(A[i, j, k, l] * B[k, l, p, q], axis=[k, l]), name="C")
    module = te.create_func([A, B, C])
    sch = scheduled(module)
    assert sch is not None
    check_schedule(module, sch)


def test_what_is_packed_next_is_asked_for() -> None:
    """Rows of the right factor, pieces along the lines of others; the next tile of the results."""
    asked = {}
    for left, right in (("mk", "kn"), ("km", "nk")):
        sch = scheduled(Product(1024, 1024, 1024, left, right).module(), AVX512)
        assert sch is not None
        asked[left] = str(sch.trace)
    assert '%b_global {key = "prefetch", value = [["read", 0, [8, 0]]]}' in asked["mk"]
    assert '%c_local {key = "prefetch", value = [["write", 0, [6, 0]]]}' in asked["mk"]
    assert '%b_global {key = "prefetch", value = [["read", 0, [0, 64]]]}' in asked["km"]
    assert '%a_global {key = "prefetch", value = [["read", 0, [0, 64]], ["write", 0, [0, 16]]]}' in asked["km"]


@pytest.mark.parametrize(
    ("size", "dtype", "target", "asked"),
    [
        (1024, "float32", AVX512, True),
        (1024, "float64", AVX512, True),
        (512, "float32", AVX512, True),
        (64, "float32", AVX512, False),  # panels stay in the first cache
        (1024, "float32", "llvm -mcpu=znver4 -mtriple=x86_64-linux", False),  # keeps up with streams by itself
        (1024, "float32", "llvm -mcpu=haswell -mtriple=x86_64-linux", False),  # half a line with each load
        (1024, "float32", "llvm -mcpu=apple-m1 -mtriple=arm64-apple-macosx", False),
    ],
)
def test_panels_that_stream_from_l2_are_asked_for(size: int, dtype: str, target: str, asked: bool) -> None:
    sch = scheduled(Product(size, size, size, dtype=dtype).module(), target)
    assert sch is not None
    assert ('annotate %c {key = "prefetch", value = [["read", 1, [0, 0, 16]]]}' in str(sch.trace)) is asked


def test_a_producer_is_computed_while_it_is_packed() -> None:
    A, W = te.placeholder((26, 5), "float32", name="A"), te.placeholder((5, 21), "int8", name="W")
    B = te.compute((5, 21), lambda i, j: W[i, j].astype("float32") * 0.5, name="B")
    k = te.reduce_axis((0, 5), name="k")
    C = te.compute((26, 21), lambda i, j: te.sum(A[i, k] * B[k, j], axis=k), name="C")
    module = te.create_func([A, W, C])
    sch = scheduled(module)
    assert sch is not None
    assert "B[" not in str(sch.mod)
    check_schedule(module, sch)


def test_a_matrix_times_itself() -> None:
    A = te.placeholder((26, 26), "float32", name="A")
    k = te.reduce_axis((0, 26), name="k")
    C = te.compute((26, 26), lambda i, j: te.sum(A[i, k] * A[k, j], axis=k), name="C")
    module = te.create_func([A, C])
    sch = scheduled(module)
    assert sch is not None
    check_schedule(module, sch)


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("columns", [640, 1001])
def test_a_vector_times_a_large_matrix(threads: int, columns: int) -> None:
    product = Product(1, columns, 19)
    module = product.module()
    target = Target.parse(f"llvm -num-threads={threads} -l2-bytes=1024")
    sch = weft.Schedule(module)
    assert vector_times_matrix(sch, sch.get_block("C"), target)
    check_schedule(module, sch)


def test_a_vector_times_a_matrix_that_is_small_or_not_alone() -> None:
    target = Target.parse("llvm -num-threads=1 -l2-bytes=65536")
    for product in (Product(1, 640, 19), Product(2, 640, 190), Product(1, 640, 190, "mk", "nk")):
        sch = weft.Schedule(product.module())
        assert not vector_times_matrix(sch, sch.get_block("C"), target), product


def test_not_applicable() -> None:
    A, B = te.placeholder((8, 8), "float32", name="A"), te.placeholder((8, 8), "float32", name="B")
    k = te.reduce_axis((0, 8), name="k")
    shapes: dict[str, Any] = {
        "no sum": lambda i, j: A[i, j] * B[i, j],
        "no product": lambda i, j: te.sum(A[i, k] + B[k, j], axis=k),
        "another combiner": lambda i, j: te.max(A[i, k] * B[k, j], axis=k),
        "both have the column": lambda i, j: te.sum(A[k, j] * B[k, j] * 1.0, axis=k),
        "the same matrix twice, transposed": lambda i, j: te.sum(A[i, k] * A[j, k], axis=k),
    }
    for name, element in shapes.items():
        C = te.compute((8, 8), element, name="C")
        assert scheduled(te.create_func([A, B, C])) is None, name


@pytest.mark.parametrize("size", [(1, 1, 1), (31, 70, 5), (6, 64, 300), (13, 3, 0), (0, 5, 5)], ids=str)
def test_extents_known_at_run_time(size: tuple[int, int, int]) -> None:
    library = _of_any_size()
    m, n, k = size
    random = np.random.default_rng(0)
    a, b = random.integers(-100, 100, (m, k)).astype("float32"), random.integers(-100, 100, (k, n)).astype("float32")
    result = np.full((m, n), 77, "float32")
    library["product"](a, b, result)
    np.testing.assert_array_equal(result, a @ b)


@cache
def _of_any_size() -> Any:
    sch = scheduled(Product(te.var("m"), te.var("n"), te.var("k")).module())
    assert sch is not None
    return weft.build(sch.mod, target=ONE_THREAD)
