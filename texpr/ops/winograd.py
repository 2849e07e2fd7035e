"""Winograd convolutions of 3 x 3 windows: tiles of results with fewer multiplications."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod, sqrt
from typing import Any, Final

import numpy as np
from numpy.polynomial.polynomial import polyfromroots
from numpy.typing import NDArray

from weft.texpr import reductions as te
from weft.texpr.expr import Expr, error
from weft.texpr.math import select
from weft.texpr.ops.arguments import compute, floating, product_dtype, ranked, sum_dtype
from weft.texpr.ops.convolution import windows
from weft.texpr.ops.transforms import constant_border
from weft.texpr.shapes import is_same, shape_text, simplified
from weft.texpr.tensor import Tensor

__all__ = ["conv2d_winograd"]

WINDOW: Final = 3
"""Along both axes."""
SQUARES: Final[Mapping[int, tuple[float, ...]]] = {2: (1.0,), 4: (0.5, 2.0)}
"""Squares of points p, by tile size; polynomials are evaluated at 0, p, -p and infinity.

`tile + 2` points determine the product of a window and a tile of results. Points and their reciprocals, as square roots
of 1/2 and 2, lose fewer digits than small integers: Alam, Anderson, Barabasz and Gregg, "Winograd convolution for deep
neural networks: efficient point selection" (2022).
"""


def conv2d_winograd(
    data: Tensor, weight: Tensor, padding: object = 0, out_dtype: object = None, *, name: str = "conv2d_winograd"
) -> Tensor:
    """The convolution of packed data (N, C / c, H, W, c) with 3 x 3 windows, stride 1 and packed filters: (N, F / f, H,
    W, f). Kernels are transformed: (F / f, t + 2, t + 2, C / c, c, f).

    Tiles of t x t results, t = 2 or 4, take (t + 2)^2 multiplications per channel and filter: 2.25 and 4 times fewer
    than direct convolution. Tiles of data, overlapping by two elements, are transformed, multiplied with kernels
    elementwise, summed over channels, and transformed back:

        Y = A^T (sum over channels of (G g G^T) * (B^T d B)) A

    (Lavin and Gray, "Fast algorithms for convolutional neural networks", 2016). Stages: padding to whole tiles, and for
    each transform rows and columns. Rounding errors are several times those of `conv2d`. Padding and dtypes as in
    `conv2d`.

    Dtypes: floats.
    Equals: `conv2d` of unpacked data and kernels that are not transformed, its result packed.
    """
    what = "conv2d_winograd"
    source = ranked(floating(data, f"{what}: data"), f"{what}: data", 5)
    kernel = ranked(floating(weight, f"{what}: weight"), f"{what}: weight", 6)
    size, other = kernel.shape[1:3]
    if not isinstance(size, int) or size != other or size - WINDOW + 1 not in SQUARES:
        raise error(
            f"{what}: kernels have 4 x 4 or 6 x 6 elements, got {kernel.name} of shape {shape_text(kernel.shape)}"
        )
    if not is_same(source.shape[1], kernel.shape[3]) or not is_same(source.shape[4], kernel.shape[4]):
        raise error(
            f"{what}: {source.name} of shape {shape_text(source.shape)} has {source.shape[1]} blocks of "
            f"{source.shape[4]} channels, but {kernel.name} of shape {shape_text(kernel.shape)} takes "
            f"{kernel.shape[3]} blocks of {kernel.shape[4]}"
        )
    tile = size - WINDOW + 1
    extents = source.shape[2:4]
    moving = windows(what, (WINDOW, WINDOW), 1, padding, 1, extents)
    results = [w.positions(extent, what) for w, extent in zip(moving, extents, strict=True)]
    tiles = [simplified((extent + tile - 1) // tile) for extent in results]
    # dynamic extents get the last tile's maximum padding
    outside = [-extent % tile if isinstance(extent, int) else tile - 1 for extent in results]
    around = [(w.before, w.after + out) for w, out in zip(moving, outside, strict=True)]
    borders = [(0, 0), (0, 0), *around, (0, 0)]
    image = constant_border(source, borders, 0, f"{name}_pad") if any(map(any, around)) else source
    dtype = product_dtype(what, out_dtype, source, kernel)
    wide = sum_dtype(dtype)
    batch, blocks, channels = *image.shape[:2], image.shape[4]
    filters = kernel.shape[0], kernel.shape[5]

    def rows_of_data(n: Expr, b: Expr, y: Expr, x: Expr, i: Expr, j: Expr, c: Expr) -> Expr:
        column = [image(n, b, y * tile + k, x * tile + j, c).astype(wide) for k in range(size)]
        return _chosen(i, _transformed_data(column, SQUARES[tile]))

    def data_of_tile(n: Expr, i: Expr, j: Expr, b: Expr, y: Expr, x: Expr, c: Expr) -> Expr:
        return _chosen(j, _transformed_data([rows(n, b, y, x, i, k, c) for k in range(size)], SQUARES[tile]))

    def products_of_tile(n: Expr, b: Expr, i: Expr, j: Expr, y: Expr, x: Expr, f: Expr) -> Expr:
        factor = kernel(b, i, j, rb, rc, f).astype(wide)
        return te.sum(transformed(n, i, j, rb, y, x, rc) * factor, axis=[rb, rc])

    def rows_of_results(n: Expr, b: Expr, y: Expr, x: Expr, i: Expr, j: Expr, f: Expr) -> Expr:
        return _chosen(i, _results([products(n, b, k, j, y, x, f) for k in range(size)], SQUARES[tile]))

    def result(n: Expr, b: Expr, h: Expr, w: Expr, f: Expr) -> Expr:
        row = [sums(n, b, h // tile, w // tile, h % tile, k, f) for k in range(size)]
        return _chosen(w % tile, _results(row, SQUARES[tile])).astype(dtype)

    rb, rc = te.reduce_axis((0, blocks), "rb"), te.reduce_axis((0, channels), "rc")
    rows = compute([batch, blocks, *tiles, size, size, channels], rows_of_data, f"{name}_rows", list("nbyxijc"))
    transformed = compute([batch, size, size, blocks, *tiles, channels], data_of_tile, f"{name}_data", list("nijbyxc"))
    shape = [batch, filters[0], size, size, *tiles, filters[1]]
    products = compute(shape, products_of_tile, f"{name}_products", list("nbijyxf"))
    shape = [batch, filters[0], *tiles, tile, size, filters[1]]
    sums = compute(shape, rows_of_results, f"{name}_sums", list("nbyxijf"))
    return compute([batch, filters[0], *results, filters[1]], result, name, list("nbhwf"))


def transformed_kernel(kernel: NDArray[Any], tile: int) -> NDArray[Any]:
    """G g G^T of windows along the last two axes, in float64, rounded once."""
    points = [0.0, *(sign * sqrt(square) for square in SQUARES[tile] for sign in (1, -1))]
    # at a point, divided by the product of distances to the others
    rows = [
        [at**power / prod(at - other for other in points if other != at) for power in range(WINDOW)] for at in points
    ]
    matrix = np.array([*rows, [0.0, 0.0, 1.0]])
    size = len(matrix)
    windows = kernel.reshape(kernel.shape[0], -1, WINDOW, WINDOW)
    found = np.empty((*windows.shape[:2], size, size), kernel.dtype)
    for result, filters in zip(found, windows, strict=True):  # one filter at a time, whose float64 fits in L2
        # A product with a tall matrix is many times as fast as one per window.
        columns = filters.astype(np.float64).transpose(0, 2, 1).reshape(-1, WINDOW) @ matrix.T
        rows_of_windows = columns.reshape(-1, WINDOW, size).transpose(0, 2, 1).reshape(-1, WINDOW)
        result[...] = (rows_of_windows @ matrix.T).reshape(-1, size, size)
    return found.reshape(*kernel.shape[:-2], size, size)


def _transformed_data(elements: Sequence[Expr], squares: Sequence[float]) -> list[Expr]:
    """B^T d, by the polynomial whose roots are the other points. Those of p and -p share even powers; odd ones differ
    in sign.
    """
    whole = _polynomial(squares)
    found = [_weighted(whole, elements[0::2])]
    for square in squares:
        rest = _polynomial([other for other in squares if other != square])
        even, odd = _weighted(rest, elements[2::2]), _times(sqrt(square), _weighted(rest, elements[1::2]))
        found += [even + odd, even - odd]
    return [*found, _weighted(whole, elements[1::2])]


def _results(values: Sequence[Expr], squares: Sequence[float]) -> list[Expr]:
    """A^T m, by powers of the points, p and -p combined, the last with infinity."""
    first, *pairs, last = values
    even = [plus + minus for plus, minus in zip(pairs[0::2], pairs[1::2], strict=True)]
    odd = [plus - minus for plus, minus in zip(pairs[0::2], pairs[1::2], strict=True)]
    found = [
        _weighted([square ** (power // 2) * sqrt(square) ** (power % 2) for square in squares], (even, odd)[power % 2])
        for power in range(len(values) - 2)
    ]
    return [first + found[0], *found[1:-1], found[-1] + last]


def _polynomial(squares: Sequence[float]) -> list[float]:
    """Coefficients of even powers, lowest first, of the polynomial with roots p and -p per square."""
    return [float(c) for c in polyfromroots(squares)]


def _weighted(weights: Sequence[float], elements: Sequence[Expr]) -> Expr:
    total, *others = [_times(weight, element) for weight, element in zip(weights, elements, strict=False)]
    for other in others:
        total = total + other
    return total


def _times(weight: float, element: Expr) -> Expr:
    return element if weight == 1 else -element if weight == -1 else element * weight


def _chosen(index: Expr, values: Sequence[Expr]) -> Expr:
    *others, found = values
    for at, value in reversed(list(enumerate(others))):
        found = select(index == at, value, found)
    return found
