"""Rules that replace strided transposed convolutions by convolutions with interleaved results.

For stride s along an axis, the results with index r modulo s are a convolution with every s-th element of the
kernel, starting at r (Shi et al., Is the deconvolution layer the same as a convolutional layer?, 2016). One
convolution with s times the output channels computes them for all r, with 1 / s of the products of the definition
per axis.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, TypeAlias, cast

from numpy.typing import NDArray
from xdsl.ir import Operation, SSAValue

from weft.analysis.graph_patterns import arguments_of, array_of_constant
from weft.dialects.graph import ConstantOp
from weft.dialects.graph_shapes import DimsAttr, KnownExtent
from weft.passes.graph.operators import extents_of, made, made_constant, name_of, source_of, type_of, windows_of
from weft.passes.graph.rewriting import Replacement, Rule
from weft.texpr.graph_operators import Operator

Array: TypeAlias = NDArray[Any]

_CONVOLUTIONS: Final = {f"conv{rank}d_transpose": f"conv{rank}d" for rank in (1, 2, 3)}


@dataclass(frozen=True)
class _Axis:
    """One axis: the result at i is the sum of data[q - t] * kernel[r + stride * t] over t < taps, for q = (i + before)
    // stride and r = (i + before) % stride."""

    extent: KnownExtent
    kernel: int
    stride: int
    before: int
    result: KnownExtent

    @property
    def taps(self) -> int:
        return -(-self.kernel // self.stride)

    @property
    def extra(self) -> KnownExtent:
        return self.result - self.extent * self.stride

    @property
    def padding(self) -> tuple[int, int]:
        more = (cast("int", self.extra) - 1 + self.before) // self.stride + 1
        return self.taps - 1, max(more, 0)

    @property
    def convolved(self) -> KnownExtent:
        """The extent of the convolution: at least the number of q."""
        return self.extent + (sum(self.padding) - self.taps + 1)

    @property
    def after(self) -> int:
        """The number of interleaved results after the wanted ones."""
        more = sum(self.padding) - self.taps + 1
        return more * self.stride - self.before - cast("int", self.extra)

    @property
    def end(self) -> int | None:
        return self.before + self.result if isinstance(self.result, int) else None


def _axes(op: Operator) -> list[_Axis] | None:
    arguments = arguments_of(op)
    layout, kernel = cast("str", arguments["data_layout"]), type_of(op.operands[1]).get_shape()
    if layout[:2] != "NC" or arguments.get("kernel_layout") or isinstance(arguments["padding"], str):
        return None
    data, result = extents_of(op.operands[0])[2:], extents_of(op.results[0])[2:]
    moving = windows_of(op)
    if any(window.dilation != 1 for window in moving) or all(window.stride == 1 for window in moving):
        return None
    axes: list[_Axis] = []
    for window, size, extent, found in zip(moving, kernel[2:], data, result, strict=True):
        before = window.before
        if extent is None or found is None or not isinstance(before, int) or 0 in (extent, found):
            return None
        axes.append(_Axis(extent, size, window.stride, before, found))
        if not isinstance(axes[-1].extra, int):
            return None
    return axes


def _without_zeros(op: Operation) -> Replacement:
    import numpy as np

    convolution = op if name_of(op) in _CONVOLUTIONS else source_of(op.operands[0], *_CONVOLUTIONS)
    if not isinstance(convolution, Operator) or not isinstance(convolution.operands[1].owner, ConstantOp):
        return None
    axes, arguments = _axes(convolution), arguments_of(convolution)
    value, result = convolution.results[0], type_of(op.results[0])
    batch, *_ = extents_of(value)
    term = None
    if convolution is not op:
        term = _term(op, value)
        if not value.has_one_use() or term is None:
            return None
    elif value.has_one_use() and any(_term(use.operation, value) is not None for use in value.uses):
        return None  # because it is replaced with its term
    if axes is None or batch is None:
        return None

    groups = cast("int", arguments["groups"])
    weight = array_of_constant(convolution.operands[1].owner)
    inputs, outputs = weight.shape[0] // groups, weight.shape[1]
    weight = np.pad(weight, [(0, 0), (0, 0), *((0, axis.taps * axis.stride - axis.kernel) for axis in axes)])
    weight = weight.reshape(groups, inputs, outputs, *(e for axis in axes for e in (axis.taps, axis.stride)))
    taps, phases = range(3, weight.ndim, 2), range(4, weight.ndim, 2)
    weight = np.flip(weight, tuple(taps)).transpose(0, 2, *phases, 1, *taps)
    count = int(np.prod([axis.stride for axis in axes]))
    weight = weight.reshape(groups * outputs * count, inputs, *(axis.taps for axis in axes))

    element = type_of(convolution.operands[1]).element_type
    options = {name: value for name, value in convolution.properties.items() if name == "out_dtype"}
    operands = [convolution.operands[0], made_constant(weight, element).result]
    padding = [axis.padding for axis in axes]
    found = made(_CONVOLUTIONS[name_of(convolution)], operands, padding=padding, groups=groups, **options)
    if term is not None:
        terms = np.broadcast_to(term.reshape(-1, 1), (outputs * groups, count)).reshape(-1, *(1 for _ in axes))
        found = made("add", [found.results[0], made_constant(terms, result.element_type).result])
    shape = (batch, outputs * groups, *(axis.stride for axis in axes), *(axis.convolved for axis in axes))
    found = made("reshape", [found.results[0]], newshape=DimsAttr(shape))
    order = [0, 1, *(at for pair in range(len(axes)) for at in (2 + len(axes) + pair, 2 + pair))]
    found = made("transpose", [found.results[0]], axes=order)
    shape = (batch, outputs * groups, *(axis.convolved * axis.stride for axis in axes))
    found = made("reshape", [found.results[0]], newshape=DimsAttr(shape))
    if all(axis.before == 0 == axis.after for axis in axes):
        return found
    places = [2 + at for at in range(len(axes))]
    begins, ends = [axis.before for axis in axes], [axis.end for axis in axes]
    found = made("strided_slice", [found.results[0]], begin=begins, end=ends, axes=places)
    if None in ends:
        shape = (batch, outputs * groups, *(axis.result for axis in axes))
        found = made("prefix", [found.results[0]], shape=DimsAttr(shape))
    return found


def _term(op: Operation, value: SSAValue) -> Array | None:
    if name_of(op) != "add" or op.operands[0] is not value or op.results[0].type != value.type:
        return None
    constant, rank = op.operands[1].owner, type_of(value).get_num_dims()
    if not isinstance(constant, ConstantOp):
        return None
    array = array_of_constant(constant)
    is_channels = array.ndim in (rank - 1, rank) and array.size == array.shape[array.ndim - rank + 1]
    return array if is_channels or array.size == 1 else None


TRANSPOSED_CONVOLUTIONS: Final = (Rule(frozenset(("add", *_CONVOLUTIONS)), _without_zeros),)
