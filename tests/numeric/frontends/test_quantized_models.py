"""A quantized net of inverted residuals (MobileNetV2's) by onnxruntime's `quantize_static`: the scores of its integer
kernels, where weights have 7 bits, so that no kernel of any CPU saturates."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import weft


class _Net:
    """An ONNX model, node by node."""

    def __init__(self, helper: Any, numpy_helper: Any) -> None:
        self.helper, self.numpy_helper = helper, numpy_helper
        self.nodes: list[Any] = []
        self.weights: list[Any] = []
        self.random = np.random.default_rng(7)

    def constant(self, *shape: int, scale: float) -> str:
        name = f"w{len(self.weights)}"
        array = (self.random.standard_normal(shape) * scale).astype("float32")
        self.weights.append(self.numpy_helper.from_array(array, name))
        return name

    def node(self, kind: str, *inputs: str, **attributes: Any) -> str:
        name = f"t{len(self.nodes)}"
        self.nodes.append(self.helper.make_node(kind, list(inputs), [name], **attributes))
        return name

    def conv(self, x: str, source: int, filters: int, size: int, stride: int = 1, groups: int = 1) -> str:
        terms = source // groups * size * size
        weight = self.constant(filters, source // groups, size, size, scale=(2 / terms) ** 0.5)
        bias, pads = self.constant(filters, scale=0.1), [size // 2] * 4
        return self.node("Conv", x, weight, bias, strides=[stride] * 2, pads=pads, group=groups)

    def block(self, x: str, source: int, filters: int, stride: int) -> str:
        wide = self.node("Relu", self.conv(x, source, 6 * source, 1))
        deep = self.node("Relu", self.conv(wide, 6 * source, 6 * source, 3, stride, 6 * source))
        y = self.conv(deep, 6 * source, filters, 1)
        return self.node("Add", x, y) if (stride, source) == (1, filters) else y


@pytest.mark.slow
def test_scores_of_onnxruntime(tmp_path: Path) -> None:
    onnx = pytest.importorskip("onnx")
    runtime = pytest.importorskip("onnxruntime")
    quantization = pytest.importorskip("onnxruntime.quantization")
    net = _Net(onnx.helper, onnx.numpy_helper)
    x = net.node("Relu", net.conv("x", 3, 16, 3, 2))
    for source, filters, stride in ((16, 16, 1), (16, 24, 2), (24, 24, 1)):
        x = net.block(x, source, filters, stride)
    x = net.node("Flatten", net.node("GlobalAveragePool", x))
    net.node("Gemm", x, net.constant(24, 100, scale=0.2), net.constant(100, scale=0.1))
    net.nodes[-1].output[0] = "y"
    info = onnx.helper.make_tensor_value_info
    inputs, outputs = info("x", 1, [1, 3, 40, 36]), info("y", 1, [1, 100])
    graph = onnx.helper.make_graph(net.nodes, "net", [inputs], [outputs], net.weights)
    opset = [onnx.helper.make_opsetid("", 17)]
    onnx.save(onnx.helper.make_model(graph, opset_imports=opset, ir_version=8), tmp_path / "net.onnx")
    images = [net.random.standard_normal((1, 3, 40, 36)).astype("float32") for _ in range(8)]

    class Reader(quantization.CalibrationDataReader):
        def __init__(self) -> None:
            self.left = [{"x": image} for image in images]

        def get_next(self) -> Any:
            return self.left.pop() if self.left else None

    path = tmp_path / "int8.onnx"
    options = {"per_channel": True, "reduce_range": True, "activation_type": quantization.QuantType.QUInt8}
    quantization.quantize_static(tmp_path / "net.onnx", path, Reader(), **options)
    session = runtime.InferenceSession(path, providers=["CPUExecutionProvider"])
    library = weft.build(weft.from_onnx(path))
    assert any("conv2d_add_cast_multiply" in name for row in library.report().rows for name in row.names)
    pairs = [(session.run(None, {"x": image})[0], np.asarray(library["main"](image))) for image in images]
    # Sums are equal; residuals, which onnxruntime adds by another formula, may be halfway between two steps.
    equal = np.mean([theirs == ours for theirs, ours in pairs])
    assert equal > 0.98, equal
