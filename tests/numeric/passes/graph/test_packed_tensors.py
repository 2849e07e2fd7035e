"""Packed tensors as graphs use them: whole and partial tiles, groups for dot products, two numbers in a byte."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import weft
from weft import graph as G

random = np.random.default_rng(3)


def function(build: Any, *params: Any) -> Any:
    bb = G.BlockBuilder()
    with bb.function("main", list(params)):
        bb.emit_func_output(build(*params))
    return weft.build(bb.get())["main"]


def test_partial_tiles_of_symbolic_extents() -> None:
    """What is packed and unpacked is what it was, and sums over tiles see the padding."""

    def build(x: Any) -> Any:
        packed = G.pack(x, (1, 0), (4, 3), padding_value=1.0)
        whole = G.unpack(G.relu(packed), (1, 0), (4, 3), shape=("n", 6))
        return [whole, G.sum(packed)]

    run = function(build, G.var("x", ("n", 6), "float32"))
    for rows in (1, 3, 7):
        x = random.standard_normal((rows, 6)).astype("float32")
        whole, total = run(x)
        np.testing.assert_array_equal(whole, np.maximum(x, 0))
        np.testing.assert_allclose(total, x.sum() + (-(-rows // 3) * 3 * 8 - rows * 6), rtol=1e-4, atol=1e-4)


def test_calls_check_that_tiles_divide_extents() -> None:
    run = function(lambda x: G.pack(x, 0, 4), G.var("x", ("n", 3), "float32"))
    x = random.standard_normal((8, 3)).astype("float32")
    np.testing.assert_array_equal(run(x), x.reshape(2, 4, 3).transpose(0, 2, 1))
    with pytest.raises(ValueError, match=r"expected n % 4 == 0, got n = 7"):
        run(x[:7])


@pytest.mark.parametrize(("group", "dtype"), [(4, "int8"), (2, "int16")])
def test_weights_in_groups_for_dot_products(group: int, dtype: str) -> None:
    """(K, N) as (K / g, N, g), folded at build time."""
    x, w = (random.integers(-9, 9, shape).astype(dtype) for shape in ((5, 8), (8, 6)))

    def build(data: Any) -> Any:
        left = G.cast(G.reshape(data, (5, 8 // group, 1, group)), "int32")
        return G.sum(left * G.cast(G.pack(G.const(w), 0, group), "int32"), axis=(1, 3))

    run = function(build, G.var("x", x.shape, dtype))
    np.testing.assert_array_equal(run(x), x.astype("int32") @ w.astype("int32"))


def test_two_numbers_in_a_byte() -> None:
    """Tiles of two are the halves of bytes, which shifts join and split."""
    w = random.integers(0, 16, (6, 8)).astype("uint8")

    def build(weight: Any) -> Any:
        low, high = G.split(G.pack(weight, 0, 2), 2, axis=2)
        stored = G.bitwise_or(low, G.left_shift(high, G.const(np.uint8(4))))
        halves = [G.bitwise_and(stored, G.const(np.uint8(15))), G.right_shift(stored, G.const(np.uint8(4)))]
        return [stored, G.unpack(G.concatenate(halves, axis=2), 0, 2)]

    stored, whole = function(build, G.var("w", w.shape, "uint8"))(w)
    np.testing.assert_array_equal(stored[..., 0], w[0::2] | w[1::2] << 4)
    np.testing.assert_array_equal(whole, w)
