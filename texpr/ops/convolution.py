"""Convolutions: conv1d, conv2d, conv3d, depthwise_conv2d."""

from __future__ import annotations

from collections.abc import Sequence

from weft.texpr.expr import Expr
from weft.texpr.ops.arguments import compute, integer, numeric, one_dtype, ranked, result_dtype, sum_dtype
from weft.texpr.ops.extents import is_same, shape_text, simplified
from weft.texpr.ops.layouts import Laid, checked_layout
from weft.texpr.ops.windows import LETTERS, windows
from weft.texpr.places import error
from weft.texpr.reductions import reduce_axis
from weft.texpr.reductions import sum as sum_over
from weft.texpr.shapes import Extent
from weft.texpr.tensor import Tensor

__all__ = ["conv1d", "conv2d", "conv3d", "depthwise_conv2d"]


def _convolution(
    data: Tensor,
    weight: Tensor,
    strides: object,
    padding: object,
    dilation: object,
    groups: int,
    data_layout: str,
    kernel_layout: str,
    out_dtype: object,
    rank: int,
    name: str,
) -> Tensor:
    what, letters = f"conv{rank}d", LETTERS[rank]
    source = Laid(
        ranked(numeric(data, f"{what}: data"), f"{what}: data", rank + 2),
        checked_layout(f"{what}: data_layout", data_layout, "NC" + letters),
    )
    default = "OI" + letters if source.layout.index("C") == 1 else letters + "IO"
    kernel = Laid(
        ranked(weight, f"{what}: weight", rank + 2),
        checked_layout(f"{what}: kernel_layout", kernel_layout or default, "OI" + letters),
    )
    dtype = result_dtype(out_dtype, one_dtype(what, source.tensor, kernel.tensor))
    inputs, outputs = _group_sizes(what, source, kernel, integer(groups, f"{what}: groups"))
    extents = [source.extent(c) for c in letters]
    moving = windows(what, [kernel.extent(c) for c in letters], strides, padding, dilation, extents)
    around = dict(zip(letters, moving, strict=True))
    shape = {"N": source.extent("N"), "C": kernel.extent("O")}
    shape |= {c: around[c].positions(source.extent(c), what) for c in letters}
    border = source.padded(around, 0, f"{name}_pad")
    rc = reduce_axis((0, inputs), "rc")
    offsets = {c: reduce_axis((0, around[c].size), f"r{c.lower()}") for c in letters}
    sums = sum_dtype(dtype)

    def element(*indices: Expr) -> Expr:
        at = dict(zip(source.layout, indices, strict=True))
        places = {c: around[c].index(at[c], offsets[c]) for c in letters}
        channel = rc if groups == 1 else at["C"] // outputs * inputs + rc
        x = border.at({"N": at["N"], "C": channel, **places})
        y = kernel.at({"O": at["C"], "I": rc, **offsets})
        return sum_over(x.astype(sums) * y.astype(sums), axis=[rc, *offsets.values()]).astype(dtype)

    names = [c.lower() for c in source.layout]
    return compute([shape[c] for c in source.layout], element, name, names)


def _group_sizes(what: str, source: Laid, kernel: Laid, groups: int) -> tuple[Extent, Extent]:
    """Input and output channels of a group."""
    if groups < 1:
        raise error(f"{what}: groups must be at least 1, got {groups}")
    channels, inputs, outputs = source.extent("C"), kernel.extent("I"), kernel.extent("O")
    if not is_same(channels, simplified(inputs * groups)):
        raise error(
            f"{what}: {source.tensor.name} of shape {shape_text(source.tensor.shape)} has {channels} channels, but "
            f"{kernel.tensor.name} of shape {shape_text(kernel.tensor.shape)} takes {inputs} in each of {groups} groups"
        )
    if groups > 1 and (not isinstance(outputs, int) or outputs % groups):
        raise error(f"{what}: {outputs} output channels do not go into {groups} groups")
    return inputs, outputs // groups


def conv1d(
    data: Tensor,
    weight: Tensor,
    strides: int | Sequence[int] = 1,
    padding: object = 0,
    dilation: int | Sequence[int] = 1,
    groups: int = 1,
    data_layout: str = "NCW",
    kernel_layout: str = "",
    out_dtype: object = None,
    *,
    name: str = "conv1d",
) -> Tensor:
    """The convolution of data (N, C, W) with kernels (O, C / groups, W), see `conv2d`. The other layouts: NWC, WIO.

    Dtypes: numbers.
    Equals: `torch.nn.functional.conv1d(data, weight, None, strides, padding, dilation, groups)`.
    """
    return _convolution(
        data, weight, strides, padding, dilation, groups, data_layout, kernel_layout, out_dtype, 1, name
    )


def conv2d(
    data: Tensor,
    weight: Tensor,
    strides: int | Sequence[int] = 1,
    padding: object = 0,
    dilation: int | Sequence[int] = 1,
    groups: int = 1,
    data_layout: str = "NCHW",
    kernel_layout: str = "",
    out_dtype: object = None,
    *,
    name: str = "conv2d",
) -> Tensor:
    """The convolution (not mirrored) of data (N, C, H, W) with kernels (O, C / groups, H, W).

    `padding` is an integer, one for each axis, (top, left, bottom, right), a pair for each axis, "SAME" or "VALID".
    Layouts are orders of the letters; kernels are OIHW by default, HWIO where channels come last. The border is a stage
    of its own, `<name>_pad`. Sums are formed in `out_dtype` (that of the data), of floats of 16 bits in float32.
    Raises CompileError for channels that do not go together and windows that do not fit.

    Dtypes: numbers.
    Equals: `torch.nn.functional.conv2d(data, weight, None, strides, padding, dilation, groups)`.
    """
    return _convolution(
        data, weight, strides, padding, dilation, groups, data_layout, kernel_layout, out_dtype, 2, name
    )


def conv3d(
    data: Tensor,
    weight: Tensor,
    strides: int | Sequence[int] = 1,
    padding: object = 0,
    dilation: int | Sequence[int] = 1,
    groups: int = 1,
    data_layout: str = "NCDHW",
    kernel_layout: str = "",
    out_dtype: object = None,
    *,
    name: str = "conv3d",
) -> Tensor:
    """The convolution of data (N, C, D, H, W) with kernels (O, C / groups, D, H, W), see `conv2d`.

    Dtypes: numbers.
    Equals: `torch.nn.functional.conv3d(data, weight, None, strides, padding, dilation, groups)`.
    """
    return _convolution(
        data, weight, strides, padding, dilation, groups, data_layout, kernel_layout, out_dtype, 3, name
    )


def depthwise_conv2d(
    data: Tensor,
    weight: Tensor,
    strides: int | Sequence[int] = 1,
    padding: object = 0,
    dilation: int | Sequence[int] = 1,
    data_layout: str = "NCHW",
    out_dtype: object = None,
    *,
    name: str = "depthwise_conv2d",
) -> Tensor:
    """A convolution of each channel of data (N, C, H, W) with kernels of its own, (C, M, H, W): C * M channels.

    With data (N, H, W, C), kernels are (H, W, C, M). Padding and sums as in `conv2d`.

    Dtypes: numbers.
    Equals: `torch.nn.functional.conv2d(data, weight.reshape(C * M, 1, H, W), ..., groups=C)`.
    """
    what = "depthwise_conv2d"
    layout = checked_layout(f"{what}: data_layout", data_layout, "NCHW")
    source = Laid(ranked(numeric(data, f"{what}: data"), f"{what}: data", 4), layout)
    kernel = Laid(ranked(weight, f"{what}: weight", 4), "CMHW" if layout.index("C") == 1 else "HWCM")
    dtype = result_dtype(out_dtype, one_dtype(what, source.tensor, kernel.tensor))
    channels, multiplier = source.extent("C"), kernel.extent("M")
    if not is_same(channels, kernel.extent("C")):
        raise error(f"{what}: the data has {channels} channels, the kernels are for {kernel.extent('C')}")
    extents = [source.extent(c) for c in "HW"]
    around = dict(
        zip("HW", windows(what, [kernel.extent(c) for c in "HW"], strides, padding, dilation, extents), strict=True)
    )
    shape = {"N": source.extent("N"), "C": simplified(channels * multiplier)}
    shape |= {c: around[c].positions(source.extent(c), what) for c in "HW"}
    border = source.padded(around, 0, f"{name}_pad")
    offsets = {c: reduce_axis((0, around[c].size), f"r{c.lower()}") for c in "HW"}
    sums, single = sum_dtype(dtype), isinstance(multiplier, int) and multiplier == 1

    def element(*indices: Expr) -> Expr:
        at = dict(zip(layout, indices, strict=True))
        channel = at["C"] if single else at["C"] // multiplier
        places = {c: around[c].index(at[c], offsets[c]) for c in "HW"}
        x = border.at({"N": at["N"], "C": channel, **places})
        y = kernel.at({"C": channel, "M": 0 if single else at["C"] % multiplier, **offsets})
        return sum_over(x.astype(sums) * y.astype(sums), axis=list(offsets.values())).astype(dtype)

    return compute([shape[c] for c in layout], element, name, [c.lower() for c in layout])
