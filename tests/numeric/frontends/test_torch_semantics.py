"""PyTorch models at the edges: remainders, degenerate statistics, numbers that do not fit, indices out of range."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from tiers import second_tier

import weft

torch = pytest.importorskip("torch")
INF, NAN = float("inf"), float("nan")


def compiled(function: Callable[..., Any], *inputs: Any, target: str = "llvm") -> Any:
    class Model(torch.nn.Module):
        def forward(self, *args: Any) -> Any:
            return function(*args)

    return weft.compile(Model(), inputs, target=target)(*inputs)


def check(function: Callable[..., Any], *inputs: Any, target: str = "llvm") -> None:
    """Equal up to NaN, with the signs of zeros."""
    expected, found = function(*inputs), compiled(function, *inputs, target=target)
    several = isinstance(expected, tuple)
    for wanted, got in zip(*((expected, found) if several else ((expected,), (found,))), strict=True):
        torch.testing.assert_close(got, wanted, rtol=0, atol=0, equal_nan=True)
        if wanted.is_floating_point():
            zeros = wanted == 0
            assert torch.equal(torch.signbit(got)[zeros], torch.signbit(wanted)[zeros])


_DIVIDENDS = [
    1e20,
    5.3e9,
    7.0,
    -7.0,
    0.3,
    1e16 + 2,
    4.35,
    -1e20,
    0.0,
    -0.0,
    INF,
    -INF,
    NAN,
    5.0,
    -5.0,
    1e-40,
    1.0,
    65504.0,
]
_DIVISORS = [3.0, -3.0, 7.0, 0.1, -0.1, 0.01, INF, -INF, NAN, 0.0, -0.0, 1.0, 1e-7]


@pytest.mark.parametrize(
    "dtype, target",
    [
        ("float32", "llvm"),
        *(second_tier(dtype, "c") for dtype in ("float64", "float16", "bfloat16")),
        *(second_tier(dtype, "llvm") for dtype in ("float64", "float16", "bfloat16")),
        second_tier("float32", "opencl"),
    ],
)
def test_remainders_and_quotients(dtype: str, target: str) -> None:
    if target == "opencl":
        pytest.importorskip("pyopencl")
    pairs = torch.cartesian_prod(*(torch.tensor(v, dtype=torch.float64) for v in (_DIVIDENDS, _DIVISORS)))
    x, y = pairs.to(getattr(torch, dtype)).T.contiguous()

    def function(x: Any, y: Any) -> Any:
        # PyTorch rounds each step of a quotient that is rounded down to 16 bits.
        modes = ("floor", "trunc") if dtype in ("float32", "float64") else ("trunc",)
        rounded = (torch.div(x, y, rounding_mode=mode) for mode in modes)
        return torch.fmod(x, y), torch.remainder(x, y), *rounded, x // 3.0, x % -0.7, torch.copysign(x, -1.0)

    check(function, x, y, target=target)


def test_sign_of_nan_is_zero() -> None:
    check(torch.sign, torch.tensor([NAN, 0.0, -0.0, -INF, 2.0]))


@pytest.mark.filterwarnings("ignore:.*degrees of freedom.*")
def test_degenerate_statistics() -> None:
    def function(x: Any, none: Any) -> Any:
        deviation = x.std(1, correction=4), none.std(1), none.mean(1)
        return x.var(1, correction=5), torch.zeros_like(x).var(1, correction=5), none.var(1), *deviation

    check(function, torch.tensor([[1.0, 2.0, 4.0, 8.0], [3.0, 3.0, 3.0, 3.0]]), torch.zeros(2, 0))


def _beside_numbers(x: Any) -> tuple[Any, ...]:
    return (
        *(x.clamp(-3, 5), torch.remainder(x, -3), x + 300, x * -1, 7 - x, x // -3, x - 1000),
        *(torch.where(x > 3, x, -2), torch.nn.functional.pad(x, (1, 1), value=1), x == -1, torch.full_like(x, 0)),
    )


@pytest.mark.parametrize("dtype", ["uint8", "int8"])
def test_numbers_that_do_not_fit(dtype: str) -> None:
    check(_beside_numbers, torch.tensor([1, 7, 120, 200 if dtype == "uint8" else -100]).to(getattr(torch, dtype)))


def test_shifts_by_any_amount() -> None:
    amounts = torch.tensor([0, 1, 31, 32, 40, -1, -(2**31)], dtype=torch.int32)
    x = torch.tensor([1, -8, 3, -1, 7, -7, -(2**31)], dtype=torch.int32)
    check(lambda x, n: (torch.bitwise_left_shift(x, n), torch.bitwise_right_shift(x, n)), x, amounts)
    check(lambda x, n: (x << n, x >> n), x.to(torch.uint8), amounts.to(torch.uint8))


_WITHOUT = """
import sys
sys.modules["ml_dtypes"] = None
import torch, weft
for module, dtype in ((torch.nn.Hardshrink(), torch.bfloat16), (torch.nn.Softplus(), torch.bfloat16)):
    x = torch.tensor([0.25, -0.25, 1.0, -3.0], dtype=dtype)
    found = weft.compile(module, (x,))(x)
    torch.testing.assert_close(found, module(x))
import weft.graph as G
assert G.const([1.0, -2.0], "float8_e4m3fn").dtype == "float8_e4m3fn"
print("right")
"""


def test_float8_saturates() -> None:
    x = torch.tensor([0.1, 300.0, 464.0, 465.0, -1e6, INF, -INF, NAN])
    kinds = (torch.float8_e4m3fn, torch.float8_e5m2)
    check(lambda x: tuple(x.to(kind).float() for kind in kinds), x)


def test_constants_of_bfloat16_without_ml_dtypes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ml_dtypes", None)
    x = torch.tensor([0.25, -0.25, 1.0, -3.0], dtype=torch.bfloat16)
    check(torch.nn.functional.hardshrink, x)


@pytest.mark.slow
def test_bfloat16_without_ml_dtypes() -> None:
    done = subprocess.run([sys.executable, "-c", _WITHOUT], capture_output=True, text=True, timeout=100, check=False)
    assert done.stdout == "right\n", done.stderr


_TABLE = torch.arange(20.0).reshape(4, 5)
_INDEXED: dict[str, tuple[Callable[..., Any], list[Any], list[Any]]] = {
    "embedding": (lambda i: torch.nn.functional.embedding(i, _TABLE), [1, 3, 0], [1, 4, 0]),
    "index_select": (lambda i: _TABLE.index_select(0, i), [1, 3, 0], [1, -1, 0]),
    "gather": (lambda i: _TABLE.gather(1, i), [[0, 4]] * 4, [[0, 5]] * 4),
    "index": (lambda i: _TABLE[:, i], [0, -5, 4], [0, -6, 4]),
    "two indices": (lambda i: _TABLE[i, i], [0, -1, 3], [0, -1, 4]),
    "index_put": (lambda i: _TABLE.index_put((i,), torch.tensor(7.0)), [0, -1], [0, 4]),
    "scatter_add": (lambda i: _TABLE.scatter_add(1, i, torch.ones(4, 2)), [[0, 4]] * 4, [[0, -1]] * 4),
}


def test_compile_with_checks() -> None:
    class Model(torch.nn.Module):
        def forward(self, x: Any, y: Any) -> Any:
            return x // y

    x, y = torch.tensor([5, -7, 9]), torch.tensor([1, 2, 3])
    fast = weft.compile(Model(), (x, y), checked=True)
    assert torch.equal(fast(x, y), x // y)
    with pytest.raises(ZeroDivisionError, match='block "floor_divide" divides by zero'):
        fast(x, torch.tensor([1, 0, 3]))


@pytest.mark.parametrize("name", _INDEXED)
def test_indices_out_of_range(name: str) -> None:
    """PyTorch raises `IndexError`; a model returns values, and raises with `checked=True`."""
    import weft.torch as from_pytorch

    function, inside, outside = _INDEXED[name]
    given, wrong = np.array(inside), np.array(outside)

    class Model(torch.nn.Module):
        def forward(self, index: Any) -> Any:
            return function(index)

    module = from_pytorch.from_torch(torch.export.export(Model(), (torch.tensor(inside),)))
    checked = weft.build(module, checked=True)["main"]
    np.testing.assert_array_equal(np.asarray(checked(given)), function(torch.tensor(inside)).numpy())
    assert np.isfinite(np.asarray(weft.build(module)["main"](wrong))).all()
    with pytest.raises(IndexError, match=r"(reads|writes) .* out of bounds: index \d is -?\d+, the extent is \d"):
        checked(wrong)


def views(x: Any) -> dict[str, Any]:
    return {"transposed": x.t(), "a part": x[1:], "in order": x, "one column": x[:, :1]}


@pytest.mark.parametrize("name", ["transposed", "a part", "in order"])
@pytest.mark.parametrize("scatters", [False, True])
def test_views_of_memory(name: str, scatters: bool) -> None:
    """The memory of a transposed tensor, or of a part, is not in the order of its axes."""

    class Model(torch.nn.Module):
        def forward(self, x: Any, source: Any) -> Any:
            view = views(x + 1)[name]
            if scatters:
                return torch.as_strided_scatter(view.clone(), source, (2, 3), (1, 2))
            return view.as_strided((2, 3), (1, 2))

    given = torch.arange(24.0).reshape(4, 6), torch.full((2, 3), -1.0)
    torch.testing.assert_close(weft.compile(Model(), given)(*given), Model()(*given))


@pytest.mark.parametrize(
    ("name", "offset", "message"),
    [
        ("one column", None, r"a view of the memory of a tensor with gaps, of strides \[6, 1\]"),
        ("a part", 0, r"a view of memory outside of the tensor, from -6 to -1 of 18 elements"),
    ],
)
def test_views_of_other_memory(name: str, offset: int | None, message: str) -> None:
    class Model(torch.nn.Module):
        def forward(self, x: Any) -> Any:
            return views(x + 1)[name].as_strided((2, 3), (1, 2), offset)

    with pytest.raises(weft.CompileError, match=message):
        weft.compile(Model(), (torch.arange(24.0).reshape(4, 6),))


def test_random_slopes() -> None:
    with pytest.raises(weft.CompileError, match=r"random slopes in training: model.eval\(\) takes their mean"):
        weft.compile(torch.export.export(torch.nn.RReLU().train(), (torch.ones(3),)))
    x = torch.linspace(-2, 2, 5)
    model = torch.nn.RReLU(0.1, 0.5).eval()
    assert torch.equal(weft.compile(model, (x,))(x), model(x))


def test_convolution_of_times_first() -> None:
    class Model(torch.nn.Module):
        def forward(self, x: Any, weight: Any, bias: Any) -> Any:
            return torch.conv_tbc(x, weight, bias, 1)

    given = torch.randn(5, 2, 3), torch.randn(2, 3, 4), torch.randn(4)
    torch.testing.assert_close(weft.compile(Model(), given)(*given), Model()(*given), rtol=1e-5, atol=1e-6)
