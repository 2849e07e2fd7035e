"""Quantised tensors of StableHLO, interpreted and compiled, against the formulas of the specification."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import weft
from weft.interp.interpreter import Interpreter
from weft.support.errors import CompileError

Array = NDArray[Any]

Q = "!quant.uniform<i8:f32, 0.1:-3>"
R = "!quant.uniform<i8<-100:100>:f32, 0.25:5>"
U = "!quant.uniform<u8:f32, 0.5:128>"
COLUMNS = "!quant.uniform<i8:f32:1, {0.1:-3, 0.5, 2.0:7}>"
ROWS = "!quant.uniform<i8:f32:0, {0.1:-3, 0.5, 2.0:7}>"
WIDE = "!quant.uniform<i32:f32, 0.01>"
PARAMETERS: dict[str, tuple[Any, Any, int, int, type]] = {
    Q: (0.1, -3, -128, 127, np.int8),
    R: (0.25, 5, -100, 100, np.int8),
    U: (0.5, 128, 0, 255, np.uint8),
    COLUMNS: ([0.1, 0.5, 2.0], [-3, 0, 7], -128, 127, np.int8),
    WIDE: (0.01, 0, -(2**31), 2**31 - 1, np.int32),
}


def numbers(x: Array, kind: str) -> Array:
    scale, zero, *_ = PARAMETERS[kind]
    return (x.astype(np.int32) - np.asarray(zero)).astype(np.float32) * np.asarray(scale, np.float32)


def integers(x: Array, kind: str) -> Array:
    scale, zero, least, greatest, dtype = PARAMETERS[kind]
    found = x.astype(np.float32) / np.asarray(scale, np.float32) + np.asarray(zero, np.float32)
    return np.rint(np.clip(found, np.float32(least), np.float32(greatest))).astype(np.float64).astype(dtype)


def both(text: str, *arguments: Array) -> list[Array]:
    """The results of @main, equal as interpreted and as compiled."""
    module = weft.parse(text)
    interpreted = Interpreter(module).call("main", *arguments)
    compiled = weft.build(module)["main"](*arguments)
    pairs = [x if isinstance(x, tuple | list) else (x,) for x in (interpreted, compiled)]
    for left, right in zip(*pairs, strict=True):
        np.testing.assert_array_equal(left, right)
    return [np.asarray(x) for x in pairs[1]]


def stored(shape: tuple[int, ...], kind: str, seed: int = 0) -> Array:
    _, _, least, greatest, dtype = PARAMETERS[kind]
    return np.random.default_rng(seed).integers(least, greatest, shape, dtype, endpoint=True)


@pytest.mark.parametrize("kind", [Q, R, U, COLUMNS, WIDE])
def test_conversions(kind: str) -> None:
    x = np.random.default_rng(0).uniform(-40, 40, (5, 3)).astype(np.float32)
    x[0] = [np.inf, -np.inf, 0.0]
    x[1] = [0.05, 0.15, 0.25]
    text = f"""
    func.func @main(%x: tensor<5x3xf32>) -> (tensor<5x3x{kind}>, tensor<5x3xf32>) {{
      %0 = stablehlo.uniform_quantize %x : (tensor<5x3xf32>) -> tensor<5x3x{kind}>
      %1 = stablehlo.uniform_dequantize %0 : (tensor<5x3x{kind}>) -> tensor<5x3xf32>
      return %0, %1 : tensor<5x3x{kind}>, tensor<5x3xf32>
    }}"""
    quantised, back = both(text, x)
    if kind != WIDE:  # 2**31 - 1 is not a float
        np.testing.assert_array_equal(quantised, integers(x, kind))
    np.testing.assert_array_equal(back, numbers(quantised, kind))


def test_requantisation() -> None:
    x = stored((7,), Q)
    text = f"""
    func.func @main(%x: tensor<7x{Q}>) -> tensor<7x{R}> {{
      %0 = stablehlo.uniform_quantize %x : (tensor<7x{Q}>) -> tensor<7x{R}>
      return %0 : tensor<7x{R}>
    }}"""
    np.testing.assert_array_equal(both(text, x)[0], integers(numbers(x, Q), R))


BINARY: dict[str, Callable[[Array, Array], Array]] = {
    **{"add": np.add, "subtract": np.subtract, "multiply": np.multiply, "divide": np.divide},
    **{"maximum": np.maximum, "minimum": np.minimum, "atan2": np.arctan2},
}
UNARY: dict[str, Callable[[Array], Array]] = {
    **{"abs": np.abs, "negate": np.negative, "tanh": np.tanh, "exponential": np.exp, "ceil": np.ceil, "sine": np.sin},
    "logistic": lambda x: 1 / (1 + np.exp(-x)),
}


@pytest.mark.parametrize("name", [*BINARY, *UNARY])
def test_elementwise(name: str) -> None:
    """The operands and the result have different types."""
    x, y = stored((16,), Q, 1), stored((16,), U, 2)
    with np.errstate(all="ignore"):
        found = BINARY[name](numbers(x, Q), numbers(y, U)) if name in BINARY else UNARY[name](numbers(x, Q))
        expected = integers(np.nan_to_num(found, nan=-1e9), R)
    operands, types = ("%x, %y", f"tensor<16x{Q}>, tensor<16x{U}>") if name in BINARY else ("%x", f"tensor<16x{Q}>")
    text = f"""
    func.func @main(%x: tensor<16x{Q}>, %y: tensor<16x{U}>) -> tensor<16x{R}> {{
      %0 = "stablehlo.{name}"({operands}) : ({types}) -> tensor<16x{R}>
      return %0 : tensor<16x{R}>
    }}"""
    result = both(text, x, y)[0]
    assert result.dtype == np.int8
    np.testing.assert_array_less(np.abs(result.astype(int) - expected.astype(int)), 2)  # a float next to a tie
    assert (result == expected).mean() > 0.9


def test_comparison() -> None:
    x, y = stored((64,), Q, 1), stored((64,), Q, 2)
    text = f"""
    func.func @main(%x: tensor<64x{Q}>, %y: tensor<64x{Q}>) -> tensor<64xi1> {{
      %0 = stablehlo.compare LT, %x, %y : (tensor<64x{Q}>, tensor<64x{Q}>) -> tensor<64xi1>
      return %0 : tensor<64xi1>
    }}"""
    np.testing.assert_array_equal(both(text, x, y)[0], x < y)


def test_product_with_weights_of_columns() -> None:
    x, w = stored((4, 5), Q, 1), stored((5, 3), COLUMNS, 2)
    text = f"""
    func.func @main(%x: tensor<4x5x{Q}>, %w: tensor<5x3x{COLUMNS}>) -> (tensor<4x3x{WIDE}>, tensor<4x3xf32>) {{
      %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0]
        : (tensor<4x5x{Q}>, tensor<5x3x{COLUMNS}>) -> tensor<4x3x{WIDE}>
      %1 = stablehlo.uniform_dequantize %x : (tensor<4x5x{Q}>) -> tensor<4x5xf32>
      %2 = stablehlo.dot_general %1, %w, contracting_dims = [1] x [0]
        : (tensor<4x5xf32>, tensor<5x3x{COLUMNS}>) -> tensor<4x3xf32>
      return %0, %2 : tensor<4x3x{WIDE}>, tensor<4x3xf32>
    }}"""
    module = weft.parse(text)
    exact = numbers(x, Q).astype(np.float64) @ numbers(w, COLUMNS).astype(np.float64)
    for found in (Interpreter(module).call("main", x, w), weft.build(module)["main"](x, w)):
        np.testing.assert_allclose(numbers(np.asarray(found[0]), WIDE), exact, atol=0.006, rtol=1e-5)
        np.testing.assert_allclose(found[1], exact, rtol=1e-4, atol=1e-3)


def test_convolution() -> None:
    x, w = stored((1, 6, 6, 2), Q, 1), stored((3, 3, 2, 3), U, 2)
    types = f"(tensor<1x6x6x2x{Q}>, tensor<3x3x2x3x{U}>) -> tensor<1x4x4x3x{WIDE}>"
    text = f"""
    func.func @main(%x: tensor<1x6x6x2x{Q}>, %w: tensor<3x3x2x3x{U}>) -> tensor<1x4x4x3x{WIDE}> {{
      %0 = stablehlo.convolution(%x, %w) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {{}}
        {{batch_group_count = 1 : i64, feature_group_count = 1 : i64}} : {types}
      return %0 : tensor<1x4x4x3x{WIDE}>
    }}"""
    a, b = numbers(x, Q).astype(np.float64), numbers(w, U).astype(np.float64)
    windows = np.lib.stride_tricks.sliding_window_view(a[0], (3, 3), axis=(0, 1))
    exact = np.einsum("hwcij,ijco->hwo", windows, b)[None]
    module = weft.parse(text)
    for found in (Interpreter(module).call("main", x, w), weft.build(module)["main"](x, w)):
        np.testing.assert_allclose(numbers(np.asarray(found), WIDE), exact, atol=0.05)


def test_moves_and_regions() -> None:
    """Moves apply to the integers, and an axis moves with its dimension; regions compute on quantised numbers."""
    x = stored((4, 3), COLUMNS, 1)
    y = stored((4, 3), Q, 2)
    transposed = ROWS
    text = f"""
    func.func private @twice(%a: tensor<4x3x{Q}>) -> tensor<4x3x{Q}> {{
      %0 = stablehlo.add %a, %a : tensor<4x3x{Q}>
      return %0 : tensor<4x3x{Q}>
    }}
    func.func @main(%x: tensor<4x3x{COLUMNS}>, %y: tensor<4x3x{Q}>)
        -> (tensor<3x4x{transposed}>, tensor<4x{Q}>, tensor<4x3x{Q}>, tensor<4x3x{Q}>) {{
      %0 = stablehlo.transpose %x, dims = [1, 0] : (tensor<4x3x{COLUMNS}>) -> tensor<3x4x{transposed}>
      %c = stablehlo.constant() {{value = dense<-128> : tensor<i8>}} : () -> tensor<{Q}>
      %1 = stablehlo.reduce(%y init: %c) applies stablehlo.maximum across dimensions = [1]
        : (tensor<4x3x{Q}>, tensor<{Q}>) -> tensor<4x{Q}>
      %2 = "stablehlo.sort"(%y) <{{dimension = 0 : i64, is_stable = true}}> ({{
      ^bb0(%a: tensor<{Q}>, %b: tensor<{Q}>):
        %p = stablehlo.compare LT, %a, %b : (tensor<{Q}>, tensor<{Q}>) -> tensor<i1>
        stablehlo.return %p : tensor<i1>
      }}) : (tensor<4x3x{Q}>) -> tensor<4x3x{Q}>
      %3 = call @twice(%y) : (tensor<4x3x{Q}>) -> tensor<4x3x{Q}>
      return %0, %1, %2, %3 : tensor<3x4x{transposed}>, tensor<4x{Q}>, tensor<4x3x{Q}>, tensor<4x3x{Q}>
    }}"""
    found = both(text, x, y)
    twice = integers(numbers(y, Q) + numbers(y, Q), Q)
    for result, expected in zip(found, (x.T, y.max(1), np.sort(y, 0), twice), strict=True):
        np.testing.assert_array_equal(result, expected)


def test_loop_over_quantised_numbers() -> None:
    text = f"""
    func.func @main(%x: tensor<5x{Q}>) -> tensor<5x{Q}> {{
      %c = stablehlo.constant dense<0> : tensor<i32>
      %r:2 = stablehlo.while(%i = %c, %v = %x) : tensor<i32>, tensor<5x{Q}>
      cond {{
        %n = stablehlo.constant dense<3> : tensor<i32>
        %p = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
        stablehlo.return %p : tensor<i1>
      }} do {{
        %one = stablehlo.constant dense<1> : tensor<i32>
        %j = stablehlo.add %i, %one : tensor<i32>
        %w = stablehlo.add %v, %v : tensor<5x{Q}>
        stablehlo.return %j, %w : tensor<i32>, tensor<5x{Q}>
      }}
      return %r#1 : tensor<5x{Q}>
    }}"""
    x = np.array([-3, -2, 5, -20, 100], np.int8)
    expected = x
    for _ in range(3):
        expected = integers(numbers(expected, Q) * 2, Q)
    np.testing.assert_array_equal(both(text, x)[0], expected)


def test_dynamic_sizes() -> None:
    text = f"""
    func.func @main(%x: tensor<?x3x{COLUMNS}>) -> tensor<?x3x{Q}> {{
      %0 = "stablehlo.abs"(%x) : (tensor<?x3x{COLUMNS}>) -> tensor<?x3x{Q}>
      return %0 : tensor<?x3x{Q}>
    }}"""
    x = stored((6, 3), COLUMNS)
    np.testing.assert_array_equal(both(text, x)[0], integers(np.abs(numbers(x, COLUMNS)), Q))


def test_moves_need_equal_types() -> None:
    text = f"""
    func.func @main(%x: tensor<4x{Q}>) -> tensor<2x2x{R}> {{
      %0 = stablehlo.reshape %x : (tensor<4x{Q}>) -> tensor<2x2x{R}>
      return %0 : tensor<2x2x{R}>
    }}"""
    with pytest.raises(
        CompileError, match=r"stablehlo.reshape: it moves elements, whose types are .*0\.1:-3.* and .*0\.25:5"
    ):
        weft.build(text)


BLOCKS = "!quant.uniform<i8:f32:{0:2, 1:3}, {{0.5:3, 0.25}, {2.0, 0.1:-7}}>"
PARAMETERS[BLOCKS] = (
    np.repeat(np.repeat([[0.5, 0.25], [2.0, 0.1]], 2, 0), 3, 1),
    np.repeat(np.repeat([[3, 0], [0, -7]], 2, 0), 3, 1),
    *(-128, 127, np.int8),
)


def test_blocks() -> None:
    """A scale and a zero point for each 2 x 3 elements."""
    x, y = stored((4, 6), BLOCKS, 1), np.random.default_rng(0).uniform(-40, 40, (4, 6)).astype(np.float32)
    text = f"""
    func.func @main(%x: tensor<4x6x{BLOCKS}>, %y: tensor<4x6xf32>)
        -> (tensor<4x6x{BLOCKS}>, tensor<4x6xf32>, tensor<4x6x{Q}>) {{
      %0 = stablehlo.uniform_quantize %y : (tensor<4x6xf32>) -> tensor<4x6x{BLOCKS}>
      %1 = stablehlo.optimization_barrier %x : tensor<4x6x{BLOCKS}>
      %2 = stablehlo.uniform_dequantize %1 : (tensor<4x6x{BLOCKS}>) -> tensor<4x6xf32>
      %3 = "stablehlo.abs"(%x) : (tensor<4x6x{BLOCKS}>) -> tensor<4x6x{Q}>
      return %0, %2, %3 : tensor<4x6x{BLOCKS}>, tensor<4x6xf32>, tensor<4x6x{Q}>
    }}"""
    assert BLOCKS in str(weft.parse(text))
    quantised, back, sizes = both(text, x, y)
    np.testing.assert_array_equal(quantised, integers(y, BLOCKS))
    np.testing.assert_array_equal(back, numbers(x, BLOCKS))
    np.testing.assert_array_equal(sizes, integers(np.abs(numbers(x, BLOCKS)), Q))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "%0 = stablehlo.transpose %x, dims = [1, 0] : (tensor<4x6x{0}>) -> tensor<6x4xi8>",
            "stablehlo.transpose: it moves elements between blocks with different scales",
        ),
        (
            "%y = stablehlo.uniform_dequantize %z : (tensor<4x4x{0}>) -> tensor<4x4xf32>",
            r"stablehlo.uniform_dequantize: \[2, 2\] blocks do not divide a tensor of extents \[4, 4\]",
        ),
    ],
)
def test_refused_blocks(text: str, message: str) -> None:
    function = """func.func @main(%x: tensor<4x6x{0}>, %z: tensor<4x4x{0}>) -> tensor<4x6x{0}> {{
      TEXT
      return %x : tensor<4x6x{0}>
    }}"""
    with pytest.raises(CompileError, match=message):
        weft.build(function.replace("TEXT", text).format(BLOCKS))


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        ("{0:2}, {{0.5, 0.25}, {2.0}}", "scales of blocks are nested to one depth"),
        ("{0:2, 0:3}, {{0.5, 0.25}}", "blocks have positive extents in different dimensions of 2"),
        ("{1:2}, {{0.5}, {2.0}}", r"dimensions that are not divided have one block, got \[2, 1\]"),
    ],
)
def test_types_of_blocks_are_checked(kind: str, message: str) -> None:
    with pytest.raises(CompileError, match=message):
        weft.parse(f"func.func private @f(tensor<4x2x!quant.uniform<i8:f32:{kind}>>)")
