"""Quantized graphs compute in integers: results are int32 sums requantized in float32, element for element."""

from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from tiers import first_tier
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp

import weft
from weft import graph as G
from weft.dialects.graph import CallTirOp
from weft.interp.interpreter import Interpreter
from weft.passes.graph.functions import graph_functions
from weft.passes.graph.graph_fuse import GraphFusePass
from weft.passes.graph.graph_rewrite import rewrite_graph
from weft.passes.graph.quantized_products import make_unsigned
from weft.passes.graph_pipeline import graph_to_tir
from weft.texpr.references import reference_of

random = np.random.default_rng(5)
X, SCALE, ZERO = "uint8", 0.03, 121
"""The data of a model: their type, scale and zero point."""


def module_of(function: Callable[..., Any], *params: Any) -> ModuleOp:
    bb = G.BlockBuilder()
    with bb.function("main", list(params)):
        with bb.dataflow():
            found = bb.emit_output(function(*params))
        bb.emit_func_output(found)
    return bb.get()


def number(value: float, dtype: str = "float32") -> Any:
    return G.const(np.asarray(value, dtype))


def quantized(x: Any, scale: float, zero: int, dtype: str = "uint8") -> Any:
    return G.quantize(x, number(scale), number(zero, dtype), dtype=dtype)


def dequantized(x: Any, scale: float, zero: int, dtype: str = "uint8") -> Any:
    return G.dequantize(x, number(scale), number(zero, dtype))


def through(x: Any, scale: float, zero: int, dtype: str = "uint8") -> Any:
    """A value as it is quantized and dequantized between two operators."""
    return dequantized(quantized(x, scale, zero, dtype), scale, zero, dtype)


def weights(*shape: int, axis: int = 0) -> tuple[Any, np.ndarray, np.ndarray]:
    """Dequantized weights with a scale for each channel, the integers and the scales."""
    integers = random.integers(-127, 128, shape).astype("int8")
    scales = (random.random(shape[axis]) * 0.01 + 0.001).astype("float32")
    value = G.dequantize(G.const(integers), G.const(scales), G.const(np.zeros(shape[axis], "int8")), axis=axis)
    return value, integers, scales


def bias_of(scale: float, scales: np.ndarray, *around: int) -> tuple[Any, np.ndarray]:
    integers = random.integers(-2000, 2000, len(scales)).astype("int32")
    value = G.dequantize(G.const(integers), G.const(np.float32(scale) * scales), axis=0)
    return G.reshape(value, (len(scales), *around)), integers.reshape(-1, *around)


def requantized(sums: np.ndarray, factors: np.ndarray, scale: float, zero: int, dtype: str = "uint8") -> np.ndarray:
    """Sums times factors over a scale, as the integers of the result less its zero point: in float32, as onnxruntime's
    fused kernels compute it."""
    limits = np.iinfo(dtype)
    steps = np.rint(sums.astype("float32") * (factors / np.float32(scale)))
    return np.clip(steps, limits.min - zero, limits.max - zero).astype("int16")


def names(module: ModuleOp) -> Counter[str]:
    (main,) = graph_functions(module)
    return Counter(op.name.removeprefix("graph.") for op in main.walk() if op.name.startswith("graph."))


def rewritten(module: ModuleOp, rules: tuple[str, ...] = ("quantized",)) -> Counter[str]:
    """The operators after the rewrite, which the interpreter finds to compute the same up to a step."""
    (main,) = graph_functions(module)
    rewrite_graph(main, rules)
    module.verify()
    return names(module)


BUILDS = {
    "this machine": ("llvm", True),
    "no layouts": ("llvm", False),
    "SSE": ("llvm -mcpu=x86-64", True),
    "C": ("c", True),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", first_tier(BUILDS, "this machine"))
def test_a_net_is_computed_in_integers(name: str) -> None:
    """Convolution, depthwise convolution, residual sum, mean and product of matrices."""
    conv = reference_of("conv2d")
    w0, i0, s0 = weights(16, 3, 3, 3)
    w1, i1, s1 = weights(16, 1, 3, 3)
    w2, i2, s2 = weights(16, 16, 1, 1)
    w3, i3, s3 = weights(16, 10, axis=1)
    (b0, j0), (b1, j1), (b2, j2) = (bias_of(s, w, 1, 1) for s, w in ((SCALE, s0), (0.02, s1), (0.05, s2)))

    def net(x: Any) -> Any:
        x = through(x, SCALE, ZERO)
        x = through(G.clip(G.add(G.conv2d(x, w0, strides=2, padding=1), b0), 0.0, 6.0), 0.02, 0)
        y = through(G.relu(G.add(G.conv2d(x, w1, padding=1, groups=16), b1)), 0.05, 0)
        y = through(G.add(G.conv2d(y, w2), b2), 0.04, 130)
        z = through(G.add(x, y), 0.05, 99)
        z = through(G.mean(z, axis=(2, 3), keepdims=True), 0.01, 99)
        z = through(G.reshape(z, (1, 16)), 0.01, 99)
        return through(G.matmul(z, w3), 0.002, 128)

    module = module_of(net, G.var("x", (1, 3, 12, 14), "float32"))
    x = (random.standard_normal((1, 3, 12, 14)) * 2).astype("float32")

    data = np.clip(np.rint(x / np.float32(SCALE)), -ZERO, 255 - ZERO).astype("int16")
    first = conv(data, i0, 2, 1, out_dtype="int32") + j0
    a = requantized(first, np.float32(SCALE) * s0.reshape(-1, 1, 1), 0.02, 0)  # 255 * 0.02 is less than 6
    second = conv(a, i1, 1, 1, groups=16, out_dtype="int32") + j1
    b = requantized(second, np.float32(0.02) * s1.reshape(-1, 1, 1), 0.05, 0)
    c = requantized(conv(b, i2, out_dtype="int32") + j2, np.float32(0.05) * s2.reshape(-1, 1, 1), 0.04, 130)
    total = a.astype("float32") * np.float32(0.02) + c.astype("float32") * np.float32(0.04)
    d = np.clip(np.rint(total / np.float32(0.05)), -99, 156).astype("int16")
    count = np.float32(d.shape[2] * d.shape[3])
    e = requantized(d.sum(axis=(2, 3), dtype="int32"), np.float32(0.05) / count, 0.01, 99)
    f = requantized(e.astype("int32") @ i3, np.float32(0.01) * s3, 0.002, 128)
    expected = f.astype("float32") * np.float32(0.002)

    target, layouts = BUILDS[name]
    np.testing.assert_array_equal(weft.build(module, target=target, layouts=layouts)["main"](x), expected)
    found = rewritten(module)
    np.testing.assert_array_equal(Interpreter(module).call("main", x), expected)
    assert found["quantize"] == found["dequantize"] == 0

    rewritten(module, ("bytes",))
    (points,) = [op for op in module.walk() if "tensor<16x16x1x1xi8>" in [str(value.type) for value in op.operands]]
    assert "xui8" in str(points.operands[0].type)
    np.testing.assert_array_equal(Interpreter(module).call("main", x), expected)
    np.testing.assert_array_equal(weft.build(module, target=target, layouts=layouts)["main"](x), expected)


@pytest.mark.parametrize("zero", [0, 7])
@pytest.mark.parametrize("size", [1, 3])
@pytest.mark.parametrize("channels", [3, 16])
def test_convolutions_of_bytes(zero: int, size: int, channels: int) -> None:
    """With and without zero points, borders, and channels that are no whole group; two read the same bytes."""
    first, second = random.integers(-128, 128, (2, 24, channels, size, size))
    bias = random.integers(-99, 99, (24, 1, 1)).astype("int32")

    def net(x: Any) -> Any:
        data = G.cast(G.clip(x, -zero, 255 - zero), "int16")
        sums = [
            G.conv2d(data, G.const(w.astype("int16")), padding=size // 2, out_dtype="int32") for w in (first, second)
        ]
        return G.add(G.add(sums[0], G.const(bias)), sums[1])

    module = module_of(net, G.var("x", (2, channels, 7, 9), "int32"))
    x = random.integers(-300, 300, (2, channels, 7, 9)).astype("int32")
    conv, data = reference_of("conv2d"), np.clip(x, -zero, 255 - zero).astype("int16")
    expected = sum(conv(data, w.astype("int16"), 1, size // 2, out_dtype="int32") for w in (first, second)) + bias
    np.testing.assert_array_equal(weft.build(module)["main"](x), expected)
    rewritten(module, ("bytes",))
    assert "xi16" not in str(module) and ("graph.pad" in str(module)) == (channels == 3 or (zero > 0 and size > 1))
    np.testing.assert_array_equal(Interpreter(module).call("main", x), expected)
    np.testing.assert_array_equal(weft.build(module)["main"](x), expected)


PRODUCTS: dict[str, tuple[Callable[[Any], Any], tuple[int, ...]]] = {
    "conv1d": (lambda x: G.conv1d(x, weights(6, 4, 3)[0], padding=1), (2, 4, 9)),
    "conv2d, channels last": (
        lambda x: G.conv2d(x, weights(3, 2, 4, 6, axis=3)[0], data_layout="NHWC"),
        (1, 5, 6, 4),
    ),
    "conv3d": (lambda x: G.conv3d(x, weights(5, 2, 2, 2, 2)[0]), (1, 2, 3, 4, 5)),
    "groups": (lambda x: G.conv2d(x, weights(6, 2, 3, 3)[0], groups=2, dilation=2), (1, 4, 7, 7)),
    "depthwise": (
        lambda x: G.depthwise_conv2d(
            x, G.dequantize(G.const(random.integers(-9, 9, (4, 2, 3, 3)).astype("int8")), number(0.5))
        ),
        (1, 4, 5, 5),
    ),
    "matmul": (lambda x: G.matmul(x, weights(8, 5, axis=1)[0]), (2, 3, 8)),
    "matmul of a transposed matrix": (lambda x: G.matmul(x, G.transpose(weights(5, 8)[0])), (3, 8)),
    "dense": (lambda x: G.dense(x, weights(5, 8)[0], G.const(np.ones(5, "float32"))), (3, 8)),
    "activations": (lambda x: G.matmul(x, through(G.softmax(x), 0.004, 3), transpose_b=True), (2, 3, 8)),
    "a mean": (lambda x: G.mean(x, axis=[1]), (3, 4, 5)),
    "transposed": (lambda x: G.conv2d_transpose(x, weights(4, 6, 3, 3, axis=1)[0], strides=2), (1, 4, 5, 5)),
}


@pytest.mark.parametrize(
    "name", first_tier(PRODUCTS, "conv2d, channels last", "dense", "matmul of a transposed matrix", "transposed")
)
def test_products_of_integers(name: str) -> None:
    """Not quantized behind the product: equal to the float form up to its rounding."""
    function, shape = PRODUCTS[name]
    module = module_of(lambda x: function(dequantized(x, 0.25, 7, "int8")), G.var("x", shape, "int8"))
    x = random.integers(-128, 128, shape).astype("int8")
    before = Interpreter(module.clone()).call("main", x)
    found = rewritten(module)
    assert found["cast"] >= 2
    np.testing.assert_allclose(Interpreter(module).call("main", x), before, rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(weft.build(module)["main"](x), before, rtol=1e-4, atol=1e-4)


MOVES: dict[str, Callable[[Any], Any]] = {
    "nothing": lambda x: x,
    "a pool": lambda x: G.max_pool2d(x, 3, strides=2, padding=1),
    "a transpose": lambda x: G.transpose(x, (0, 2, 3, 1)),
    "a concatenation": lambda x: G.concatenate([x, x], axis=1),
    "a rectifier": lambda x: G.relu(x),
    "copies": lambda x: G.tile(x, (1, 2, 1, 1)),
    "the greatest of each channel": lambda x: G.max(x, axis=(2, 3)),
}


@pytest.mark.parametrize("dtype", ["int8", "uint8"])
@pytest.mark.parametrize("name", MOVES)
def test_bytes_are_moved(name: str, dtype: str) -> None:
    shape = (1, 2, 5, 6)
    move = MOVES[name]
    module = module_of(
        lambda x: quantized(move(dequantized(x, 0.1, 9, dtype)), 0.1, 9, dtype), G.var("x", shape, dtype)
    )
    limits = np.iinfo(dtype)
    x = random.integers(limits.min, limits.max + 1, shape).astype(dtype)
    before = Interpreter(module.clone()).call("main", x)
    found = rewritten(module)
    assert found["quantize"] == found["dequantize"] == 0
    np.testing.assert_array_equal(Interpreter(module).call("main", x), before)


KEPT: dict[str, tuple[Callable[[Any], Any], tuple[int, ...]]] = {
    "weights of floats": (lambda x: G.matmul(dequantized(x, 0.1, 3), G.const(np.ones((4, 2), "float32"))), (3, 4)),
    "a scale for each row of the weights": (lambda x: G.matmul(dequantized(x, 0.1, 3), weights(4, 2)[0]), (3, 4)),
    "sums that int32 does not hold": (
        lambda x: G.matmul(dequantized(x, 0.1, 3), dequantized(x, 0.1, 3), transpose_b=True),
        (2, 34000),
    ),
    "a scale for each channel of the data": (
        lambda x: G.matmul(
            G.dequantize(x, G.const(np.array([1, 2, 1, 1], "float32")), axis=1),
            weights(4, 2, axis=1)[0],
        ),
        (3, 4),
    ),
    "another scale": (lambda x: quantized(G.max_pool2d(dequantized(x, 0.1, 3), 2), 0.2, 3), (1, 1, 4, 4)),
    "means": (lambda x: quantized(G.avg_pool2d(dequantized(x, 0.1, 3), 2), 0.1, 3), (1, 1, 4, 4)),
    "a border of zeros": (lambda x: quantized(G.pad(dequantized(x, 0.1, 3), 1), 0.1, 3), (4,)),
    "another zero point": (lambda x: quantized(dequantized(x, 0.1, 3), 0.1, 4), (4,)),
    "another type": (lambda x: quantized(dequantized(x, 0.1, 3), 0.1, 3, "int8"), (4,)),
}


@pytest.mark.parametrize("name", KEPT)
def test_what_is_no_product_of_integers_stays(name: str) -> None:
    function, shape = KEPT[name]
    module = module_of(function, G.var("x", shape, "uint8"))
    before = str(module)
    rewritten(module)
    assert str(module) == before


def test_rules_can_be_left_out() -> None:
    module = module_of(
        lambda x: through(G.matmul(through(x, 0.1, 3), weights(4, 2, axis=1)[0]), 0.5, 1), G.var("x", (3, 4))
    )
    before = names(module)
    assert rewritten(module.clone(), ("norms", "scales"))["quantize"] == before["quantize"] == 2


def test_a_bias_of_another_scale_is_added_as_a_float() -> None:
    w, _, scales = weights(4, 3, axis=1)
    bias, _ = bias_of(0.7, scales)
    module = module_of(lambda x: G.add(G.matmul(dequantized(x, 0.1, 3), w), bias), G.var("x", (2, 4), "uint8"))
    x = random.integers(0, 256, (2, 4)).astype("uint8")
    before = Interpreter(module.clone()).call("main", x)
    assert rewritten(module)["dequantize"] == 1
    np.testing.assert_allclose(Interpreter(module).call("main", x), before, rtol=1e-5, atol=1e-5)


def test_other_users_of_a_result_read_bytes() -> None:
    """A result of bytes that a product reads too."""
    w = weights(4, 3, axis=1)[0]

    def function(x: Any) -> Any:
        q = quantized(x, 0.1, 3)
        return G.add(G.sum(G.cast(q, "float32"), axis=1, keepdims=True), G.matmul(dequantized(q, 0.1, 3), w))

    module = module_of(function, G.var("x", (2, 4)))
    x = random.standard_normal((2, 4)).astype("float32") * 9
    before = Interpreter(module.clone()).call("main", x)
    assert rewritten(module)["quantize"] == 0
    np.testing.assert_allclose(Interpreter(module).call("main", x), before, rtol=1e-4, atol=1e-4)


NETWORKS: dict[str, tuple[int, dict[str, Any]]] = {
    "rnn": (1, {}),
    "gru": (3, {"linear_before_reset": True, "state_scale": 1 / 127}),
    "lstm": (4, {"state_scale": 1 / 127}),
}


@pytest.mark.parametrize("name", first_tier(NETWORKS, "lstm"))
def test_recurrent_networks_of_integers(name: str) -> None:
    """Both products are sums of int32; states have a scale for all steps, or one for each."""
    gates, options = NETWORKS[name]
    extents = (1, gates * 6)

    def constant(*inner: int) -> Any:
        integers = random.integers(-127, 128, (*extents, *inner)).astype("int8")
        scales = (random.random(extents[1]) * 0.004 + 0.001).astype("float32")
        return G.dequantize(G.const(integers), G.const(scales), axis=1)

    bias = G.const(random.standard_normal((1, 2 * gates * 6)).astype("float32"))
    module = module_of(
        lambda x: getattr(G, name)(through(x, 0.03, 121), constant(5), constant(6), bias, **options)[0],
        G.var("x", (4, 2, 5)),
    )
    x = random.standard_normal((4, 2, 5)).astype("float32")
    before = Interpreter(module.clone()).call("main", x)
    found = rewritten(module)
    assert found["dequantize"] == 0
    assert "xi16>" in str(module) and "xi8>" in str(module)
    # Without a scale of the states the float form does not round them.
    allowed = 1e-5 if options else 0.03
    np.testing.assert_allclose(Interpreter(module).call("main", x), before, atol=allowed)
    np.testing.assert_allclose(weft.build(module)["main"](x), before, atol=allowed)


def test_memory_holds_integers() -> None:
    """Several readers, a pool of windows that overlap, a linear resize and a concatenation: no kernel between quantized
    operators writes floats."""

    def net(x: Any) -> Any:
        x = through(G.conv2d(through(x, 0.03, 121), weights(8, 4, 1, 1)[0]), 0.05, 100)
        y = through(G.avg_pool2d(x, 3, strides=2, padding=1), 0.04, 99)
        y = through(G.sigmoid(G.conv2d(y, weights(8, 8, 1, 1)[0])), 0.004, 0)
        z = through(G.concatenate([G.resize2d(y, (8, 8), method="linear"), x], axis=1), 0.05, 100)
        return G.conv2d(z, weights(4, 16, 1, 1)[0])

    module = module_of(net, G.var("x", (1, 4, 8, 8)))
    x = random.standard_normal((1, 4, 8, 8)).astype("float32")
    before = Interpreter(module.clone()).call("main", x)
    fused = module.clone()
    for each in graph_to_tir("llvm"):
        each.apply(Context(), fused)
        if isinstance(each, GraphFusePass):
            break
    (main,) = (op for op in fused.ops if isinstance(op, FuncOp) and op.sym_visibility is None)
    calls = [op for op in main.walk() if isinstance(op, CallTirOp)]
    results = [op for op in calls if any("xf32" in str(result.type) for result in op.results)]
    assert len(calls) >= 4 and results == calls[-1:]
    found = weft.build(module)["main"](x)
    assert np.mean(np.abs(found - before)) < 1e-3 * np.abs(before).max()


def test_signed_results_are_unsigned_inside() -> None:
    """Only if all users dequantize them."""

    def net(x: Any) -> Any:
        return through(x, 0.05, 3, "int8")

    def read(x: Any) -> Any:
        return quantized(x, 0.05, 3, "int8")

    x = (random.standard_normal((3, 4)) * 5).astype("float32")
    for function, count in ((net, 1), (read, 0)):
        module = module_of(function, G.var("x", (3, 4), "float32"))
        expected = Interpreter(module).call("main", x)
        (main,) = graph_functions(module)
        assert make_unsigned(main) == count
        np.testing.assert_array_equal(Interpreter(module).call("main", x), expected)
        assert ("ui8" in str(main)) == bool(count)


@pytest.mark.parametrize("dtype", ["uint8", "int8"])
def test_functions_of_bytes_are_tables(dtype: str) -> None:
    """A function of rounded numbers and its product with them, in one lookup for each of two blocks."""

    def net(x: Any) -> Any:
        x = through(x, 0.05, 3, dtype)
        gate = through(G.sigmoid(G.reshape(x, (8, 70))), 0.004, -4, "int8")
        return through(G.multiply(G.reshape(x, (8, 70)), gate), 0.03, 10, dtype)

    module = module_of(net, G.var("x", (8, 7, 10), "float32"))
    x = (random.standard_normal((8, 7, 10)) * 4).astype("float32")
    expected = Interpreter(module).call("main", x)
    np.testing.assert_array_equal(weft.build(module)["main"](x), expected)
    found = rewritten(module, ("tables",))
    assert (found["take"], found["sigmoid"]) == (1, 0)
    np.testing.assert_array_equal(Interpreter(module).call("main", x), expected)


@pytest.mark.parametrize(("groups", "channels", "filters"), [(2, 32, 64), (8, 32, 32), (4, 16, 48), (4, 24, 24)])
def test_grouped_convolutions_of_bytes(groups: int, channels: int, filters: int) -> None:
    """Groups of fewer channels than a block are merged; a zero point is the border."""
    weight, integers, scales = weights(filters, channels // groups, 3, 3)
    factors = np.float32(SCALE) * scales.reshape(-1, 1, 1)

    def net(x: Any) -> Any:
        return through(G.conv2d(through(x, SCALE, ZERO), weight, padding=1, groups=groups), 0.5, 131)

    module = module_of(net, G.var("x", (1, channels, 6, 9), "float32"))
    x = (random.standard_normal((1, channels, 6, 9)) * 2).astype("float32")
    data = np.clip(np.rint(x / np.float32(SCALE)), -ZERO, 255 - ZERO).astype("int16")
    sums = reference_of("conv2d")(data, integers, 1, 1, groups=groups, out_dtype="int32")
    expected = requantized(sums, factors, 0.5, 131).astype("float32") * np.float32(0.5)
    np.testing.assert_array_equal(weft.build(module)["main"](x), expected)
