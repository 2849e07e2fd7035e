"""Matrix factorizations, on the last two axes."""

from __future__ import annotations

import numpy as np

from weft.texpr.references.arguments import Array


def lu(data: Array) -> tuple[Array, Array]:
    factors, steps = np.array(data), min(data.shape[-2:])
    pivots = np.zeros((*data.shape[:-2], steps), np.int64)
    for at in np.ndindex(*data.shape[:-2]):
        one = factors[at]
        for k in range(steps):
            row = pivots[(*at, k)] = k + int(np.argmax(np.abs(one[k:, k])))
            one[[k, row]] = one[[row, k]]
            if one[k, k] != 0:
                one[k + 1 :, k] /= one[k, k]
            one[k + 1 :, k + 1 :] -= np.outer(one[k + 1 :, k], one[k, k + 1 :])
    return factors, pivots


def lu_solve(factors: Array, pivots: Array, rhs: Array) -> Array:
    found = np.array(rhs)
    for at in np.ndindex(*rhs.shape[:-2]):
        for k, row in enumerate(pivots[at]):
            found[at][[k, row]] = found[at][[row, k]]
    lower = np.tril(factors, -1) + np.eye(factors.shape[-1], dtype=factors.dtype)
    return np.linalg.solve(np.triu(factors), np.linalg.solve(lower, found))


def solve_triangular(matrix: Array, rhs: Array, lower: bool, unit_diagonal: bool) -> Array:
    triangle = np.tril(matrix) if lower else np.triu(matrix)
    if unit_diagonal:
        size = np.arange(int(matrix.shape[-1]))
        triangle[..., size, size] = 1
    return np.linalg.solve(triangle, rhs)


def cholesky(data: Array) -> tuple[Array, Array]:
    found, minors = np.zeros_like(data), np.zeros(data.shape[:-2], np.int64)
    for at in np.ndindex(*data.shape[:-2]):
        one, source = found[at], data[at]
        for r in range(len(source)):
            for c in range(r):
                one[r, c] = (source[r, c] - one[r, :c] @ one[c, :c].conj()) / one[c, c]
            square = np.real(source[r, r] - one[r, :r] @ one[r, :r].conj())
            one[r, r] = np.sqrt(square) if square > 0 else np.nan
            if not square > 0 and not minors[at]:
                minors[at] = r + 1
    return found, minors


def householder_factors(data: Array) -> tuple[Array, Array]:
    factors, tau = np.linalg.qr(data, "raw")
    return np.swapaxes(factors, -1, -2), tau


def householder_product(vectors: Array, tau: Array, columns: int | None) -> Array:
    rows = int(vectors.shape[-2])
    found: Array = np.broadcast_to(np.eye(rows), (*vectors.shape[:-2], rows, rows))
    for k in range(tau.shape[-1]):
        v: Array = np.where(np.arange(rows) < k, 0.0, vectors[..., k])
        v[..., k] = 1
        reflection = np.eye(rows) - tau[..., k, None, None] * v[..., :, None] * v[..., None, :]
        found = found @ reflection
    return found[..., : vectors.shape[-1] if columns is None else columns]


def _signs(vectors: Array) -> Array:
    place = np.argmax(np.abs(vectors), axis=-2, keepdims=True)
    return np.where(np.take_along_axis(vectors, place, axis=-2) < 0, -1.0, 1.0)


def eigh(data: Array, lower: bool) -> tuple[Array, Array]:
    found = np.linalg.eigh(data.astype(np.float64), "L" if lower else "U")
    return found.eigenvalues, found.eigenvectors * _signs(found.eigenvectors)


def svd(data: Array, full_matrices: bool) -> tuple[Array, Array, Array]:
    u, values, v = np.linalg.svd(data.astype(np.float64), full_matrices)
    count = values.shape[-1]
    own, other = u[..., :count], np.swapaxes(v[..., :count, :], -1, -2)
    signs = _signs(other if data.shape[-2] >= data.shape[-1] else own)
    u[..., :count] = own * signs
    v[..., :count, :] = np.swapaxes(other * signs, -1, -2)
    return u, values, v
