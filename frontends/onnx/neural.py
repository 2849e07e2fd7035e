"""Converters of convolutions, pools, norms and softmax."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any, cast

import numpy as np

from weft.dialects.graph_shapes import Extent, KnownExtent, add, choose, floordiv, multiply, show_shape, subtract
from weft.frontends.graph_builder import Value
from weft.frontends.onnx.known_tensors import Item, KnownTensor
from weft.frontends.onnx.node import Node
from weft.frontends.onnx.operators import ops
from weft.frontends.onnx.registry import converts
from weft.frontends.onnx.shapes import number_of, over_axes_from, product_of
from weft.texpr.ops.convolution import KernelWindow, borders


class Window:
    def __init__(self, node: Node, kernel: Sequence[Extent], extents: Sequence[Extent]) -> None:
        rank = len(extents)
        self.kernel = list(kernel)
        self.strides = node.integers("strides", count=rank) or [1] * rank
        dilations = node.integers("dilations", count=rank) if node.declares_attribute("dilations") else None
        self.dilations = dilations or [1] * rank
        pads = node.integers("pads", count=2 * rank) or [0] * (2 * rank)
        auto: str = node.attribute("auto_pad")
        if auto != "NOTSET":
            sizes, lengths = ([e for e in group if isinstance(e, int)] for group in (self.kernel, extents))
            if len(sizes) < rank or len(lengths) < rank:
                self.pads: list[int] | str = auto
                return
            shape = zip(sizes, self.strides, self.dilations, strict=True)
            windows = [KernelWindow(size, stride, gap, 0, 0) for size, stride, gap in shape]
            before, after = zip(*borders(node.operator, auto, windows, lengths), strict=True)
            pads = cast("list[int]", [*before, *after])
        self.pads = pads

    @property
    def options(self) -> tuple[list[int], list[int] | str, list[int]]:
        return self.strides, self.pads, self.dilations


def _spatial(node: Node, data: Value) -> int:
    if not 1 <= data.ndim - 2 <= 3:
        raise node.refuse(f"input {node.input_name(0)} must have rank 3, 4 or 5, got {data.ndim}")
    return data.ndim - 2


def kernel_of(node: Node, weight: Value, space: int) -> tuple[Extent, ...]:
    """The spatial extents of the weights. Raises `Refusal` if attribute 'kernel_shape' differs."""
    kernel = weight.shape[2:]
    given = node.integers("kernel_shape", count=space)
    if weight.ndim != space + 2:
        raise node.refuse(f"the weights must have rank {space + 2} as the data, got {weight.ndim}")
    if given is not None and not all([node.equal(k, g) for k, g in zip(kernel, given, strict=True)]):
        raise node.refuse(f"attribute 'kernel_shape' must be that of the weights, {list(kernel)}, got {given}")
    return kernel


def convolved(node: Node, data: Value, weight: Value, group: int, **options: str) -> Value:
    space = _spatial(node, data)
    window = Window(node, kernel_of(node, weight, space), data.shape[2:])
    conv = (ops.conv1d, ops.conv2d, ops.conv3d)[space - 1]
    return conv(data, weight, *window.options, group, **options)


@converts("Conv")
def _conv(node: Node, data: Value, weight: Value, bias: Value | None = None, *, group: int) -> Item:
    return with_bias(convolved(node, data, weight, group), bias)


@converts("ConvTranspose")
def _conv_transpose(
    node: Node, data: Value, weight: Value, bias: Value | None = None, *, auto_pad: str, group: int
) -> Item:
    pads, wanted = node.integers("pads", count=2 * _spatial(node, data)), node.integers("output_shape")
    return with_bias(conv_transposed(node, data, weight, auto_pad, group, pads, wanted), bias)


def conv_transposed(
    node: Node,
    data: Value,
    weight: Value,
    auto_pad: str,
    group: int,
    given_pads: Sequence[int] | None,
    wanted: Sequence[int] | None = None,
) -> Value:
    """The bias is not added; `wanted` are the spatial extents of the result."""
    space = _spatial(node, data)
    kernel, extents = kernel_of(node, weight, space), data.shape[2:]
    strides = node.integers("strides", count=space) or [1] * space
    dilations = node.integers("dilations", count=space) or [1] * space
    longer = node.integers("output_padding", count=space) or [0] * space
    pads = list(given_pads or [0] * (2 * space))
    if wanted is not None and len(wanted) == space + 2:
        wanted = wanted[2:]
    if wanted is not None and len(wanted) != space:
        raise node.refuse(f"attribute 'output_shape' must be {space} numbers, got {wanted}")
    if auto_pad != "NOTSET" or wanted is not None:
        pads = [0] * (2 * space)
    cut = [0] * (2 * space)
    border: list[tuple[KnownExtent, KnownExtent]] = [(0, 0)] * space
    """Elements added to the result, or removed from it if they are negative."""
    if wanted is not None or auto_pad.startswith("SAME"):
        for axis in range(space):
            extent, size = extents[axis], kernel[axis]
            if extent is None or size is None:
                raise node.refuse("attributes 'output_shape' and 'auto_pad' need axes whose extents have names")
            full = (extent - 1) * strides[axis] + longer[axis] + (size - 1) * dilations[axis] + 1
            total = full - (wanted[axis] if wanted is not None else extent * strides[axis])
            if isinstance(total, int) and total < 0:
                # The result extends beyond the windows: zeros at the end.
                longer[axis] -= total
                total = 0
            removed = total if isinstance(total, int) else choose("max", total, 0)
            small = floordiv(removed, 2)
            # By ONNX's definition, the larger part is at the end only for SAME_UPPER.
            before = small if auto_pad == "SAME_UPPER" else removed - small
            if isinstance(before, int) and isinstance(total, int):
                pads[axis], pads[axis + space] = before, total - before
            else:
                border[axis] = -1 * before, before - total
    reach = [(size - 1) * gap for size, gap in zip(kernel, dilations, strict=True) if isinstance(size, int)]
    for place, amount in enumerate(pads):
        if len(reach) == space and amount > reach[place % space]:
            pads[place], cut[place] = reach[place % space], amount - reach[place % space]
    conv = (ops.conv1d_transpose, ops.conv2d_transpose, ops.conv3d_transpose)[space - 1]
    found = conv(data, weight, strides, pads, longer, dilations, group)
    if any(cut):
        ends = [-amount if amount else None for amount in cut[space:]]
        found = ops.strided_slice(found, cut[:space], ends, 1 if space == 1 else [1] * space, list(range(2, space + 2)))
    return ops.pad(found, [(0, 0), (0, 0), *border]) if any(width != (0, 0) for width in border) else found


@converts("DeformConv", since=19)
def _deform_conv(
    node: Node,
    data: Value,
    weight: Value,
    offset: Value,
    bias: Value | None = None,
    mask: Value | None = None,
    *,
    group: int,
    offset_group: int,
) -> Item:
    if data.ndim != 4 or offset.ndim != 4:
        raise node.refuse(f"inputs 'X' and 'offset' must have rank 4, got {data.ndim} and {offset.ndim}")
    kernel = kernel_of(node, weight, 2)
    strides, gaps = node.integers("strides", count=2) or [1, 1], node.integers("dilations", count=2) or [1, 1]
    pads = node.integers("pads", count=4) or [0] * 4
    reach = [multiply(add(size, -1), gap) for size, gap in zip(kernel, gaps, strict=True)]
    room = [add(subtract(data.shape[2 + d], reach[d]), pads[d] + pads[d + 2] - 1) for d in range(2)]
    places = [add(floordiv(extent, stride), 1) for extent, stride in zip(room, strides, strict=True)]
    taps = multiply(kernel[0], kernel[1])
    for value, factor, label in ((offset, 2 * offset_group, "offset"), (mask, offset_group, "mask")):
        wanted = [data.shape[0], multiply(taps, factor), *places]
        if value is not None and not all([node.equal(e, w) for e, w in zip(value.shape, wanted, strict=True)]):
            raise node.refuse(
                f"input '{label}' must have the shape {show_shape(wanted)}, got {show_shape(value.shape)}"
            )
    found = ops.deform_conv2d(data, offset, weight, mask, strides, pads, gaps, group, offset_group)
    return with_bias(found, bias)


def with_bias(found: Value, bias: Value | None) -> Value:
    if bias is None or found.ndim == 2:
        return found if bias is None else ops.add(found, bias)
    return ops.add(found, ops.expand_dims(bias, list(range(1, found.ndim - 1))))


def pooled(node: Node, data: Value, name: str, *options: object) -> Any:
    """Applies a pool; `name` is formatted with the number of spatial axes."""
    space = _spatial(node, data)
    window = Window(node, node.integers("kernel_shape", count=space) or [], data.shape[2:])
    return getattr(ops, name.format(space))(data, window.kernel, *window.options, *options)


@converts("MaxPool")
def _max_pool(
    node: Node, data: Value, *, ceil_mode: bool = False, storage_order: bool = False
) -> Item | Sequence[Item]:
    if not node.uses_output(1):
        return pooled(node, data, "max_pool{}d", ceil_mode)
    found, places = pooled(node, data, "max_pool_with_indices", ceil_mode)
    return found, _row_places(node, places, data.shape, storage_order)


def _row_places(node: Node, places: Value, shape: Sequence[Extent], by_columns: bool) -> Value:
    """Indices within planes as indices within the tensor, row-major, or with reversed spatial axes."""
    planes, plane = product_of(shape[:2]), product_of(shape[2:])
    if planes is None or plane is None:
        raise node.refuse("output 'Indices' needs data of known shape")
    if by_columns:
        rest, reordered, step = places, None, cast("Extent", 1)
        coordinates: list[Value] = []
        for extent in reversed(shape[2:]):
            coordinates.append(ops.floor_mod(rest, number_of(extent)))
            rest = ops.floor_divide(rest, number_of(extent))
        for extent, coordinate in zip(shape[2:], reversed(coordinates), strict=True):
            part = ops.multiply(coordinate, number_of(step))
            reordered = part if reordered is None else ops.add(reordered, part)
            step = multiply(step, extent)
        places = reordered if reordered is not None else places
    starts = ops.multiply(ops.iota([planes]), number_of(plane))
    lead = [shape[0], shape[1], *[1] * (len(shape) - 2)]
    return ops.add(places, ops.reshape(starts, lead))


@converts("AveragePool")
def _average_pool(
    node: Node, data: Value, *, ceil_mode: bool = False, count_include_pad: bool = False
) -> Item | Sequence[Item]:
    return pooled(node, data, "avg_pool{}d", ceil_mode, count_include_pad)


@converts("LpPool", since=2)
def _lp_pool(node: Node, data: Value, *, p: int, ceil_mode: bool = False) -> Item | Sequence[Item]:
    return pooled(node, data, "lp_pool", ceil_mode, float(p))


@converts("GlobalAveragePool", "GlobalMaxPool")
def _global_pool(node: Node, data: Value) -> Item:
    axes = list(range(2, data.ndim))
    return (ops.mean if node.operator == "GlobalAveragePool" else ops.max)(data, axes, True)


@converts("GlobalLpPool", since=2)
def _global_lp_pool(node: Node, data: Value, *, p: int) -> Item:
    return ops.vector_norm(data, list(range(2, data.ndim)), True, float(p))


@converts("MaxUnpool")
def _max_unpool(node: Node, data: Value, places: Value) -> Item:
    space = _spatial(node, data)
    kernel = node.integers("kernel_shape", count=space) or []
    strides = node.integers("strides", count=space) or [1] * space
    pads = node.integers("pads", count=2 * space) or [0] * (2 * space)
    reach = [kernel[d] - strides[d] - pads[d] - pads[d + space] for d in range(space)]
    inferred = [add(multiply(data.shape[2 + d], strides[d]), reach[d]) for d in range(space)]
    if any(isinstance(extent, int) and extent < 1 for extent in inferred):
        raise node.refuse(f"the windows have no elements, got the extents {show_shape(inferred)}")
    # Indices are in the inferred shape; a larger one has zeros at its ends.
    found = ops.max_unpool(data, ops.floor_mod(places, number_of(product_of(inferred))), inferred)
    size = node.extents(2)[2:] if node.has(2) else inferred
    after = [subtract(extent, own) for extent, own in zip(size, inferred, strict=True)]
    for extra in after:
        if extra is None:
            raise node.refuse("input 'X' must have a known shape")
        node.require(0, extra, "output_shape is at least the shape that follows from the windows")
    return ops.pad(found, [(0, 0), (0, 0), *((0, extra) for extra in after)]) if any(after) else found


@converts("Col2Im")
def _col2im(node: Node, data: Value, image: list[int], block: list[int]) -> Item:
    space = len(image)
    strides = node.integers("strides", count=space) or [1] * space
    dilations = node.integers("dilations", count=space) or [1] * space
    pads = node.integers("pads", count=2 * space) or [0] * (2 * space)
    batch, columns, count = data.shape
    padded = [extent + pads[d] + pads[d + space] for d, extent in enumerate(image)]
    moves = [
        (extent - (size - 1) * gap - 1) // step + 1
        for extent, size, gap, step in zip(padded, block, dilations, strides, strict=True)
    ]
    size = prod(block)
    node.check_room(*map(abs, moves), size)
    if columns is None or (isinstance(columns, int) and columns % size) or not node.equal(count, prod(moves)):
        raise node.refuse(f"input 'input' of shape {show_shape(data.shape)} does not fit blocks {block} of {image}")
    # Position in the padded image of each element of a block, at each position of the block.
    offsets = np.indices(block).reshape(space, size, 1) * np.reshape(dilations, (space, 1, 1))
    starts = np.indices(moves).reshape(space, 1, -1) * np.reshape(strides, (space, 1, 1))
    places = np.ravel_multi_index(tuple(offsets + starts), padded).reshape(-1)
    channels = floordiv(columns, size)
    shape = [batch, channels, places.size]
    indices = ops.broadcast_to(KnownTensor(places.astype(np.int64), "int64").constant(), shape)
    empty = ops.full([batch, channels, prod(padded)], 0, data.dtype)
    found = ops.scatter_elements(empty, indices, ops.reshape(data, shape), 2, "add")
    whole = ops.reshape(found, [batch, channels, *padded])
    ends = [pads[d] + extent for d, extent in enumerate(image)]
    return ops.strided_slice(whole, pads[:space], ends, [1] * space, list(range(2, space + 2)))


@converts("BatchNormalization")
def _batch_norm(
    node: Node,
    data: Value,
    scale: Value,
    bias: Value,
    mean: Value,
    variance: Value,
    *,
    epsilon: float,
    momentum: float,
    spatial: bool = True,
    is_test: bool = True,
    training_mode: bool = False,
) -> Item | Sequence[Item]:
    if not spatial and data.ndim > 2:
        raise node.refuse("attribute 'spatial' = 0 is not supported")
    if not is_test:
        raise node.refuse("attribute 'is_test' = 0 is not supported: models are for inference")
    if not training_mode:
        return ops.batch_norm(data, scale, bias, mean, variance, epsilon=epsilon)
    over = [axis for axis in range(data.ndim) if axis != 1]
    own = ops.mean(data, over), ops.var(data, over)
    kept = (
        ops.add(ops.multiply(old, momentum), ops.multiply(ops.cast(new, old.dtype), 1 - momentum))
        for old, new in zip((mean, variance), own, strict=True)
    )
    parts = (ops.cast(part, scale.dtype) for part in own)
    return ops.batch_norm(data, scale, bias, *parts, epsilon=epsilon), *kept


@converts("Softmax", "LogSoftmax", until=12)
def _softmax_of_matrix(node: Node, data: Value, *, axis: int) -> Item:
    """The softmax is over all axes from `axis` on."""
    return over_axes_from(data, axis, ops.softmax if node.operator == "Softmax" else ops.log_softmax)


@converts("LpNormalization")
def _lp_normalization(node: Node, data: Value, *, axis: int) -> Item:
    norm = ops.vector_norm(data, axis, True, float(node.integer("p", 1, 2)))
    return ops.where(ops.equal(norm, 0.0), norm, ops.divide(data, norm))


@converts("CausalConvWithState")
def _causal_convolution(
    node: Node, data: Value, weight: Value, bias: Value | None = None, past: Value | None = None
) -> Sequence[Item] | None:
    """A depthwise convolution of symbolic channels; ONNX's definition by groups needs their number."""
    if data.ndim != 3 or weight.ndim != 3 or isinstance(data.shape[1], int):
        return None
    activation = node.word("activation", "none", "silu", "swish")
    length, width = data.shape[2], weight.shape[2]
    if length is None or width is None or not node.equal(weight.shape[1], 1):
        raise node.refuse(f"input 'weight' has one filter for each channel, got {show_shape(weight.shape)}")
    kept = subtract(width, 1)
    if past is None:
        node.require(1, width, "input 'weight' has an element for each position")
        padded = ops.pad(data, [(0, 0), (0, 0), (kept, 0)])
    elif node.equal(past.shape[2], kept):
        padded = ops.concatenate([past, data], 2)
    else:
        raise node.refuse(f"input 'past_state' has {past.shape[2]} positions, expected {kept}")
    found = ops.depthwise_conv2d(ops.expand_dims(padded, [2]), ops.expand_dims(weight, [2]))
    found = with_bias(ops.squeeze(found, [2]), bias)
    found = found if activation == "none" else ops.silu(found)
    return found, ops.strided_slice(padded, [length], [add(length, kept)], [1], [2])
