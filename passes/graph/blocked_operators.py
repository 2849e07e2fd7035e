"""Operators of convolution nets on data in blocks of channels: (N, C / b, H, W, b) in the place of (N, C, H, W)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any, Final, TypeAlias, cast

from numpy.typing import NDArray
from xdsl.dialects.builtin import TensorType
from xdsl.ir import Operation, SSAValue

from weft.analysis.graph_patterns import arguments_of, array_of_constant
from weft.dialects.attribute_values import attribute_of
from weft.dialects.element_types import bytes_of, element_name
from weft.dialects.graph import ConstantOp
from weft.dialects.graph_shapes import DimsAttr, KnownExtent
from weft.dialects.graph_traits import Elementwise
from weft.passes.graph.operators import (
    OPERATOR_OF,
    extents_of,
    made,
    made_constant,
    name_of,
    properties_of,
    type_of,
    windows_of,
)
from weft.plans import fitted
from weft.plans.layouts import saved_by_blocks, saved_by_filtering
from weft.support.cpu_instructions import has_dot_product
from weft.support.target import Target
from weft.texpr.graph_operators import Operator
from weft.texpr.ops.winograd import SQUARES, WINDOW, transformed_kernel

InBlocks: TypeAlias = Callable[[SSAValue], SSAValue]
"""The value in blocks that stands for one without."""


@dataclass(frozen=True)
class Form:
    """How an operator computes in blocks."""

    op: Operator
    joined: tuple[SSAValue, ...]
    """Operands that are in blocks of the size of the result's."""
    data: SSAValue | None
    """The data of a convolution, which may be in blocks of any size."""
    work: int
    """The multiply-adds of a convolution."""
    gain: float
    """Multiply-adds that are saved."""
    build: Callable[[InBlocks, int], Operation]
    """The operator on values in blocks, of so many channels for the result."""
    filtered: float = 0
    """Those among the multiply-adds that are saved only with data in blocks, by minimal filtering."""

    @property
    def result(self) -> SSAValue:
        return self.op.results[0]


def image_of(value: SSAValue) -> tuple[KnownExtent, int, KnownExtent, KnownExtent] | None:
    """Batch, channels, rows and columns of a tensor of images; None where a tensor is none, or channels are not
    known."""
    if not isinstance(value.type, TensorType) or value.type.get_num_dims() != 4:
        return None
    batch, channels, rows, columns = extents_of(value)
    if batch is None or rows is None or columns is None or not isinstance(channels, int):
        return None
    return None if 0 in (channels, rows, columns) else (batch, channels, rows, columns)


def counted(extent: KnownExtent) -> int:
    """The rows or columns of an image, by which costs are compared: `fitted.SYMBOLIC_PIXELS` for symbolic ones."""
    return extent if isinstance(extent, int) else fitted.SYMBOLIC_PIXELS


def elements_of(value: SSAValue) -> int:
    """The elements of a tensor of images; a batch of unknown extent counts as one image."""
    batch, *space = image_of(value) or (0,)
    return prod(map(counted, space)) * (batch if isinstance(batch, int) else 1)


def is_convolution(op: Operation) -> bool:
    return isinstance(op, Operator) and name_of(op) in ("conv2d", "depthwise_conv2d")


def form_of(op: Operation, target: Target, winograd: bool) -> Form | None:
    """How an operator computes in blocks, where its results are images; None where it does not. Integers that the
    target has dot products of are laid out for them; `winograd` states whether minimal filtering may be used."""
    if not isinstance(op, Operator) or len(op.results) != 1 or image_of(op.results[0]) is None:
        return None
    if is_convolution(op):
        return _convolution(op, target, winograd)
    name = name_of(op)
    if name in _POOLS:
        return _pool(op)
    if name in ("adaptive_pool", "global_pool"):
        return _adaptive_pool(op)
    if {"axis", "keepdims"} <= op.SIGNATURE.parameters.keys():
        return _reduction(op)
    if name == "concatenate":
        return _concatenation(op)
    return _elementwise(op) if op.has_trait(Elementwise) else None


def reshaped(value: SSAValue, shape: Sequence[KnownExtent | None]) -> SSAValue:
    return made("reshape", [value], newshape=DimsAttr(tuple(shape))).results[0]


def transposed(value: SSAValue, axes: Sequence[int]) -> SSAValue:
    return made("transpose", [value], axes=tuple(axes)).results[0]


# Convolutions

_CONVOLVED: Final[Mapping[tuple[str | None, ...], int]] = {
    ("float32", "float32", "float32"): 1,
    ("float64", "float64", "float64"): 1,
    ("int16", "int16", "int32"): 2,
    ("uint8", "int8", "int32"): 4,
}
"""Elements of data, of weights, and of sums -> how many products make a dot product of them."""


def _convolution(op: Operator, target: Target, winograd: bool) -> Form | None:
    arguments = arguments_of(op)
    data, weight, result = op.operands[0], op.operands[1].owner, op.results[0]
    source, image = image_of(data), image_of(result)
    if not isinstance(weight, ConstantOp) or source is None or image is None:
        return None
    element, shape = weight.result.type.element_type, weight.result.type.get_shape()
    types = [element_name(type_) for type_ in (type_of(data).element_type, element, type_of(result).element_type)]
    group = _CONVOLVED.get(tuple(types), 0)
    if not group:
        return None
    if arguments["data_layout"] != "NCHW" or arguments.get("kernel_layout") not in (None, "", "OIHW"):
        return None
    channels, filters = source[1], image[1]
    is_depthwise = shape[1] == 1 and channels == filters
    is_depthwise &= name_of(op) == "depthwise_conv2d" or arguments["groups"] == channels
    if not is_depthwise and (name_of(op) != "conv2d" or arguments["groups"] != 1):
        return None
    work = elements_of(result) * prod(shape[1:])
    given = ("strides", "padding", "dilation", "out_dtype")
    moved = {key: op.properties[key] for key in given if key in op.properties}
    is_integer = group > 1
    if not has_dot_product(target, group, types[0] != "uint8", True):
        group = 1
    tile, filtered = _filtering(op, shape) if winograd and not is_depthwise else (0, 0)

    def packed(kernel: NDArray[Any]) -> SSAValue:
        made_weight = made_constant(kernel, element).result
        made_weight.name_hint = weight.result.name_hint
        return made_weight

    def depthwise(in_blocks: InBlocks, width: int) -> Operation:
        array = array_of_constant(weight)
        kernel = array.reshape(channels // width, width, *shape[2:]).transpose(0, 2, 3, 1)
        return made("depthwise_conv2d_blocked", [in_blocks(data), packed(kernel)], **moved)

    def dense(in_blocks: InBlocks, width: int) -> Operation:
        found = in_blocks(data)
        inner = cast("int", extents_of(found)[4])
        array = array_of_constant(weight)
        if tile and inner > 1:
            array = transformed_kernel(array, tile)
            kernel = array.reshape(filters // width, width, channels // inner, inner, *array.shape[2:])
            given = {key: moved[key] for key in ("padding", "out_dtype") if key in moved}
            return made("conv2d_winograd", [found, packed(kernel.transpose(0, 4, 5, 2, 3, 1))], **given)
        kernel = array.reshape(filters // width, width, channels // inner, inner, *shape[2:]).transpose(
            0, 2, 4, 5, 3, 1
        )
        if inner % group == 0 < group - 1:
            kernel = kernel.reshape(*kernel.shape[:4], inner // group, group, width).swapaxes(5, 6)
        return made("conv2d_blocked", [found, packed(kernel)], **moved)

    is_strided = elements_of(data) > 2 * elements_of(result)
    flags = {"is_depthwise": is_depthwise, "is_strided": is_strided, "is_integer": is_integer}
    saved = saved_by_blocks(work, shape[2:], **flags)
    if is_depthwise:
        return Form(op, (data,), None, work, saved, depthwise)
    return Form(op, (), data, work, saved + filtered, dense, filtered)


_CHANNELS_OF_A_BLOCK: Final = 8
"""Channels that make a block of data on any machine."""


def _filtering(op: Operator, kernel: Sequence[int]) -> tuple[int, float]:
    """The side of the tiles for which minimal filtering is fastest, and the multiply-adds that it saves; (0, 0) for
    other windows, and if it saves nothing."""
    arguments, image = arguments_of(op), image_of(op.results[0])
    filters, channels, *window = kernel
    is_moved = any(value not in (1, [1, 1], (1, 1)) for value in (arguments["strides"], arguments["dilation"]))
    is_float = element_name(type_of(op.results[0]).element_type) in ("float32", "float64")
    if image is None or is_moved or window != [WINDOW] * 2 or not is_float or channels % _CHANNELS_OF_A_BLOCK:
        return 0, 0
    batch, _, *extents = image
    if not all(isinstance(extent, int) for extent in extents):
        return 0, 0
    return saved_by_filtering(
        batch if isinstance(batch, int) else 1, [*map(counted, extents)], channels, filters, WINDOW, SQUARES
    )


# Pools

_POOLS: Final = {f"{kind}_pool2d": f"{kind}_pool3d" for kind in ("max", "avg", "sum")}


def _pool(op: Operator) -> Form | None:
    """A pool over three axes, of which windows take one element along the blocks."""
    arguments = arguments_of(op)
    if arguments.get("layout") not in (None, "NCHW"):
        return None

    def build(in_blocks: InBlocks, width: int) -> Operation:
        given: dict[str, Any] = {"layout": "NDHWC"}
        for key in ("kernel", "strides", "dilation"):
            if key in op.properties and arguments[key] is not None:
                given[key] = [1, *_pair(arguments[key])]
        if "padding" in op.properties:
            padding = arguments["padding"]
            around = [[0, 0], *([window.before, window.after] for window in windows_of(op))]
            given["padding"] = padding if isinstance(padding, str) else around
        for key in ("ceil_mode", "count_include_pad"):
            if key in op.properties:
                given[key] = op.properties[key]
        return made(_POOLS[name_of(op)], [in_blocks(op.operands[0])], **given)

    return Form(op, (op.operands[0],), None, 0, 0, build)


def _pair(value: object) -> list[int]:
    return [value, value] if isinstance(value, int) else list(cast("Sequence[int]", value))


def _adaptive_pool(op: Operator) -> Form | None:
    arguments = arguments_of(op)
    image = image_of(op.results[0])
    if arguments.get("layout") not in (None, "NCHW") or image is None:
        return None
    _, channels, rows, columns = image
    if not isinstance(rows, int) or not isinstance(columns, int):
        return None

    def build(in_blocks: InBlocks, width: int) -> Operation:
        sizes = [channels // width, rows, columns]
        options: dict[str, Any] = {"output_size": sizes, "pool_type": arguments["pool_type"], "layout": "NDHWC"}
        return made("adaptive_pool", [in_blocks(op.operands[0])], **options)

    return Form(op, (op.operands[0],), None, 0, 0, build)


def _reduction(op: Operator) -> Form | None:
    """A reduction of all pixels of a channel, which becomes an image of one pixel."""
    arguments = arguments_of(op)
    axes = arguments.get("axis")
    if not isinstance(axes, list | tuple) or image_of(op.operands[0]) is None:
        return None
    if sorted(axis % 4 for axis in cast("Sequence[int]", axes)) != [2, 3]:
        return None
    given = properties_of(op, "axis", "keepdims")

    def build(in_blocks: InBlocks, width: int) -> Operation:
        return made(name_of(op), [in_blocks(op.operands[0])], axis=(2, 3), keepdims=True, **given)

    return Form(op, (op.operands[0],), None, 0, 0, build)


# Operators without axes


def _concatenation(op: Operator) -> Form | None:
    axis = cast("int", arguments_of(op)["axis"])
    if axis % 4 != 1:
        return None

    def build(in_blocks: InBlocks, width: int) -> Operation:
        return OPERATOR_OF["concatenate"].of([[in_blocks(value) for value in op.operands]], {"axis": attribute_of(1)})

    return Form(op, tuple(op.operands), None, 0, 0, build)


def _elementwise(op: Operator) -> Form | None:
    """Operands with elements for each channel are in blocks too, those that are the same for all get another axis."""
    image = image_of(op.results[0])
    if image is None:
        return None
    channels = image[1]
    joined: list[SSAValue] = []
    for value in op.operands:
        extents = extents_of(value)
        if None in extents:
            return None
        if len(extents) == 4 and extents[1] == channels != 1:
            if image_of(value) is None:
                return None
            if not isinstance(value.owner, ConstantOp):
                joined.append(value)
    if not joined:
        return None

    def build(in_blocks: InBlocks, width: int) -> Operation:
        values = [in_blocks(v) if v in joined else _broadcast(v, channels, width) for v in op.operands]
        groups = op.grouped(values, op.properties)
        return made(name_of(op), groups, **properties_of(op))

    return Form(op, tuple(joined), None, 0, 0, build)


def _broadcast(value: SSAValue, channels: int, width: int) -> SSAValue:
    """An operand that broadcasts to images, as it broadcasts to images in blocks."""
    around = extents_of(value)
    if not around:
        return value
    at = len(around) - 3
    if at < 0 or around[at] != channels or channels == 1:
        return reshaped(value, [*around, 1])
    split = reshaped(value, [*around[:at], channels // width, width, *around[at + 1 :]])
    axes = [*range(at + 1), at + 2, at + 3, at + 1]
    return transposed(split, axes)


def bytes_of_element(value: SSAValue) -> int:
    """Bytes of an element as it is computed with: halves are computed in single precision."""
    return max(bytes_of(type_of(value).element_type), 4)
