"""Rules that compute maxima of boxes and rectangles one axis after the other."""

from __future__ import annotations

from math import prod
from typing import Any, Final

from xdsl.ir import Operation, SSAValue

from weft.analysis.graph_patterns import arguments_of
from weft.dialects.graph_shapes import DimsAttr
from weft.passes.graph.operators import extents_of, made, windows_of
from weft.passes.graph.rewriting import Replacement, Rule
from weft.texpr.graph_operators import Operator
from weft.texpr.ops.convolution import KernelWindow


def _max_of_rectangles(op: Operation) -> Replacement:
    if not isinstance(op, Operator):
        return None
    arguments, data = arguments_of(op), op.operands[0]
    batch, *rest = extents_of(data)
    sizes = [extent for extent in rest if isinstance(extent, int)]
    if len(sizes) < len(rest) or arguments["layout"] not in (None, "NCDHW"):
        return None
    channels, depth, *_ = sizes
    *_, of_depth = windows = [*windows_of(op)[1:], windows_of(op)[0]]
    if of_depth.size == 1 or all(window.size == 1 for window in windows[:2]):
        return None

    flat = made("reshape", [data], newshape=DimsAttr((batch, channels * depth, *sizes[2:]))).results[0]
    ceil_mode = bool(arguments["ceil_mode"])
    rectangles = _pooled(flat, *windows[:2], ceil_mode=ceil_mode)
    columns = [extent for extent in extents_of(rectangles)[2:] if isinstance(extent, int)]
    stacked = made("reshape", [rectangles], newshape=DimsAttr((batch, channels, depth, prod(columns)))).results[0]
    found = _pooled(stacked, of_depth, _ONE, ceil_mode=ceil_mode)
    return made("reshape", [found], newshape=DimsAttr(extents_of(op.results[0])))


def _max_of_rows(op: Operation) -> Replacement:
    if not isinstance(op, Operator):
        return None
    arguments = arguments_of(op)
    rows, columns = windows_of(op)
    if arguments["layout"] not in (None, "NCHW"):
        return None
    if not isinstance(rows.size, int) or not isinstance(columns.size, int):
        return None
    # The elements that the two steps read for each result, and the store of the first step.
    if rows.size * columns.size <= rows.size * columns.stride + columns.size + _STORED:
        return None
    ceil_mode = bool(arguments["ceil_mode"])
    return _pooled(_pooled(op.operands[0], rows, _ONE, ceil_mode=ceil_mode), _ONE, columns, ceil_mode=ceil_mode)


def _pooled(value: SSAValue, *windows: KernelWindow, ceil_mode: bool) -> SSAValue:
    given: dict[str, Any] = {
        "kernel": [window.size for window in windows],
        "strides": [window.stride for window in windows],
        "padding": [(window.before, window.after) for window in windows],
        "dilation": [window.dilation for window in windows],
    }
    return made("max_pool2d", [value], **given, ceil_mode=ceil_mode).results[0]


_ONE: Final = KernelWindow(1, 1, 1, 0, 0)
_STORED: Final = 1
POOLS: Final = (
    Rule(frozenset(("max_pool3d",)), _max_of_rectangles),
    Rule(frozenset(("max_pool2d",)), _max_of_rows),
)
