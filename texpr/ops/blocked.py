"""Convolutions of data in blocks of channels, (N, C / c, H, W, c): channels of a block are consecutive in memory."""

from __future__ import annotations

from collections.abc import Sequence

from weft.texpr.expr import Expr, error
from weft.texpr.ops.arguments import compute, numeric, product_dtype, ranked, sum_dtype
from weft.texpr.ops.convolution import windows
from weft.texpr.ops.transforms import constant_border
from weft.texpr.reductions import reduce_axis
from weft.texpr.reductions import sum as sum_over
from weft.texpr.shapes import Extent, is_same, shape_text
from weft.texpr.tensor import Tensor

__all__ = ["conv2d_blocked", "depthwise_conv2d_blocked"]


def conv2d_blocked(
    data: Tensor,
    weight: Tensor,
    strides: int | Sequence[int] = 1,
    padding: object = 0,
    dilation: int | Sequence[int] = 1,
    out_dtype: object = None,
    *,
    name: str = "conv2d_blocked",
) -> Tensor:
    """The convolution of data in blocks of channels (N, C / c, H, W, c) with kernels (F / f, C / c, H, W, c, f), its
    filters in blocks: (N, F / f, H, W, f).

    Strides, padding, dilation and sums as in `conv2d`; the border is a stage of its own, `<name>_pad`. Any c and f do.
    Kernels (F / f, C / c, H, W, c / g, f, g) have groups of g channels side by side, as dot products of integers read
    them. Raises CompileError for channels that do not match and windows that do not fit.

    Dtypes: numbers.
    Equals: `conv2d` of data and kernels without blocks, its result in blocks.
    """
    what = "conv2d_blocked"
    kernel = ranked(weight, f"{what}: weight", 6, 7)
    group = kernel.shape[6] if kernel.ndim == 7 else 1
    moved = (strides, padding, dilation)
    convolution = _Blocked(what, data, kernel, (1, 4), group, moved, out_dtype, name)
    rb, rc = (reduce_axis((0, kernel.shape[at]), letter) for at, letter in ((1, "rb"), (4, "rc")))
    rh, rw = convolution.offsets
    rg = reduce_axis((0, group), "rg")

    def element(n: Expr, b: Expr, h: Expr, w: Expr, f: Expr) -> Expr:
        if kernel.ndim == 6:
            product = convolution.product((n, rb, h, w, rc), (b, rb, rh, rw, rc, f))
            return sum_over(product, axis=[rb, rh, rw, rc]).astype(convolution.dtype)
        product = convolution.product((n, rb, h, w, rc * group + rg), (b, rb, rh, rw, rc, f, rg))
        return sum_over(product, axis=[rb, rh, rw, rc, rg]).astype(convolution.dtype)

    return compute(convolution.shape(kernel.shape[0], kernel.shape[5]), element, name, list("nbhwf"))


def depthwise_conv2d_blocked(
    data: Tensor,
    weight: Tensor,
    strides: int | Sequence[int] = 1,
    padding: object = 0,
    dilation: int | Sequence[int] = 1,
    out_dtype: object = None,
    *,
    name: str = "depthwise_conv2d_blocked",
) -> Tensor:
    """A convolution of each channel of data in blocks of channels (N, C / c, H, W, c) with a kernel of its own, (C / c,
    H, W, c). Arguments as in `conv2d_blocked`.

    Dtypes: numbers.
    Equals: `depthwise_conv2d` of data and kernels without blocks, its result in blocks.
    """
    what = "depthwise_conv2d_blocked"
    kernel = ranked(weight, f"{what}: weight", 4)
    convolution = _Blocked(what, data, kernel, (0, 3), 1, (strides, padding, dilation), out_dtype, name)
    rh, rw = convolution.offsets

    def element(n: Expr, b: Expr, h: Expr, w: Expr, c: Expr) -> Expr:
        product = convolution.product((n, b, h, w, c), (b, rh, rw, c))
        return sum_over(product, axis=[rh, rw]).astype(convolution.dtype)

    return compute(
        convolution.shape(convolution.data.shape[1], convolution.data.shape[4]), element, name, list("nbhwc")
    )


class _Blocked:
    """Data with their border, and windows over them."""

    def __init__(
        self,
        what: str,
        data: Tensor,
        kernel: Tensor,
        channels: tuple[int, int],
        group: Extent,
        moved: tuple[object, object, object],
        out_dtype: object,
        name: str,
    ) -> None:
        """`channels` are the axes of the kernels for the blocks of channels and the groups of channels of a block;
        windows follow the first of them. Windows are `moved` by strides, padding and dilation."""
        self.kernel = kernel
        source = ranked(numeric(data, f"{what}: data"), f"{what}: data", 5)
        blocks, each = (self.kernel.shape[axis] for axis in channels)
        each = each * group
        if not is_same(source.shape[1], blocks) or not is_same(source.shape[4], each):
            raise error(
                f"{what}: {source.name} of shape {shape_text(source.shape)} has {source.shape[1]} blocks of "
                f"{source.shape[4]} channels, but {self.kernel.name} of shape {shape_text(self.kernel.shape)} takes "
                f"{blocks} blocks of {each}"
            )
        sizes = self.kernel.shape[channels[0] + 1 : channels[0] + 3]
        extents = source.shape[2:4]
        self.windows = windows(what, sizes, *moved, extents)
        self.positions = [w.positions(e, what) for w, e in zip(self.windows, extents, strict=True)]
        self.offsets = [reduce_axis((0, size), letter) for size, letter in zip(sizes, ("rh", "rw"), strict=True)]
        self.dtype = product_dtype(what, out_dtype, source, self.kernel)
        around = [(w.before, w.after) for w in self.windows]
        borders = [(0, 0), (0, 0), *around, (0, 0)]
        self.data = constant_border(source, borders, 0, f"{name}_pad") if any(map(any, around)) else source

    def shape(self, blocks: Extent, channels: Extent) -> list[Extent]:
        """The shape of the result, of so many channels."""
        return [self.data.shape[0], blocks, *self.positions, channels]

    def product(self, at: Sequence[Expr], place: Sequence[Expr]) -> Expr:
        """The element of the windows `at` a position, times the kernels' at a place, in the type of the sums."""
        n, b, *position, c = at
        h, w = (window.index(p, o) for window, p, o in zip(self.windows, position, self.offsets, strict=True))
        wide = sum_dtype(self.dtype)
        return self.data(n, b, h, w, c).astype(wide) * self.kernel(*place).astype(wide)
