"""Packed tensors as graphs use them: whole and partial tiles, groups for dot products, two numbers in a byte."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from operator_forms import FORMS, Form, arrays_of, module_of
from tiers import first_tier
from xdsl.dialects.builtin import TensorType

import weft
from weft import graph as G
from weft.interp.interpreter import Interpreter
from weft.passes.graph.operators import detached_ops, made
from weft.passes.graph.packing import packed_operator
from weft.texpr.graph_operators import Operator

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


def packings(given: Form) -> list[tuple[int, int]]:
    """The axes of the result of an operator, and the tiles, with which it computes tiles from tiles."""
    (op,) = (op for op in module_of(given).walk() if isinstance(op, Operator))
    if len(op.results) != 1 or not isinstance(type_ := op.results[0].type, TensorType):
        return []
    pairs = [(axis, tile) for axis, extent in enumerate(type_.get_shape()) for tile in {2, extent} if extent > 1]
    return [(axis, tile) for axis, tile in pairs if type_.get_shape()[axis] % tile == 0 and found(op, axis, tile)]


def found(op: Operator, axis: int, tile: int) -> bool:
    return packed_operator(op, axis, tile) is not None


@pytest.mark.parametrize("given", first_tier(FORMS, *FORMS[::30]), ids=str)
def test_operators_on_tiles_compute_tiles(given: Form) -> None:
    """For any axis and any operator: what it computes of packed operands is, unpacked, what it computes of them."""
    for axis, tile in packings(given):
        module = module_of(given)
        (op,) = (op for op in module.walk() if isinstance(op, Operator))
        arrays = arrays_of(module, given)
        expected = Interpreter(module.clone()).call("main", *arrays)
        packed = packed_operator(op, axis, tile)
        assert packed is not None
        values = [packed.of(op, tile).results[0]]
        values = [made("unpack", values, inner_dims_pos=[axis], inner_tiles=[tile]).results[0]]
        for new in detached_ops(values[0]):
            op.parent.insert_op_before(new, op)  # pyright: ignore[reportOptionalMemberAccess]
        op.results[0].replace_all_uses_with(values[0])
        module.verify()
        np.testing.assert_allclose(Interpreter(module).call("main", *arrays), expected, rtol=1e-3, atol=1e-3)
