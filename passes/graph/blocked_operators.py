"""Operators of convolution nets in NCHWc layout: (N, C / b, H, W, b) instead of (N, C, H, W)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import gcd, prod
from typing import Final, cast

from xdsl.dialects.builtin import TensorType
from xdsl.ir import Attribute, Operation, SSAValue

from weft.analysis.graph_patterns import arguments_of, array_of_constant
from weft.dialects.element_types import bytes_of, element_name
from weft.dialects.graph import ConstantOp
from weft.dialects.graph_shapes import KnownExtent
from weft.passes.graph.operators import extents_of, made, made_constant, name_of, type_of
from weft.passes.graph.packing import pack, packed_operator
from weft.plans import fitted
from weft.plans.layouts import saved_by_blocks, saved_by_filtering
from weft.support.cpu_instructions import BF16, BYTE, SIGNED_BYTE, Factor, has_dot_product, tile_product_intrinsic
from weft.support.target import Target
from weft.texpr.graph_operators import Operator
from weft.texpr.ops.winograd import SQUARES, WINDOW, transformed_kernel
from weft.texpr.references.packing import pack as packed_array


@dataclass(frozen=True)
class BlockedForm:
    """The NCHWc form of an operator."""

    op: Operator
    joined: tuple[SSAValue, ...]
    """Operands in blocks of the size of the result's."""
    data: SSAValue | None
    """The data of a convolution, which may be in blocks of any size."""
    work: int
    """The multiply-adds of a convolution."""
    gain: float
    """Multiply-adds that the form saves."""
    build: Callable[[int, int], Operator]
    """Builds the operator, not inserted yet, for given channels per block of results and of data."""
    filtered: float = 0
    """The part of `gain` that is saved only with data in blocks, by minimal filtering."""
    products: int = 1
    """Neighbouring channels whose products an instruction adds to a sum."""
    groups: Groups | None = None
    """The groups of channels, if there are several."""

    @property
    def result(self) -> SSAValue:
        return self.op.results[0]

    def gain_in(self, width: int) -> float:
        """Returns the multiply-adds that the form saves in blocks of `width` channels."""
        zeros = 0 if self.groups is None else self.groups.merged(width) - 1
        return self.gain - zeros * self.work / self.products


@dataclass(frozen=True)
class Groups:
    """The groups of channels of a convolution: their number, and the filters and input channels of each."""

    count: int
    filters: int
    inputs: int

    def merged(self, width: int) -> int:
        """Returns the number of groups that fill whole blocks of `width` channels together. They are multiplied by
        weights of 0 for each other."""
        return next(
            number
            for number in range(1, self.count + 1)
            if self.count % number == 0 and number * self.filters % width == number * self.inputs % width == 0
        )


def image_of(value: SSAValue) -> tuple[KnownExtent, int, KnownExtent, KnownExtent] | None:
    """Returns batch, channels, rows and columns, or None if the rank is not 4 or channels are unknown."""
    if not isinstance(value.type, TensorType) or value.type.get_num_dims() != 4:
        return None
    batch, channels, rows, columns = extents_of(value)
    if batch is None or rows is None or columns is None or not isinstance(channels, int):
        return None
    return None if 0 in (channels, rows, columns) else (batch, channels, rows, columns)


def counted(extent: KnownExtent) -> int:
    return extent if isinstance(extent, int) else fitted.SYMBOLIC_PIXELS


def elements_of(value: SSAValue) -> int:
    """Counts an unknown batch as one image."""
    batch, *space = image_of(value) or (0,)
    return prod(map(counted, space)) * (batch if isinstance(batch, int) else 1)


def is_convolution(op: Operation) -> bool:
    return isinstance(op, Operator) and name_of(op) in ("conv2d", "depthwise_conv2d")


def blocked_form(op: Operation, target: Target, winograd: bool) -> BlockedForm | None:
    """Returns the NCHWc form of an operator on images, or None. Integers are packed if the target has dot products."""
    if not isinstance(op, Operator) or len(op.results) != 1 or image_of(op.results[0]) is None:
        return None
    if is_convolution(op):
        return _convolution(op, target, winograd)
    return _other(op)


# Convolutions

_CONVOLVED: Final[Mapping[tuple[str | None, ...], tuple[Factor, Factor] | None]] = {
    ("float32", "float32", "float32"): None,
    ("float64", "float64", "float64"): None,
    ("bfloat16", "bfloat16", "float32"): (BF16, BF16),
    ("int16", "int16", "int32"): (Factor(16, signed=True), Factor(16, signed=True)),
    ("uint8", "int8", "int32"): (BYTE, SIGNED_BYTE),
}
"""Maps the elements of data, of weights, and of sums to the factors of dot products, or to None without such."""


def _convolution(op: Operator, target: Target, winograd: bool) -> BlockedForm | None:
    arguments = arguments_of(op)
    data, weight, result = op.operands[0], op.operands[1].owner, op.results[0]
    source, image = image_of(data), image_of(result)
    if not isinstance(weight, ConstantOp) or source is None or image is None:
        return None
    element, shape = weight.result.type.element_type, weight.result.type.get_shape()
    elements = (type_of(data).element_type, element, type_of(result).element_type)
    types = tuple(map(element_name, elements))
    if types not in _CONVOLVED:
        return None
    if arguments["data_layout"] != "NCHW" or arguments.get("kernel_layout") not in (None, "", "OIHW"):
        return None
    channels, filters = source[1], image[1]
    is_depthwise = shape[1] == 1 and channels == filters
    is_depthwise &= name_of(op) == "depthwise_conv2d" or arguments["groups"] == channels
    if not is_depthwise and name_of(op) != "conv2d":
        return None
    groups = Groups(1 if is_depthwise else cast("int", arguments["groups"]), 0, 0)
    groups = replace(groups, filters=filters // groups.count, inputs=shape[1])
    work = elements_of(result) * prod(shape[1:])
    given = ("strides", "padding", "dilation", "out_dtype")
    moved = {key: op.properties[key] for key in given if key in op.properties}
    factors = _CONVOLVED[types]
    group = 1 if factors is None or not has_dot_product(target, *factors) else 32 // factors[0].bits
    is_grouped = groups.count > 1
    if is_grouped and group == 1 and factors is not None:
        return None
    may_filter = winograd and not (is_depthwise or is_grouped)
    if types[0] == "bfloat16":
        # Tile registers multiply several times as fast as Winograd saves.
        may_filter &= group > 1 and not tile_product_intrinsic(target, None, None)
        rate = 2 * target.processor.bf16_dots_per_fma
    else:
        rate = 1.0
    tile, filtered = _filtering(op, shape, rate) if may_filter else (0, 0)

    def depthwise(width: int, inner: int) -> Operator:
        found = [pack(op.operands[0], [1], [width]), _packed_weight(op, [0], [width])]
        return made("depthwise_conv2d", found, data_layout="NCHWc", **moved)

    def dense(width: int, inner: int) -> Operator:
        if is_grouped:
            return _grouped(op, groups, width, group, moved)
        found = pack(op.operands[0], [1], [inner])
        if tile and inner > 1:
            given = {key: moved[key] for key in ("padding", "out_dtype") if key in moved}
            return made("conv2d_winograd", [found, _filtering_weight(op, tile, width, inner)], **given)
        kernel, layout = _packed_weight(op, [1, 0], [inner, width]), "OIHWio"
        if inner % group == 0 < group - 1:
            kernel, layout = pack(kernel, [4], [group]), "OIHWioi"
            kernel.name_hint = op.operands[1].name_hint
        return made("conv2d", [found, kernel], data_layout="NCHWc", kernel_layout=layout, **moved)

    is_strided = elements_of(data) > 2 * elements_of(result)
    is_integer = factors is not None
    flags = {"is_depthwise": is_depthwise, "is_grouped": is_grouped, "is_strided": is_strided, "is_integer": is_integer}
    saved = saved_by_blocks(work, shape[2:], **flags)
    if is_depthwise:
        return BlockedForm(op, (data,), None, work, saved, depthwise)
    if is_grouped:
        return BlockedForm(op, (data,), None, work, saved, dense, products=group, groups=groups)
    return BlockedForm(op, (), data, work, saved + filtered, dense, filtered, group)


def _grouped(op: Operator, groups: Groups, width: int, products: int, moved: Mapping[str, Attribute]) -> Operator:
    """Returns a convolution of groups, merged to whole blocks by weights of 0."""
    import numpy as np

    weight = cast("ConstantOp", op.operands[1].owner)
    array, merged = array_of_constant(weight), groups.merged(width)
    count, filters, window = groups.count // merged, groups.filters, array.shape[2:]
    wide = np.zeros((count, merged, filters, merged, groups.inputs, *window), array.dtype)
    for at in range(merged):
        wide[:, at, :, at] = array.reshape(count, merged, filters, groups.inputs, *window)[:, at]
    wide = wide.reshape(array.shape[0], merged * groups.inputs, *window)
    kernel, layout = pack(made_constant(wide, weight.result.type.element_type).result, [1, 0], [width] * 2), "OIHWio"
    if products > 1:
        kernel, layout = pack(kernel, [4], [products]), "OIHWioi"
    kernel.name_hint = op.operands[1].name_hint
    data = pack(op.operands[0], [1], [width])
    layouts = {"data_layout": "NCHWc", "kernel_layout": layout}
    return made("conv2d", [data, kernel], groups=count, **layouts, **moved)


def _packed_weight(op: Operator, positions: Sequence[int], tiles: Sequence[int]) -> SSAValue:
    found = pack(op.operands[1], positions, tiles)
    found.name_hint = op.operands[1].name_hint
    return found


def _filtering_weight(op: Operator, tile: int, width: int, inner: int) -> SSAValue:
    """Returns weights (F / f, t + 2, t + 2, C / c, c, f)."""
    weight = cast("ConstantOp", op.operands[1].owner)
    # The sums' type: rounding transformed weights to 16 bits would lose more than the direct convolution does.
    element = type_of(op.results[0]).element_type
    transformed = transformed_kernel(array_of_constant(weight), tile)
    # At once: a large constant as operand of graph.pack would be copied three more times.
    array = packed_array(transformed, [1, 0], [inner, width], [0, 2, 3, 1])
    found = made_constant(array, element).result
    found.name_hint = weight.result.name_hint
    return found


_CHANNELS_OF_A_BLOCK: Final = 8
"""The number of channels that form a block of data on any machine."""


def _filtering(op: Operator, kernel: Sequence[int], rate: float) -> tuple[int, float]:
    """Returns the fastest tile side for Winograd and the multiply-adds saved, or (0, 0). The direct convolution
    multiplies at `rate`, relative to float32."""
    arguments, image = arguments_of(op), image_of(op.results[0])
    filters, channels, *window = kernel
    is_moved = any(value not in (1, [1, 1], (1, 1)) for value in (arguments["strides"], arguments["dilation"]))
    is_float = element_name(type_of(op.results[0]).element_type) in ("float32", "float64")
    if image is None or is_moved or window != [WINDOW] * 2 or not is_float or channels % _CHANNELS_OF_A_BLOCK:
        return 0, 0
    batch, _, *extents = image
    return saved_by_filtering(
        batch if isinstance(batch, int) else 1, [*map(counted, extents)], channels, filters, WINDOW, SQUARES, rate
    )


# Other operators


def _other(op: Operator) -> BlockedForm | None:
    """Returns the form of an operator that maps blocks to blocks, as do operands with an element per channel."""
    channels = [image[1] for value in (*op.operands, *op.results) if (image := image_of(value)) and image[1] > 1]
    whole = gcd(*channels)
    # Borders and parts of whole blocks of the largest size are whole blocks for all its divisors. The smallest size
    # gives several blocks, so that their axis differs from one of extent 1.
    sizes = [size for size in range(2, whole + 1) if whole % size == 0]
    packed = [packed_operator(op, 1, size) for size in sizes[:1] + sizes[-1:]]
    if not packed or packed[0] is None or None in packed:
        return None
    found = packed[0]
    images = [value for value, axis in zip(op.operands, found.axes, strict=True) if axis == 1 and _is_image(value)]
    joined = tuple(value for value in images if not isinstance(value.owner, ConstantOp))
    if not joined or any(image_of(value) is None for value in joined):
        return None

    def build(width: int, inner: int) -> Operator:
        return found.of(op, width)

    return BlockedForm(op, joined, None, 0, 0, build)


def _is_image(value: SSAValue) -> bool:
    return len(extents_of(value)) == 4


def bytes_of_element(value: SSAValue) -> int:
    """Returns the bytes during computation: halves are computed in single precision."""
    return max(bytes_of(type_of(value).element_type), 4)
