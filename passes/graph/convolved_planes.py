"""Rule that computes convolutions of volumes as convolutions of planes, by minimal filtering."""

from __future__ import annotations

from functools import partial
from math import prod

from xdsl.ir import Operation

from weft.analysis.graph_patterns import arguments_of, array_of_constant
from weft.dialects.element_types import bytes_of, element_name
from weft.dialects.graph import ConstantOp
from weft.dialects.graph_shapes import DimsAttr
from weft.passes.graph.operators import extents_of, made, made_constant, type_of, windows_of
from weft.passes.graph.rewriting import Replacement, Rule
from weft.plans import fitted
from weft.plans.layouts import conversion, saved_by_filtering
from weft.support.target import Target
from weft.texpr.graph_operators import Operator
from weft.texpr.ops.winograd import SQUARES, WINDOW


def planes_rule(target: Target) -> Rule:
    """Returns the rule for a target."""
    return Rule(frozenset(("conv3d",)), partial(_in_planes, target))


def _in_planes(target: Target, op: Operation) -> Replacement:
    """`conv3d(x, w)` is a `conv2d` of each plane of the result. Its data are the planes in a window of depth, and its
    channels are those of all these planes.

    Applies to constant weights whose planes have 3 x 3 elements, with stride and dilation 1 in a plane, if minimal
    filtering of planes saves more than the copies of the planes cost.
    """
    if not isinstance(op, Operator) or not isinstance(op.operands[1].owner, ConstantOp):
        return None
    arguments, weight = arguments_of(op), op.operands[1].owner
    shapes = [extents_of(value) for value in (*op.operands[:2], op.results[0])]
    data, kernel, result = ([extent for extent in shape if isinstance(extent, int)] for shape in shapes)
    names = {element_name(type_of(value).element_type) for value in (*op.operands[:2], op.results[0])}
    is_default = arguments["data_layout"] in (None, "", "NCDHW") and arguments["kernel_layout"] in (None, "", "OIDHW")
    if len(data) + len(kernel) + len(result) < sum(map(len, shapes)) or names != {"float32"} or not is_default:
        return None
    of_depth, *of_plane = windows_of(op)
    is_filtered = all((window.size, window.stride, window.dilation) == (WINDOW, 1, 1) for window in of_plane)
    if not is_filtered or arguments["groups"] != 1 or not isinstance(of_depth.size, int):
        return None
    batch, channels, _, *plane = data
    filters, depth, *extents = result[1:]
    stacked = channels * of_depth.size
    lanes = min(target.vector_bytes // bytes_of(type_of(op.results[0]).element_type), fitted.BLOCK_LANES)
    if lanes == 1 or stacked % fitted.BLOCK_LANES or filters % lanes:
        return None
    _, saved = saved_by_filtering(batch * depth, extents, stacked, filters, WINDOW, SQUARES)
    planes, results = batch * depth * stacked * prod(plane), prod(result)
    # Planes are copied and laid out in blocks of channels; so are results, and their axes are permuted.
    if saved <= 2 * conversion(planes + results):
        return None
    moved = made("transpose", [op.operands[0]], axes=[0, 2, 1, 3, 4])
    if of_depth.before or of_depth.after:
        around = [[0, 0], [of_depth.before, of_depth.after], *[[0, 0]] * 3]
        moved = made("pad", moved.results, pad_width=around)
    end = (depth - 1) * of_depth.stride + 1
    shape = DimsAttr((batch * depth, channels, *plane))
    parts = [
        made("strided_slice", moved.results, begin=[at], end=[at + end], strides=[of_depth.stride], axes=[1])
        for at in range(0, of_depth.size * of_depth.dilation, of_depth.dilation)
    ]
    flat = [made("reshape", part.results, newshape=shape).results[0] for part in parts]
    stack = flat[0] if len(flat) == 1 else made("concatenate", [flat], axis=1).results[0]
    array = array_of_constant(weight).transpose(0, 2, 1, 3, 4).reshape(filters, stacked, WINDOW, WINDOW)
    kernels = made_constant(array, weight.result.type.element_type).result
    kernels.name_hint = weight.result.name_hint
    padding = [[window.before, window.after] for window in of_plane]
    images = made("conv2d", [stack, kernels], padding=padding)
    found = made("reshape", images.results, newshape=DimsAttr((batch, depth, filters, *extents)))
    return made("transpose", found.results, axes=[0, 2, 1, 3, 4])
