"""Converters of matrix factorizations, and of solutions, inverses, determinants, eigenvalues and singular values."""

from __future__ import annotations

from collections.abc import Sequence
from math import factorial
from typing import Final, cast

from weft.dialects.graph_shapes import Extent, KnownExtent
from weft.frontends.graph_builder import Value, const
from weft.frontends.torch.converters import Conversion, apply, cast_to, known, register
from weft.frontends.torch.library import torch
from weft.frontends.torch.symbols import UnsupportedError, torch_dtype


def _transposed(x: Value) -> Value:
    return apply("swapaxes", x, x.ndim - 2, x.ndim - 1)


def _to(x: Value, shape: Sequence[Extent]) -> Value:
    return x if x.shape == tuple(shape) else apply("broadcast_to", x, known(tuple(shape)))


def _batches(*values: tuple[Value, int]) -> list[Value]:
    """Broadcast the axes before the last `rank` ones; each tensor is paired with its rank."""
    lead = [value.shape[: value.ndim - rank] for value, rank in values]
    length = max(map(len, lead))
    aligned = [(1,) * (length - len(shape)) + tuple(shape) for shape in lead]
    batch = tuple(next((e for e in extents if e != 1), 1) for extents in zip(*aligned, strict=True))
    return [_to(value, (*batch, *value.shape[value.ndim - rank :])) for value, rank in values]


def _extents(x: Value) -> tuple[int, int]:
    """Raises `UnsupportedError` for symbolic extents of matrices."""
    rows, columns = x.shape[-2:]
    if not isinstance(rows, int) or not isinstance(columns, int):
        raise UnsupportedError("matrices of symbolic size")
    return rows, columns


def _identity(like: Value, size: KnownExtent) -> Value:
    return _to(apply("eye", size, dtype=like.dtype), (*like.shape[:-2], size, size))


def _diagonal(x: Value) -> Value:
    return apply("diagonal", x, offset=0, axis1=x.ndim - 2, axis2=x.ndim - 1)


def _places(pivots: Value) -> Value:
    """PyTorch's pivots count from 1."""
    return cast_to(apply("add", pivots, const(1, "int64")), "int32")


def _first_zero(diagonal: Value) -> Value:
    """The number, from 1, of the first pivot that is 0, or 0."""
    if diagonal.shape[-1] == 0:
        return apply("full", known(diagonal.shape[:-1]), 0, dtype="int32")
    is_zero = apply("equal", diagonal, const(0.0, diagonal.dtype))
    axis = diagonal.ndim - 1
    first = apply("argmax", cast_to(is_zero, "int32"), axis=axis)
    found = apply("where", apply("any", is_zero, axis=[axis]), apply("add", first, 1), const(0, "int64"))
    return cast_to(found, "int32")


@register("aten.linalg_lu_factor_ex.default")
def _lu_factor(cx: Conversion, x: Value, *, pivot: bool, check_errors: bool) -> tuple[Value, ...]:
    _check_pivots(pivot)
    factors, pivots = apply("lu", x)
    return factors, _places(pivots), _first_zero(_diagonal(factors))


def _check_pivots(pivot: bool) -> None:
    if not pivot:
        raise UnsupportedError("an LU factorization without pivots")


def _parts(factors: Value, pivots: Value) -> tuple[Value, Value, Value]:
    """P, L and U of A = P L U. `pivots` count from 0."""
    rows, columns = _extents(factors)
    steps = min(rows, columns)
    lower, upper = apply("tril", factors, k=-1), apply("triu", factors)
    first = {"begin": [0], "end": [steps]}
    lower = apply("strided_slice", lower, axes=[lower.ndim - 1], **first) if columns > steps else lower
    upper = apply("strided_slice", upper, axes=[upper.ndim - 2], **first) if rows > steps else upper
    lower = apply("add", lower, apply("eye", rows, steps, dtype=factors.dtype))
    return _permutation(pivots, rows, factors.dtype), lower, upper


def _permutation(pivots: Value, rows: int, dtype: str) -> Value:
    """The row exchanges, applied to the identity, give the transpose of P of A = P L U."""
    steps, batch = pivots.shape[-1], pivots.shape[:-1]
    places = cast_to(pivots, "int64")
    if steps != rows:
        rest = apply("strided_slice", apply("iota", (rows,)), begin=[steps], end=[rows], axes=[0])
        places = apply("concatenate", [places, _to(rest, (*batch, rest.shape[0]))], axis=places.ndim - 1)
    identity = _to(apply("eye", rows, dtype=dtype), (*batch, rows, rows))
    return _transposed(apply("lu_solve", identity, places, identity))


@register("aten.linalg_lu.default")
def _lu(cx: Conversion, x: Value, *, pivot: bool) -> tuple[Value, ...]:
    _check_pivots(pivot)
    return _parts(*apply("lu", x))


@register("aten.lu_unpack.default")
def _lu_unpack(
    cx: Conversion, factors: Value, pivots: Value, unpack_data: bool, unpack_pivots: bool
) -> tuple[Value, ...]:
    found = _parts(factors, apply("subtract", cast_to(pivots, "int64"), 1))
    empty = apply("full", (0,), 0.0, dtype=factors.dtype)
    return found[0] if unpack_pivots else empty, *(part if unpack_data else empty for part in found[1:])


def _solved(factors: Value, pivots: Value, rhs: Value, *, transposed: bool) -> Value:
    if not transposed:
        return apply("lu_solve", factors, pivots, rhs)
    turned = _transposed(factors)
    found = apply("solve_triangular", turned, rhs, lower=True)
    found = apply("solve_triangular", turned, found, lower=False, unit_diagonal=True)
    return apply("matmul", _permutation(pivots, _extents(factors)[0], factors.dtype), found)


@register("aten.linalg_lu_solve.default")
def _lu_solve(cx: Conversion, factors: Value, pivots: Value, rhs: Value, *, left: bool, adjoint: bool) -> Value:
    rhs = rhs if left else _transposed(rhs)
    factors, pivots, rhs = _batches((factors, 2), (pivots, 1), (rhs, 2))
    places = apply("subtract", cast_to(pivots, "int64"), 1)
    found = _solved(factors, places, rhs, transposed=adjoint == left)
    return found if left else _transposed(found)


@register("aten._linalg_solve_ex.default")
def _solve_ex(cx: Conversion, x: Value, rhs: Value, *, left: bool, check_errors: bool) -> tuple[Value, ...]:
    is_vector = rhs.ndim == 1 or (rhs.ndim == x.ndim - 1 and rhs.shape == x.shape[:-1])
    given = apply("expand_dims", rhs, rhs.ndim) if is_vector else rhs
    given = given if left or is_vector else _transposed(given)
    factors, pivots = apply("lu", x)
    aligned = _batches((factors, 2), (pivots, 1), (given, 2))
    found = _solved(*aligned, transposed=not left and not is_vector)
    found = found if left or is_vector else _transposed(found)
    found = apply("squeeze", found, axis=[found.ndim - 1]) if is_vector else found
    return found, factors, _places(pivots), _first_zero(_diagonal(factors))


@register("aten.linalg_inv_ex.default")
def _inv_ex(cx: Conversion, x: Value, *, check_errors: bool) -> tuple[Value, ...]:
    factors, pivots = apply("lu", x)
    found = apply("lu_solve", factors, pivots, _identity(x, known(x.shape)[-1]))
    return found, _first_zero(_diagonal(factors))


def _sign(pivots: Value, dtype: str) -> Value:
    moved = cast_to(apply("not_equal", pivots, apply("iota", (known(pivots.shape)[-1],))), "int64")
    odd = apply("floor_mod", apply("sum", moved, axis=[moved.ndim - 1]), const(2, "int64"))
    return cast_to(apply("subtract", 1, apply("multiply", odd, 2)), dtype)


@register("aten._linalg_det.default")
def _det(cx: Conversion, x: Value) -> tuple[Value, ...]:
    factors, pivots = apply("lu", _transposed(x))  # PyTorch factorizes the transpose of contiguous matrices
    product = apply("prod", _diagonal(factors), axis=[x.ndim - 2])
    return apply("multiply", product, _sign(pivots, x.dtype)), factors, _places(pivots)


@register("aten._linalg_slogdet.default")
def _slogdet(cx: Conversion, x: Value) -> tuple[Value, ...]:
    factors, pivots = apply("lu", _transposed(x))
    diagonal, axis = _diagonal(factors), [x.ndim - 2]
    sign = apply("multiply", apply("prod", apply("sign", diagonal), axis=axis), _sign(pivots, x.dtype))
    logarithm = apply("sum", apply("log", apply("abs", diagonal)), axis=axis)
    return sign, logarithm, factors, _places(pivots)


@register("aten.linalg_cholesky_ex.default")
def _cholesky_ex(cx: Conversion, x: Value, *, upper: bool, check_errors: bool = False) -> tuple[Value, ...]:
    found, minor = apply("cholesky", _transposed(x) if upper else x)
    return _transposed(found) if upper else found, cast_to(minor, "int32")


@register("aten.cholesky.default")
def _cholesky(cx: Conversion, x: Value, upper: bool) -> Value:
    return _cholesky_ex(cx, x, upper=upper)[0]


@register("aten.cholesky_solve.default")
def _cholesky_solve(cx: Conversion, rhs: Value, factor: Value, upper: bool) -> Value:
    factor, rhs = _batches((_transposed(factor) if upper else factor, 2), (rhs, 2))
    found = apply("solve_triangular", factor, rhs, lower=True)
    return apply("solve_triangular", _transposed(factor), found, lower=False)


@register("aten.cholesky_inverse.default")
def _cholesky_inverse(cx: Conversion, factor: Value, upper: bool) -> Value:
    return _cholesky_solve(cx, _identity(factor, known(factor.shape)[-1]), factor, upper)


@register("aten.linalg_solve_triangular.default")
def _solve_triangular(cx: Conversion, x: Value, rhs: Value, *, upper: bool, left: bool, unitriangular: bool) -> Value:
    x, rhs = _batches((x if left else _transposed(x), 2), (rhs if left else _transposed(rhs), 2))
    found = apply("solve_triangular", x, rhs, lower=upper != left, unit_diagonal=unitriangular)
    return found if left else _transposed(found)


@register("aten.triangular_solve.default")
def _triangular_solve(
    cx: Conversion, rhs: Value, x: Value, upper: bool, transpose: bool, unitriangular: bool
) -> tuple[Value, Value]:
    x, rhs = _batches((x, 2), (rhs, 2))
    turned = _transposed(x) if transpose else x
    return apply("solve_triangular", turned, rhs, lower=upper == transpose, unit_diagonal=unitriangular), x


@register("aten.geqrf.default")
def _geqrf(cx: Conversion, x: Value) -> tuple[Value, Value]:
    return apply("householder_factors", x)


@register("aten.linalg_qr.default")
def _qr(cx: Conversion, x: Value, mode: str) -> tuple[Value, Value]:
    (rows, columns), (factors, tau) = _extents(x), apply("householder_factors", x)
    kept = rows if mode == "complete" else min(rows, columns)
    upper = apply("triu", factors)
    if kept < rows:
        upper = apply("strided_slice", upper, begin=[0], end=[kept], axes=[x.ndim - 2])
    if mode == "r":
        return apply("full", (0,), 0.0, dtype=x.dtype), upper
    return apply("householder_product", factors, tau, columns=kept), upper


@register("aten.linalg_householder_product.default")
def _householder_product(cx: Conversion, vectors: Value, tau: Value) -> Value:
    return apply("householder_product", vectors, tau)


@register("aten.ormqr.default")
def _ormqr(cx: Conversion, vectors: Value, tau: Value, other: Value, left: bool, transpose: bool) -> Value:
    factor = apply("householder_product", vectors, tau, columns=_extents(vectors)[0])
    factor = _transposed(factor) if transpose else factor
    return apply("matmul", factor, other) if left else apply("matmul", other, factor)


@register("aten._linalg_eigh.default")
def _eigh(cx: Conversion, x: Value, uplo: str, compute_v: bool) -> tuple[Value, Value]:
    values, vectors = apply("eigh", x, lower=uplo.upper() == "L")
    return values, vectors if compute_v else apply("full", known(cx.results[1].shape), 0.0, dtype=x.dtype)


@register("aten._linalg_svd.default")
def _svd(cx: Conversion, x: Value, full_matrices: bool, compute_uv: bool, *, driver: str | None) -> tuple[Value, ...]:
    if compute_uv:
        return apply("svd", x, full_matrices=full_matrices)
    empty = (apply("full", known(cx.results[at].shape), 0.0, dtype=x.dtype) for at in (0, 2))
    return next(empty), apply("svd", x)[1], next(empty)


def _inverted(values: Value, least: Value) -> Value:
    is_kept = apply("greater", values, least)
    safe = apply("where", is_kept, values, const(1.0, values.dtype))
    return apply("where", is_kept, apply("reciprocal", safe), const(0.0, values.dtype))


def _greatest(values: Value) -> Value:
    return apply("strided_slice", values, begin=[0], end=[1], axes=[values.ndim - 1])


def _precision(x: Value) -> float:
    """The fraction of the largest singular value below which others count as 0."""
    return float(torch.finfo(torch_dtype(x.dtype)).eps) * max(_extents(x))


@register("aten.linalg_pinv.atol_rtol_tensor")
def _pinv(cx: Conversion, x: Value, *, atol: Value | None, rtol: Value | None, hermitian: bool) -> Value:
    if 0 in x.shape:
        return apply("full", known(cx.shape), 0.0, dtype=x.dtype)
    if hermitian:
        lower = apply("tril", x)
        x = apply("add", lower, _transposed(apply("tril", x, k=-1)))
    left, values, right = apply("svd", x)
    absolute, relative = (
        None if part is None else apply("expand_dims", cast_to(part, x.dtype), part.ndim) for part in (atol, rtol)
    )
    if relative is None:
        relative = const(_precision(x), x.dtype)
        if absolute is not None:
            is_given = apply("greater", absolute, const(0.0, x.dtype))
            relative = apply("where", is_given, const(0.0, x.dtype), relative)
    least = apply("multiply", relative, _greatest(values))
    least = least if absolute is None else apply("maximum", absolute, least)
    scaled = apply("multiply", _transposed(right), apply("expand_dims", _inverted(values, least), values.ndim - 1))
    return apply("matmul", scaled, _transposed(left))


_DEGREE: Final = 18
"""The degree of the Taylor polynomial of an exponential."""
_LARGEST_NORM: Final = {"float32": 3.010066362817634, "float64": 1.090863719290036}
"""The maximum 1-norm of a matrix for which this polynomial is exact to rounding: Bader, Blanes and Casas, Computing the
Matrix Exponential with an Optimized Taylor Polynomial Approximation, 2019, table 1."""


@register("aten.linalg_matrix_exp.default")
def _matrix_exp(cx: Conversion, x: Value) -> Value:
    """exp(A) = exp(A / 2^s)^(2^s) as a Taylor polynomial in powers of A^4 (Paterson and Stockmeyer), squared `s` times,
    with `s` per matrix."""
    if 0 in x.shape:
        return x
    wide = x.dtype if x.dtype in _LARGEST_NORM else "float32"
    given, rank = cast_to(x, wide), x.ndim
    norm = apply("max", apply("sum", apply("abs", given), axis=[rank - 2]), axis=[rank - 2])
    steps = apply("ceil", apply("log2", apply("divide", norm, const(_LARGEST_NORM[wide], wide))))
    steps = apply("where", apply("isfinite", steps), apply("maximum", steps, const(0.0, wide)), const(0.0, wide))
    columns = apply("expand_dims", steps, [rank - 2, rank - 1])
    scaled = apply("multiply", given, apply("exp2", apply("negative", columns)))
    square = apply("matmul", scaled, scaled)
    powers = [_identity(given, known(x.shape)[-1]), scaled, square, apply("matmul", square, scaled)]
    fourth = apply("matmul", square, square)

    def part(first: int) -> Value:
        """Terms from `first` on, divided by A to the power of `first`."""
        terms = [
            apply("multiply", power, const(1 / factorial(first + k), wide))
            for k, power in enumerate(powers)
            if first + k <= _DEGREE
        ]
        total = terms[0]
        for term in terms[1:]:
            total = apply("add", total, term)
        return total

    result = part(_DEGREE // 4 * 4)
    for first in reversed(range(0, _DEGREE // 4 * 4, 4)):
        result = apply("add", apply("matmul", result, fourth), part(first))
    most = apply("max", apply("reshape", steps, (-1,)), axis=[0])

    def squared(step: Value, current: Value, columns: Value, most: Value) -> tuple[Value, Value]:
        is_left = apply("less", step, columns)
        following = apply("where", is_left, apply("matmul", current, current), current)
        return apply("add", step, const(1.0, wide)), following

    def is_left(step: Value, current: Value, columns: Value, most: Value) -> Value:
        return apply("less", step, most)

    found = cx.builder.emit_while(is_left, squared, [const(0.0, wide), result], [columns, most])
    return cast_to(cast("tuple[Value, Value]", found)[1], x.dtype)
