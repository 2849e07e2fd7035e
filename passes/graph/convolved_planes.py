"""Rule that computes convolutions of volumes as convolutions of planes, by minimal filtering."""

from __future__ import annotations

from functools import partial
from math import prod
from typing import Final

from xdsl.ir import Operation, SSAValue

from weft.analysis.graph_patterns import arguments_of, array_of_constant
from weft.dialects.element_types import bytes_of, element_name
from weft.dialects.graph import ConstantOp
from weft.dialects.graph_shapes import DimsAttr, KnownExtent
from weft.passes.graph.blocked_operators import counted
from weft.passes.graph.operators import extents_of, made, made_constant, type_of, windows_of
from weft.passes.graph.rewriting import Replacement, Rule
from weft.plans import fitted
from weft.plans.layouts import conversion, saved_by_filtering
from weft.support.target import Target
from weft.texpr.graph_operators import Operator
from weft.texpr.ops.winograd import SQUARES, WINDOW

_RANK: Final = 5


def planes_rule(target: Target) -> Rule:
    """Returns the rule for a target."""
    return Rule(frozenset(("conv3d",)), partial(_in_planes, target))


def _in_planes(target: Target, op: Operation) -> Replacement:
    """`conv3d(x, w)` is a `conv2d` of each plane of the result. Its data are the planes in a window of depth, and its
    channels are those of all these planes.

    Applies to constant weights whose planes have 3 x 3 elements, with stride and dilation 1 in a plane, if minimal
    filtering of planes saves more than the copies of the planes cost. Symbolic extents count as
    `fitted.SYMBOLIC_PIXELS`, a symbolic batch as one volume. A symbolic depth is that of the result as well.
    """
    if not isinstance(op, Operator) or not isinstance(op.operands[1].owner, ConstantOp):
        return None
    arguments, weight = arguments_of(op), op.operands[1].owner
    values = (*op.operands[:2], op.results[0])
    data, kernel, result = ([extent for extent in extents_of(value) if extent is not None] for value in values)
    names = {element_name(type_of(value).element_type) for value in values}
    is_default = arguments["data_layout"] in (None, "", "NCDHW") and arguments["kernel_layout"] in (None, "", "OIDHW")
    if not len(data) == len(kernel) == len(result) == _RANK or names != {"float32"} or not is_default:
        return None
    of_depth, *of_plane = windows_of(op)
    is_filtered = all((window.size, window.stride, window.dilation) == (WINDOW, 1, 1) for window in of_plane)
    if not is_filtered or arguments["groups"] != 1 or not isinstance(of_depth.size, int):
        return None
    batch, channels, _, *plane = data
    filters, depth, *extents = result[1:]
    if not isinstance(channels, int) or not isinstance(filters, int):
        return None
    if not isinstance(depth, int) and (of_depth.stride != 1 or depth != data[2]):
        return None  # planes would be proved to be in the volume by conditions of each call only
    stacked, images = channels * of_depth.size, (batch if isinstance(batch, int) else 1) * counted(depth)
    lanes = min(target.vector_bytes // bytes_of(type_of(op.results[0]).element_type), fitted.BLOCK_LANES)
    if lanes == 1 or stacked % fitted.BLOCK_LANES or filters % lanes:
        return None
    _, saved = saved_by_filtering(images, [*map(counted, extents)], stacked, filters, WINDOW, SQUARES)
    copied = images * (stacked * prod(map(counted, plane)) + filters * prod(map(counted, extents)))
    # Planes are copied and laid out in blocks of channels; so are results, and their axes are permuted.
    if saved <= 2 * conversion(copied):
        return None
    moved = made("transpose", [op.operands[0]], axes=[0, 2, 1, 3, 4])
    if of_depth.before or of_depth.after:
        around = [[0, 0], [of_depth.before, of_depth.after], *[[0, 0]] * 3]
        moved = made("pad", moved.results, pad_width=around)
    shape = DimsAttr((batch * depth, channels, *plane))
    of_part = (batch, depth, channels, *plane)
    offsets = range(0, of_depth.size * of_depth.dilation, of_depth.dilation)
    parts = [_planes(moved.results[0], at, of_depth.stride, of_part) for at in offsets]
    flat = [made("reshape", part.results, newshape=shape).results[0] for part in parts]
    stack = flat[0] if len(flat) == 1 else made("concatenate", [flat], axis=1).results[0]
    array = array_of_constant(weight).transpose(0, 2, 1, 3, 4).reshape(filters, stacked, WINDOW, WINDOW)
    kernels = made_constant(array, weight.result.type.element_type).result
    kernels.name_hint = weight.result.name_hint
    padding = [[window.before, window.after] for window in of_plane]
    images = made("conv2d", [stack, kernels], padding=padding)
    found = made("reshape", images.results, newshape=DimsAttr((batch, depth, filters, *extents)))
    return made("transpose", found.results, axes=[0, 2, 1, 3, 4])


def _planes(volumes: SSAValue, first: int, stride: int, shape: tuple[KnownExtent, ...]) -> Operator:
    """The planes `first + stride * d` for `d` below the depth `shape[1]`."""
    depth = shape[1]
    end = first + (depth - 1) * stride + 1 if isinstance(depth, int) else None
    found = made("strided_slice", [volumes], begin=[first], end=[end], strides=[stride], axes=[1])
    return found if end is not None else made("prefix", found.results, shape=DimsAttr(shape))
