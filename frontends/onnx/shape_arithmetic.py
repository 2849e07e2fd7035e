"""Evaluators: nodes whose inputs are all known at import, computed there.

They serve shapes, whose elements may be symbolic: what Shape, Gather, Mul and Concat make of extents becomes the target
of a reshape. An evaluator refuses what it cannot decide, and the node is converted as any other.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, cast

import numpy as np

from weft.dialects import graph_shapes
from weft.dialects.graph_shapes import KnownExtent
from weft.frontends.onnx.known import SMALL, Item, Known
from weft.frontends.onnx.node import Node, Refusal, dtype_of
from weft.frontends.onnx.registry import converts, evaluates
from weft.frontends.onnx.shapes import given_axes, target_shape

if TYPE_CHECKING:
    from numpy.typing import NDArray


# Tensors made of attributes and types


@converts("Constant")
def _constant(node: Node) -> Item:
    tensor = node.attribute("value")
    if tensor is not None:
        return node.scope.tensor_of(tensor)
    for name, dtype in (
        ("value_int", "int64"),
        ("value_ints", "int64"),
        ("value_float", "float32"),
        ("value_floats", "float32"),
    ):
        if node.gives(name):
            return Known(np.array(node.attribute(name), dtype), dtype)
    raise node.refuse("attribute 'value' must be a dense tensor of numbers, or 'value_int' and the like")


@converts("Shape")
def _shape(node: Node) -> Item:
    shape = node.shape(0)
    begin, end = 0, len(shape)
    if node.version >= 15:
        begin = _clamped(node.integer("start"), len(shape))
        end = _clamped(node.integer("end"), len(shape)) if node.gives("end") else len(shape)
    return Known.of(_known_extents(node, shape[begin:end]))


@converts("Size")
def _size(node: Node) -> Item:
    total: KnownExtent = 1
    for extent in _known_extents(node, node.shape(0)):
        total = graph_shapes.multiply(total, extent) or 0
    return Known.of(total)


def _clamped(place: int, rank: int) -> int:
    return min(max(place + rank if place < 0 else place, 0), rank)


def _known_extents(node: Node, shape: Sequence[graph_shapes.Extent]) -> list[KnownExtent]:
    found = [extent for extent in shape if extent is not None]
    if len(found) < len(shape):
        raise node.refuse(f"the shape of the input, {graph_shapes.show_shape(shape)}, is not known")
    return found


# Tensors of tensors

_ON_NUMBERS: Final[Mapping[str, Callable[[Any, Any], Any]]] = {
    "Add": np.add,
    "Sub": np.subtract,
    "Mul": np.multiply,
    "Div": np.floor_divide,
    "Mod": np.mod,
    "Equal": np.equal,
    "Less": np.less,
    "LessOrEqual": np.less_equal,
    "Greater": np.greater,
    "GreaterOrEqual": np.greater_equal,
    "And": np.logical_and,
    "Or": np.logical_or,
    "Max": np.maximum,
    "Min": np.minimum,
}
"""What operators do to arrays of integers."""
_ON_EXTENTS: Final[Mapping[str, Callable[[KnownExtent, KnownExtent], Any]]] = {
    "Add": graph_shapes.add,
    "Sub": graph_shapes.subtract,
    "Mul": graph_shapes.multiply,
    "Div": graph_shapes.floordiv,
    "Mod": graph_shapes.modulo,
    "Equal": lambda a, b: _compared(a, b) == 0,
    "Less": lambda a, b: _compared(a, b) < 0,
    "LessOrEqual": lambda a, b: _compared(a, b) <= 0,
    "Greater": lambda a, b: _compared(a, b) > 0,
    "GreaterOrEqual": lambda a, b: _compared(a, b) >= 0,
    "Max": lambda a, b: a if _compared(a, b) >= 0 else b,
    "Min": lambda a, b: a if _compared(a, b) <= 0 else b,
}
"""What operators do to extents."""
_COMPARISONS: Final = ("Equal", "Less", "LessOrEqual", "Greater", "GreaterOrEqual")


def _on_extents(operator: str) -> Callable[[Any, Any], Any]:
    """What an operator does to arrays of extents. Raises `Refusal` where it does nothing to these."""
    if operator not in _ON_EXTENTS:
        raise Refusal(f"{operator} is not computed of extents")
    return cast("Callable[[Any, Any], Any]", np.frompyfunc(_ON_EXTENTS[operator], 2, 1))


class _UndecidedError(Exception):
    """A comparison of extents that depends on their values."""


def _compared(left: KnownExtent, right: KnownExtent) -> int:
    difference = graph_shapes.subtract(left, right)
    if not isinstance(difference, int):
        raise _UndecidedError
    return difference


def _integers(node: Node, *indices: int) -> list[Known]:
    """Inputs of few integers or bools. Raises `Refusal` for others."""
    found = [node.known(index) for index in indices]
    for known in found:
        if known.array.size > SMALL or not ("int" in known.dtype or known.dtype == "bool"):
            raise node.refuse(f"{known.array.size} elements of {known.dtype} are not computed at import")
    return found


def _like(array: NDArray[Any], known: Known) -> Known:
    return Known.of(array, known.dtype)


@evaluates(*_ON_NUMBERS, since=7)
def _elementwise(node: Node) -> Item:
    known = _integers(node, *range(node.count))
    is_symbolic = any(k.is_symbolic for k in known)
    apply = _on_extents(node.operator) if is_symbolic else _ON_NUMBERS[node.operator]
    if node.operator == "Mod" and node.flag("fmod"):
        raise node.refuse("attribute 'fmod' = 1 is for the converter")
    if node.operator in ("Div", "Mod") and np.any(np.equal(known[1].array, 0)):
        raise node.refuse("division by zero")
    if node.operator == "Div" and any(isinstance(n, int) and n < 0 for k in known for n in k.extents()):
        raise node.refuse("quotients of negative numbers are for the converter")
    total = known[0].array
    try:
        for other in known[1:]:
            total = apply(total, other.array)
    except (_UndecidedError, ValueError) as error:
        raise node.refuse(f"{node.operator} of extents is not known at import: {error}") from None
    return Known.of(cast("Any", total), "bool" if node.operator in (*_COMPARISONS, "And", "Or") else known[0].dtype)


@evaluates("Not")
def _not(node: Node) -> Item:
    (known,) = _integers(node, 0)
    return Known(np.logical_not(known.array), "bool")


@evaluates("Neg", since=6)
def _neg(node: Node) -> Item:
    (known,) = _integers(node, 0)
    return _like(np.multiply(known.array, -1), known)


@evaluates("Cast", since=6)
def _cast(node: Node) -> Item:
    (known,) = _integers(node, 0)
    dtype = dtype_of(node.integer("to"))
    if known.is_symbolic and "int" not in dtype:
        raise node.refuse(f"extents are not cast to {dtype} at import")
    if not known.is_symbolic and not ("int" in dtype or dtype in ("bool", "float32", "float64")):
        raise node.refuse(f"numbers are not cast to {dtype} at import")
    return Known.of(known.array, dtype)


@evaluates("Concat")
def _concat(node: Node) -> Item:
    known = _integers(node, *range(node.count))
    axis = node.axis("axis", known[0].ndim, 1)
    return _like(np.concatenate([k.array for k in known], axis), known[0])


@evaluates("Gather")
def _gather(node: Node) -> Item:
    data, indices = _integers(node, 0, 1)
    axis = node.axis("axis", data.ndim)
    places = indices.array.astype(np.int64)
    extent = data.shape[axis]
    if np.any((places < -extent) | (places >= extent)):
        raise node.refuse(f"indices {places.tolist()} lie outside of axis {axis} with {extent} elements")
    return _like(np.take(data.array, places, axis), data)


@evaluates("Slice", since=10)
def _slice(node: Node) -> Item:
    data = _integers(node, 0)[0]
    starts, ends = node.indices(1), node.indices(2)
    axes = node.axes(node.indices(3), data.ndim) if node.has(3) else list(range(len(starts)))
    steps = node.indices(4) if node.has(4) else [1] * len(axes)
    return _cut(node, data, starts, ends, axes, steps)


@evaluates("Slice", until=9)
def _slice_by_attributes(node: Node) -> Item:
    data = _integers(node, 0)[0]
    starts, ends = node.integers("starts") or [], node.integers("ends") or []
    axes = node.axes(node.integers("axes") or list(range(len(starts))), data.ndim)
    return _cut(node, data, starts, ends, axes, [1] * len(axes))


def _cut(node: Node, data: Known, starts: list[int], ends: list[int], axes: list[int], steps: list[int]) -> Known:
    if not len(starts) == len(ends) == len(axes) == len(steps) or len(axes) > data.ndim or 0 in steps:
        raise node.refuse("starts, ends, axes and steps must be as many, and steps not 0")
    places = [slice(None)] * data.ndim
    for axis, start, end, step in zip(axes, starts, ends, steps, strict=True):
        extent = data.shape[axis]
        if step < 0:
            first = min(start + extent if start < 0 else start, extent - 1)
            last = end + extent if end < 0 else end
            places[axis] = slice(max(first, -1), None if last < 0 else last, step) if first >= 0 else slice(0, 0)
        else:
            places[axis] = slice(start, end, step)
    return _like(data.array[tuple(places)], data)


@evaluates("Squeeze")
def _squeeze(node: Node) -> Item:
    data = _integers(node, 0)[0]
    axes = given_axes(node, 1, data.ndim)
    gone = [d for d, extent in enumerate(data.shape) if extent == 1] if axes is None else axes
    if any(data.shape[axis] != 1 for axis in gone):
        raise node.refuse(f"axes {gone} of shape {data.shape} are not 1")
    return _like(np.squeeze(data.array, tuple(gone)), data)


@evaluates("Unsqueeze")
def _unsqueeze(node: Node) -> Item:
    data = node.known(0)
    numbers = node.indices(1) if node.version >= 13 else node.integers("axes") or []
    return Known(np.expand_dims(data.array, tuple(node.axes(numbers, data.ndim + len(numbers)))), data.dtype)


@evaluates("Reshape", since=5)
def _reshape(node: Node) -> Item:
    data = node.known(0)
    copies = node.version < 14 or not node.flag("allowzero")
    shape = target_shape(node, data.shape, node.indices(1), copies)
    try:
        return Known(data.array.reshape([int(extent) for extent in shape if isinstance(extent, int)]), data.dtype)
    except ValueError as error:
        raise node.refuse(str(error)) from None


@evaluates("Where")
def _where(node: Node) -> Item:
    condition, left, right = _integers(node, 0, 1, 2)
    return _like(np.where(condition.array, left.array, right.array), left)


@evaluates("ConstantOfShape")
def _constant_of_shape(node: Node) -> Item:
    (shape,) = _integers(node, 0)
    if shape.is_symbolic:
        raise node.refuse("the shape is symbolic")
    extents = [int(extent) for extent in shape.array]
    value = node.attribute("value")
    fill = Known.of(0.0, "float32") if value is None else node.scope.tensor_of(value)
    if any(extent < 0 for extent in extents) or np.prod(extents, dtype=np.float64) > SMALL or fill.array.size != 1:
        raise node.refuse(f"a tensor of shape {extents} is not computed at import")
    return Known(np.full(extents, fill.array.reshape(())), fill.dtype)


@evaluates("Range")
def _range(node: Node) -> Item:
    start, limit, delta = (known.array.item() for known in _integers(node, 0, 1, 2))
    if not all(isinstance(number, int) for number in (start, limit, delta)) or delta == 0:
        raise node.refuse("the limits are symbolic")
    if len(range(start, limit, delta)) > SMALL:
        raise node.refuse("the range is not computed at import")
    dtype = node.dtype(0)
    return Known(np.array(range(start, limit, delta), dtype), dtype)


@evaluates("Expand")
def _expand(node: Node) -> Item:
    (data,) = _integers(node, 0)
    wanted = node.indices(1)
    try:
        shape = np.broadcast_shapes(data.shape, tuple(wanted))
    except ValueError as error:
        raise node.refuse(str(error)) from None
    if np.prod(shape, dtype=np.float64) > SMALL:
        raise node.refuse(f"a tensor of shape {shape} is not computed at import")
    return Known(np.broadcast_to(data.array, shape), data.dtype)


_REDUCTIONS: Final[Mapping[str, Callable[..., Any]]] = {
    "ReduceProd": np.prod,
    "ReduceSum": np.sum,
    "ReduceMax": np.max,
    "ReduceMin": np.min,
}


@evaluates(*_REDUCTIONS)
def _reduce(node: Node) -> Item:
    (data,) = _integers(node, 0)
    axes = given_axes(node, 1, data.ndim)
    if node.operator in ("ReduceMax", "ReduceMin") and (data.is_symbolic or not data.array.size):
        raise node.refuse("the greatest of symbolic extents is not known at import")
    formal = () if node.schema is None else node.schema.attributes
    if not axes and "noop_with_empty_axes" in formal and node.flag("noop_with_empty_axes"):
        return data
    along = tuple(axes) if axes else None
    if data.is_symbolic:
        combine = graph_shapes.multiply if node.operator == "ReduceProd" else graph_shapes.add
        total: graph_shapes.Extent = int(node.operator == "ReduceProd")
        if along is not None and len(along) < data.ndim:
            raise node.refuse("extents are reduced along all axes")
        for extent in data.extents():
            total = combine(total, extent)
        shape = [1] * data.ndim if node.flag("keepdims") else []
        return Known.of(np.array([total], dtype=object).reshape(shape), data.dtype)
    found = cast("object", _REDUCTIONS[node.operator](data.array, axis=along, keepdims=node.flag("keepdims")))
    return Known(np.asarray(found, data.dtype), data.dtype)


@evaluates("Transpose")
def _transpose(node: Node) -> Item:
    (data,) = _integers(node, 0)
    order = node.integers("perm")
    if order is not None and sorted(order) != list(range(data.ndim)):
        raise node.refuse(f"attribute 'perm' must be an order of {data.ndim} axes, got {order}")
    return _like(np.transpose(data.array, order), data)


@evaluates("Split")
def _split(node: Node) -> Sequence[Item]:
    (data,) = _integers(node, 0)
    axis = node.axis("axis", data.ndim)
    parts = len(node.proto.output)
    if node.version >= 13 and node.has(1):
        sizes = node.indices(1)
    elif node.version < 13 and node.gives("split"):
        sizes = node.integers("split", 0) or []
    else:
        size = -(-data.shape[axis] // parts)
        sizes = [max(min(size, data.shape[axis] - size * part), 0) for part in range(parts)]
    formal = () if node.schema is None else node.schema.attributes
    if "num_outputs" in formal and node.gives("num_outputs") and node.integer("num_outputs") != parts:
        raise node.refuse(f"attribute 'num_outputs' = {node.integer('num_outputs')}, but the node has {parts}")
    if len(sizes) != parts or sum(sizes) != data.shape[axis]:
        raise node.refuse(f"the sizes {sizes} must be {parts} that make {data.shape[axis]}")
    return [_like(array, data) for array in np.split(data.array, np.cumsum(sizes)[:-1], axis)]
