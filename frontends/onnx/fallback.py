"""Nodes that weft cannot convert, as calls of ONNX's reference implementation (`onnx.reference`).

Each is a registered function (`graph.call_dps`), which costs a Python call and NumPy's time, and prevents fusion across
it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence, Set
from typing import TYPE_CHECKING, Any

import numpy as np
from onnx import ModelProto, TensorProto, TypeProto, ValueInfoProto, helper, numpy_helper, shape_inference

from weft.dialects.graph_shapes import KnownExtent, ShapeError, names_in, parse_extent
from weft.frontends.graph_builder import call_dps
from weft.frontends.onnx.known_tensors import Absent, Entry, Item, KnownTensor, TensorSequence
from weft.frontends.onnx.node import MOST_ELEMENTS, Node, Refusal, data_type_of, dtype_of
from weft.frontends.onnx.node_order import graphs_within
from weft.support.user_functions import set_func

if TYPE_CHECKING:
    from numpy.typing import NDArray


def fall_back(node: Node, opset: int) -> Sequence[Entry | None]:
    """Raises `Refusal` if shapes are unknown, onnx lacks the operator, or the node contains graphs, which read outer
    values."""
    if any(True for _ in graphs_within(node.proto)):
        raise Refusal("fallback: graphs in a node are not passed to functions")
    for attribute in node.proto.attribute:  # ONNX's shape inference loops over these
        if max(map(abs, (attribute.i, *attribute.ints)), default=0) > MOST_ELEMENTS:
            raise Refusal(f"fallback: attribute '{attribute.name}' must be at most {MOST_ELEMENTS}")
        tensors = (attribute.t, *attribute.tensors, attribute.sparse_tensor.values, attribute.sparse_tensor.indices)
        if any(tensor.data_location == TensorProto.EXTERNAL for tensor in tensors):
            # onnx.reference would look for the file in the working directory.
            raise Refusal(f"fallback: the elements of attribute '{attribute.name}' are in a file")
    wanted = [name for name in node.proto.output if name]
    model = _model(node, opset)
    names = {name for item in _tensors(node) if item is not None for extent in item.shape for name in names_in(extent)}
    types = _inferred(model, wanted, names)
    given = [node.value(at) for at in range(node.count) if node.has(at) and not _is_constant(node.inputs[at])]
    digest = hashlib.sha256(model.SerializeToString()).hexdigest()[:16]
    name = f"onnx.{node.operator}.{digest}"
    set_func(name, _function(model, len(given)), override=True)
    shapes, dtypes = [shape for shape, _ in types], [dtype for _, dtype in types]
    found = iter(call_dps(name, given, [[_text(e) for e in shape] for shape in shapes], dtypes))
    return [next(found) if output else None for output in node.proto.output]


def _tensors(node: Node) -> Sequence[Item | None]:
    """Raises `Refusal` if one is not a tensor."""
    found: list[Item | None] = []
    for item in node.inputs:
        if isinstance(item, TensorSequence | Absent):
            raise Refusal("fallback: sequences and optionals are not passed to functions")
        found.append(item)
    return found


def _text(extent: KnownExtent) -> int | str:
    return extent if isinstance(extent, int) else str(extent)


def _is_constant(item: Entry | None) -> bool:
    return isinstance(item, KnownTensor) and not item.is_symbolic


def _model(node: Node, opset: int) -> ModelProto:
    inputs, initializers = list[ValueInfoProto](), list[Any]()
    for name, item in zip(node.proto.input, _tensors(node), strict=False):
        if item is None or name in [entry.name for entry in (*inputs, *initializers)]:
            continue
        if isinstance(item, KnownTensor) and not item.is_symbolic:
            initializers.append(numpy_helper.from_array(item.array, name))
        else:
            shape = [extent if isinstance(extent, int) else str(extent) for extent in item.shape]
            inputs.append(helper.make_tensor_value_info(name, data_type_of(item.dtype), shape))
    outputs = [helper.make_value_info(name, TypeProto()) for name in node.proto.output if name]
    graph = helper.make_graph([node.proto], "fallback", inputs, outputs, initializers)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid(node.domain, opset)])


def _inferred(model: ModelProto, wanted: Sequence[str], names: Set[str]) -> list[tuple[list[KnownExtent], str]]:
    """Shape and element type of each output. `names` are those of inputs; others are extents that depend on data."""
    try:
        graph = shape_inference.infer_shapes(model, strict_mode=True, data_prop=True).graph
    except shape_inference.InferenceError as error:
        raise Refusal(f"fallback: ONNX's shape inference fails: {str(error).splitlines()[0]}") from None
    types = {entry.name: entry.type.tensor_type for entry in graph.output}
    found: list[tuple[list[KnownExtent], str]] = []
    for name in wanted:
        shape: list[KnownExtent] = []
        for dim in types[name].shape.dim:
            try:
                extent = dim.dim_value if dim.HasField("dim_value") else parse_extent(dim.dim_param)
            except ShapeError:
                extent = None
            if extent is None or not names_in(extent) <= names:
                raise Refusal(f"fallback: the shape of output '{name}' is not known, so there is no room for it")
            shape.append(extent)
        if not types[name].HasField("shape"):
            raise Refusal(f"fallback: the rank of output '{name}' is not known, so there is no room for it")
        found.append((shape, dtype_of(types[name].elem_type)))
    return found


def _function(model: ModelProto, count: int) -> Any:
    """Runs a model of one node and stores its results. Raises `Refusal` for an operator that onnx does not
    implement."""
    from onnx.reference import ReferenceEvaluator

    names = [entry.name for entry in model.graph.input]
    try:
        evaluator = ReferenceEvaluator(model)
    except RuntimeError as error:
        raise Refusal(f"fallback: onnx has no reference implementation: {str(error).partition('. ')[0]}") from None

    def run(*arrays: NDArray[Any]) -> None:
        found: Any = evaluator.run(None, dict(zip(names, arrays[:count], strict=True)))
        for out, array in zip(arrays[count:], found, strict=True):
            out[...] = np.asarray(array)

    return run
