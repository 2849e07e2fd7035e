"""Convolutions with transformed kernels, by matrices."""

from __future__ import annotations

from typing import Any

import numpy as np

from weft.texpr.ops.winograd import SQUARES, WINDOW
from weft.texpr.references.arguments import Array, accumulator
from weft.texpr.references.convolution import bordered, borders, windows


def conv2d_winograd(data: Array, weight: Array, padding: Any, out_dtype: str | None) -> Array:
    x, w = accumulator(out_dtype, data, weight)
    count, blocks, *extents, channels = x.shape
    around = borders(padding, extents, [WINDOW] * 2, [1, 1], [1, 1])
    size = w.shape[1]
    tile = size - WINDOW + 1
    rows, columns = (sum(pair) + extent - WINDOW + 1 for pair, extent in zip(around, extents, strict=True))
    outside = [(pair[0], pair[1] - extent % -tile) for pair, extent in zip(around, (rows, columns), strict=True)]
    image = bordered(np.moveaxis(x, 4, 2).reshape(count, blocks * channels, *extents), outside)
    transform, inverse = _matrices(tile)
    # (N, C, row of tiles, column of tiles, ...)
    tiles = transform @ windows(image, [size] * 2, [tile] * 2, [1, 1]) @ transform.T
    kernel = np.moveaxis(w, 5, 1).reshape(-1, size, size, blocks * channels)
    sums = inverse @ np.einsum("ncyxij,fijc->nfyxij", tiles, kernel, optimize=True) @ inverse.T
    shape = (count, len(kernel), sums.shape[2] * tile, sums.shape[3] * tile)
    whole = np.moveaxis(sums, 4, 3).reshape(shape)[:, :, :rows, :columns]
    return np.moveaxis(whole.reshape(count, w.shape[0], w.shape[5], rows, columns), 2, 4)


def _matrices(tile: int) -> tuple[Array, Array]:
    """B^T is the transposed inverse of evaluation at the points, rows scaled by products of distances to other points;
    A^T the transposed evaluation of polynomials with a term per result. The value at infinity is the last coefficient.
    """
    points = np.array([0.0, *(sign * square**0.5 for square in SQUARES[tile] for sign in (1, -1))])

    def evaluation(terms: int) -> Array:
        return np.vstack([np.vander(points, terms, increasing=True), np.eye(terms)[-1]])

    distances = np.prod(points[:, None] - points + np.eye(len(points)), axis=1)
    return np.append(distances, 1.0)[:, None] * np.linalg.inv(evaluation(len(points) + 1)).T, evaluation(tile).T
