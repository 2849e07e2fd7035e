"""The default schedule of pooling: windows with and without borders and strides, and what it does not apply to."""

from collections.abc import Callable

import numpy as np
import pytest

from weft import Interpreter, build
from weft.autoschedule.default_schedule import default_schedule
from weft.autoschedule.pooling import pooling
from weft.frontends.create_func import create_func
from weft.support.target import Target
from weft.texpr.ops import avg_pool2d, max_pool2d, relu
from weft.texpr.tensor import Tensor, placeholder, size_var

SHAPES = [
    ((1, 3, 17, 29), 3, 2, 1),
    ((2, 2, 8, 8), 2, 2, 0),
    ((1, 2, 20, 50), 3, 1, 1),
    ((1, 1, 5, 100), 2, 2, 0),
    ((1, 2, 13, 7), 3, 2, 1),
    ((1, 2, 9, 40), 3, 3, 1),
    ((1, 3, 14, 14), 2, 1, 0),
    ((1, 2, 14, 29), 3, 1, 1),
    ((1, 2, 13, 13), 5, 1, 2),
    ((1, 1, 20, 75), 9, 1, 4),
    ((1, 1, 20, 23), 5, 2, 0),
]


@pytest.mark.parametrize("target", ["llvm", "llvm -mcpu=haswell", "c"])
@pytest.mark.parametrize("pool", [max_pool2d, avg_pool2d])
@pytest.mark.parametrize(("shape", "size", "stride", "border"), SHAPES)
def test_same_meaning(
    pool: Callable[..., Tensor], shape: tuple[int, ...], size: int, stride: int, border: int, target: str
) -> None:
    x = placeholder(shape, "float32", name="X")
    module = create_func([x, relu(pool(x, size, stride, border), name="C")], name="f")
    given = np.random.default_rng(0).standard_normal(shape).astype(np.float32)
    rows, columns = ((extent + 2 * border - size) // stride + 1 for extent in shape[2:])
    expected, found = (np.empty((*shape[:2], rows, columns), np.float32) for _ in range(2))
    Interpreter(module.clone()).call("f", given, expected)
    build(module, target)["f"](given, found)
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("pool", [max_pool2d, avg_pool2d])
@pytest.mark.parametrize(("size", "stride", "border"), [(2, 2, 0), (3, 2, 1), (3, 1, 1)])
def test_rows_and_columns_of_any_number(pool: Callable[..., Tensor], size: int, stride: int, border: int) -> None:
    x = placeholder((2, 3, size_var("h"), size_var("w")), "float32", name="X")
    module = create_func([x, pool(x, size, stride, border, name="C")], name="f")
    assert default_schedule(module, Target("llvm"), rules=[pooling])
    compiled, interpreter = build(module, "llvm")["f"], Interpreter(module.clone())
    for extents in ((2, 3), (3, 15), (16, 17), (5, 64), (9, 67)):
        given = np.random.default_rng(0).standard_normal((2, 3, *extents)).astype(np.float32)
        shape = (2, 3, *((extent + 2 * border - size) // stride + 1 for extent in extents))
        expected, found = (np.empty(shape, np.float32) for _ in range(2))
        interpreter.call("f", given, expected)
        compiled(given, found)
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6, err_msg=str(extents))


def steps_of(tensors: list[Tensor], target: str) -> str:
    """What the rule alone does."""
    (trace,) = default_schedule(create_func(tensors, name="f"), Target.parse(target), rules=[pooling]) or (None,)
    return "" if trace is None else str(trace)


def test_rows_are_padded_some_at_a_time_and_results_stay_in_registers() -> None:
    x = placeholder((1, 4, 112, 112), "float32", name="X")
    text = steps_of([x, max_pool2d(x, 3, 2, 1, name="C")], "llvm -mcpu=znver4 -l1-bytes=32768 -l2-bytes=1048576")
    assert 'sched.cache_write %c {index = 0, scope = "local"}' in text
    assert "sched.storage_align %c {index = 0, axis = -2, factor = 16, offset = 0}" in text
    assert "sched.storage_align %c_pad {index = 0, axis = -2, factor = 16, offset = 0}" in text
    assert "sched.split %h {factors = [0, 8]}" in text
    assert "sched.split %w {factors = [0, 64]}" in text
    assert "sched.compute_at %c_pad, %h0" in text


@pytest.mark.parametrize("target", ["llvm -mcpu=znver4", "llvm -mcpu=haswell"])
@pytest.mark.parametrize("columns", [7, 14, 28, 75])
def test_idle_lanes_are_not_combined(columns: int, target: str) -> None:
    """NaN, infinities and zeros of both signs at the ends of rows."""
    x = placeholder((1, 2, 9, columns), "float32", name="X")
    given = np.random.default_rng(0).standard_normal((1, 2, 9, columns)).astype(np.float32)
    given[0, 0, 2, -1], given[0, 0, 5, 0], given[0, 1, 3, -2:] = np.nan, np.inf, (-0.0, 0.0)
    module = create_func([x, max_pool2d(x, 3, 1, 1, name="C")], name="f")
    expected, found = (np.empty(given.shape, np.float32) for _ in range(2))
    Interpreter(module.clone()).call("f", given, expected)
    build(module, target)["f"](given, found)
    np.testing.assert_array_equal(found, expected)


def test_lanes_of_channels_are_left_to_other_rules() -> None:
    x = placeholder((1, 16, 16, 16), "float32", name="X")
    assert steps_of([x, max_pool2d(x, 3, 1, 1, layout="NHWC", name="C")], "llvm -mcpu=znver4") == ""


def test_only_small_windows_are_unrolled_and_read_the_border_in_place() -> None:
    x = placeholder((1, 16, 20, 20), "float32", name="X")
    small, larger, large = (
        steps_of([x, max_pool2d(x, size, 1, size // 2, name="C")], "llvm -mcpu=znver4") for size in (3, 5, 13)
    )
    assert "sched.compute_inline %c_pad" in small and "sched.unroll %rh" in small
    assert "sched.compute_at %c_pad" in larger and "sched.unroll %rh" in larger
    assert "sched.unroll %rh" not in large and "sched.unroll %rw" in large
