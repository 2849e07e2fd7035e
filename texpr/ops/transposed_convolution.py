"""conv2d_transpose: the transpose of a convolution."""

from __future__ import annotations

from collections.abc import Sequence

from weft.texpr.expr import Expr
from weft.texpr.math import if_then_else
from weft.texpr.ops.arguments import (
    compute,
    constant,
    integer,
    integers,
    numeric,
    one_dtype,
    ranked,
    result_dtype,
    sum_dtype,
)
from weft.texpr.ops.extents import is_same, simplified
from weft.texpr.ops.layouts import Laid, checked_layout
from weft.texpr.ops.windows import Window, windows
from weft.texpr.places import error
from weft.texpr.reductions import all as all_of
from weft.texpr.reductions import reduce_axis
from weft.texpr.reductions import sum as sum_over
from weft.texpr.shapes import Extent
from weft.texpr.tensor import Tensor

__all__ = ["conv2d_transpose"]


def conv2d_transpose(
    data: Tensor,
    weight: Tensor,
    strides: int | Sequence[int] = 1,
    padding: object = 0,
    output_padding: int | Sequence[int] = 0,
    dilation: int | Sequence[int] = 1,
    groups: int = 1,
    data_layout: str = "NCHW",
    kernel_layout: str = "",
    out_dtype: object = None,
    *,
    name: str = "conv2d_transpose",
) -> Tensor:
    """The transpose of `conv2d` (its gradient by the data), of data (N, C, H, W) and kernels (C, O / groups, H, W).

    An axis of n elements becomes one of (n - 1) * stride - padding + dilation * (kernel - 1) + 1 + output_padding. The
    data with zeros between and around its elements is a stage of its own, `<name>_pad`, over which the mirrored kernel
    slides. Kernels are IOHW by default, HWIO where channels come last.

    Dtypes: numbers.
    Equals: `torch.nn.functional.conv_transpose2d(data, weight, None, strides, padding, output_padding, groups, ...)`.
    """
    what = "conv2d_transpose"
    layout = checked_layout(f"{what}: data_layout", data_layout, "NCHW")
    source = Laid(ranked(numeric(data, f"{what}: data"), f"{what}: data", 4), layout)
    default = "IOHW" if layout.index("C") == 1 else "HWIO"
    kernel = Laid(
        ranked(weight, f"{what}: weight", 4),
        checked_layout(f"{what}: kernel_layout", kernel_layout or default, "IOHW"),
    )
    dtype = result_dtype(out_dtype, one_dtype(what, source.tensor, kernel.tensor))
    inputs, outputs = _channels(what, source, kernel, integer(groups, f"{what}: groups"))
    extents = [source.extent(c) for c in "HW"]
    given = windows(what, [kernel.extent(c) for c in "HW"], strides, padding, dilation, extents)
    extra = integers(output_padding, f"{what}: output_padding", 2, least=0)
    for window, more in zip(given, extra, strict=True):
        if more >= max(window.stride, window.dilation):
            raise error(f"{what}: output_padding {more} must be below stride {window.stride} or {window.dilation}")
    spread = {
        c: _spread(what, window, extent, more)
        for c, window, extent, more in zip("HW", given, extents, extra, strict=True)
    }
    between = _with_zeros(source, spread, f"{name}_pad")
    shape = {"N": source.extent("N"), "C": simplified(outputs * groups)}
    shape |= {c: Window(w.size, 1, w.dilation, 0, 0).positions(between.extent(c), what) for c, (w, _) in spread.items()}
    rc = reduce_axis((0, inputs), "rc")
    offsets = {c: reduce_axis((0, window.size), f"r{c.lower()}") for c, (window, _) in spread.items()}
    sums = sum_dtype(dtype)

    def element(*indices: Expr) -> Expr:
        at = dict(zip(layout, indices, strict=True))
        places = {c: at[c] + offsets[c] * window.dilation for c, (window, _) in spread.items()}
        mirrored = {c: window.size - 1 - offsets[c] for c, (window, _) in spread.items()}
        channel = rc if groups == 1 else at["C"] // outputs * inputs + rc
        output = at["C"] if groups == 1 else at["C"] % outputs
        x = between.at({"N": at["N"], "C": channel, **places})
        y = kernel.at({"I": channel, "O": output, **mirrored})
        return sum_over(x.astype(sums) * y.astype(sums), axis=[rc, *offsets.values()]).astype(dtype)

    return compute([shape[c] for c in layout], element, name, [c.lower() for c in layout])


def _channels(what: str, source: Laid, kernel: Laid, groups: int) -> tuple[Extent, Extent]:
    """Input and output channels of a group."""
    channels = kernel.extent("I")
    if not is_same(source.extent("C"), channels):
        raise error(f"{what}: the data has {source.extent('C')} channels, the kernels take {channels}")
    if groups == 1:
        return channels, kernel.extent("O")
    if groups < 1 or not isinstance(channels, int) or channels % groups:
        raise error(f"{what}: {channels} channels do not go into {groups} groups")
    return channels // groups, kernel.extent("O")


def _spread(what: str, window: Window, extent: Extent, more: int) -> tuple[Window, tuple[Extent, Extent]]:
    """A window, where the first element of the axis comes to lie, and how long the axis becomes."""
    reach = simplified(window.span - 1)
    first = simplified(reach - window.before)
    length = simplified((extent - 1) * window.stride + 1 + first + (reach - window.after + more))
    if isinstance(length, int) and isinstance(window.span, int) and length < window.span:
        raise error(f"{what}: padding {(window.before, window.after)} leaves nothing of an axis of {extent} elements")
    return window, (first, length)


def _with_zeros(source: Laid, spread: dict[str, tuple[Window, tuple[Extent, Extent]]], name: str) -> Laid:
    """The elements `stride` apart and zeros elsewhere."""

    def element(*indices: Expr) -> Expr:
        at: dict[str, Expr | int] = dict(zip(source.layout, indices, strict=True))
        there: list[Expr] = []
        for c, (window, (first, _)) in spread.items():
            place = indices[source.layout.index(c)] - first
            there += [place >= 0, place < (source.extent(c) - 1) * window.stride + 1]
            if window.stride != 1:
                there.append(place % window.stride == 0)
            at[c] = place // window.stride if window.stride != 1 else place
        return if_then_else(all_of(*there), source.at(at), constant(0, source.tensor.dtype))

    shape = [spread[c][1][1] if c in spread else source.extent(c) for c in source.layout]
    return Laid(compute(shape, element, name, [c.lower() for c in source.layout]), source.layout)
