"""Operators that onnxruntime adds to ONNX, against results of onnxruntime that are recorded (contrib_cases.py), and
against their definitions where it has no implementation for CPUs."""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest

pytest.importorskip("onnx", reason="onnx is not installed: pip install 'weft[onnx]'")

import contrib_cases
from onnx import ModelProto, TensorProto
from onnx_models import BOOL, model, node

import weft
from weft.frontends.onnx.registry import definitions

needs_onnxruntime = pytest.mark.skipif(
    importlib.util.find_spec("onnxruntime") is None, reason="onnxruntime is not installed"
)
RANDOM = np.random.default_rng(0)


def _floats(*shape: int) -> Any:
    return RANDOM.standard_normal(shape).astype(np.float32)


def _interpreted(module: Any, *arrays: Any) -> list[Any]:
    found = weft.Interpreter(module).call("main", *arrays)
    return list(found) if isinstance(found, tuple) else [found]


@pytest.fixture(scope="module")
def recorded() -> Mapping[str, Any]:
    return dict(np.load(contrib_cases.RECORD))


@pytest.mark.parametrize("operator", contrib_cases.MAKERS)
def test_recorded(recorded: Mapping[str, Any], operator: str) -> None:
    seeds = {int(name.split("/")[1]) for name in recorded if name.startswith(f"{operator}/")}
    if not seeds:
        assert operator in contrib_cases.ON_GPUS
    for seed in seeds:
        draw = contrib_cases.drawn(operator, seed)
        results = contrib_cases.found(draw)
        wanted = [recorded[f"{operator}/{seed}/{at}"] for at in range(len(results))]
        assert not contrib_cases.difference(draw, results, wanted), draw.attributes


@pytest.mark.slow
@needs_onnxruntime
@pytest.mark.parametrize("operator", sorted(set(contrib_cases.MAKERS) - set(contrib_cases.ON_GPUS)))
def test_against_onnxruntime(operator: str) -> None:
    equal = 0
    for seed in range(30):
        draw = contrib_cases.drawn(operator, seed)
        try:
            wanted = contrib_cases.expected(draw)
        except Exception:  # noqa: BLE001 (onnxruntime refuses some combinations)
            continue
        assert not contrib_cases.difference(draw, contrib_cases.found(draw), wanted), (seed, draw.attributes)
        equal += 1
    assert equal >= 5


@needs_onnxruntime
def test_definitions_are_those_of_onnxruntime() -> None:
    from onnxruntime.capi.onnxruntime_pybind11_state import get_all_operator_schema

    theirs: dict[tuple[str, str], Any] = {}
    for schema in get_all_operator_schema():
        theirs.setdefault((schema.domain, schema.name), schema)
    for key, mine in definitions().items():
        other = theirs[key]
        assert [(i.name, i.option.name) for i in mine.inputs] == [(i.name, i.option.name) for i in other.inputs], key
        attributes = {name: (a.type.name, a.required) for name, a in mine.attributes.items()}
        assert attributes == {name: (a.type.name, a.required) for name, a in other.attributes.items()}, key


# Operators that onnxruntime implements for GPUs alone


def _of(operator: str, inputs: Mapping[str, Any], outputs: str = "y", **attributes: Any) -> list[Any]:
    """What a node gives for arrays."""
    kinds = {np.dtype(np.int32): TensorProto.INT32, np.dtype(np.int8): TensorProto.INT8, np.dtype(bool): BOOL}
    types = {name: kinds[array.dtype] for name, array in inputs.items() if array.dtype in kinds}
    made = node(operator, " ".join(inputs), outputs, domain="com.microsoft", **attributes)
    shapes = {name: array.shape for name, array in inputs.items()}
    proto = model([made], shapes, outputs, domains={"com.microsoft": 1}, types=types)
    return _interpreted(weft.from_onnx(proto), *inputs.values())


def _softmax(x: Any) -> Any:
    powers = np.exp(x - x.max(-1, keepdims=True))
    return powers / powers.sum(-1, keepdims=True)


def _equal(found: Any, wanted: Any) -> None:
    np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("operator", ["CropAndResize", "MatMulIntegerToFloat", "Inverse"])
def test_float16(operator: str) -> None:
    """The same numbers as float16 and as float32."""
    for seed in range(4):
        wide, half = contrib_cases.drawn(operator, seed), contrib_cases.drawn(operator, seed)
        for name, array in half.arrays.items():
            if array.dtype == np.float32:
                half.arrays[name] = (array / 8).astype(np.float16)
                wide.arrays[name] = half.arrays[name].astype(np.float32)
        (expected,), (found,) = contrib_cases.found(wide), contrib_cases.found(half)
        assert found.dtype == np.float16
        np.testing.assert_allclose(found, expected.astype(np.float16), rtol=4e-3, atol=4e-3)


def test_bias_softmax() -> None:
    x, inner, outer = _floats(2, 3, 4, 5), _floats(2, 1, 4, 5), _floats(1, 1, 4, 5)
    (found,) = _of("BiasSoftmax", {"x": x, "b": inner}, axis=2, is_inner_broadcast=1)
    _equal(found, _softmax((x + inner).reshape(6, 20)).reshape(x.shape))
    for bias in (outer, outer[0, 0]):
        (found,) = _of("BiasSoftmax", {"x": x, "b": bias}, axis=3, is_inner_broadcast=0)
        _equal(found, _softmax(x + bias))


def test_sums_with_biases() -> None:
    x, bias, skip = _floats(2, 3, 4), _floats(4), _floats(2, 3, 4)
    _equal(_of("BiasAdd", {"x": x, "b": bias, "s": skip})[0], x + bias + skip)
    _equal(_of("BiasDropout", {"x": x, "b": bias, "s": skip})[0], x + bias + skip)
    left, right = np.split(x + bias, 2, -1)
    gelu = weft.Interpreter(weft.from_onnx(model([node("Gelu", "x", "y")], {"x": [2, 3, 2]}, opset=20)))
    _equal(_of("BiasSplitGelu", {"x": x, "b": bias})[0], left * gelu.call("main", right))


def test_swiglu() -> None:
    gate, up = 3 * _floats(2, 4), 3 * _floats(2, 4)
    g, u = np.minimum(gate, 1.5), np.clip(up, -1.5, 1.5)
    wanted = g / (1 + np.exp(-1.25 * g)) * (u + 1)
    options = {"activation_alpha": 1.25, "activation_beta": 1.0, "limit": 1.5}
    _equal(_of("SwiGLU", {"g": gate, "u": up}, **options)[0], wanted)
    _equal(_of("SwiGLU", {"g": np.concatenate([gate, up], -1)}, **options)[0], wanted)


@pytest.mark.parametrize("last", [0, 1])
def test_group_norms(last: int) -> None:
    x, gamma, beta, skip, bias = _floats(2, 4, 3, 5), _floats(4), _floats(4), _floats(2, 4), _floats(4)
    total = x + skip[:, :, None, None] + bias[:, None, None]
    groups = total.reshape(2, 2, -1)
    normal = (groups - groups.mean(-1, keepdims=True)) / np.sqrt(groups.var(-1, keepdims=True) + 1e-5)
    normal = normal.reshape(x.shape) * gamma[:, None, None] + beta[:, None, None]
    normal = normal / (1 + np.exp(-normal))
    wanted, sums = ([np.moveaxis(a, 1, -1) for a in (normal, total)]) if last else (normal, total)
    data = {"x": np.moveaxis(x, 1, -1).copy() if last else x, "g": gamma, "b": beta, "s": skip, "c": bias}
    found = _of("SkipGroupNorm", data, "y z", activation=1, groups=2, channels_last=last)
    _equal(found[0], wanted)
    _equal(found[1], sums)


def test_complex_products() -> None:
    a, b = _floats(3, 2), _floats(3, 2)
    one, other = (v[:, 0] + 1j * v[:, 1] for v in (a, b))
    for operator, product in (("ComplexMul", one * other), ("ComplexMulConj", one * other.conj())):
        _equal(_of(operator, {"a": a, "b": b})[0], np.stack([product.real, product.imag], -1))


def test_integers() -> None:
    a, b = (RANDOM.integers(-50, 50, (2, 3)).astype(np.int8) for _ in range(2))
    zero = np.array(5, np.int8)
    (found,) = _of("MulInteger", {"a": a, "z": zero, "b": b})
    np.testing.assert_array_equal(found, (a.astype(np.int32) - 5) * b.astype(np.int32))
    (found,) = _of("ReduceSumInteger", {"a": a}, axes=[1], keepdims=1)
    np.testing.assert_array_equal(found, a.astype(np.int32).sum(1, keepdims=True))


def test_finite_tensors() -> None:
    for number, expected in ((1.0, (True, True, True)), (np.inf, (False, False, True)), (np.nan, (False, True, False))):
        arrays = {"x": _floats(2, 3), "z": np.array([1.0, number], np.float32)}
        for options, wanted in zip(({}, {"isinf_only": 1}, {"isnan_only": 1}), expected, strict=True):
            assert bool(_of("IsAllFinite", arrays, **options)[0]) is wanted


def test_packed_attention() -> None:
    """Tokens of three sequences see their own alone."""
    tokens, width, heads = _floats(7, 4), _floats(4, 12), 2
    bias, ends = _floats(12), np.array([0, 3, 3, 7], np.int32)
    inputs = {"x": tokens, "w": width, "b": bias, "o": np.arange(12, dtype=np.int32).reshape(3, 4), "c": ends}
    projected = tokens @ width + bias
    rows = []
    for first, last in ((0, 3), (3, 7)):
        q, k, v = (part[first:last].reshape(-1, heads, 2).swapaxes(0, 1) for part in np.split(projected, 3, -1))
        found = _softmax(q @ k.swapaxes(1, 2) / np.sqrt(2)) @ v
        rows.append(found.swapaxes(0, 1).reshape(-1, 4))
    _equal(_of("PackedAttention", inputs, num_heads=heads)[0], np.concatenate(rows))
    parts = np.split(tokens @ width, 3, -1)
    inputs = {name: part for name, part in zip("qkv", parts, strict=True)} | {"b": bias, "o": inputs["o"], "c": ends}
    _equal(_of("PackedMultiHeadAttention", inputs, num_heads=heads)[0], np.concatenate(rows))


@pytest.mark.parametrize("both_ways", [0, 1])
def test_relative_position_bias(both_ways: int) -> None:
    """Buckets as the T5 of transformers computes them."""
    table, queries, keys, farthest = _floats(32, 3), 5, 60, 50
    weights = {"q": np.array([queries]), "k": np.array([keys])}
    made = node(
        "RelativePositionBias", "t q k", "y", domain="com.microsoft", max_distance=farthest, is_bidirectional=both_ways
    )
    proto = model([made], {"t": [32, 3]}, weights=weights, domains={"com.microsoft": 1})
    (found,) = _interpreted(weft.from_onnx(proto), table)
    distance = np.arange(keys)[None] - np.arange(queries)[:, None]
    count, buckets = 16 if both_ways else 32, np.zeros(distance.shape, np.int64)
    if both_ways:
        buckets += (distance > 0) * count
    size = np.abs(distance) if both_ways else -np.minimum(distance, 0)
    exact = count // 2
    large = exact + np.log(np.maximum(size, 1) / exact) / np.log(farthest / exact) * (count - exact)
    buckets += np.where(size < exact, size, np.minimum(large.astype(np.int64), count - 1))
    np.testing.assert_array_equal(found, table[buckets].transpose(2, 0, 1)[None])


# Symbolic extents


def _attention_model(shape: Sequence[Any], past: Any, cache: Any) -> ModelProto:
    """A layer of a decoder, and the cache for the next step."""
    random = np.random.default_rng(1)
    weights = {
        "w": random.standard_normal((8, 24)).astype(np.float32),
        "b": random.standard_normal(24).astype(np.float32),
        "g": np.ones(8, np.float32),
        "h": np.zeros(8, np.float32),
    }
    nodes = [
        node("Attention", "x w b m p", "a present", domain="com.microsoft", num_heads=2, unidirectional=1),
        node("SkipLayerNormalization", "a x g h", "y - - s", domain="com.microsoft", epsilon=1e-5),
    ]
    nodes[1].output[1:3] = ["", ""]
    inputs = {"x": [*shape, 8], "m": [shape[0], cache], "p": [2, shape[0], 2, past, 4]}
    kinds = {"m": TensorProto.INT32}
    return model(nodes, inputs, "y s present", weights, domains={"com.microsoft": 1}, types=kinds)


@pytest.mark.parametrize("compiled", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_symbolic_attention(compiled: bool) -> None:
    module = weft.from_onnx(_attention_model(["batch", "length"], "past", "past + length"))
    call: Any = weft.Interpreter(module).call
    if compiled:
        main = weft.build(module, target="llvm -num-threads=1 -opt-level=0")["main"]
        call = lambda _, *arrays: main(*arrays)  # noqa: E731
    for batch, length, past in ((1, 3, 2), (2, 1, 5)):
        mask = np.ones((batch, past + length), np.int32)
        mask[0, 0] = 0
        arrays = [_floats(batch, length, 8), mask, _floats(2, batch, 2, past, 4)]
        fixed = weft.from_onnx(_attention_model([batch, length], past, past + length))
        for found, wanted in zip(call("main", *arrays), _interpreted(fixed, *arrays), strict=True):
            assert found.shape == wanted.shape
            np.testing.assert_allclose(found, wanted, rtol=1e-3, atol=1e-4)


def _grouped_model(batch: Any, length: Any, past: Any, total: Any) -> ModelProto:
    nodes = [
        node("Shape", "m", "s"),
        node("Gather", "s one", "t64"),
        node("Cast", "t64", "t", to=TensorProto.INT32),
        node("ReduceSum", "m one", "n64", keepdims=0),
        node("Sub", "n64 unit", "k64"),
        node("Cast", "k64", "k", to=TensorProto.INT32),
        node(
            "GroupQueryAttention", "x - - pk pv k t c z", "y nk nv", domain="com.microsoft", num_heads=4,
            kv_num_heads=2, do_rotary=1,
        ),
    ]  # fmt: skip
    angles = np.arange(64, dtype=np.float32).reshape(16, 4) / 9
    weights = {"one": np.array([1]), "unit": np.array([1]), "c": np.cos(angles), "z": np.sin(angles)}
    cache = [batch, 2, past, 8]
    inputs = {"x": [batch, length, 64], "m": [batch, total], "pk": cache, "pv": cache}
    kinds = {"m": TensorProto.INT64}
    return model(nodes, inputs, "y nk nv", weights, domains={"com.microsoft": 1}, types=kinds)


def test_symbolic_grouped_attention() -> None:
    module = weft.from_onnx(_grouped_model("batch", "length", "past", "total"))
    for batch, length, past in ((1, 3, 0), (2, 1, 5), (1, 2, 4)):
        mask = np.ones((batch, past + length), np.int64)
        if batch > 1:
            mask[0, -2:] = 0
        arrays = [_floats(batch, length, 64), mask, _floats(batch, 2, past, 8), _floats(batch, 2, past, 8)]
        fixed = weft.from_onnx(_grouped_model(batch, length, past, past + length))
        for found, wanted in zip(_interpreted(module, *arrays), _interpreted(fixed, *arrays), strict=True):
            assert found.shape == wanted.shape
            np.testing.assert_allclose(found, wanted, rtol=1e-3, atol=1e-4)


# Bad input


def _edited(operator: str, has: str = "", **edits: Any) -> ModelProto:
    """A random node that has an input, with other attributes and arrays; None removes an attribute."""
    draws = (contrib_cases.drawn(operator, seed) for seed in range(60))
    draw = next(draw for draw in draws if not has or has in draw.arrays)
    for name, value in edits.items():
        if name in draw.arrays:
            draw.arrays[name] = value(draw.arrays[name])
        elif value is None:
            draw.attributes.pop(name)
        else:
            draw.attributes[name] = value
    return draw.model()


ATTENTION, GROUPED = ("Attention", "GroupQueryAttention")
REFUSED: Mapping[str, tuple[str, Mapping[str, Any], str]] = {
    "no heads": (ATTENTION, {"num_heads": 0}, "attribute 'num_heads' must be 1 to any number, got 0"),
    "a missing attribute": (ATTENTION, {"num_heads": None}, "attribute 'num_heads' is missing"),
    "an unknown attribute": (ATTENTION, {"heads": 1}, r"no attribute 'heads' in this opset.*did you mean 'num_heads'"),
    "heads that do not divide": (
        ATTENTION,
        {"num_heads": 97},
        r"com.microsoft.Attention \(opset 1\): attribute 'num_heads' = 97 does not divide the \d+ elements of input "
        "'weights', at node 0",
    ),
    "sizes of heads": (
        ATTENTION,
        {"qkv_hidden_sizes": [1, 2]},
        "'qkv_hidden_sizes' must be three multiples of 'num_heads' = ",
    ),
    "sizes of other weights": (
        ATTENTION,
        {"num_heads": 1, "qkv_hidden_sizes": [64, 64, 64]},
        r"input 'weights' of shape .* does not have parts of 'qkv_hidden_sizes' = \[64, 64, 64\]",
    ),
    "rotary": (ATTENTION, {"do_rotary": 1}, "attribute 'do_rotary' = 1 is not supported: RotaryEmbedding"),
    "a cache of another rank": (ATTENTION, {"has": "past", "past": lambda a: a[0]}, "input 'past' must have rank 5"),
    "a cache of other heads": (
        GROUPED,
        {"has": "past_key", "past_key": lambda a: a[:, :0]},
        r"input 'past_key' must have 'kv_num_heads' = \d heads, got 0",
    ),
    "heads of keys": (
        GROUPED,
        {"num_heads": 3, "kv_num_heads": 2},
        "attribute 'num_heads' = 3 must be a multiple of 'kv_num_heads' = 2",
    ),
    "caches of integers": (
        GROUPED,
        {"k_quant_type": "PER_TENSOR"},
        "'k_quant_type' = PER_TENSOR is not supported",
    ),
    "another window": (GROUPED, {"local_window_size": -7}, "attribute 'local_window_size' = -7 must be -1, or not"),
    "a negative total": (
        GROUPED,
        {"total_sequence_length": lambda a: a - 99},
        "input 'total_sequence_length' must not be negative",
    ),
    "an odd rotation": (
        "RotaryEmbedding",
        {"rotary_embedding_dim": 3},
        "an even number of up to .*, got 3 .*'rotary_embedding_dim' = 3",
    ),
    "another activation": ("FusedGemm", {"activation": "Foo"}, "attribute 'activation' must be one of Relu, .*'Foo'"),
    "numbers of an activation": (
        "FusedConv",
        {"activation": "Clip", "activation_params": [1.0]},
        r"attribute 'activation' = Clip has 2 numbers, got \[1.0\]",
    ),
    "no activation": ("FusedConv", {"activation": ""}, "attribute 'activation' must be one of Relu, .* got ''"),
    "an optional flag of 3": (GROUPED, {"do_rotary": 3}, "attribute 'do_rotary' must be 0 to 1, got 3"),
    "a negative limit": ("DynamicQuantizeLSTM", {"clip": -1.0}, "lstm: clip must be a number from 0 on, got -1.0"),
    "a wide window": (
        "NhwcMaxPool",
        {"kernel_shape": [1 << 40, 2]},
        r"a window over .* \(attributes .*'kernel_shape' = \[1099511627776, 2\]",
    ),
    "bytes of two numbers": (
        "GatherBlockQuantized",
        {"bits": 8, "block_size": 16, "data": lambda a: np.zeros((3, 999), np.uint8)},
        r"input 'scales' has \d+ blocks of 'block_size' = 16 for 999 elements of 'bits' = 8",
    ),
    "a flag of 2": ("FusedMatMul", {"transA": 2}, "attribute 'transA' must be 0 to 1, got 2"),
    "too many experts": ("MoE", {"k": 99}, "attribute 'k' = 99: . scores do not choose of . experts"),
    "a level of accuracy": ("QMoE", {"accuracy_level": 5}, "attribute 'accuracy_level' = 5 must be 0 to 4"),
    "bits of weights": ("QMoE", {"expert_weight_bits": 5}, "attribute 'expert_weight_bits' = 5 must be 2, 4 or 8"),
    "another block": (
        "GatherBlockQuantized",
        {"block_size": 17},
        "'block_size' must be a power of 2 from 16",
    ),
    "a large crop": (
        "CropAndResize",
        {"crop_size": lambda a: np.array([1 << 30, 1 << 30], a.dtype)},
        "is not computed at import: it is too large",
    ),
    "no square": ("Inverse", {"X": lambda a: np.zeros((3, 2), a.dtype)}, "input 'X' must hold square matrices"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name: str) -> None:
    operator, edits, message = REFUSED[name]
    with pytest.raises(weft.CompileError, match=message):
        weft.from_onnx(_edited(operator, **edits))


def test_blocked_weights_name_the_level() -> None:
    proto = model(
        [node("Conv", "x w", "y", domain="com.microsoft.nchwc")], {"x": [1, 3, 8, 8]},
        weights={"w": np.zeros((16, 3, 1, 1), np.float32)}, domains={"com.microsoft.nchwc": 1},
    )  # fmt: skip
    with pytest.raises(weft.CompileError, match="graph optimization level ORT_ENABLE_EXTENDED, not ORT_ENABLE_ALL"):
        weft.from_onnx(proto)


def test_blocked_images_are_plain() -> None:
    nodes = [
        node("ReorderInput", "x", "a"),
        node("MaxPool", "a", "b", kernel_shape=[2, 2]),
        node("Upsample", "b", "c", scales=[1, 1, 2, 3]),
        node("ReorderOutput", "c", "y", channels=3),
    ]
    for made in nodes:
        made.domain = "com.microsoft.nchwc"
    x = _floats(1, 4, 3, 3)
    (found,) = _interpreted(weft.from_onnx(model(nodes, {"x": x.shape}, domains={"com.microsoft.nchwc": 1})), x)
    pooled = np.maximum.reduce([x[..., i : i + 2, j : j + 2] for i in range(2) for j in range(2)])
    np.testing.assert_array_equal(found, pooled[:, :3].repeat(2, 2).repeat(3, 3))
