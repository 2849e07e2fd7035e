"""Matrix factorizations and solvers, on the last two axes; one thread factorizes a matrix.

Source: G. H. Golub and C. F. Van Loan, Matrix Computations, 4th edition; formats and signs of LAPACK.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import nan
from typing import Final

from weft.texpr import math
from weft.texpr.expr import Expr, bits, error
from weft.texpr.extern import Result, Statements, Written, extern
from weft.texpr.ops.arguments import compute, constant, floating, integral, one_dtype, shaped
from weft.texpr.ops.elementwise import abs as absolute
from weft.texpr.ops.elementwise import cast as converted
from weft.texpr.ops.rearrangements import swapaxes
from weft.texpr.ops.reductions import sum as total
from weft.texpr.shapes import Extent, agree, is_same, shape_text
from weft.texpr.tensor import Tensor

__all__ = ["cholesky", "eigh", "householder_factors", "householder_product", "lu", "lu_solve"]
__all__ += ["solve_triangular", "svd"]

_SWEEPS: Final = 30
"""The number of sweeps of Jacobi's method; less than 15 suffice for matrices of practical size."""
_LEAST: Final = 1e-300


def _matrices(value: object, what: str) -> Tensor:
    source = floating(value, what)
    if source.ndim < 2:
        raise error(f"{what} must have rank 2 or more, got {source.name} of shape {shape_text(source.shape)}")
    if bits(source.dtype) < 32:
        raise error(f"{what} must hold float32 or float64, {source.name} is {source.dtype}: use te.ops.cast")
    return source


def _square(value: object, what: str) -> Tensor:
    source = _matrices(value, what)
    if not agree(source.shape[-1], source.shape[-2]):
        raise error(f"{what} must be square, got {source.name} of shape {shape_text(source.shape)}")
    return source


def _least_extent(what: str, source: Tensor) -> Extent:
    rows, columns = source.shape[-2:]
    if isinstance(rows, int) and isinstance(columns, int):
        return min(rows, columns)
    if is_same(rows, columns):
        return rows
    raise error(f"{what}: whether {source.name} of shape {shape_text(source.shape)} has more rows is not known")


def _copy(code: Statements, at: Sequence[Expr], source: Tensor, result: Written) -> None:
    with code.loops(source.shape[-2:], ["r", "c"]) as (r, c):
        result.store(source(*at, r, c).astype(result.dtype), *at, r, c)


def _finished(tensor: Tensor, dtype: str, name: str) -> Tensor:
    return tensor if tensor.dtype == dtype else converted(tensor, dtype, name=name)


def _balanced(source: Tensor, name: str) -> tuple[Tensor, Tensor | None]:
    """Matrices scaled by powers of two, so that squares neither overflow nor underflow, and the inverse scale. float32
    is computed in float64, unscaled (None).
    """
    if source.dtype != "float64":
        return source, None
    sizes = total(absolute(source, name=f"{name}_sizes"), (-2, -1), name=f"{name}_size")

    def power(sign: float) -> Tensor:
        def of(*i: Expr) -> Expr:
            small = math.select(
                sizes(*i) < 2.0**-500, constant(2.0 ** (600 * sign), "float64"), constant(1.0, "float64")
            )
            return math.select(sizes(*i) > 2.0**500, constant(2.0 ** (-600 * sign), "float64"), small)

        return compute(source.shape[:-2], of, f"{name}_power" if sign > 0 else f"{name}_inverse")

    factor = power(1.0)
    return compute(source.shape, lambda *i: source(*i) * factor(*i[:-2]), f"{name}_balanced"), power(-1.0)


def _scaled_back(values: Tensor, inverse: Tensor | None, name: str) -> Tensor:
    if inverse is None:
        return values
    return compute(values.shape, lambda *i: values(*i) * inverse(*i[:-1]), f"{name}_scaled_back")


def lu(data: Tensor, *, name: str = "lu") -> tuple[Tensor, Tensor]:
    """LU factorization P A = L U by Gaussian elimination with partial pivoting.

    The first result contains U, and below it L without its unit diagonal; the second the row exchanged with row k at
    step k. A pivot of 0 leaves zeros below it, as LAPACK's getrf.

    Dtypes: float32, float64; rows are int64.
    Equals: `scipy.linalg.lu_factor(data)`.
    """
    source = _matrices(data, "lu: data")
    rows, columns = source.shape[-2:]
    steps, batch, dtype = _least_extent("lu", source), source.shape[:-2], source.dtype

    def write(code: Statements, at: Sequence[Expr], factors: Written, pivots: Written, pivot: Written) -> None:
        _copy(code, at, source, factors)
        with code.loop(steps, "k") as k:
            pivot.store(k, *at)
            with code.loop(rows - k - 1, "r") as r:
                row = k + 1 + r
                size, most = (math.abs(factors.load(*at, i, k)) for i in (row, pivot.load(*at)))
                with code.when(size > most):
                    pivot.store(row, *at)
            best = pivot.load(*at)
            pivots.store(best, *at, k)
            with code.when(math.not_equal(best, k)), code.loop(columns, "c") as c:
                one, other = factors.load(*at, k, c), factors.load(*at, best, c)
                factors.store(other, *at, k, c)
                factors.store(one, *at, best, c)
            divisor = factors.load(*at, k, k)
            with code.loop(rows - k - 1, "r") as r:
                row = k + 1 + r
                quotient = factors.load(*at, row, k) / math.select(divisor == 0.0, constant(1.0, dtype), divisor)
                factors.store(quotient, *at, row, k)
                with code.loop(columns - k - 1, "c") as c:
                    column = k + 1 + c
                    rest = factors.load(*at, row, column) - quotient * factors.load(*at, k, column)
                    factors.store(rest, *at, row, column)

    results = [
        Result(source.shape, dtype, name),
        Result((*batch, steps), "int64", f"{name}_pivots"),
        Result(batch, "int64", f"{name}_pivot"),
    ]
    factors, pivots, _ = extern(batch, results, [source], write, name)
    return factors, pivots


def lu_solve(factors: Tensor, pivots: Tensor, rhs: Tensor, *, name: str = "lu_solve") -> Tensor:
    """The solutions X of A X = rhs, from `lu` of A.

    Dtypes: float32, float64, one for factors and rhs; pivots are integers.
    Equals: `scipy.linalg.lu_solve((factors, pivots), rhs)`.
    """
    source, given = _square(factors, "lu_solve: factors"), _matrices(rhs, "lu_solve: rhs")
    order = shaped(integral(pivots, "lu_solve: pivots"), "lu_solve: pivots", source.shape[:-1])
    dtype = one_dtype("lu_solve", source, given)
    given = shaped(given, "lu_solve: rhs", (*source.shape[:-1], given.shape[-1]))
    batch, size, columns = source.shape[:-2], source.shape[-1], given.shape[-1]

    def write(code: Statements, at: Sequence[Expr], found: Written) -> None:
        _copy(code, at, given, found)
        with code.loop(size, "k") as k:
            row = order(*at, k).astype("int64")
            with code.when(math.not_equal(row, k)), code.loop(columns, "c") as c:
                one, other = found.load(*at, k, c), found.load(*at, row, c)
                found.store(other, *at, k, c)
                found.store(one, *at, row, c)
        _substitute(code, at, source, found, size, columns, upper=False, unit=True)
        _substitute(code, at, source, found, size, columns, upper=True, unit=False)

    return extern(batch, [Result(given.shape, dtype, name)], [source, order, given], write, name)[0]


def _substitute(
    code: Statements,
    at: Sequence[Expr],
    matrix: Tensor,
    found: Written,
    size: Extent,
    columns: Extent,
    *,
    upper: bool,
    unit: bool,
) -> None:
    with code.loop(size, "k") as k:
        row = size - 1 - k if upper else k
        with code.loop(k, "j") as j:
            other = row + 1 + j if upper else j
            factor = matrix(*at, row, other)
            with code.loop(columns, "c") as c:
                found.store(found.load(*at, row, c) - factor * found.load(*at, other, c), *at, row, c)
        if not unit:
            divisor = matrix(*at, row, row)
            with code.loop(columns, "c") as c:
                found.store(found.load(*at, row, c) / divisor, *at, row, c)


def solve_triangular(
    matrix: Tensor, rhs: Tensor, lower: bool = True, unit_diagonal: bool = False, *, name: str = "solve_triangular"
) -> Tensor:
    """The solutions X of A X = rhs for a triangular A, of which only the triangle is read, without a unit diagonal.

    Dtypes: float32, float64, one for both.
    Equals: `scipy.linalg.solve_triangular(matrix, rhs, lower=lower, unit_diagonal=unit_diagonal)`.
    """
    source, given = _square(matrix, "solve_triangular: matrix"), _matrices(rhs, "solve_triangular: rhs")
    dtype = one_dtype("solve_triangular", source, given)
    given = shaped(given, "solve_triangular: rhs", (*source.shape[:-1], given.shape[-1]))
    batch, size, columns = source.shape[:-2], source.shape[-1], given.shape[-1]

    def write(code: Statements, at: Sequence[Expr], found: Written) -> None:
        _copy(code, at, given, found)
        _substitute(code, at, source, found, size, columns, upper=not lower, unit=unit_diagonal)

    return extern(batch, [Result(given.shape, dtype, name)], [source, given], write, name)[0]


def cholesky(data: Tensor, *, name: str = "cholesky") -> tuple[Tensor, Tensor]:
    """The lower triangular L with L L^T = A of symmetric positive definite matrices, of which the lower triangle is
    read; and the order of the first leading minor that is not positive, or 0. L is NaN from that row on.

    Dtypes: float32, float64; orders are int64.
    Equals: `np.linalg.cholesky(data)`.
    """
    source = _square(data, "cholesky: data")
    batch, size, dtype = source.shape[:-2], source.shape[-1], source.dtype

    def write(code: Statements, at: Sequence[Expr], found: Written, minor: Written) -> None:
        minor.store(0, *at)
        with code.loop(size, "r") as r:
            with code.loop(size, "c") as c:
                found.store(math.select(c <= r, source(*at, r, c), constant(0.0, dtype)), *at, r, c)
            with code.loop(r + 1, "c") as c:
                with code.loop(c, "k") as k:
                    rest = found.load(*at, r, c) - found.load(*at, r, k) * found.load(*at, c, k)
                    found.store(rest, *at, r, c)
                with code.when(c < r):
                    found.store(found.load(*at, r, c) / found.load(*at, c, c), *at, r, c)
            square = found.load(*at, r, r)
            is_positive = square > 0.0
            with code.when(math.logical_not(is_positive) & math.equal(minor.load(*at), constant(0, "int64"))):
                minor.store(r + 1, *at)
            found.store(math.select(is_positive, math.sqrt(square), constant(nan, dtype)), *at, r, r)

    results = [Result(source.shape, dtype, name), Result(batch, "int64", f"{name}_minor")]
    found, minor = extern(batch, results, [source], write, name)
    return found, minor


def householder_factors(data: Tensor, *, name: str = "householder_factors") -> tuple[Tensor, Tensor]:
    """A = Q R in the format of LAPACK's geqrf. The first result contains R and, below it, the vectors v without leading
    ones of the reflections H = I - tau v v^T whose product is Q; the second the values of tau.

    Dtypes: float32, float64.
    Equals: `np.linalg.qr(data, "raw")`, transposed.
    """
    source = _matrices(data, "householder_factors: data")
    rows, columns = source.shape[-2:]
    steps, batch, dtype = _least_extent("householder_factors", source), source.shape[:-2], source.dtype

    def write(code: Statements, at: Sequence[Expr], found: Written, taus: Written, total: Written) -> None:
        _copy(code, at, source, found)
        with code.loop(steps, "k") as k:
            below = rows - k - 1
            total.store(constant(0.0, "float64"), *at)
            with code.loop(below, "r") as r:
                value = found.load(*at, k + 1 + r, k).astype("float64")
                total.store(total.load(*at) + value * value, *at)
            first, rest = found.load(*at, k, k).astype("float64"), total.load(*at)
            is_zero = rest == 0.0
            norm = math.sqrt(first * first + rest)
            beta = math.select(is_zero, first, math.select(first > 0.0, -norm, norm))
            one = constant(1.0, "float64")
            tau = math.select(is_zero, 0.0, (beta - first) / math.select(is_zero, one, beta))
            scale = 1.0 / math.select(is_zero, one, first - beta)
            taus.store(tau.astype(dtype), *at, k)
            found.store(beta.astype(dtype), *at, k, k)
            with code.loop(below, "r") as r:
                row = k + 1 + r
                found.store((found.load(*at, row, k).astype("float64") * scale).astype(dtype), *at, row, k)
            with code.loop(columns - k - 1, "c") as c:
                column = k + 1 + c
                _reflect(code, at, found, total, found, tau, k, below, column, dtype)

    results = [
        Result(source.shape, dtype, name),
        Result((*batch, steps), dtype, f"{name}_tau"),
        Result(batch, "float64", f"{name}_total"),
    ]
    found, taus, _ = extern(batch, results, [source], write, name)
    return found, taus


def _reflect(
    code: Statements,
    at: Sequence[Expr],
    found: Written,
    total: Written,
    vectors: Written | Tensor,
    tau: Expr,
    k: Expr,
    below: Extent | Expr,
    column: Expr,
    dtype: str,
) -> None:
    """Apply I - tau v v^T to a column; v is 0 above row k, 1 there, and column k of `vectors` below."""

    def entry(row: Expr) -> Expr:
        value = vectors(*at, row, k) if isinstance(vectors, Tensor) else vectors.load(*at, row, k)
        return value.astype("float64")

    total.store(found.load(*at, k, column).astype("float64"), *at)
    with code.loop(below, "r") as r:
        row = k + 1 + r
        total.store(total.load(*at) + entry(row) * found.load(*at, row, column).astype("float64"), *at)
    step = tau * total.load(*at)
    found.store((found.load(*at, k, column).astype("float64") - step).astype(dtype), *at, k, column)
    with code.loop(below, "r") as r:
        row = k + 1 + r
        moved = found.load(*at, row, column).astype("float64") - step * entry(row)
        found.store(moved.astype(dtype), *at, row, column)


def householder_product(
    vectors: Tensor, tau: Tensor, columns: int | None = None, *, name: str = "householder_product"
) -> Tensor:
    """The first `columns` of the product of reflections of `householder_factors`; by default, those of `vectors`.

    Dtypes: float32, float64, one for both.
    Equals: `torch.linalg.householder_product(vectors, tau)`.
    """
    source, factors = _matrices(vectors, "householder_product: vectors"), floating(tau, "householder_product: tau")
    dtype = one_dtype("householder_product", source, factors)
    batch, rows, width = source.shape[:-2], source.shape[-2], source.shape[-1] if columns is None else columns
    steps = factors.shape[-1] if factors.ndim else 0
    shaped(factors, "householder_product: tau", (*batch, steps))
    if isinstance(width, int) and isinstance(rows, int) and width > rows:
        raise error(f"householder_product: {width} columns of a product of {rows} rows")

    def write(code: Statements, at: Sequence[Expr], found: Written, total: Written) -> None:
        one, zero = constant(1.0, dtype), constant(0.0, dtype)
        with code.loops([rows, width], ["r", "c"]) as (r, c):
            found.store(math.select(math.equal(r, c), one, zero), *at, r, c)
        with code.loop(steps, "s") as s:
            k = steps - 1 - s
            with code.loop(width, "c") as c:
                factor = factors(*at, k).astype("float64")
                _reflect(code, at, found, total, source, factor, k, rows - k - 1, c, dtype)

    results = [Result((*batch, rows, width), dtype, name), Result(batch, "float64", f"{name}_total")]
    return extern(batch, results, [source, factors], write, name)[0]


def _rotation(one: Expr, other: Expr, product: Expr) -> tuple[Expr, Expr]:
    """Sine and cosine that make two vectors orthogonal, from squared norms and inner product."""
    slope = (other - one) / (2.0 * product)
    root = math.abs(slope) + math.sqrt(1.0 + slope * slope)
    tangent = math.select(slope < 0.0, -1.0 / root, 1.0 / root)
    cosine = 1.0 / math.sqrt(1.0 + tangent * tangent)
    return tangent * cosine, cosine


def _rotate(
    code: Statements, at: Sequence[Expr], result: Written, rows: Extent, p: Expr, q: Expr, turn: tuple[Expr, Expr]
) -> None:
    sine, cosine = turn
    with code.loop(rows, "r") as r:
        one, other = result.load(*at, r, p), result.load(*at, r, q)
        result.store(cosine * one - sine * other, *at, r, p)
        result.store(sine * one + cosine * other, *at, r, q)


def _sort_columns(
    code: Statements,
    at: Sequence[Expr],
    values: Written,
    place: Written,
    matrices: Sequence[tuple[Written, Extent]],
    size: Extent,
    *,
    descending: bool,
) -> None:
    with code.loop(size, "k") as k:
        place.store(k, *at)
        with code.loop(size - k - 1, "j") as j:
            one, other = values.load(*at, place.load(*at)), values.load(*at, k + 1 + j)
            with code.when(other > one if descending else other < one):
                place.store(k + 1 + j, *at)
        best = place.load(*at)
        first, second = values.load(*at, k), values.load(*at, best)
        values.store(second, *at, k)
        values.store(first, *at, best)
        for matrix, rows in matrices:
            with code.loop(rows, "r") as r:
                left, right = matrix.load(*at, r, k), matrix.load(*at, r, best)
                matrix.store(right, *at, r, k)
                matrix.store(left, *at, r, best)


def _fix_signs(
    code: Statements,
    at: Sequence[Expr],
    vectors: Written,
    place: Written,
    rows: Extent,
    columns: Extent,
    others: Sequence[tuple[Written, Extent]] = (),
) -> None:
    """Negate columns whose entry of greatest magnitude is negative."""
    with code.loop(columns, "k") as k:
        place.store(0, *at)
        with code.loop(rows, "r") as r:
            size, most = (math.abs(vectors.load(*at, row, k)) for row in (r, place.load(*at)))
            with code.when(size > most):
                place.store(r, *at)
        with code.when(vectors.load(*at, place.load(*at), k) < 0.0):
            for matrix, extent in ((vectors, rows), *others):
                with code.loop(extent, "r") as r:
                    matrix.store(-matrix.load(*at, r, k), *at, r, k)


def _store_identity(code: Statements, at: Sequence[Expr], result: Written, size: Extent) -> None:
    with code.loops([size, size], ["r", "c"]) as (r, c):
        one, zero = constant(1.0, result.dtype), constant(0.0, result.dtype)
        result.store(math.select(math.equal(r, c), one, zero), *at, r, c)


def eigh(data: Tensor, lower: bool = True, *, name: str = "eigh") -> tuple[Tensor, Tensor]:
    """The eigenvalues of symmetric matrices, ascending, and orthonormal eigenvectors as columns, by Jacobi's method in
    float64. Reads the lower triangle, or the upper with `lower=False`. A vector's entry of greatest magnitude is
    positive; the basis for a repeated eigenvalue is not specified.

    Dtypes: float32, float64.
    Equals: `np.linalg.eigh(data)`.
    """
    source, inverse = _balanced(_square(data, "eigh: data"), name)
    batch, size, dtype = source.shape[:-2], source.shape[-1], source.dtype

    def write(
        code: Statements, at: Sequence[Expr], values: Written, vectors: Written, work: Written, place: Written
    ) -> None:
        with code.loops([size, size], ["r", "c"]) as (r, c):
            is_own = c <= r if lower else c >= r
            value = math.select(is_own, source(*at, r, c), source(*at, c, r))
            work.store(value.astype("float64"), *at, r, c)
        _store_identity(code, at, vectors, size)
        with code.loop(_SWEEPS, "sweep"), code.loop(size, "p") as p, code.loop(size - p - 1, "j") as j:
            q = p + 1 + j
            one, other, product = work.load(*at, p, p), work.load(*at, q, q), work.load(*at, p, q)
            limit = 1e-17 * math.sqrt(math.abs(one) * math.abs(other)) + _LEAST
            with code.when(math.abs(product) > limit):
                sine, cosine = _rotation(one, other, product)
                _rotate(code, at, work, size, p, q, (sine, cosine))
                with code.loop(size, "c") as c:
                    left, right = work.load(*at, p, c), work.load(*at, q, c)
                    work.store(cosine * left - sine * right, *at, p, c)
                    work.store(sine * left + cosine * right, *at, q, c)
                _rotate(code, at, vectors, size, p, q, (sine, cosine))
        with code.loop(size, "k") as k:
            values.store(work.load(*at, k, k), *at, k)
        _sort_columns(code, at, values, place, [(vectors, size)], size, descending=False)
        _fix_signs(code, at, vectors, place, size, size)

    wide = "float64"
    results = [
        Result((*batch, size), wide, f"{name}_wide" if dtype != wide else name),
        Result(source.shape, wide, f"{name}_wide_vectors" if dtype != wide else f"{name}_vectors"),
        Result(source.shape, wide, f"{name}_work"),
        Result(batch, "int64", f"{name}_place"),
    ]
    values, vectors, *_ = extern(batch, results, [source], write, name)
    return _finished(_scaled_back(values, inverse, name), dtype, name), _finished(vectors, dtype, f"{name}_vectors")


def svd(data: Tensor, full_matrices: bool = False, *, name: str = "svd") -> tuple[Tensor, Tensor, Tensor]:
    """The singular value decomposition A = U diag(S) V^T, S descending: U, S and V^T, by one-sided Jacobi in float64.

    U and V have a column per value, or are square with `full_matrices`. The entry of greatest magnitude of a column of
    V, or of U if that has fewer rows, is positive; the basis for a repeated value, and additional columns, are not
    specified.

    Dtypes: float32, float64.
    Equals: `np.linalg.svd(data, full_matrices)`.
    """
    source = _matrices(data, "svd: data")
    rows, columns = source.shape[-2:]
    if _least_extent("svd", source) is not columns and not is_same(_least_extent("svd", source), columns):
        turned = swapaxes(source, -1, -2, name=f"{name}_turned")
        u, values, v = svd(turned, full_matrices, name=f"{name}_of_turned")
        return swapaxes(v, -1, -2, name=f"{name}_u"), values, swapaxes(u, -1, -2, name=f"{name}_v")
    if full_matrices and not isinstance(rows, int):
        raise error(f"svd: full_matrices needs a number of rows, {source.name} has {rows}")
    width = rows if full_matrices and isinstance(rows, int) else None
    source, inverse = _balanced(source, name)
    batch, dtype, wide = source.shape[:-2], source.dtype, "float64"

    def write(
        code: Statements,
        at: Sequence[Expr],
        values: Written,
        scaled: Written,
        right: Written,
        sums: Written,
        place: Written,
    ) -> None:
        _copy(code, at, source, scaled)
        _store_identity(code, at, right, columns)

        def products(pairs: Sequence[tuple[Expr, Expr]]) -> list[Expr]:
            for number in range(len(pairs)):
                sums.store(constant(0.0, wide), *at, number)
            with code.loop(rows, "r") as r:
                for number, (p, q) in enumerate(pairs):
                    term = scaled.load(*at, r, p) * scaled.load(*at, r, q)
                    sums.store(sums.load(*at, number) + term, *at, number)
            return [sums.load(*at, number) for number in range(len(pairs))]

        with code.loop(_SWEEPS, "sweep"), code.loop(columns, "p") as p, code.loop(columns - p - 1, "j") as j:
            q = p + 1 + j
            one, other, product = products([(p, p), (q, q), (p, q)])
            with code.when(math.abs(product) > 1e-16 * math.sqrt(one) * math.sqrt(other) + _LEAST):
                turn = _rotation(one, other, product)
                _rotate(code, at, scaled, rows, p, q, turn)
                _rotate(code, at, right, columns, p, q, turn)
        with code.loop(columns, "k") as k:
            (square,) = products([(k, k)])
            values.store(math.sqrt(square), *at, k)
        _sort_columns(code, at, values, place, [(scaled, rows), (right, columns)], columns, descending=True)
        _fix_signs(code, at, right, place, columns, columns, [(scaled, rows)])

    results = [
        Result((*batch, columns), wide, f"{name}_wide"),
        Result(source.shape, wide, f"{name}_scaled"),
        Result((*batch, columns, columns), wide, f"{name}_right"),
        Result((*batch, 3), wide, f"{name}_sums"),
        Result(batch, "int64", f"{name}_place"),
    ]
    values, scaled, right, *_ = extern(batch, results, [source], write, name)
    # The scaled vectors are orthogonal: R is diagonal, and Q extends them to a basis.
    factors, tau = householder_factors(scaled, name=f"{name}_factors")
    basis = householder_product(factors, tau, width, name=f"{name}_basis")

    def left(*i: Expr) -> Expr:
        column = math.select(i[-1] < columns, i[-1], 0)
        is_negative = (i[-1] < columns) & (factors(*i[:-2], column, column) < 0.0)
        found = basis(*i)
        return math.select(is_negative, -found, found).astype(dtype)

    u = compute(basis.shape, left, f"{name}_u")
    v = compute((*batch, columns, columns), lambda *i: right(*i[:-2], i[-1], i[-2]).astype(dtype), f"{name}_v")
    return u, _finished(_scaled_back(values, inverse, name), dtype, f"{name}_values"), v
