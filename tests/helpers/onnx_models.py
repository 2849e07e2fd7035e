"""Small ONNX models for tests."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from onnx import ModelProto, NodeProto, TensorProto, helper, numpy_helper

BOOL, FLOAT, INT64 = TensorProto.BOOL, TensorProto.FLOAT, TensorProto.INT64


def node(operator: str, inputs: str, outputs: str, **attributes: Any) -> NodeProto:
    """A node, its names separated by blanks; `-` stands for an input that is left out."""
    names = [name.replace("-", "") for name in inputs.split()]
    return helper.make_node(operator, names, outputs.split(), **attributes)


def model(
    nodes: Sequence[NodeProto],
    inputs: Mapping[str, Sequence[Any]],
    outputs: str = "y",
    weights: Mapping[str, Any] | None = None,
    *,
    opset: int = 18,
    dtype: int = FLOAT,
    domains: Mapping[str, int] | None = None,
    types: Mapping[str, int] | None = None,
    **options: Any,
) -> ModelProto:
    """A model of inputs with these shapes, and of weights; `domains` are opsets beside that of ONNX; `types`
    are element types of inputs and outputs other than `dtype`."""
    kinds = types or {}
    graph = helper.make_graph(
        list(nodes),
        "graph",
        [helper.make_tensor_value_info(name, kinds.get(name, dtype), shape) for name, shape in inputs.items()],
        [helper.make_tensor_value_info(name, kinds.get(name, dtype), None) for name in outputs.split()],
        [numpy_helper.from_array(np.asarray(array), name) for name, array in (weights or {}).items()],
    )
    opsets = [helper.make_opsetid(domain, version) for domain, version in {"": opset, **(domains or {})}.items()]
    return helper.make_model(graph, opset_imports=opsets, ir_version=10, **options)


def perceptron() -> ModelProto:
    """Two layers of a batch of any size."""
    random = np.random.default_rng(0)
    weights = {
        "fc1.weight": random.standard_normal((16, 32), np.float32),
        "fc1.bias": random.standard_normal(32, np.float32),
        "fc2.weight": random.standard_normal((32, 4), np.float32),
    }
    nodes = [
        node("Gemm", "x fc1.weight fc1.bias", "h"),
        node("Relu", "h", "hr"),
        node("MatMul", "hr fc2.weight", "y"),
    ]
    return model(nodes, {"x": ["batch", 16]}, weights=weights)
