"""Converters of operators that change shapes, reorder elements, or create tensors of a shape."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import accumulate, pairwise

import numpy as np

from weft.dialects.graph_shapes import (
    Extent,
    KnownExtent,
    add,
    choose,
    exact_quotient,
    floordiv,
    is_not_negative,
    is_signed,
    multiply,
    names_in,
    show_shape,
    subtract,
)
from weft.frontends.graph_builder import Value
from weft.frontends.onnx.known_tensors import SMALL, Item, KnownTensor
from weft.frontends.onnx.node import Node
from weft.frontends.onnx.operators import ops
from weft.frontends.onnx.registry import converts


def target_shape(
    node: Node, shape: Sequence[Extent], wanted: Sequence[KnownExtent], copies_zeros: bool
) -> list[Extent]:
    """The result of a reshape: 0 copies the extent of the data, -1 is inferred."""
    found: list[Extent] = []
    for axis, extent in enumerate(wanted):
        if extent == 0 and copies_zeros:
            if axis >= len(shape):
                raise node.refuse(f"the shape {_text(wanted)} copies axis {axis} of {_text(shape)}")
            found.append(shape[axis])
        elif copies_zeros and any(map(is_signed, names_in(extent))):
            node.require(1, extent, "0 and -1 in the shape of a Reshape must be known at import (constants=)")
            found.append(extent)
        else:
            found.append(extent)
    unknown = [axis for axis, extent in enumerate(found) if isinstance(extent, int) and extent < 0]
    if len(unknown) > 1 or any(found[axis] != -1 for axis in unknown):
        raise node.refuse(f"the shape must have one -1 at most, got {_text(wanted)}")
    if unknown:
        total = product_of(shape)
        rest = product_of([extent for axis, extent in enumerate(found) if axis != unknown[0]])
        quotient = None if total is None or rest is None else exact_quotient(total, rest)
        if quotient is None and rest == 0:
            raise node.refuse(f"the shape {_text(wanted)} leaves -1 open: the other extents are 0")
        # Unless the quotient is known to be exact, weft's operator infers it.
        found[unknown[0]] = -1 if quotient is None else quotient
    return found


def product_of(shape: Sequence[Extent]) -> Extent:
    total: Extent = 1
    for extent in shape:
        total = multiply(total, extent)
    return total


def number_of(extent: Extent, dtype: str = "int64") -> Value | int | None:
    """A symbolic extent is a tensor of rank 0."""
    return extent if isinstance(extent, int | None) else ops.squeeze(ops.extents([extent], dtype), [0])


def _text(shape: Sequence[Extent]) -> str:
    return f"({', '.join(map(str, shape))})"


@converts("Constant")
def _constant(node: Node) -> Item:
    for name in ("value", "sparse_value"):
        tensor = node.attribute(name) if node.declares_attribute(name) else None
        if tensor is not None:
            return node.scope.tensor_of(tensor)
    for name in ("value_int", "value_ints", "value_float", "value_floats"):
        if node.has_attribute(name):
            dtype = "int64" if "int" in name else "float32"
            return KnownTensor(np.array(node.attribute(name), dtype), dtype)
    raise node.refuse("attribute 'value' must be a tensor of numbers, or 'value_int' and the like")


@converts("Shape")
def _shape(node: Node, data: Item, *, start: int | None = None, end: int | None = None) -> Item:
    return KnownTensor.of(_known_extents(node, data.shape[slice(start, end)]))


@converts("Size")
def _size(node: Node, data: Item) -> Item:
    return KnownTensor.of(product_of(_known_extents(node, data.shape)))


def _known_extents(node: Node, shape: Sequence[Extent]) -> list[KnownExtent]:
    found = [extent for extent in shape if extent is not None]
    if len(found) < len(shape):
        raise node.refuse(f"the shape of the input, {show_shape(shape)}, is not known")
    return found


@converts("Reshape", since=5)
def _reshape(node: Node, data: Value, shape: Sequence[KnownExtent], *, allowzero: bool = False) -> Item:
    return ops.reshape(data, target_shape(node, data.shape, shape, not allowzero))


@converts("Reshape", until=4)
def _reshape_by_attribute(node: Node, data: Value, *, shape: list[int]) -> Item:
    return _reshape(node, data, shape)


@converts("Flatten")
def _flatten(node: Node, data: Value) -> Item:
    axis = node.integer("axis", -data.ndim, data.ndim)
    axis = axis + data.ndim if axis < 0 else axis
    return as_matrix(data, axis)


def as_matrix(data: Value, axis: int) -> Value:
    """The axes before and from `axis` on as one each."""
    return ops.reshape(data, [product_of(data.shape[:axis]), product_of(data.shape[axis:])])


def over_axes_from(data: Value, axis: int, apply: Callable[[Value, int], Value]) -> Value:
    """Apply a function along an axis to all axes from `axis` on as one."""
    if axis == data.ndim - 1:
        return apply(data, axis)
    return ops.reshape(apply(as_matrix(data, axis), 1), data.shape)


def given_axes(node: Node, index: int, rank: int) -> list[int] | None:
    """The axes that an input or, in older opsets, an attribute names, if any."""
    by_input = node.indices(index) if not node.declares_attribute("axes") and node.has(index) else None
    numbers = node.integers("axes") if node.declares_attribute("axes") else by_input
    return None if numbers is None else node.axes(numbers, rank)


@converts("Squeeze")
def _squeeze(node: Node, data: Value) -> Item:
    return ops.squeeze(data, given_axes(node, 1, data.ndim))


@converts("Unsqueeze")
def _unsqueeze(node: Node, data: Value) -> Item:
    numbers = node.indices(1) if node.version >= 13 else node.integers("axes") or []
    return ops.expand_dims(data, node.axes(numbers, data.ndim + len(numbers)))


@converts("Concat", until=3)
def _concat(node: Node, *values: Value) -> Item:
    return ops.concatenate(list(values), node.axis("axis", values[0].ndim, 1))


@converts("Split")
def _split(
    node: Node,
    data: Value,
    sizes: Sequence[KnownExtent] | None = None,
    *,
    axis: int,
    num_outputs: int | None = None,
) -> Item | Sequence[Item]:
    parts, extent = len(node.proto.output), data.shape[axis]
    sizes = node.integers("split", 0) if node.declares_attribute("split") else sizes
    if sizes is None:
        if num_outputs not in (None, parts):
            raise node.refuse(f"attribute 'num_outputs' = {num_outputs}, but the node has {parts}")
        if extent is None:
            raise node.refuse(f"axis {axis} has an unknown extent: state the sizes in input 'split'")
        size = floordiv(add(extent, parts - 1), parts)
        if not isinstance(extent, int) and parts > 2:  # the last parts may be empty
            bounds = [multiply(size, part) for part in range(parts + 1)]
            return [ops.strided_slice(data, [a], [b], [1], [axis]) for a, b in pairwise(bounds)]
        rests = (subtract(extent, multiply(size, part)) for part in range(parts))
        sizes = [rest if part and not isinstance(rest, int) else _part(size, rest) for part, rest in enumerate(rests)]
    total: KnownExtent = 0
    for size in sizes:
        total = add(total, size)
    if len(sizes) != parts or not node.equal(total, extent) or any(isinstance(n, int) and n < 0 for n in sizes):
        raise node.refuse(f"the sizes {_text(sizes)} must be {parts} that make {extent}")
    cuts = list(accumulate(sizes, add))[:-1]
    if all(isinstance(cut, int) for cut in (*cuts, extent)):
        return [ops.strided_slice(data, [a], [b], [1], [axis]) for a, b in pairwise([0, *cuts, extent])]
    *others, last = ops.split(data, cuts, axis) if cuts else [data]
    if total != extent:  # the import restarts with one extent for both, or calls check them
        last = ops.broadcast_to(last, [*data.shape[:axis], sizes[-1], *data.shape[axis + 1 :]])
    return [*others, last]


def _part(size: KnownExtent, rest: KnownExtent) -> KnownExtent:
    if isinstance(rest, int) and isinstance(size, int):
        return max(min(size, rest), 0)
    return size


@converts("Expand")
def _expand(node: Node, data: Value, wanted: Sequence[KnownExtent]) -> Item:
    shape: list[Extent] = list(wanted)
    for axis in range(1, min(len(shape), data.ndim) + 1):
        wanted_extent, own = wanted[-axis], data.shape[-axis]
        if wanted_extent == 1:
            shape[-axis] = own
        elif own is not None and own != 1 and any(map(is_signed, names_in(wanted_extent))):
            # The number, known at calls, is 1 or the own extent: (number - own) * (number - 1) is 0.
            misfit = multiply(subtract(wanted_extent, own), subtract(wanted_extent, 1))
            shape[-axis] = add(own, misfit)
        elif own is not None and own != 1 and is_not_negative(subtract(1, wanted_extent)):
            # The wanted extent is 0 or 1, as that of a slice 0:1; 0 repeats only an axis without elements.
            node.require(0, subtract(multiply(own, wanted_extent), own), "an axis cannot be expanded to 0 elements")
            shape[-axis] = own
    shape[:0] = data.shape[: max(data.ndim - len(shape), 0)]
    return ops.broadcast_to(data, shape)


@converts("Tile", since=6)
def _tile(node: Node, data: Value, repeats: Sequence[KnownExtent]) -> Item:
    if len(repeats) != data.ndim or any(isinstance(count, int) and count < 0 for count in repeats):
        raise node.refuse(f"input 'repeats' must be {data.ndim} numbers that are not negative, got {_text(repeats)}")
    return ops.tile(data, repeats)


@converts("ConstantOfShape")
def _constant_of_shape(node: Node, shape: Sequence[KnownExtent]) -> Item:
    value = node.attribute("value")
    fill = KnownTensor.of(0.0, "float32") if value is None else node.scope.tensor_of(value)
    if fill.array.size != 1:
        raise node.refuse(f"attribute 'value' must be one number, got shape {fill.shape}")
    numbers = [extent for extent in shape if isinstance(extent, int)]
    is_small = min(numbers, default=0) >= 0 and np.prod(numbers, dtype=np.float64) <= SMALL
    if node.folds and is_small and len(numbers) == len(shape):
        return KnownTensor(np.full(numbers, fill.array.reshape(())), fill.dtype)
    return ops.full(shape, fill.array.item(), fill.dtype)


def _width_and_cut(width: KnownExtent, mode: str) -> tuple[KnownExtent, KnownExtent]:
    """The width of a border, and the number of elements that a negative width removes."""
    opposite = multiply(width, -1)
    if is_not_negative(opposite):
        return 0, opposite
    if is_not_negative(width) or mode == "constant":
        return width, 0  # a constant border whose width is negative at run time crops
    return choose("max", width, 0), choose("max", opposite, 0)


def _require_fitting_border(
    node: Node, mode: str, extent: Extent, around: Sequence[KnownExtent], cut: Sequence[KnownExtent]
) -> None:
    """Add call preconditions that elements to copy exist, if widths may be negative."""
    if extent is None or not any(map(is_signed, set[str]().union(*map(names_in, (*around, *cut))))):
        return
    rest = subtract(subtract(extent, cut[0]), cut[1])
    node.require(0, rest, "input 'pads' cuts at most all elements")
    most = choose("max", subtract(rest, 1), 0)
    for width in around:
        room = subtract(most, width) if mode == "reflect" else subtract(rest, choose("min", width, 1))
        node.require(0, room, f"a border of mode {mode} needs elements to copy")


_NO_BORDER: tuple[KnownExtent, ...] = (0, 0)


@converts("Pad")
def _pad(node: Node, data: Value) -> Item:
    rank = data.ndim
    if node.version < 11:
        widths: Sequence[KnownExtent] = node.integers("pads" if node.version >= 2 else "paddings") or []
        fill: float | bool | Value = node.number("value")
        axes = list(range(rank))
    else:
        widths = node.extents(1)
        fill = node.number_at(2) if node.has(2) else 0
        axes = node.axes(node.indices(3), rank) if node.version >= 18 and node.has(3) else list(range(rank))
    modes = ("constant", "reflect", "edge", "wrap")
    mode = node.word("mode", *(modes if node.version >= 19 else modes[:3]))
    return padded(node, data, widths, mode, fill, axes)


def padded(
    node: Node,
    data: Value,
    widths: Sequence[KnownExtent],
    mode: str,
    fill: float | bool | Value,
    axes: Sequence[int],
) -> Value:
    """Pads a tensor before and after some axes; negative widths crop."""
    if len(widths) != 2 * len(axes):
        raise node.refuse(f"input 'pads' must be {2 * len(axes)} numbers, got {len(widths)}")
    around, cut = [_NO_BORDER] * data.ndim, [_NO_BORDER] * data.ndim
    for position, axis in enumerate(axes):
        pair = (_width_and_cut(widths[at], mode) for at in (position, position + len(axes)))
        around[axis], cut[axis] = zip(*pair, strict=True)
        if mode != "constant":
            _require_fitting_border(node, mode, data.shape[axis], around[axis], cut[axis])
    if any(border != _NO_BORDER for border in cut):
        ends = [subtract(data.shape[axis], after) for axis, (_, after) in enumerate(cut)]
        data = ops.strided_slice(data, [before for before, _ in cut], ends)
    if all(border == _NO_BORDER for border in around):
        return data
    if "int" in data.dtype and not isinstance(fill, Value):
        fill = int(fill)
    return ops.pad(data, around, mode, fill)


@converts("Trilu")
def _trilu(node: Node, data: Value, diagonal: KnownExtent = 0, *, upper: bool) -> Item:
    return (ops.triu if upper else ops.tril)(data, diagonal)


@converts("EyeLike")
def _eye_like(node: Node, like: Item, *, k: int) -> Item:
    if len(like.shape) != 2:
        raise node.refuse(f"input 'input' must be a matrix, got rank {len(like.shape)}")
    rows, columns = like.shape
    return ops.eye(rows, columns, k, node.element_type("dtype") or like.dtype)


@converts("Range")
def _range(node: Node, first_item: Item, limit_item: Item, delta_item: Item) -> Item:
    return numbers_between(node, first_item, limit_item, delta_item)


def numbers_between(node: Node, first_item: Item, limit_item: Item, delta_item: Item) -> Item:
    """The numbers from `first` up to `limit` with distance `delta`."""
    given = [first_item, limit_item, delta_item]
    known = [node.scope.known_of(item) for item in given]
    start, limit, delta = known
    if start is None or limit is None or delta is None:
        bounds = [ops.reshape(node.scope.value_of(item), []) for item in given]
        return node.scope.sizes().numbers(*bounds)
    if start.is_symbolic or limit.is_symbolic or delta.is_symbolic:
        (first,), (last,), (step,) = (known.extents() for known in (start, limit, delta))
        if first == 0 and step == 1 and is_not_negative(last):
            return ops.iota([last], dtype=start.dtype)
        return ops.arange(first, last, step, start.dtype)
    bounds = [known.array.item() for known in (start, limit, delta)]
    if node.folds and bounds[2] and len(range(*bounds)) <= SMALL:
        return KnownTensor(np.array(range(*bounds), start.dtype), start.dtype)
    return ops.arange(*bounds, start.dtype)
