"""Every combiner of reductions, on every element type and many small sizes, as this host compiles it.

Loop vectorizers and unrollers make different code of each size; a module of one combiner has a function for each.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from tiers import first_tier

from weft.driver.build import build
from weft.driver.programs import parse

SIZES = range(1, 67)
WIDTHS = (1, 3, 4, 8)
"""Results of a function: one, and some that a vectorizer may put into lanes."""
FEW = (1, 2, 4, 7, 16, 31, 66)
FLOATS = ("f32", "f64", "f16", "bf16")
INTEGERS = ("i8", "i16", "i32", "i64")
COMBINERS: dict[str, tuple[str, Callable[..., Any]]] = {
    "addf": ("-0.0", np.add.reduce),
    "mulf": ("1.0", np.multiply.reduce),
    "maximumf": ("-0.0", np.maximum.reduce),
    "minimumf": ("-0.0", np.minimum.reduce),
    "maxnumf": ("-0.0", np.fmax.reduce),
    "minnumf": ("-0.0", np.fmin.reduce),
    "addi": ("0", np.add.reduce),
    "muli": ("1", np.multiply.reduce),
    "maxsi": ("0", np.maximum.reduce),
    "minsi": ("0", np.minimum.reduce),
    "maxui": ("0", np.maximum.reduce),
    "minui": ("-1", np.minimum.reduce),
    "andi": ("-1", np.bitwise_and.reduce),
    "ori": ("0", np.bitwise_or.reduce),
    "xori": ("0", np.bitwise_xor.reduce),
}
OUTER, INNER = "[%vk, %vi]", "[%vi, %vk]"
FUNCTION = """
func.func @{name}(%A: memref<{shape}x{type}>, %O: memref<{n}x{type}>) {{
  %start = arith.constant {start} : {type}
  tir.for %{first} in {extents[0]} {{ tir.for %{second} in {extents[1]} {{
    tir.block "B" iters(%vi: spatial<{n}>, %vk: reduce<{k}>) = [%i, %k] {{
      tir.init {{ memref.store %start, %O[%vi] : memref<{n}x{type}> }}
      %a = memref.load %A{place} : memref<{shape}x{type}>
      %o = memref.load %O[%vi] : memref<{n}x{type}>
      %s = arith.{op} %o, %a : {type}
      memref.store %s, %O[%vi] : memref<{n}x{type}>
    }}
  }} }}
  func.return
}}
"""


def function(op: str, type_: str, n: int, k: int, place: str) -> str:
    """Combine `k` elements for each of `n` results, along the first axis with the reduction outside, or the last."""
    outside = place == OUTER
    return FUNCTION.format(
        name=f"f{n}_{k}",
        shape=f"{k}x{n}" if outside else f"{n}x{k}",
        type=type_,
        n=n,
        k=k,
        start=COMBINERS[op][0],
        first="k" if outside else "i",
        second="i" if outside else "k",
        extents=(k, n) if outside else (n, k),
        place=place,
        op=op,
    )


def dtype_of(op: str, type_: str) -> np.dtype[Any]:
    if type_ == "bf16":
        return np.dtype(pytest.importorskip("ml_dtypes").bfloat16)
    kind = "float" if type_.startswith("f") else "uint" if op.endswith("ui") else "int"
    return np.dtype(kind + type_.strip("fi"))


def check(op: str, type_: str, sizes: list[tuple[int, int]], place: str, *, default_schedule: bool) -> None:
    dtype, reference = dtype_of(op, type_), COMBINERS[op][1]
    axis = 0 if place == OUTER else 1
    module = parse("".join(function(op, type_, n, k, place) for n, k in sizes))
    library = build(module, "llvm -num-threads=1", default_schedule=default_schedule)
    generator = np.random.default_rng(len(sizes))
    for n, k in sizes:
        # Sums and products of these are exact; the last element of a row is the greatest or the least.
        numbers = generator.choice([-1, 1] if op.startswith("mul") else [-3, -2, -1, 1, 2, 3], (n, k))
        if not op.startswith("mul"):
            numbers[:, -1] = 4 if "max" in op else -4
        a = np.ascontiguousarray(numbers.T if axis == 0 else numbers).astype(dtype)
        start = np.full(n, float(COMBINERS[op][0])).astype(np.int64 if dtype.kind in "iu" else dtype).astype(dtype)
        expected = reference([reference(a, axis=axis, dtype=dtype), start], axis=0, dtype=dtype)
        result = np.zeros(n, dtype)
        passed = dtype if dtype.kind != "u" else np.dtype(f"int{8 * dtype.itemsize}")
        library[f"f{n}_{k}"](a.view(passed), result.view(passed))
        np.testing.assert_array_equal(result, expected, err_msg=f"{op} {type_}: {k} elements for each of {n}")


CASES = [(op, type_) for op in COMBINERS for type_ in (FLOATS if op.endswith("f") else INTEGERS)]
FIRST = [("maxnumf", "f32"), ("minnumf", "f64"), ("addi", "i8"), ("maximumf", "f32")]


@pytest.mark.parametrize("case", first_tier(CASES, *FIRST), ids="-".join)
def test_few_sizes(case: tuple[str, str]) -> None:
    check(*case, [(n, k) for n in (1, 4) for k in FEW], OUTER, default_schedule=False)
    check(*case, [(3, k) for k in FEW], INNER, default_schedule=False)


@pytest.mark.slow
@pytest.mark.parametrize("default_schedule", [False, True])
@pytest.mark.parametrize("place", [OUTER, INNER])
@pytest.mark.parametrize("case", CASES, ids="-".join)
def test_every_size(case: tuple[str, str], place: str, default_schedule: bool) -> None:
    check(*case, [(n, k) for n in WIDTHS for k in SIZES], place, default_schedule=default_schedule)
