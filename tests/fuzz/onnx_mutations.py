"""Mutated ONNX models: node tests of the package `onnx`, and nodes of the operators that onnxruntime adds to it, whose
attributes, names, shapes, types and constants change."""

from __future__ import annotations

import random
import warnings
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import contrib_cases
import numpy as np
import onnx
from onnx import AttributeProto, GraphProto, ModelProto, NodeProto, TensorProto, TypeProto, helper, numpy_helper

_NUMBERS = (-(1 << 63), -(1 << 31) - 1, -7, -2, -1, 0, 1, 2, 3, 5, 1 << 16, 1 << 31, 1 << 40, 1 << 62, (1 << 63) - 1)
_EXTENTS = (
    *(0, 1, 2, 3, 5, 7, -1, 1 << 16, 1 << 31, 1 << 40, (1 << 63) - 1),
    *("n", "m", "n + m", "", "?", "é", "n_1"),
)
_FLOATS = (0.0, -0.0, 1.0, -1.0, 0.5, 1e-30, 1e30, 3e38, float("inf"), float("-inf"), float("nan"))
_WORDS = ("", "cubic", "linear", "NOTSET", "SAME_UPPER", "forward", "none", "mean", "reflect", "(", "ij->", "é", "\0")
_ELEMENTS = (*range(24), 99)


@cache
def sources() -> tuple[ModelProto, ...]:
    """The models of the node tests, and of the simple graphs beside them."""
    from onnx.backend.test.loader import DATA_DIR, load_model_tests

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        models = [case.model for case in load_model_tests(kind="node") if case.model is not None]
    models += [onnx.load(path) for path in sorted(Path(DATA_DIR).glob("simple/*/model.onnx"))]
    models = [model for model in models if model.ByteSize() < 20_000]
    return tuple(sorted(models, key=lambda model: model.graph.name))


@cache
def contrib_sources() -> tuple[ModelProto, ...]:
    """Random nodes of the operators that onnxruntime adds to ONNX."""
    return tuple(contrib_cases.drawn(operator, seed).model() for operator in contrib_cases.MAKERS for seed in range(6))


def mutated(seed: int, models: Sequence[ModelProto]) -> ModelProto:
    """A model with up to four changes; `models` are those that it starts from."""
    draw = random.Random(seed)
    model = ModelProto()
    model.CopyFrom(draw.choice(models))
    for _ in range(draw.randrange(3)):
        _bind_input(draw, model.graph)
    for _ in range(draw.randint(1, 4)):
        draw.choice(_CHANGES)(draw, model)
    return model


def _graphs(graph: GraphProto) -> Iterator[GraphProto]:
    """A graph and those within its nodes."""
    yield graph
    for node in graph.node:
        for attribute in node.attribute:
            if attribute.type == AttributeProto.GRAPH:
                yield from _graphs(attribute.g)


def _nodes(model: ModelProto) -> list[NodeProto]:
    return [node for graph in _graphs(model.graph) for node in graph.node]


def _bind_input(draw: random.Random, graph: GraphProto) -> None:
    """Make an input a constant of edge values."""
    inputs = [proto for proto in graph.input if proto.type.HasField("tensor_type")]
    if not inputs:
        return
    proto = draw.choice(inputs)
    shape = [dim.dim_value if dim.HasField("dim_value") else 2 for dim in proto.type.tensor_type.shape.dim]
    if np.prod(shape, dtype=np.float64) > 1000 or any(extent < 0 for extent in shape):
        return
    try:
        dtype = helper.tensor_dtype_to_np_dtype(proto.type.tensor_type.elem_type)
        made = numpy_helper.from_array(_elements(draw, shape, dtype), proto.name)
    except (KeyError, TypeError, ValueError, OverflowError, NotImplementedError):
        return
    graph.initializer.append(made)


def _elements(draw: random.Random, shape: Sequence[int], dtype: np.dtype[Any]) -> Any:
    small = draw.random() < 0.6
    values = [draw.choice((0, 1, 2, 3, -1) if small else _NUMBERS) for _ in range(int(np.prod(shape, dtype=np.int64)))]
    if dtype.kind == "f" and not small:
        values = [draw.choice(_FLOATS) for _ in values]
    with np.errstate(all="ignore"):
        return np.array(values, np.float64 if dtype.kind == "f" else np.int64).astype(dtype).reshape(shape)


def _change_attribute(draw: random.Random, model: ModelProto) -> None:
    attributes = [attribute for node in _nodes(model) for attribute in node.attribute]
    if not attributes:
        return
    attribute = draw.choice(attributes)
    match attribute.type:
        case AttributeProto.INT:
            attribute.i = draw.choice(_NUMBERS)
        case AttributeProto.FLOAT:
            attribute.f = draw.choice(_FLOATS)
        case AttributeProto.STRING:
            attribute.s = draw.choice([word.encode() for word in _WORDS] + [b"\xff\xfe", attribute.s[1:]])
        case AttributeProto.INTS:
            _change_list(draw, attribute.ints, _NUMBERS)
        case AttributeProto.FLOATS:
            _change_list(draw, attribute.floats, _FLOATS)
        case AttributeProto.STRINGS:
            _change_list(draw, attribute.strings, [word.encode() for word in _WORDS])
        case AttributeProto.TENSOR:
            _change_tensor(draw, attribute.t)
        case _:
            attribute.type = draw.choice((AttributeProto.INT, AttributeProto.GRAPH, AttributeProto.STRING))


def _change_list(draw: random.Random, values: Any, others: Sequence[Any]) -> None:
    found = list(values)
    match draw.randrange(4):
        case 0 if found:
            found.pop(draw.randrange(len(found)))
        case 1:
            found.insert(draw.randint(0, len(found)), draw.choice(others))
        case 2:
            found.clear()
        case _ if found:
            found[draw.randrange(len(found))] = draw.choice(others)
    del values[:]
    values.extend(found)


def _retype_attribute(draw: random.Random, model: ModelProto) -> None:
    node = draw.choice(_nodes(model) or [NodeProto()])
    match draw.randrange(4):
        case 0 if node.attribute:
            node.attribute.pop(draw.randrange(len(node.attribute)))
        case 1 if node.attribute:
            node.attribute.add().CopyFrom(draw.choice(list(node.attribute)))
        case 2 if node.attribute:
            attribute = draw.choice(list(node.attribute))
            attribute.CopyFrom(helper.make_attribute(attribute.name, draw.choice((1, 1.5, "x", [1], [1.5], ["x"]))))
        case _:
            names = ("axis", "axes", "keepdims", "pads", "mode", "perm", "to", "alpha", "strides", "group", "body")
            value = draw.choice((0, 1, -1, 1.5, "constant", [0, 1], [1.5]))
            node.attribute.append(helper.make_attribute(draw.choice(names), value))


def _change_wiring(draw: random.Random, model: ModelProto) -> None:
    nodes = _nodes(model)
    if not nodes:
        return
    node = draw.choice(nodes)
    names = [name for other in nodes for name in (*other.input, *other.output)] or ["x"]
    place = draw.choice((node.input, node.output))
    match draw.randrange(6):
        case 0 if place:
            place.pop(draw.randrange(len(place)))
        case 1 if place:
            place[draw.randrange(len(place))] = ""
        case 2 if place:
            place[draw.randrange(len(place))] = draw.choice(names)
        case 3:
            place.append(draw.choice(names))
        case 4:
            node.op_type = draw.choice(draw.choice(sources()).graph.node or nodes).op_type
        case _:
            node.domain = draw.choice(("", "ai.onnx", "ai.onnx.ml", "com.acme", "com.microsoft"))


def _change_type(draw: random.Random, model: ModelProto) -> None:
    types = [value.type for graph in _graphs(model.graph) for value in (*graph.input, *graph.output)]
    if not types:
        return
    kind: TypeProto = draw.choice(types)
    if not kind.HasField("tensor_type"):
        return
    tensor = kind.tensor_type
    match draw.randrange(6):
        case 0:
            tensor.elem_type = draw.choice(_ELEMENTS)
        case 1:
            tensor.ClearField("shape")
        case 2 if tensor.shape.dim:
            tensor.shape.dim.pop(draw.randrange(len(tensor.shape.dim)))
        case 3:
            _set(tensor.shape.dim.add(), draw.choice(_EXTENTS))
        case 4:
            kind.Clear()
        case _ if tensor.shape.dim:
            _set(draw.choice(list(tensor.shape.dim)), draw.choice(_EXTENTS))


def _set(dim: Any, extent: int | str) -> None:
    if isinstance(extent, int):
        dim.dim_value = extent
    else:
        dim.dim_param = extent


def _change_tensor(draw: random.Random, tensor: TensorProto) -> None:
    match draw.randrange(4):
        case 0:
            tensor.data_type = draw.choice(_ELEMENTS)
        case 1:
            _change_list(draw, tensor.dims, _NUMBERS)
        case 2:
            tensor.raw_data = tensor.raw_data[: draw.randint(0, len(tensor.raw_data))]
        case _:
            tensor.data_location = TensorProto.EXTERNAL


def _change_constant(draw: random.Random, model: ModelProto) -> None:
    tensors = [tensor for graph in _graphs(model.graph) for tensor in graph.initializer]
    if tensors:
        _change_tensor(draw, draw.choice(tensors))


def _rename(draw: random.Random, model: ModelProto) -> None:
    """Another name for an input or output of the graph."""
    values = [*model.graph.input, *model.graph.output]
    if values:
        draw.choice(values).name = draw.choice(("", "é", "x_0", "0", "a b", "x" * 5000, "\N{SNOWMAN}"))


def _change_opset(draw: random.Random, model: ModelProto) -> None:
    if model.opset_import:
        draw.choice(list(model.opset_import)).version = draw.choice(
            (0, 1, 6, 9, 10, 12, 13, 17, 18, 20, 22, 25, 1 << 40)
        )


def _repeat_node(draw: random.Random, model: ModelProto) -> None:
    nodes = model.graph.node
    if nodes:
        nodes.insert(draw.randint(0, len(nodes)), draw.choice(list(nodes)))


_CHANGES = (
    *[_change_attribute] * 4,
    *[_change_type] * 3,
    *[_change_wiring] * 3,
    *(_retype_attribute, _change_constant, _rename, _change_opset, _repeat_node),
)
