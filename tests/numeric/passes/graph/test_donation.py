"""Results that are written over donated arguments."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

import weft
from weft import graph as G


def built(function: Callable[..., Sequence[Any]], *params: Any, donate: Sequence[str], **options: Any) -> Any:
    builder = G.BlockBuilder()
    with builder.function("main", params):
        with builder.dataflow():
            outputs = [builder.emit_output(builder.emit(value)) for value in function(*params)]
        builder.emit_func_output(outputs)
    return weft.build(builder.get(), donate=donate, **options)["main"]


def cache() -> Any:
    return G.var("cache", ("b", 2, "t", 8), "float32")


def updated(old: Any, new: Any, places: Any) -> Any:
    spread = G.broadcast_to(G.reshape(places, (1, 1, "s", 1)), ("b", 2, "s", 8))
    return G.scatter_elements(old, spread, new, axis=2)


@pytest.mark.parametrize("target", ["llvm", "c"])
def test_slices_are_written_into_a_donated_cache_and_read_there(target: str) -> None:
    def step(old: Any, new: Any, places: Any) -> list[Any]:
        found = updated(old, new, places)
        return [G.sum(found, axis=[2]), found, G.add(new, 1.0)]

    params = cache(), G.var("new", ("b", 2, "s", 8), "float32"), G.var("places", ("s",), "int64")
    run = built(step, *params, donate=["cache"], target=target)
    held = np.zeros((3, 2, 16, 8), np.float32)
    wanted, expected = held, held.copy()
    for first, count in ((0, 5), (5, 1), (6, 1)):
        new, places = np.random.rand(3, 2, count, 8).astype(np.float32), np.arange(first, first + count)
        expected[:, :, places] = new
        sums, held, more = run(held, new, places)
        assert held is wanted
        np.testing.assert_array_equal(held, expected)
        np.testing.assert_allclose(sums, expected.sum(2), rtol=1e-5)
        np.testing.assert_array_equal(more, new + 1)
    assert run(cache=held, new=new, places=places)[1] is held


def test_rows_and_choices_are_written_in_place() -> None:
    def rows(old: Any, new: Any, places: Any) -> list[Any]:
        return [G.scatter_nd(old, places, new)]

    params = cache(), G.var("new", ("s", 2, "t", 8), "float32"), G.var("places", (1, "s"), "int64")
    held = np.zeros((3, 2, 4, 8), np.float32)
    assert built(rows, *params, donate=["cache"])(held, np.ones((1, 2, 4, 8), np.float32), np.array([[1]])) is held
    np.testing.assert_array_equal(held.sum((1, 2, 3)), [0, 64, 0])

    def choice(old: Any, new: Any, mask: Any) -> list[Any]:
        return [G.sum(old, axis=[1, 2, 3]), G.where(mask, new, old)]

    params = cache(), G.var("new", ("b", 2, 1, 8), "float32"), G.var("mask", ("t", 1), "bool")
    run = built(choice, *params, donate=["cache"])
    sums, found = run(held, np.full((3, 2, 1, 8), 2, np.float32), np.arange(4)[:, None] == 3)
    assert found is held
    np.testing.assert_array_equal(sums, [0, 64, 0])
    np.testing.assert_array_equal(held[:, 0, 3, 0], [2, 2, 2])


@pytest.mark.slow
def test_a_cache_that_is_read_after_the_update_is_copied() -> None:
    def step(old: Any, new: Any, places: Any) -> list[Any]:
        found = updated(old, new, places)
        return [found, G.matmul(G.tanh(found), G.swapaxes(old, 2, 3))]

    params = cache(), G.var("new", ("b", 2, "s", 8), "float32"), G.var("places", ("s",), "int64")
    run = built(step, *params, donate=["cache"])
    held, new = np.random.rand(1, 2, 4, 8).astype(np.float32), np.ones((1, 2, 1, 8), np.float32)
    before = held.copy()
    found, product = run(held, new, np.array([2]))
    expected = before.copy()
    expected[:, :, 2] = 1
    np.testing.assert_array_equal(found, expected)
    np.testing.assert_allclose(product, np.tanh(expected) @ before.swapaxes(2, 3), rtol=1e-5)


def test_arguments_of_donation_that_are_refused() -> None:
    params = cache(), G.var("mask", ("t", 1), "bool")

    def choice(old: Any, mask: Any) -> list[Any]:
        return [G.where(mask, G.negative(old), old)]

    with pytest.raises(weft.CompileError, match="donate: there is no parameter 'caches', did you mean 'cache'"):
        built(choice, *params, donate=["caches"])
    run = built(choice, cache(), G.var("mask", ("t", 1), "bool"), donate=["cache"])
    held = np.ones((1, 2, 4, 8), np.float32)
    held.flags.writeable = False
    with pytest.raises(ValueError, match="'cache'"):
        run(held, np.ones((4, 1), bool))


def test_donated_arguments_keep_the_relations_of_their_extents() -> None:
    run = built(lambda c: [G.relu(c)], G.var("c", ("n", "n"), "float32"), donate=["c"])
    with pytest.raises(ValueError, match=r"expected shape \(n, n\) with n = 3 .*, got shape \(3, 5\)"):
        run(np.zeros((3, 5), np.float32))
    square = -np.ones((3, 3), np.float32)
    assert run(square) is square and not square.any()
