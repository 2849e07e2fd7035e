"""Elementary functions as tensor expressions have them: every 16-bit number, sigmoid, and where errors are largest."""

from collections.abc import Callable

import numpy as np
import pytest
from ulps import BOUNDS, COMPOSED_BOUNDS, EXACT, WIDE, WIDER, Array, Bfloat16, errors, sample

import weft
from weft import te

LANES = 16
FUNCTIONS = (*BOUNDS, *COMPOSED_BOUNDS)
PRECISE = (
    *("acosh", "asinh", "atanh", "cosh", "sinh", "tanh", "expm1", "log1p", "cbrt", "tan", "sigmoid"),
    *("exp", "log", "log10", "rsqrt"),
)


def compiled(
    function: Callable[[te.Expr], te.Expr], dtype: str, count: int, target: str = "llvm -num-threads=1"
) -> Callable[[Array, Array], None]:
    A = te.placeholder((count,), dtype, name="A")
    B = te.compute((count,), lambda i: function(A[i]), name="B")
    sch = weft.Schedule(te.create_func([A, B], name="f"))
    _, inner = sch.split(sch.get_loops("B")[0], factors=[None, LANES])
    sch.vectorize(inner)
    return weft.build(sch.mod, target=target)["f"]


@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_every_number_of_16_bits(dtype: str, function: str) -> None:
    """Computed in f32 and rounded: what that adds to half a unit is little."""
    codes = np.arange(1 << 16, dtype=np.uint16)
    numbers = codes.view(np.float16) if dtype == "float16" else codes
    result = np.empty_like(numbers)
    compiled(getattr(te, function), dtype, len(numbers))(numbers, result)
    limits = None
    if dtype == "bfloat16":
        numbers, result = ((bits.astype(np.uint32) << 16).view(np.float32) for bits in (numbers, result))
        limits = Bfloat16
    with np.errstate(all="ignore"):
        exact = EXACT[function](numbers.astype(np.float64))
    off = errors(result, exact, limits)
    at = int(np.argmax(off))
    assert off[at] <= 0.501, f"{function}({numbers[at]!r}) is {exact[at]!r}, got {result[at]!r}, {off[at]} ulp"


@pytest.mark.parametrize(("dtype", "count"), [(np.float32, 1 << 22), (np.float64, 1 << 18)])
def test_sigmoid_over_the_whole_range(dtype: type[np.floating], count: int) -> None:
    if dtype is np.float64 and not WIDE:
        pytest.skip("no arithmetic wider than double")
    numbers = sample(dtype, count)
    result = np.empty_like(numbers)
    compiled(te.sigmoid, np.dtype(dtype).name, count)(numbers, result)
    with np.errstate(all="ignore"):
        exact = EXACT["sigmoid"](numbers.astype(WIDER[dtype]))
    off = errors(result, exact)
    at = int(np.argmax(off))
    assert off[at] <= COMPOSED_BOUNDS["sigmoid"][dtype is np.float64], f"sigmoid({numbers[at]!r}): {off[at]} ulp"


def test_small_results_of_sigmoid_are_no_zeros() -> None:
    """1 / (1 + exp(-x)) is 0 where exp(-x) is infinite, 15 before the results are."""
    numbers = np.linspace(-103, -87, 64, dtype=np.float32)
    result = np.empty_like(numbers)
    compiled(te.sigmoid, "float32", len(numbers))(numbers, result)
    assert (result > 0).all() and (np.diff(result) >= 0).all()
    np.testing.assert_allclose(result, np.exp(numbers.astype(np.float64)), rtol=1e-6, atol=1.5e-45)


@pytest.mark.parametrize("target", ["llvm -num-threads=1", "llvm -mcpu=x86-64-v2 -num-threads=1"])
def test_one_plus_erf(target: str) -> None:
    """A sum forgets the last digits of small results of erf, so it has a formula of its own."""
    numbers = np.concatenate([sample(np.float32, 1 << 16), np.linspace(-6, 6, 1 << 16, dtype=np.float32)])
    result = np.empty_like(numbers)
    compiled(lambda x: te.erf(x) + 1.0, "float32", len(numbers), target)(numbers, result)
    with np.errstate(all="ignore"):
        exact = EXACT["erf"](numbers.astype(np.float64)) + 1
    np.testing.assert_allclose(result, exact, rtol=0, atol=4.1e-7)  # NaN where it is NaN
    assert set(result[numbers < -4.1]) == {0.0} and set(result[numbers > 4.1]) == {2.0}


@pytest.mark.parametrize("target", ["llvm -num-threads=1", "llvm -mcpu=x86-64-v3 -num-threads=1", "c"])
@pytest.mark.parametrize("function", PRECISE)
def test_f32_is_within_one_unit(function: str, target: str) -> None:
    """On CPUs with fused multiply-adds, and in C, where `f64` is used if the function of `f32` is less accurate."""
    if "x86" in target and weft.Target("llvm").architecture != "x86_64":
        pytest.skip("code for another processor")
    near = np.random.default_rng(0).uniform(-20, 20, 1 << 16).astype(np.float32)
    numbers = np.concatenate([sample(np.float32, 1 << 16), near, near / 16])
    result = np.empty_like(numbers)
    A = te.placeholder((len(numbers),), "float32", name="A")
    B = te.compute((len(numbers),), lambda i: getattr(te, function)(A[i]), name="B")
    weft.build(te.create_func([A, B], name="f"), target=target)["f"](numbers, result)
    with np.errstate(all="ignore"):
        exact = EXACT[function](numbers.astype(np.float64))
    off = errors(result, exact)
    at = int(np.argmax(off))
    assert off[at] <= 1.0, f"{function}({numbers[at]!r}) is {exact[at]!r}, got {result[at]!r}, {off[at]} ulp"
