"""Convolutions, transposed convolutions, and windows of pools."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias, cast

from weft.dialects.graph_traits import Product, declare
from weft.support.argument_types import shown
from weft.texpr import reductions as te
from weft.texpr.expr import Expr, IterVar, Number, as_expr, error
from weft.texpr.math import if_then_else
from weft.texpr.ops.arguments import (
    compute,
    constant,
    integer,
    integers,
    not_negative,
    numeric,
    product_dtype,
    ranked,
    sum_dtype,
    variant,
)
from weft.texpr.ops.transforms import constant_border
from weft.texpr.shapes import Extent, agree, agreed_quotient, is_same, items, product, shape_text, simplified
from weft.texpr.tensor import Tensor

LETTERS = {1: "W", 2: "HW", 3: "DHW"}
"""Spatial axes, by their number."""


@dataclass(frozen=True)
class KernelWindow:
    """`size` elements at distance `dilation`, moved by `stride` over an axis padded by `before` and `after`."""

    size: Extent
    stride: int
    dilation: int
    before: Extent
    after: Extent

    @property
    def span(self) -> Extent:
        return simplified((self.size - 1) * self.dilation + 1)

    def positions(self, extent: Extent, what: str) -> Extent:
        padded = simplified(extent + (self.before + self.after))
        if isinstance(padded, int) and isinstance(self.span, int) and padded < self.span:
            raise error(f"{what}: a window over {self.span} elements does not fit into {padded} (the border included)")
        return simplified((padded - self.span) // self.stride + 1)

    def index(self, position: Expr, offset: Expr) -> Expr:
        start = position * self.stride if self.stride != 1 else position
        return start + (offset * self.dilation if self.dilation != 1 else offset)


def windows(
    what: str,
    sizes: Sequence[Extent],
    strides: object,
    padding: object,
    dilation: object,
    extents: Sequence[Extent],
) -> tuple[KernelWindow, ...]:
    """A window per extent. Strides and dilation are an integer, or one per axis; padding as in `borders`.

    Raises CompileError for other counts, strides and dilations below 1, and empty windows.
    """
    rank = len(sizes)
    for size in sizes:
        if isinstance(size, int) and size < 1:
            raise error(f"{what}: windows have at least one element, got {tuple(sizes)!r}")
    steps = integers(strides, f"{what}: strides", rank, least=1)
    gaps = integers(dilation, f"{what}: dilation", rank, least=1)
    unpadded = [KernelWindow(size, step, gap, 0, 0) for size, step, gap in zip(sizes, steps, gaps, strict=True)]
    around = borders(what, padding, unpadded, extents)
    return tuple(replace(w, before=before, after=after) for w, (before, after) in zip(unpadded, around, strict=True))


def borders(
    what: str, padding: object, unpadded: Sequence[KernelWindow], extents: Sequence[Extent]
) -> tuple[tuple[Extent, Extent], ...]:
    """The padding before and after each axis.

    `padding` is an integer, one per axis, all starts before all ends (top, left, bottom, right), a pair per axis, or a
    word: "VALID" is none, "SAME" is `ceil(extent / stride)` windows with odd padding at the end, "SAME_LOWER" at the
    start. Raises CompileError for others.
    """
    rank = len(unpadded)
    if isinstance(padding, str):
        if padding.upper() == "VALID":
            return ((0, 0),) * rank
        if padding.upper() in ("SAME", "SAME_UPPER", "SAME_LOWER"):
            is_lower = padding.upper() == "SAME_LOWER"
            pairs = [_same(window, extent) for window, extent in zip(unpadded, extents, strict=True)]
            return tuple((after, before) if is_lower else (before, after) for before, after in pairs)
        raise error(f"{what}: padding is 'SAME', 'VALID' or integers, got {shown(padding)}")
    given = items(padding)
    label = f"{what}: padding"
    if len(given) == rank and all(isinstance(item, list | tuple) for item in given):
        numbers = (integers(item, label, 2, least=0) for item in given)
        return tuple(cast("tuple[int, int]", pair) for pair in numbers)
    if len(given) == 2 * rank:
        numbers = integers(padding, label, 2 * rank, least=0)
        return tuple(zip(numbers[:rank], numbers[rank:], strict=True))
    return tuple((number, number) for number in integers(padding, label, rank, least=0))


def _same(window: KernelWindow, extent: Extent) -> tuple[Extent, Extent]:
    if window.stride == 1:
        total = simplified(as_expr(window.span) - 1)
    else:
        count = simplified((as_expr(extent) + (window.stride - 1)) // window.stride)
        total = not_negative(simplified((as_expr(count) - 1) * window.stride + window.span - extent))
    half = simplified(as_expr(total) // 2)
    return half, simplified(as_expr(total) - half)


def checked_layout(what: str, layout: object, letters: str, *inner: str) -> str:
    """A permutation of `letters`, optionally with one of `inner`, tiles of packed axes. Raises CompileError for
    others.
    """
    upper, lower = (layout[: len(letters)], layout[len(letters) :]) if isinstance(layout, str) else ("", "")
    if isinstance(layout, str) and sorted(upper) == sorted(letters) and lower in ("", *inner):
        return layout
    follows = f", which {' or '.join(inner)} may follow" if inner else ""
    raise error(f"{what} must be a permutation of the letters {letters}{follows}, got {shown(layout)}")


@dataclass(frozen=True)
class Laid:
    """A tensor with letters for axes. A lower-case letter is a tile of the upper-case axis, as in NCHWc."""

    tensor: Tensor
    layout: str

    @property
    def space(self) -> str:
        return LETTERS[sum(map(str.isupper, self.layout)) - 2]

    @property
    def names(self) -> list[str]:
        return ["b" if c.isupper() and c.lower() in self.layout else c.lower() for c in self.layout]

    def extent(self, letter: str) -> Extent:
        return self.tensor.shape[self.layout.index(letter)]

    def at(self, indices: Mapping[str, Expr | int]) -> Expr:
        return self.tensor(*(indices[letter] for letter in self.layout))

    def padded(self, windows: Mapping[str, KernelWindow], value: Number, name: str) -> Laid:
        borders = [(windows[c].before, windows[c].after) if c in windows else (0, 0) for c in self.layout]
        if all(is_same(before, 0) and is_same(after, 0) for before, after in borders):
            return self
        return Laid(constant_border(self.tensor, borders, value, name), self.layout)


__all__ = ["conv1d", "conv1d_transpose", "conv2d", "conv2d_transpose", "conv3d", "conv3d_transpose"]
__all__ += ["depthwise_conv2d"]

_Places: TypeAlias = Mapping[str, Expr]
"""An index for each letter of a layout."""
_Indices: TypeAlias = Mapping[str, Expr | int]
"""Indices for some letters."""


class _Operands:
    def __init__(
        self,
        what: str,
        letters: str,
        data: Tensor,
        data_layout: str,
        weight: Tensor,
        kernel_layout: str,
        channels: tuple[str, str],
        out_dtype: object,
        packed: Sequence[str] = (),
    ) -> None:
        """`channels`: channel axes in the default layout of kernels, before the spatial axes for channels-first data,
        else after. Kernels of packed data end in one of `packed`; None forbids packed data.
        """
        data_tiles = ("c",) if packed else ()
        layout = checked_layout(f"{what}: data_layout", data_layout, "NC" + letters, *data_tiles)
        default = channels[0] + letters if layout.index("C") == 1 else letters + channels[1]
        self.is_packed = layout.endswith("c")
        tiles = packed if self.is_packed else ()
        order = kernel_layout or default + "".join(tiles[:1])
        order = checked_layout(f"{what}: kernel_layout", order, default, *tiles)
        if self.is_packed and order.isupper():
            raise error(f"{what}: kernels of packed data end in {' or '.join(tiles)}, got kernel_layout {order}")
        self.what, self.letters = what, letters
        self.data = Laid(ranked(numeric(data, f"{what}: data"), f"{what}: data", len(layout)), layout)
        self.kernel = Laid(ranked(weight, f"{what}: weight", len(order)), order.replace("oi", "og"))
        self.dtype = product_dtype(what, out_dtype, data, weight)

    def windows(self, strides: object, padding: object, dilation: object) -> dict[str, KernelWindow]:
        extents = [self.data.extent(c) for c in self.letters]
        sizes = [self.kernel.extent(c) for c in self.letters]
        return dict(zip(self.letters, windows(self.what, sizes, strides, padding, dilation, extents), strict=True))

    def sums(
        self,
        windows: Mapping[str, KernelWindow],
        outputs: Mapping[str, Extent],
        over: Sequence[IterVar],
        factors: Callable[[_Places, _Places], tuple[_Indices, _Indices]],
        name: str,
        border: Laid | None = None,
        within: Sequence[IterVar] = (),
    ) -> Tensor:
        """Products of data and kernels, summed over `over`, the windows, then `within`.

        `border` is the padded data, by default a stage; `outputs` the channels of the result. `factors` returns the
        data's channel and the kernel's indices.
        """
        data, kernel, dtype, wide = self.data, self.kernel, self.dtype, sum_dtype(self.dtype)
        shape = {"N": data.extent("N"), **outputs}
        shape |= {c: window.positions((border or data).extent(c), self.what) for c, window in windows.items()}
        source = border or data.padded(windows, 0, f"{name}_pad")
        offsets = {c: te.reduce_axis((0, window.size), f"r{c.lower()}") for c, window in windows.items()}

        def element(*indices: Expr) -> Expr:
            at = dict(zip(data.layout, indices, strict=True))
            channel, place = factors(at, offsets)
            places = {c: window.index(at[c], offsets[c]) for c, window in windows.items()}
            x, y = source.at({"N": at["N"], **channel, **places}), kernel.at(place)
            return te.sum(x.astype(wide) * y.astype(wide), axis=[*over, *offsets.values(), *within]).astype(dtype)

        return compute([shape[c] for c in data.layout], element, name, data.names)


def _convolution(
    rank: int,
    data: Tensor,
    weight: Tensor,
    strides: int | Sequence[int] = 1,
    padding: object = 0,
    dilation: int | Sequence[int] = 1,
    groups: int = 1,
    data_layout: str = "",
    kernel_layout: str = "",
    out_dtype: object = None,
    *,
    name: str = "",
) -> Tensor:
    what = f"conv{rank}d"
    letters, packed = LETTERS[rank], ("io", "ioi")
    operands = _Operands(what, letters, data, data_layout, weight, kernel_layout, ("OI", "IO"), out_dtype, packed)
    inputs, outputs = _group_sizes(what, operands.data, operands.kernel, integer(groups, f"{what}: groups"))
    kernel = operands.kernel
    rc = te.reduce_axis((0, inputs), "rb" if operands.is_packed else "rc")
    within = {
        c: te.reduce_axis((0, kernel.extent(c)), name) for c, name in (("i", "rc"), ("g", "rg")) if c in kernel.layout
    }

    def factors(at: _Places, offsets: _Places) -> tuple[_Indices, _Indices]:
        """Packed channels and filters are counted in tiles."""
        channel = rc if groups == 1 else at["C"] // outputs * inputs + rc
        place = {"O": at["C"], "I": rc, **offsets}
        if not operands.is_packed:
            return {"C": channel}, place
        inner = within["i"] * kernel.extent("g") + within["g"] if "g" in within else within["i"]
        return {"C": channel, "c": inner}, {**place, "o": at["c"], **within}

    filters: dict[str, Extent] = {"C": kernel.extent("O")}
    if operands.is_packed:
        filters["c"] = kernel.extent("o")
    moving = operands.windows(strides, padding, dilation)
    return operands.sums(moving, filters, [rc], factors, name, within=[*within.values()])


def _group_sizes(what: str, source: Laid, kernel: Laid, groups: int) -> tuple[Extent, Extent]:
    if groups < 1:
        raise error(f"{what}: groups must be at least 1, got {groups}")
    channels, inputs, outputs = source.extent("C"), kernel.extent("I"), kernel.extent("O")
    if source.layout.endswith("c"):
        given, tile = source.extent("c"), simplified(product([kernel.extent(c) for c in "ig" if c in kernel.layout]))
        if not agree(given, tile):
            raise error(
                f"{what}: {source.tensor.name} of shape {shape_text(source.tensor.shape)} has tiles of {given} "
                f"channels, but {kernel.tensor.name} of shape {shape_text(kernel.tensor.shape)} takes tiles of {tile}"
            )
    if not agree(channels, simplified(inputs * groups)):
        raise error(
            f"{what}: {source.tensor.name} of shape {shape_text(source.tensor.shape)} has {channels} channels, but "
            f"{kernel.tensor.name} of shape {shape_text(kernel.tensor.shape)} takes {inputs} in each of {groups} groups"
        )
    each = agreed_quotient(outputs, groups)
    if each is None:
        raise error(f"{what}: {outputs} output channels cannot be split into {groups} groups")
    return inputs, each


conv1d = variant(
    _convolution,
    1,
    "conv1d",
    """The convolution of data (N, C, W) with kernels (O, C / groups, W), see `conv2d`. Other layouts are NWC and WIO.

    Dtypes: numbers.
    Equals: `torch.nn.functional.conv1d(data, weight, None, strides, padding, dilation, groups)`.
    """,
    data_layout="NCW",
)
conv2d = variant(
    _convolution,
    2,
    "conv2d",
    """The convolution (cross-correlation) of data (N, C, H, W) with kernels (O, C / groups, H, W).

    `padding` is an integer, an integer for each axis, (top, left, bottom, right), a pair for each axis, "SAME" or
    "VALID". Layouts are permutations of the letters; kernels are OIHW by default, and HWIO for channels-last data.
    Padding is a separate stage, `<name>_pad`. Sums are formed in `out_dtype` (by default the dtype of the data), and of
    16-bit floats in float32. Packed data NCHWc (`te.ops.pack(data, 1, c)`) require kernels OIHWio
    (`pack(weight, [1, 0], [c, f])`), or OIHWioi, in which each tile of channels is packed again for dot products; the
    result is NCHWc with tiles of f channels. Groups must then consist of whole tiles. Raises CompileError for channels
    that do not match and windows that do not fit.

    Dtypes: numbers.
    Equals: `torch.nn.functional.conv2d(data, weight, None, strides, padding, dilation, groups)`.
    """,
    data_layout="NCHW",
)
conv3d = variant(
    _convolution,
    3,
    "conv3d",
    """The convolution of data (N, C, D, H, W) with kernels (O, C / groups, D, H, W), see `conv2d`.

    Dtypes: numbers.
    Equals: `torch.nn.functional.conv3d(data, weight, None, strides, padding, dilation, groups)`.
    """,
    data_layout="NCDHW",
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
    """A depthwise convolution of data (N, C, H, W) with kernels per channel, (C, M, H, W), to C * M channels.

    Kernels of data (N, H, W, C) are (H, W, C, M); of packed data NCHWc CMHWc, and M is 1. Padding and sums as in
    `conv2d`.

    Dtypes: numbers.
    Equals: `torch.nn.functional.conv2d(data, weight.reshape(C * M, 1, H, W), ..., groups=C)`.
    """
    what = "depthwise_conv2d"
    operands = _Operands(what, "HW", data, data_layout, weight, "", ("CM", "CM"), out_dtype, ("c",))
    letters = "Cc" if operands.is_packed else "C"
    channels = {c: operands.data.extent(c) for c in letters}
    of_kernels = {c: operands.kernel.extent(c) for c in letters}
    if not all(agree(channels[c], of_kernels[c]) for c in letters):
        given, taken = (" tiles of ".join(map(str, found.values())) for found in (channels, of_kernels))
        raise error(f"{what}: the data has {given} channels, the kernels are for {taken}")
    multiplier = operands.kernel.extent("M")
    single = isinstance(multiplier, int) and multiplier == 1
    if operands.is_packed and not single:
        raise error(f"{what}: kernels of packed data have one filter for each channel, got {multiplier}")

    def factors(at: _Places, offsets: _Places) -> tuple[_Indices, _Indices]:
        channel: dict[str, Expr | int] = {c: at[c] for c in letters}
        if not single:
            channel["C"] = at["C"] // multiplier
        return channel, {**channel, "M": 0 if single else at["C"] % multiplier, **offsets}

    moving = operands.windows(strides, padding, dilation)
    return operands.sums(moving, {**channels, "C": simplified(channels["C"] * multiplier)}, [], factors, name)


def _transposed(
    rank: int,
    data: Tensor,
    weight: Tensor,
    strides: int | Sequence[int] = 1,
    padding: object = 0,
    output_padding: int | Sequence[int] = 0,
    dilation: int | Sequence[int] = 1,
    groups: int = 1,
    data_layout: str = "",
    kernel_layout: str = "",
    out_dtype: object = None,
    *,
    name: str = "",
) -> Tensor:
    what, letters = f"conv{rank}d_transpose", LETTERS[rank]
    operands = _Operands(what, letters, data, data_layout, weight, kernel_layout, ("IO", "IO"), out_dtype)
    source, kernel = operands.data, operands.kernel
    inputs, outputs = _transposed_group_sizes(what, source, kernel, integer(groups, f"{what}: groups"))
    given = operands.windows(strides, padding, dilation)
    extra = dict(zip(letters, integers(output_padding, f"{what}: output_padding", rank, least=0), strict=True))
    for c, window in given.items():
        if extra[c] >= max(window.stride, window.dilation):
            raise error(f"{what}: output_padding {extra[c]} must be below stride {window.stride} or {window.dilation}")
    spread = {c: _spread(what, window, source.extent(c), extra[c]) for c, window in given.items()}
    between = _with_zeros(source, given, spread, f"{name}_pad")
    sliding = {c: KernelWindow(window.size, 1, window.dilation, 0, 0) for c, window in given.items()}
    rc = te.reduce_axis((0, inputs), "rc")

    def factors(at: _Places, offsets: _Places) -> tuple[_Indices, _Indices]:
        mirrored = {c: window.size - 1 - offsets[c] for c, window in given.items()}
        channel = rc if groups == 1 else at["C"] // outputs * inputs + rc
        return {"C": channel}, {"I": channel, "O": at["C"] if groups == 1 else at["C"] % outputs, **mirrored}

    return operands.sums(sliding, {"C": simplified(outputs * groups)}, [rc], factors, name, between)


conv1d_transpose = variant(
    _transposed,
    1,
    "conv1d_transpose",
    """The transpose of `conv1d`, of data (N, C, W) and kernels (C, O / groups, W), see `conv2d_transpose`.

    Dtypes: numbers.
    Equals: `torch.nn.functional.conv_transpose1d(data, weight, None, strides, padding, output_padding, groups, ...)`.
    """,
    data_layout="NCW",
)
conv2d_transpose = variant(
    _transposed,
    2,
    "conv2d_transpose",
    """The transpose of `conv2d`, the gradient with respect to its data, of data (N, C, H, W) and kernels
    (C, O / groups, H, W).

    The extent n of an axis becomes (n - 1) * stride - padding + dilation * (kernel - 1) + 1 + output_padding. The data
    with zeros between and around its elements is a separate stage, `<name>_pad`, which is convolved with the mirrored
    kernel. Kernels are IOHW by default, and HWIO for channels-last data.

    Dtypes: numbers.
    Equals: `torch.nn.functional.conv_transpose2d(data, weight, None, strides, padding, output_padding, groups, ...)`.
    """,
    data_layout="NCHW",
)
conv3d_transpose = variant(
    _transposed,
    3,
    "conv3d_transpose",
    """The transpose of `conv3d`, of data (N, C, D, H, W) and kernels (C, O / groups, D, H, W), see `conv2d_transpose`.

    Dtypes: numbers.
    Equals: `torch.nn.functional.conv_transpose3d(data, weight, None, strides, padding, output_padding, groups, ...)`.
    """,
    data_layout="NCDHW",
)


def _transposed_group_sizes(what: str, source: Laid, kernel: Laid, groups: int) -> tuple[Extent, Extent]:
    channels = kernel.extent("I")
    if not agree(source.extent("C"), channels):
        raise error(f"{what}: the data has {source.extent('C')} channels, the kernels take {channels}")
    if groups == 1:
        return channels, kernel.extent("O")
    each = agreed_quotient(channels, groups)
    if each is None:
        raise error(f"{what}: {channels} channels cannot be split into {groups} groups")
    return each, kernel.extent("O")


def _spread(what: str, window: KernelWindow, extent: Extent, more: int) -> tuple[Extent, Extent]:
    """The first index in the dilated data, and its extent."""
    reach = simplified(window.span - 1)
    first = simplified(reach - window.before)
    length = simplified((extent - 1) * window.stride + 1 + first + (reach - window.after + more))
    if isinstance(length, int) and isinstance(window.span, int) and length < window.span:
        raise error(f"{what}: padding {(window.before, window.after)} leaves nothing of an axis of {extent} elements")
    return first, length


def _with_zeros(
    source: Laid, windows: Mapping[str, KernelWindow], spread: Mapping[str, tuple[Extent, Extent]], name: str
) -> Laid:
    def element(*indices: Expr) -> Expr:
        at: dict[str, Expr | int] = dict(zip(source.layout, indices, strict=True))
        there: list[Expr] = []
        for c, (first, _) in spread.items():
            window = windows[c]
            place = indices[source.layout.index(c)] - first
            there += [place >= 0, place < (source.extent(c) - 1) * window.stride + 1]
            if window.stride != 1:
                there.append(place % window.stride == 0)
            at[c] = place // window.stride if window.stride != 1 else place
        return if_then_else(te.all(*there), source.at(at), constant(0, source.tensor.dtype))

    shape = [spread[c][1] if c in spread else source.extent(c) for c in source.layout]
    return Laid(compute(shape, element, name, [c.lower() for c in source.layout]), source.layout)


declare(Product(), conv2d)
