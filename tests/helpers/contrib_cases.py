"""Random nodes of the operators that onnxruntime adds to ONNX, compared with onnxruntime:

    python tests/helpers/contrib_cases.py [OPERATOR...] [--seeds 20] [--compiled] [--half]

`--half` draws inputs of float16, as far as the schemas of onnxruntime have them.
`--record` writes the results of onnxruntime that the first tier compares with: tests/data/onnx_contrib.npz.
"""

from __future__ import annotations

import argparse
import copy
import random
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import numpy as np
from onnx import ModelProto, TypeProto, helper

import weft

RECORD: Final = Path(__file__).parents[1] / "data" / "onnx_contrib.npz"
"""Results of onnxruntime for the first seeds of each operator."""
RECORDED: Final = 2
"""The nodes of each operator that are recorded."""

ON_GPUS: Final = (
    *("BiasSoftmax", "IsAllFinite", "MulInteger", "NhwcFusedConv", "QLinearReduceMean", "RelativePositionBias"),
)
"""Operators that onnxruntime does not implement for CPUs."""


@dataclass
class Draw:
    """A node that is being drawn."""

    operator: str
    domain: str = "com.microsoft"
    random: random.Random = field(default_factory=random.Random)
    numbers: np.random.RandomState = field(default_factory=np.random.RandomState)
    """Its stream is the same in all versions of NumPy."""
    inputs: list[str] = field(default_factory=list[str])
    arrays: dict[str, Any] = field(default_factory=dict[str, Any])
    bound: set[str] = field(default_factory=set[str])
    """Inputs that are constants of the model."""
    attributes: dict[str, Any] = field(default_factory=dict[str, Any])
    outputs: int = 1
    compared: dict[int, Any] = field(default_factory=dict[int, Any])
    """Output -> the part of it that is specified: an index."""
    tolerance: float = 2e-5
    opset: int = 17
    symbols: dict[str, Sequence[Any]] = field(default_factory=dict[str, Sequence[Any]])

    def give(self, name: str, array: Any, *, is_bound: bool = False) -> Any:
        """Let the next input be an array; None leaves it out."""
        self.inputs.append("" if array is None else name)
        if array is not None:
            self.arrays[name] = np.asarray(array)
            self.bound |= {name} if is_bound else set()
        return array

    def floats(self, *shape: int, low: float | None = None) -> Any:
        found = self.numbers.standard_normal(tuple(shape)).astype(np.float32)
        return found if low is None else np.abs(found) + np.float32(low)

    def integers(self, low: int, high: int, shape: Sequence[int], dtype: str) -> Any:
        return np.asarray(self.numbers.randint(low, high, tuple(shape))).astype(dtype)

    def maybe(self, array: Any, share: float = 0.5) -> Any:
        return array if self.random.random() < share else None

    def flag(self, name: str) -> bool:
        found = self.random.random() < 0.5
        if found or self.random.random() < 0.5:
            self.attributes[name] = int(found)
        return found

    def size(self, low: int = 1, high: int = 5) -> int:
        return self.random.randint(low, high)

    def model(self) -> ModelProto:
        """The model of the node alone."""
        while self.inputs and not self.inputs[-1]:
            self.inputs.pop()
        names = [f"out{at}" for at in range(self.outputs)]
        node = helper.make_node(self.operator, self.inputs, names, domain=self.domain, **self.attributes)
        kinds = {name: helper.np_dtype_to_tensor_dtype(array.dtype) for name, array in self.arrays.items()}
        inputs = [
            helper.make_tensor_value_info(name, kinds[name], self.symbols.get(name, array.shape))
            for name, array in self.arrays.items()
            if name not in self.bound
        ]
        bound = [helper.make_tensor(name, kinds[name], self.arrays[name].shape, self.arrays[name].tobytes(), raw=True)
                 for name in self.arrays if name in self.bound]  # fmt: skip
        outputs = [helper.make_value_info(name, TypeProto()) for name in names]
        graph = helper.make_graph([node], "contrib", inputs, outputs, bound)
        opsets = [helper.make_opsetid("", self.opset), helper.make_opsetid("com.microsoft", 1)]
        return helper.make_model(graph, opset_imports=opsets, ir_version=10)

    @property
    def feeds(self) -> dict[str, Any]:
        return {name: array for name, array in self.arrays.items() if name not in self.bound}


Maker = Callable[[Draw], None]
MAKERS: Final[dict[str, Maker]] = {}


def makes(*operators: str) -> Callable[[Maker], Maker]:
    """Let a function draw nodes of operators."""

    def enter(function: Maker) -> Maker:
        MAKERS.update(dict.fromkeys(operators, function))
        return function

    return enter


def drawn(operator: str, seed: int) -> Draw:
    """The node of a seed."""
    draw = Draw(operator, random=random.Random(f"{operator}{seed}"), numbers=np.random.RandomState(seed))
    if operator in ("SimplifiedLayerNormalization", "LayerNormalization", "Affine", "ParametricSoftplus", "ScaledTanh"):
        draw.domain = ""
    if operator in ("ImageScaler", "Crop"):
        draw.domain = ""
    MAKERS[operator](draw)
    return draw


# Elementwise operators and norms


@makes("Gelu", "QuickGelu", "FastGelu", "BiasGelu")
def _activation(draw: Draw) -> None:
    shape = [draw.size() for _ in range(draw.size(1, 3))]
    draw.give("A" if draw.operator == "BiasGelu" else "X", draw.floats(*shape))
    if draw.operator == "BiasGelu":
        draw.give("B", draw.floats(shape[-1]))
    elif draw.operator == "FastGelu":
        draw.give("bias", draw.maybe(draw.floats(shape[-1])))
    elif draw.operator == "QuickGelu" and draw.random.random() < 0.7:
        draw.attributes["alpha"] = draw.random.uniform(0.5, 2)


@makes("BiasSoftmax")
def _bias_softmax(draw: Draw) -> None:
    shape = [draw.size(1, 4) for _ in range(draw.size(2, 4))]
    axis = draw.random.randrange(1, len(shape))
    split = draw.random.randint(0, axis)
    is_inner = draw.random.random() < 0.5
    bias = [1 if (at >= split if is_inner else at < split) and at < axis else extent for at, extent in enumerate(shape)]
    draw.give("data", draw.floats(*shape))
    draw.give("bias", draw.floats(*bias))
    draw.attributes |= {"axis": axis - len(shape) * (draw.random.random() < 0.3), "is_inner_broadcast": int(is_inner)}


@makes("SimplifiedLayerNormalization", "LayerNormalization")
def _layer_norm(draw: Draw) -> None:
    shape = [draw.size(1, 6) for _ in range(draw.size(1, 4))]
    axis = draw.random.randrange(-len(shape), len(shape))
    draw.give("X", draw.floats(*shape))
    draw.give("scale", draw.floats(*shape[axis:]))
    if draw.operator == "LayerNormalization":
        draw.give("B", draw.maybe(draw.floats(*shape[axis:])))
        draw.opset = 13
    draw.attributes |= {"axis": axis, "epsilon": draw.random.choice((1e-5, 1e-3))}


@makes("SkipLayerNormalization", "SkipSimplifiedLayerNormalization")
def _skip_layer_norm(draw: Draw) -> None:
    batch, length, width = draw.size(), draw.size(), draw.size(1, 8)
    draw.give("input", draw.floats(batch, length, width))
    shapes = [(batch, length, width), (1, length, width), (length, width)]
    draw.give("skip", draw.floats(*draw.random.choice(shapes)))
    draw.give("gamma", draw.floats(width))
    if draw.operator == "SkipLayerNormalization":
        draw.give("beta", draw.maybe(draw.floats(width)))
    draw.give("bias", draw.maybe(draw.floats(width)))
    draw.attributes["epsilon"] = draw.random.choice((1e-5, 1e-2))
    draw.outputs = 4
    draw.compared = {1: None, 2: None}


@makes("EmbedLayerNormalization")
def _embed(draw: Draw) -> None:
    batch, length, width, words = draw.size(), draw.size(), draw.size(2, 8), 11
    draw.give("input_ids", draw.integers(0, words, (batch, length), "int32"))
    has_segments = draw.random.random() < 0.5
    draw.give("segment_ids", draw.integers(0, 2, (batch, length), "int32") if has_segments else None)
    draw.give("word_embedding", draw.floats(words, width))
    draw.give("position_embedding", draw.floats(9, width))
    draw.give("segment_embedding", draw.floats(2, width) if has_segments else None)
    draw.give("gamma", draw.floats(width))
    draw.give("beta", draw.floats(width))
    draw.give("mask", draw.maybe(draw.integers(0, 2, (batch, length), "int32")))
    rows = draw.random.choice((1, batch))
    draw.give("position_ids", draw.maybe(draw.integers(0, 9, (rows, length), "int32")))
    draw.attributes["epsilon"] = 1e-5
    draw.outputs = draw.random.choice((2, 3))


@makes("QEmbedLayerNormalization")
def _qembed(draw: Draw) -> None:
    batch, length, width, words = draw.size(), draw.size(), draw.size(2, 8), 11
    has_segments, dtype = draw.random.random() < 0.5, draw.random.choice(("int8", "uint8"))
    draw.give("input_ids", draw.integers(0, words, (batch, length), "int32"))
    draw.give("segment_ids", draw.integers(0, 2, (batch, length), "int32") if has_segments else None)
    names = ("word", "position", "segment", "gamma", "beta")
    shapes = [(words, width), (9, width), (2, width), (width,), (width,)]
    given = [name for name in names if has_segments or name != "segment"]
    for name, shape in zip(names, shapes, strict=True):
        draw.give(name, draw.integers(0, 120, shape, dtype) if name in given else None)
    draw.give("mask", draw.maybe(draw.integers(0, 2, (batch, length), "int32")))
    for name in names:
        draw.give(f"{name}_scale", np.float32(0.02) if name in given else None)
    for name in names:
        draw.give(f"{name}_zero", draw.integers(40, 80, (), dtype) if name in given else None)
    draw.attributes["epsilon"] = 1e-5
    draw.outputs = 2


@makes("RelativePositionBias")
def _relative_position_bias(draw: Draw) -> None:
    draw.give("bias_table", draw.floats(2 * draw.size(2, 16), draw.size(1, 3)))
    length = draw.size(1, 40)
    draw.give("query_length", np.array([length], np.int64), is_bound=True)
    draw.give("key_length", np.array([length], np.int64), is_bound=True)
    draw.attributes["max_distance"] = draw.random.choice((32, 128))
    draw.flag("is_bidirectional")


# Products


@makes("FusedMatMul", "TransposeMatMul")
def _fused_matmul(draw: Draw) -> None:
    rank = draw.size(2, 4)
    batch = [draw.size(1, 3) for _ in range(rank - 2)]
    m, k, n = draw.size(), draw.size(), draw.size()
    flags = {name: draw.flag(name) for name in ("transA", "transB")}
    moves = {name: False for name in ("transBatchA", "transBatchB")}
    if draw.operator == "FusedMatMul" and rank > 2:
        moves = {name: draw.flag(name) for name in moves}
    for name, rows, columns in (("A", m, k), ("B", k, n)):
        matrix = [columns, rows] if flags[f"trans{name}"] else [rows, columns]
        shape = [matrix[0], *batch, matrix[1]] if moves[f"transBatch{name}"] else [*batch, *matrix]
        draw.give(name, draw.floats(*shape))
    draw.attributes["alpha"] = draw.random.choice((1.0, 0.25))


@makes("FusedGemm")
def _fused_gemm(draw: Draw) -> None:
    m, k, n = draw.size(), draw.size(), draw.size()
    left, right = draw.flag("transA"), draw.flag("transB")
    draw.give("A", draw.floats(*((k, m) if left else (m, k))))
    draw.give("B", draw.floats(*((n, k) if right else (k, n))))
    draw.give("C", draw.maybe(draw.floats(*draw.random.choice([(n,), (m, n), (m, 1), (1, n)]))))
    draw.attributes |= {"alpha": draw.random.choice((1.0, 0.5)), "beta": draw.random.choice((1.0, 2.0))}
    activation = draw.random.choice(("", "Relu", "Sigmoid", "Tanh", "LeakyRelu", "Elu", "Softplus", "Selu"))
    if activation:
        draw.attributes["activation"] = activation
    if activation in ("LeakyRelu", "Elu"):
        draw.attributes["activation_alpha"] = 0.3


@makes("CDist")
def _cdist(draw: Draw) -> None:
    width = draw.size()
    draw.give("A", draw.floats(draw.size(), width))
    draw.give("B", draw.floats(draw.size(), width))
    draw.attributes["metric"] = draw.random.choice(("euclidean", "sqeuclidean"))
    draw.tolerance = 1e-4


@makes("MatMulIntegerToFloat")
def _matmul_integer_to_float(draw: Draw) -> None:
    batch = [draw.size(1, 3) for _ in range(draw.size(0, 1))]
    m, k, n = draw.size(), draw.size(1, 9), draw.size()
    left, right = "uint8", draw.random.choice(("int8", "uint8"))
    draw.give("A", draw.integers(0, 256, (*batch, m, k), left))
    draw.give("B", draw.integers(0, 100, (k, n), right))
    columns = draw.random.random() < 0.5
    draw.give("a_scale", draw.floats(1, low=0.1)[0])
    draw.give("b_scale", draw.floats(n, low=0.1) if columns else draw.floats(1, low=0.1)[0])
    draw.give("a_zero_point", draw.maybe(draw.integers(0, 200, (), left)))
    draw.give("b_zero_point", draw.maybe(draw.integers(0, 50, (n,) if columns else (), right)))
    draw.give("bias", draw.maybe(draw.floats(n)))


@makes("DynamicQuantizeMatMul")
def _dynamic_quantize_matmul(draw: Draw) -> None:
    m, k, n = draw.size(), draw.size(1, 9), draw.size()
    right = draw.random.choice(("int8", "uint8"))
    draw.give("A", draw.floats(*[draw.size(1, 3) for _ in range(draw.size(0, 1))], m, k))
    draw.give("B", draw.integers(0, 100, (k, n), right))
    columns = draw.random.random() < 0.5
    draw.give("b_scale", draw.floats(n, low=0.1) if columns else draw.floats(1, low=0.1)[0])
    draw.give("b_zero_point", draw.maybe(draw.integers(0, 50, (n,) if columns else (), right)))
    draw.give("bias", draw.maybe(draw.floats(n)))
    draw.tolerance = 1e-2  # a number halfway between two steps may be rounded either way


@makes("QGemm")
def _qgemm(draw: Draw) -> None:
    m, k, n = draw.size(), draw.size(1, 9), draw.size()
    left, right = draw.flag("transA"), draw.flag("transB")
    dtype = draw.random.choice(("int8", "uint8"))
    other = "int8" if dtype == "int8" else draw.random.choice(("int8", "uint8"))
    columns = draw.random.random() < 0.5
    draw.give("A", draw.integers(0, 100, (k, m) if left else (m, k), dtype))
    draw.give("a_scale", np.float32(0.05))
    draw.give("a_zero_point", draw.integers(0, 50, (), dtype))
    draw.give("B", draw.integers(0, 100, (n, k) if right else (k, n), other))
    draw.give("b_scale", draw.floats(n, low=0.02) if columns else np.float32(0.03))
    draw.give("b_zero_point", draw.integers(0, 50, (n,) if columns else (), other))
    draw.give("C", draw.maybe(draw.integers(-500, 500, draw.random.choice([(n,), (m, n)]), "int32")))
    if draw.random.random() < 0.5:
        draw.give("y_scale", np.float32(0.5))
        draw.give("y_zero_point", draw.integers(0, 50, (), dtype))
    draw.attributes["alpha"] = draw.random.choice((1.0, 0.5))


# Convolutions


def _window(draw: Draw, rank: int, kernel: Sequence[int]) -> None:
    draw.attributes["kernel_shape"] = list(kernel)
    if draw.random.random() < 0.5:
        draw.attributes["strides"] = [draw.size(1, 2) for _ in range(rank)]
    if draw.random.random() < 0.5:
        draw.attributes["pads"] = [draw.random.randint(0, min(1, size - 1)) for size in kernel] * 2
    elif draw.random.random() < 0.3:
        draw.attributes["auto_pad"] = draw.random.choice(("SAME_UPPER", "SAME_LOWER", "VALID"))


def _dilate(draw: Draw, kernel: Sequence[int]) -> None:
    """With padding to the same extents onnxruntime ignores dilations of pools and refuses those of convolutions."""
    if max(kernel) < 3 and "SAME" not in draw.attributes.get("auto_pad", "") and draw.random.random() < 0.4:
        draw.attributes["dilations"] = [draw.size(1, 2) for _ in kernel]


@makes("FusedConv", "NhwcFusedConv")
def _fused_conv(draw: Draw) -> None:
    group = draw.size(1, 2)
    channels, filters = group * draw.size(1, 2), group * draw.size(1, 2)
    kernel = [draw.size(1, 3), draw.size(1, 3)]
    batch, height, width = draw.size(1, 2), draw.size(4, 6), draw.size(4, 6)
    is_last = draw.operator.startswith("Nhwc")
    draw.give("X", draw.floats(*((batch, height, width, channels) if is_last else (batch, channels, height, width))))
    draw.give("W", draw.floats(filters, channels // group, *kernel))
    draw.give("B", draw.maybe(draw.floats(filters)))
    draw.attributes["group"] = group
    _window(draw, 2, kernel)
    _dilate(draw, kernel)
    activation = draw.random.choice(("", "Relu", "Sigmoid", "Tanh", "LeakyRelu", "Clip", "HardSigmoid"))
    numbers = {"LeakyRelu": [0.2], "Clip": [-0.5, 0.75], "HardSigmoid": [0.3, 0.4]}.get(activation)
    draw.attributes |= {"activation": activation} if activation else {}
    draw.attributes |= {"activation_params": numbers} if numbers else {}


@makes("ConvTransposeWithDynamicPads")
def _conv_transpose(draw: Draw) -> None:
    channels, filters, kernel = draw.size(1, 3), draw.size(1, 3), [draw.size(1, 3), draw.size(1, 3)]
    draw.give("X", draw.floats(draw.size(1, 2), channels, draw.size(2, 5), draw.size(2, 5)))
    draw.give("W", draw.floats(channels, filters, *kernel))
    pads = [draw.random.randint(0, min(1, size - 1)) for size in kernel] * 2
    draw.give("Pads", np.array(pads, np.int64), is_bound=True)
    draw.give("B", draw.maybe(draw.floats(filters)))
    draw.attributes["strides"] = [draw.size(1, 2), draw.size(1, 2)]
    if draw.random.random() < 0.4:
        draw.attributes["kernel_shape"] = kernel
    if draw.random.random() < 0.4:
        draw.attributes["dilations"] = [draw.size(1, 2), draw.size(1, 2)]
    if draw.random.random() < 0.4:
        draw.attributes["output_padding"] = [draw.random.randrange(step) for step in draw.attributes["strides"]]


@makes("NhwcMaxPool")
def _nhwc_max_pool(draw: Draw) -> None:
    kernel = [draw.size(1, 3), draw.size(1, 3)]
    dtype = draw.random.choice(("int8", "uint8"))
    draw.give("x", draw.integers(0, 100, (draw.size(1, 2), draw.size(4, 6), draw.size(4, 6), draw.size(1, 3)), dtype))
    _window(draw, 2, kernel)
    _dilate(draw, kernel)


# Quantized operators


def _scale(draw: Draw) -> Any:
    return np.float32(draw.random.choice((0.01, 0.05, 0.2)))


@makes("QLinearAdd", "QLinearMul")
def _qlinear_binary(draw: Draw) -> None:
    dtype = draw.random.choice(("int8", "uint8"))
    shape = [draw.size() for _ in range(draw.size(1, 3))]
    other = [draw.random.choice((1, extent)) for extent in shape][draw.random.randrange(len(shape)) :]
    for name, extents in (("A", shape), ("B", other)):
        draw.give(name, draw.integers(0, 127, extents, dtype))
        draw.give(f"{name}_scale", _scale(draw))
        draw.give(f"{name}_zero_point", draw.integers(0, 100, (), dtype))  # onnxruntime refuses to infer without
    draw.give("C_scale", _scale(draw))
    draw.give("C_zero_point", draw.maybe(draw.integers(0, 100, (), dtype)))


@makes("QLinearSigmoid", "QLinearLeakyRelu", "QLinearSoftmax")
def _qlinear_unary(draw: Draw) -> None:
    dtype = draw.random.choice(("int8", "uint8"))
    draw.give("X", draw.integers(0, 127, [draw.size() for _ in range(draw.size(1, 3))], dtype))
    draw.give("X_scale", _scale(draw), is_bound=True)
    draw.give("X_zero_point", draw.integers(0, 100, (), dtype), is_bound=True)
    draw.give("Y_scale", np.float32(1 / 256) if draw.operator == "QLinearSoftmax" else _scale(draw), is_bound=True)
    zero = np.array(0 if dtype == "uint8" else -128, dtype)
    draw.give("Y_zero_point", zero if draw.operator == "QLinearSoftmax" else draw.integers(0, 100, (), dtype),
              is_bound=True)  # fmt: skip
    if draw.operator == "QLinearLeakyRelu":
        draw.attributes["alpha"] = 0.3
    if draw.operator == "QLinearSoftmax":
        rank = draw.arrays["X"].ndim
        draw.attributes |= {"opset": draw.random.choice((12, 13)), "axis": draw.random.randrange(-rank, rank)}


@makes("QLinearConcat")
def _qlinear_concat(draw: Draw) -> None:
    dtype = draw.random.choice(("int8", "uint8"))
    shape = [draw.size() for _ in range(draw.size(1, 3))]
    axis = draw.random.randrange(len(shape))
    draw.give("Y_scale", _scale(draw), is_bound=True)
    draw.give("Y_zero_point", draw.integers(0, 100, (), dtype), is_bound=True)
    for at in range(draw.size(1, 3)):
        shape[axis] = draw.size()
        draw.give(f"x{at}", draw.integers(0, 127, shape, dtype))
        draw.give(f"scale{at}", _scale(draw), is_bound=True)
        draw.give(f"zero{at}", draw.integers(0, 100, (), dtype), is_bound=True)
    draw.attributes["axis"] = axis


@makes("QLinearAveragePool", "QLinearGlobalAveragePool")
def _qlinear_pool(draw: Draw) -> None:
    dtype = draw.random.choice(("int8", "uint8"))
    is_last = draw.flag("channels_last")
    batch, channels, extents = draw.size(1, 2), draw.size(1, 3), (draw.size(4, 6), draw.size(4, 6))
    draw.give(
        "X", draw.integers(0, 127, (batch, *extents, channels) if is_last else (batch, channels, *extents), dtype)
    )
    draw.give("x_scale", _scale(draw))
    draw.give("x_zero_point", draw.integers(0, 100, (), dtype))
    draw.give("y_scale", _scale(draw))
    draw.give("y_zero_point", draw.integers(0, 100, (), dtype))
    if draw.operator == "QLinearAveragePool":
        _window(draw, 2, [draw.size(1, 3), draw.size(1, 3)])
        draw.flag("count_include_pad")


@makes("QLinearConv")
def _qlinear_conv(draw: Draw) -> None:
    """Of weights, scales and zero points that are constants, or not."""
    group = draw.size(1, 2)
    channels, filters, kernel = group * draw.size(1, 2), group * draw.size(1, 2), [draw.size(1, 3), draw.size(1, 3)]
    is_last, is_bound, per_filter = draw.flag("channels_last"), draw.random.random() < 0.7, draw.random.random() < 0.5
    batch, extents = draw.size(1, 2), (draw.size(4, 6), draw.size(4, 6))
    draw.give(
        "x", draw.integers(0, 256, (batch, *extents, channels) if is_last else (batch, channels, *extents), "uint8")
    )
    draw.give("x_scale", np.float32(0.02), is_bound=is_bound)
    draw.give("x_zero_point", draw.integers(0, 200, (), "uint8"), is_bound=is_bound)
    draw.give("w", draw.integers(-100, 100, (filters, channels // group, *kernel), "int8"), is_bound=is_bound)
    scales = draw.floats(filters, low=0.2) / 20 if per_filter else np.float32(0.03)
    draw.give("w_scale", scales, is_bound=is_bound)
    draw.give("w_zero_point", np.zeros((filters,) if per_filter else (), np.int8), is_bound=is_bound)
    draw.give("y_scale", np.float32(0.1), is_bound=is_bound)
    draw.give("y_zero_point", draw.integers(0, 200, (), "uint8"), is_bound=is_bound)
    draw.give("B", draw.maybe(draw.integers(-500, 500, (filters,), "int32")), is_bound=is_bound)
    draw.attributes["group"] = group
    _window(draw, 2, kernel)
    _dilate(draw, kernel)


@makes("QLinearReduceMean")
def _qlinear_reduce_mean(draw: Draw) -> None:
    dtype = draw.random.choice(("int8", "uint8"))
    rank = draw.size(1, 3)
    draw.give("data", draw.integers(0, 127, [draw.size() for _ in range(rank)], dtype))
    draw.give("data_scale", _scale(draw))
    draw.give("data_zero_point", draw.maybe(draw.integers(0, 100, (), dtype)))
    draw.give("reduced_scale", _scale(draw))
    draw.give("reduced_zero_point", draw.maybe(draw.integers(0, 100, (), dtype)))
    draw.attributes |= {
        "axes": sorted(draw.random.sample(range(rank), draw.size(1, rank))),
        "keepdims": draw.size(0, 1),
    }


@makes("QLinearWhere")
def _qlinear_where(draw: Draw) -> None:
    dtype, shape = draw.random.choice(("int8", "uint8")), [draw.size(), draw.size()]
    draw.give("condition", draw.integers(0, 2, shape, "bool"))
    for name in ("X", "Y"):
        draw.give(name, draw.integers(0, 127, shape, dtype))
        draw.give(f"{name}_scale", _scale(draw), is_bound=True)
        draw.give(f"{name}_zero_point", draw.integers(0, 100, (), dtype), is_bound=True)
    draw.give("z_scale", _scale(draw), is_bound=True)
    draw.give("z_zero_point", draw.integers(0, 100, (), dtype), is_bound=True)


@makes("QuantizeLinear", "DequantizeLinear")
def _quantize(draw: Draw) -> None:
    dtype = draw.random.choice(("int8", "uint8"))
    shape = [draw.size() for _ in range(draw.size(1, 3))]
    axis = draw.random.randrange(-len(shape), len(shape))
    is_axis = draw.random.random() < 0.5
    extents = [shape[axis]] if is_axis else []
    draw.give("x", draw.floats(*shape) if draw.operator[0] == "Q" else draw.integers(0, 127, shape, dtype))
    draw.give("scale", draw.floats(*extents, low=0.05))
    draw.give("zero_point", draw.integers(0, 100, extents, dtype))
    draw.attributes |= {"axis": axis} if is_axis else {}


@makes("MulInteger")
def _mul_integer(draw: Draw) -> None:
    dtype = draw.random.choice(("int8", "uint8"))
    for name in ("A", "B"):
        draw.give(name, draw.integers(0, 127, (3, 4), dtype))
        draw.give(f"{name}_zero_point", draw.maybe(draw.integers(0, 100, (), dtype)))


@makes("DynamicQuantizeLSTM")
def _dynamic_lstm(draw: Draw) -> None:
    steps, batch, width, hidden = draw.size(), draw.size(1, 3), draw.size(2, 6), draw.size(2, 6)
    direction = draw.random.choice(("forward", "reverse", "bidirectional"))
    ways = 2 if direction == "bidirectional" else 1
    gates = 4 * hidden
    dtype = draw.random.choice(("int8", "uint8"))
    per_gate = draw.random.random() < 0.5
    draw.give("X", draw.floats(steps, batch, width))
    draw.give("W", draw.integers(0, 100, (ways, width, gates), dtype), is_bound=True)
    draw.give("R", draw.integers(0, 100, (ways, hidden, gates), dtype), is_bound=True)
    draw.give("B", draw.maybe(draw.floats(ways, 2 * gates)))
    lengths = draw.integers(1, steps + 1, (batch,), "int32")
    draw.give("sequence_lens", draw.maybe(lengths, 0.3))
    draw.give("initial_h", draw.maybe(draw.floats(ways, batch, hidden)))
    draw.give("initial_c", draw.floats(ways, batch, hidden) if draw.inputs[-1] else None)
    draw.give("P", draw.maybe(draw.floats(ways, 3 * hidden), 0.3))
    for name in "WR":
        extents = (ways, gates) if per_gate else (ways,)
        draw.give(f"{name}_scale", draw.floats(*extents, low=0.5) / 100, is_bound=True)
        zero = 50 if dtype == "uint8" else 0  # as onnxruntime requires
        draw.give(f"{name}_zero_point", np.full(extents, zero, dtype), is_bound=True)
    draw.attributes |= {"direction": direction, "hidden_size": hidden}
    draw.flag("input_forget")
    if draw.random.random() < 0.3:
        draw.attributes["clip"] = 0.75
    if draw.random.random() < 0.4:
        known = ("Relu", "Sigmoid", "Tanh")
        draw.attributes["activations"] = [draw.random.choice(known) for _ in range(3 * ways)]
    draw.outputs, draw.tolerance = 3, 5e-2


# Attention


def _mask(draw: Draw, batch: int, length: int, total: int) -> Any:
    kind = draw.random.choice(("none", "keys", "scores", "ends", "starts"))
    if kind == "keys":
        return draw.integers(0, 2, (batch, total), "int32")
    if kind == "scores":
        return draw.integers(0, 2, (batch, length, total), "int32")
    ends = draw.integers(1, total + 1, (batch,), "int32")
    if kind == "ends":
        return ends
    return (
        np.concatenate([ends, np.minimum(draw.integers(0, 2, (batch,), "int32"), ends - 1)])
        if kind == "starts"
        else None
    )


@makes("Attention", "QAttention")
def _attention(draw: Draw) -> None:
    batch, length, number, depth = draw.size(2, 3), draw.size(), draw.size(1, 3), draw.size(1, 4)
    past, width = draw.random.choice((0, 0, 1, 3)), draw.size(2, 6)
    value_depth = depth if past or draw.operator == "QAttention" else draw.random.choice((depth, draw.size(1, 4)))
    sizes = [number * depth, number * depth, number * value_depth]
    total = past + length
    mask = _mask(draw, batch, length, total)
    old = draw.floats(2, batch, number, past, depth) if past else None
    if draw.operator == "QAttention":
        draw.give("input", draw.integers(0, 255, (batch, length, width), "uint8"))
        draw.give("weight", draw.integers(0, 100, (width, sum(sizes)), "int8"))
        draw.give("bias", draw.floats(sum(sizes)))
        draw.give("input_scale", np.float32(0.02))
        draw.give("weight_scale", np.float32(0.01))
        draw.give("mask_index", mask)
        draw.give("input_zero_point", draw.maybe(np.uint8(128)))
        draw.give("weight_zero_point", draw.maybe(np.int8(50)))
        draw.give("past", old)
    else:
        draw.give("input", draw.floats(batch, length, width))
        draw.give("weights", draw.floats(width, sum(sizes)))
        draw.give("bias", draw.maybe(draw.floats(sum(sizes))))
        draw.give("mask_index", mask)
        draw.give("past", old)
        bias = draw.floats(draw.random.choice((1, batch)), draw.random.choice((1, number)), length, total)
        draw.give("attention_bias", draw.maybe(bias, 0.4))
        if value_depth != depth or draw.random.random() < 0.3:
            draw.attributes["qkv_hidden_sizes"] = sizes
    draw.attributes["num_heads"] = number
    draw.flag("unidirectional")
    if draw.random.random() < 0.3:
        draw.attributes["scale"] = 0.5
    if draw.random.random() < 0.3:
        draw.attributes["mask_filter_value"] = -5.0
    draw.outputs = 2 if past else 1
    draw.tolerance = 1e-3  # as above


@makes("MultiHeadAttention")
def _multi_head(draw: Draw) -> None:
    batch, length, number, depth = draw.size(2, 3), draw.size(), draw.size(1, 3), draw.size(1, 4)
    kind = draw.random.choice(("self", "self", "past", "cross", "states"))
    keys = length if kind in ("self", "past") else draw.size()
    past = draw.size() if kind == "past" else 0
    value_depth = depth if kind != "self" else draw.random.choice((depth, draw.size(1, 4)))
    total = past + keys
    draw.give("query", draw.floats(batch, length, number * depth))
    if kind == "states":
        draw.give("key", draw.floats(batch, number, keys, depth))
        draw.give("value", draw.floats(batch, number, keys, value_depth))
    else:
        draw.give("key", draw.floats(batch, keys, number * depth))
        draw.give("value", draw.floats(batch, keys, number * value_depth))
    draw.give("bias", draw.maybe(draw.floats(number * (2 * depth + value_depth))))
    mask = draw.random.choice(("none", "keys", "scores", "ends"))
    masks = {
        "keys": lambda: draw.integers(0, 2, (batch, total), "int32"),
        "scores": lambda: draw.integers(0, 2, (batch, length, total), "int32"),
        "ends": lambda: draw.integers(1, total + 1, (batch,), "int32"),
    }
    draw.give("key_padding_mask", masks[mask]() if mask in masks else None)
    bias = draw.floats(draw.random.choice((1, batch)), draw.random.choice((1, number)), length, total)
    draw.give("attention_bias", draw.maybe(bias, 0.4))
    if past:
        draw.give("past_key", draw.floats(batch, number, past, depth))
        draw.give("past_value", draw.floats(batch, number, past, depth))
    draw.attributes["num_heads"] = number
    if kind in ("self", "past"):
        draw.flag("unidirectional")
    if draw.random.random() < 0.3:
        draw.attributes["scale"] = 0.5
    if draw.random.random() < 0.3:
        draw.attributes["mask_filter_value"] = -5.0
    draw.outputs = 3 if past else draw.random.choice((1, 3))
    draw.tolerance = 1e-3  # scores near -10000 are a thousandth apart


@makes("DecoderMaskedMultiHeadAttention")
def _decoder_masked(draw: Draw) -> None:
    batch, number, depth, past = draw.size(2, 3), draw.size(1, 3), draw.size(1, 4), draw.size()
    is_cross = draw.random.random() < 0.4
    draw.give("query", draw.floats(batch, 1, number * depth))
    if is_cross:
        draw.give("key", draw.floats(batch, number, past, depth))
        draw.give("value", draw.floats(batch, number, past, depth))
        draw.give("mask_index", draw.maybe(draw.integers(0, 2, (batch, past), "int32")))
        draw.give("attention_bias", None)
    else:
        draw.give("key", draw.floats(batch, 1, number * depth))
        draw.give("value", draw.floats(batch, 1, number * depth))
        draw.give("mask_index", draw.maybe(draw.integers(0, 2, (batch, past + 1), "int32")))
        draw.give("attention_bias", draw.maybe(draw.floats(1, number, 1, past + 1)))
        draw.give("past_key", draw.floats(batch, number, past, depth))
        draw.give("past_value", draw.floats(batch, number, past + 2, depth))
        draw.arrays["past_key"] = draw.floats(batch, number, past + 2, depth)
        draw.give("past_sequence_length", np.array([past], np.int32))
        draw.attributes["past_present_share_buffer"] = 1
        draw.compared[1] = draw.compared[2] = lambda out: [out[:, :, : past + 1]]
        if draw.random.random() < 0.3:
            draw.inputs += ["", ""]
            draw.give("bias", draw.floats(3 * number * depth))
    draw.attributes["num_heads"] = number
    if draw.random.random() < 0.3:
        draw.attributes["scale"] = 0.5
    if draw.random.random() < 0.3:
        draw.attributes["mask_filter_value"] = -5.0
    draw.outputs = 1 if is_cross else 3
    draw.tolerance = 1e-3


@makes("RotaryEmbedding")
def _rotary(draw: Draw) -> None:
    batch, number, length, half = draw.size(), draw.size(1, 3), draw.size(), draw.size(1, 4)
    longest = 12
    is_flat = draw.random.random() < 0.5
    extra = 2 * draw.size(0, 2)
    depth = 2 * half + extra
    if is_flat:
        draw.give("input", draw.floats(batch, length, number * depth))
    else:
        draw.give("input", draw.floats(batch, number, length, depth))
    if extra:
        draw.attributes["rotary_embedding_dim"] = 2 * half
        draw.attributes["num_heads"] = number
    one = draw.random.random() < 0.5
    places = draw.integers(0, 5, (1,), "int64") if one else draw.integers(0, longest, (batch, length), "int64")
    draw.give("position_ids", places)
    angles = draw.floats(longest, half)
    draw.give("cos_cache", np.cos(angles))
    draw.give("sin_cache", np.sin(angles))
    draw.flag("interleaved")
    if draw.random.random() < 0.2:
        draw.attributes["scale"] = 1.0
    if not extra and is_flat and draw.random.random() < 0.5:
        draw.attributes["num_heads"] = number


@makes("GroupQueryAttention")
def _group_query(draw: Draw) -> None:
    shared, times, half = draw.size(1, 2), draw.size(1, 2), draw.size(1, 3) * 8
    number, depth, batch = shared * times, 2 * half, draw.size(1, 3)
    is_first = draw.random.random() < 0.5
    length = draw.size(1, 5) if is_first else 1
    past = 0 if is_first else draw.size(1, 5)
    room = past + draw.random.choice((0, length, length + 2)) if not is_first else draw.random.choice((0, length, 7))
    lengths = (
        draw.integers(1, length + 1, (batch,), "int32") if is_first else draw.integers(1, past + 2, (batch,), "int32")
    )
    lengths[0] = length if is_first else past + 1
    total = int(lengths.max())
    if not is_first and room < past:
        room = past
    is_packed = draw.random.random() < 0.4
    if is_packed:
        draw.give("query", draw.floats(batch, length, (number + 2 * shared) * depth))
        draw.give("key", None)
        draw.give("value", None)
    else:
        draw.give("query", draw.floats(batch, length, number * depth))
        draw.give("key", draw.floats(batch, length, shared * depth))
        draw.give("value", draw.floats(batch, length, shared * depth))
    room = max(room, past)
    draw.give("past_key", draw.floats(batch, shared, room, depth) if room else None)
    draw.give("past_value", draw.floats(batch, shared, room, depth) if room else None)
    draw.give("seqlens_k", lengths - 1)
    draw.give("total_sequence_length", np.array(total, np.int32), is_bound=True)
    rotary = draw.flag("do_rotary")
    angles = draw.floats(16, half)
    draw.give("cos_cache", np.cos(angles) if rotary else None)
    draw.give("sin_cache", np.sin(angles) if rotary else None)
    places = draw.integers(0, 16, (batch, length), "int64")
    draw.give("position_ids", draw.maybe(places, 0.3) if rotary else None)
    draw.give("attention_bias", draw.maybe(draw.floats(1, number, length, total), 0.2))
    draw.give("head_sink", draw.maybe(draw.floats(number), 0.2))
    draw.attributes |= {"num_heads": number, "kv_num_heads": shared}
    if draw.random.random() < 0.3:
        draw.attributes["local_window_size"] = draw.size(1, 4)
    if draw.random.random() < 0.2:
        draw.attributes["softcap"] = 2.0
    if draw.random.random() < 0.2:
        draw.attributes["scale"] = 0.3
    if rotary:
        draw.flag("rotary_interleaved")
    if draw.random.random() < 0.2 and "head_sink" not in draw.arrays:
        draw.attributes["smooth_softmax"] = 1
    draw.outputs, draw.tolerance = 3, 1e-4
    valid = [(b, int(n)) for b, n in enumerate(lengths)]
    if is_first:
        draw.compared[0] = lambda out: [out[b, :n] for b, n in valid]
    draw.compared[1] = draw.compared[2] = lambda out: [out[b, :, :n] for b, n in valid]


# Experts


@makes("MoE", "QMoE")
def _moe(draw: Draw) -> None:
    tokens, width, inner, number = draw.size(1, 6), 32, 32, draw.size(1, 4)
    is_gated = draw.random.random() < 0.5
    fused = 2 if is_gated else 1
    draw.give("input", draw.floats(tokens, width))
    draw.give("router_probs", draw.floats(tokens, number))
    layers = {"fc1": (fused * inner, width), "fc2": (width, inner)}
    bits = draw.random.choice((4, 8))
    block = draw.random.choice((0, 32))
    for name, (outputs, inputs) in layers.items():
        if draw.operator == "MoE":
            draw.give(f"{name}_weights", draw.floats(number, outputs, inputs) / 4)
        else:
            draw.give(f"{name}_weights", draw.integers(0, 256, (number, outputs, inputs * bits // 8), "uint8"),
                      is_bound=True)  # fmt: skip
            shape = (number, outputs, inputs // block) if block else (number, outputs)
            draw.give(f"{name}_scales", draw.floats(*shape, low=0.2) / (20 if bits == 4 else 300), is_bound=True)
        draw.give(f"{name}_bias", draw.maybe(draw.floats(number, outputs)), is_bound=draw.operator == "QMoE")
    names = ("relu", "gelu", "silu", "identity")
    draw.attributes["activation_type"] = "swiglu" if is_gated else draw.random.choice(names)
    draw.attributes["k"] = draw.random.randint(1, number)
    draw.flag("normalize_routing_weights")
    if is_gated:
        draw.attributes |= {"swiglu_fusion": 1, "activation_alpha": 1.25, "activation_beta": 1.0}
        if draw.random.random() < 0.5:
            draw.attributes["swiglu_limit"] = 1.5
    if draw.operator == "QMoE":
        draw.inputs += [""] * (14 - len(draw.inputs))
        draw.give("router_weights", draw.maybe(draw.floats(tokens, number, low=0.1), 0.3))
        draw.attributes["expert_weight_bits"] = bits
        draw.attributes |= {"block_size": block} if block else {}
    # onnxruntime rounds activations to 8 bits for weights of 8 bits in blocks.
    draw.tolerance = 1e-4 if draw.operator == "MoE" else 0.1 if bits == 8 and block else 2e-3


# Others


@makes("Trilu")
def _trilu(draw: Draw) -> None:
    draw.give("X", draw.floats(*[draw.size() for _ in range(draw.size(2, 3))]))
    draw.give("k", draw.maybe(np.array(draw.random.randint(-2, 2), np.int64)), is_bound=True)
    draw.flag("upper")


@makes("Inverse")
def _inverse(draw: Draw) -> None:
    size = draw.size(1, 5)
    draw.give("X", draw.floats(*[draw.size(1, 3) for _ in range(draw.size(0, 1))], size, size))
    draw.tolerance = 2e-3


@makes("CropAndResize")
def _crop_and_resize(draw: Draw) -> None:
    boxes, batch = draw.size(), draw.size(1, 2)
    draw.give("X", draw.floats(batch, draw.size(1, 2), draw.size(2, 6), draw.size(2, 6)))
    draw.give("rois", draw.numbers.uniform(-0.1, 1.1, (boxes, 4)).astype(np.float32))
    draw.give("batch_indices", draw.integers(0, batch, (boxes,), "int32"))
    draw.give("crop_size", draw.integers(1, 5, (2,), "int32"), is_bound=True)
    draw.attributes |= {"mode": draw.random.choice(("bilinear", "nearest")), "extrapolation_value": 0.5}
    draw.tolerance = 1e-4


@makes("GridSample")
def _grid_sample(draw: Draw) -> None:
    batch = draw.size(1, 2)
    draw.give("X", draw.floats(batch, draw.size(1, 2), draw.size(2, 5), draw.size(2, 5)))
    draw.give("Grid", draw.numbers.uniform(-1.2, 1.2, (batch, draw.size(), draw.size(), 2)).astype(np.float32))
    draw.attributes |= {
        "mode": draw.random.choice(("bilinear", "nearest", "bicubic")),
        "padding_mode": draw.random.choice(("zeros", "border", "reflection")),
    }
    draw.flag("align_corners")
    draw.tolerance = 1e-4


@makes("UnfoldTensor")
def _unfold(draw: Draw) -> None:
    shape = [draw.size(2, 6) for _ in range(draw.size(1, 3))]
    axis = draw.random.randrange(-len(shape), len(shape))
    draw.give("input", draw.floats(*shape))
    draw.attributes |= {"dim": axis, "size": draw.size(1, shape[axis]), "step": draw.size(1, 3)}


@makes("ExpandDims")
def _expand_dims(draw: Draw) -> None:
    rank = draw.size(1, 3)
    draw.give("X", draw.floats(*[draw.size() for _ in range(rank)]))
    draw.give("axis", np.array(draw.random.randint(-rank - 1, rank), np.int32), is_bound=True)


@makes("Range")
def _range(draw: Draw) -> None:
    dtype = draw.random.choice(("int64", "float32", "int32"))
    draw.give("start", np.array(draw.size(), dtype), is_bound=True)
    draw.give("limit", np.array(draw.size(6, 12), dtype), is_bound=True)
    draw.give("delta", draw.maybe(np.array(draw.size(1, 3), dtype)), is_bound=True)


@makes("Pad")
def _pad(draw: Draw) -> None:
    rank = draw.size(1, 3)
    draw.give("data", draw.floats(*[draw.size(2, 5) for _ in range(rank)]))
    mode = draw.random.choice(("constant", "reflect", "edge"))
    draw.give("pads", draw.integers(0, 2, (2 * rank,), "int64"), is_bound=True)
    draw.give("value", draw.maybe(np.array(0.5, np.float32)) if mode == "constant" else None, is_bound=True)
    draw.attributes["mode"] = mode


@makes("GatherND")
def _gather_nd(draw: Draw) -> None:
    shape = [draw.size(2, 4) for _ in range(3)]
    depth = draw.size(1, 3)
    draw.give("data", draw.floats(*shape))
    draw.give("indices", np.stack([draw.integers(0, extent, (2, 3), "int64") for extent in shape[:depth]], -1))


@makes("IsAllFinite")
def _is_all_finite(draw: Draw) -> None:
    for at in range(draw.size(1, 3)):
        array = draw.floats(draw.size(), 2)
        if draw.random.random() < 0.4:
            array[0, 0] = draw.random.choice((np.inf, -np.inf, np.nan))
        draw.give(f"x{at}", array)
    draw.attributes |= draw.random.choice(({}, {"isinf_only": 1}, {"isnan_only": 1}))


@makes("GatherBlockQuantized")
def _gather_block(draw: Draw) -> None:
    rows, width, block = draw.size(2, 5), 32, draw.random.choice((16, 32))
    bits = draw.random.choice((4, 8))
    draw.give("data", draw.integers(0, 256, (rows, width * bits // 8), "uint8"), is_bound=True)
    draw.give("indices", draw.integers(-rows, rows, [draw.size() for _ in range(draw.size(1, 2))], "int64"))
    draw.give("scales", draw.floats(rows, width // block, low=0.1), is_bound=True)
    zeros = draw.integers(0, 256, (rows, max(width // block * bits // 8, 1)), "uint8")
    draw.give("zero_points", draw.maybe(zeros), is_bound=True)
    draw.attributes |= {"bits": bits, "block_size": block, "gather_axis": 0, "quantize_axis": 1}


@makes("MatMulNBits")
def _matmul_nbits(draw: Draw) -> None:
    bits, block = draw.random.choice((2, 4, 8)), draw.random.choice((16, 32))
    depth, columns = draw.size(1, 5) * block - draw.random.choice((0, 0, 4)), draw.size(1, 9)
    blocks = -(-depth // block)
    draw.give("A", draw.floats(*[draw.size() for _ in range(draw.size(1, 2))], depth))
    weight = draw.integers(0, 256, (columns, blocks, block * bits // 8), "uint8")
    draw.give("B", weight, is_bound=True)
    draw.give("scales", draw.floats(columns, blocks, low=0.1), is_bound=True)
    packed = draw.integers(0, 256, (columns, -(-blocks * bits // 8)), "uint8")
    kind = draw.random.choice(("", "packed", "float") if bits != 8 else ("", "packed"))
    zeros = {"": None, "packed": packed, "float": draw.floats(columns, blocks) + np.float32(1 << bits - 1)}[kind]
    draw.give("zero_points", zeros, is_bound=True)
    order = np.asarray(draw.random.sample([at // block for at in range(depth)], depth), "int32")
    # With others onnxruntime ignores zero points, or reads 4 bits.
    draw.give("g_idx", draw.maybe(order) if bits == 4 and kind != "packed" else None, is_bound=True)
    draw.give("bias", draw.maybe(draw.floats(columns)), is_bound=True)
    draw.attributes |= {"K": depth, "N": columns, "bits": bits, "block_size": block}
    draw.flag("accuracy_level")
    draw.tolerance = 2e-4


# Comparing


def expected(draw: Draw) -> list[Any]:
    """The results of onnxruntime."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    model = draw.model()
    used = [at for at in range(draw.outputs) if at not in draw.compared or draw.compared[at] is not None]
    kept = [model.graph.output[at] for at in used]
    names = {entry.name for entry in kept}
    del model.graph.output[:]
    model.graph.output.extend(kept)
    for at, name in enumerate(model.graph.node[0].output):
        if name not in names:
            model.graph.node[0].output[at] = ""
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return session.run(None, draw.feeds)


def halved(draw: Draw) -> Draw | None:
    """The node with inputs of float16 for those of float32, or None if its schema has none. The inputs of `draw` are
    rounded to float16: onnxruntime implements some operators for float32 only."""
    from onnxruntime.capi.onnxruntime_pybind11_state import get_all_operator_schema

    schemas = [s for s in get_all_operator_schema() if (s.domain, s.name) == (draw.domain, draw.operator)]
    schema = max(schemas, key=lambda s: s.since_version)
    allowed = {one.type_param_str: one.allowed_type_strs for one in schema.type_constraints}
    result = copy.copy(draw)
    result.arrays, result.tolerance = dict(draw.arrays), 2 * max(draw.tolerance, 4e-3)
    for at, name in enumerate(draw.inputs):
        kind = schema.inputs[min(at, len(schema.inputs) - 1)].typeStr
        if name and draw.arrays[name].dtype == np.float32 and "tensor(float16)" in allowed.get(kind, ()):
            result.arrays[name] = draw.arrays[name].astype(np.float16)
            draw.arrays[name] = result.arrays[name].astype(np.float32)
    return None if result.arrays.keys() == {n for n in draw.arrays if result.arrays[n] is draw.arrays[n]} else result


def found(draw: Draw, *, is_compiled: bool = False) -> list[Any]:
    """The results of weft."""
    model = draw.model()
    for at, part in draw.compared.items():
        if part is None:
            model.graph.node[0].output[at] = ""
    kept = [entry for at, entry in enumerate(model.graph.output) if draw.compared.get(at, at) is not None]
    del model.graph.output[:]
    model.graph.output.extend(kept)
    module = weft.from_onnx(model)
    arrays = list(draw.feeds.values())
    if is_compiled:
        results: Any = weft.build(module, target="llvm -num-threads=1")["main"](*arrays)
    else:
        results = weft.Interpreter(module).call("main", *arrays)
    return list(results) if isinstance(results, tuple | list) else [results]


def difference(draw: Draw, results: Sequence[Any], wanted: Sequence[Any]) -> str:
    """What is wrong with results; nothing if they are equal within the tolerance of the node."""
    parts = [draw.compared.get(at) for at in range(draw.outputs) if draw.compared.get(at, at) is not None]
    for at, (one, other, part) in enumerate(zip(results, wanted, parts, strict=True)):
        if one.dtype != other.dtype or one.shape != other.shape:
            return f"output {at}: {one.dtype} {one.shape}, not {other.dtype} {other.shape}"
        pairs = zip(part(one), part(other), strict=True) if part else [(one, other)]
        for mine, peers in pairs:
            if other.dtype.kind in "iu":
                if np.abs(mine.astype(np.int64) - peers.astype(np.int64)).max(initial=0) > 1:
                    return f"output {at}: {mine.tolist()} is not {peers.tolist()}"
            elif not np.allclose(mine, peers, draw.tolerance, draw.tolerance, equal_nan=True):
                return f"output {at}: {np.abs(mine - peers).max()} apart\n{mine}\n{peers}"
    return ""


def record() -> None:
    """Write the results of onnxruntime that the first tier compares with."""
    arrays: dict[str, Any] = {}
    for operator in MAKERS:
        count = 0
        for seed in range(10):
            try:
                results = expected(drawn(operator, seed))
            except Exception:  # noqa: BLE001 (onnxruntime refuses some combinations, and operators of GPUs)
                continue
            arrays |= {f"{operator}/{seed}/{at}": array for at, array in enumerate(results)}
            count += 1
            if count == RECORDED:
                break
    np.savez_compressed(RECORD, **arrays)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("operators", nargs="*")
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--compiled", action="store_true")
    parser.add_argument("--half", action="store_true")
    parser.add_argument("--record", action="store_true")
    options = parser.parse_args()
    if options.record:
        record()
        return 0
    failures = 0
    for operator in options.operators or MAKERS:
        counts = {"equal": 0, "refused": 0, "different": 0, "peer refuses": 0}
        first = ""
        for seed in range(options.seeds):
            draw = drawn(operator, seed)
            wide = draw
            if options.half:
                half = halved(draw)
                if half is None:
                    continue
                draw = half
            try:
                wanted = expected(wide)
            except Exception as error:  # noqa: BLE001 (whatever the peer raises)
                counts["peer refuses"] += 1
                first = first or f"peer: {str(error)[-300:]}"
                continue
            try:
                results = found(draw, is_compiled=options.compiled)
                if options.half:
                    pairs = zip(results, wanted, strict=True)
                    results = [a.astype(b.dtype) if b.dtype == np.float32 else a for a, b in pairs]
                    wanted = [b.astype(np.float16).astype(b.dtype) if b.dtype == np.float32 else b for b in wanted]
                wrong = difference(draw, results, wanted)
            except weft.WeftError as error:
                counts["refused"] += 1
                first = first or f"seed {seed}: {error}"
                continue
            counts["different" if wrong else "equal"] += 1
            if wrong and (not first or first.startswith("peer")):
                first = f"seed {seed} {draw.attributes}: {wrong}"
        failures += counts["different"] + counts["refused"]
        print(f"{operator:34}", ", ".join(f"{count} {name}" for name, count in counts.items() if count), flush=True)
        if first:
            print("    " + first.replace("\n", "\n    ")[:700])
    return failures != 0


if __name__ == "__main__":
    sys.exit(main())
