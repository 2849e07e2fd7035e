"""Complex factorizations and triangular systems, by real ones of `te.ops`.

Element a + b i becomes the block [[a, -b], [b, a]], which keeps products of matrices. The real Cholesky factor consists
of the blocks of the complex one, whose diagonal is real. A triangular matrix stays triangular if its diagonal is real:
rows are divided by their diagonal elements first.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

from weft.passes.convert.stablehlo_library import on_tensors
from weft.passes.convert.stablehlo_values import Composed, Parts, Value, element_of
from weft.texpr import math as te
from weft.texpr.expr import Expr, ExprLike, as_expr
from weft.texpr.ops.arguments import compute, constant
from weft.texpr.shapes import simplified
from weft.texpr.stablehlo import on_elements
from weft.texpr.stablehlo_complex import PARTS, complex_elementwise
from weft.texpr.tensor import Tensor


def on_complex_matrices(name: str, *operands: Any, **attributes: Any) -> Any:
    """Computes an operator of `te.ops`, or `conjugate`; other operands are those of `on_tensors`."""
    if not isinstance(operands[0], Parts):
        return on_tensors(name, *operands, **attributes)
    value, *rest = operands
    match name:
        case "swapaxes":
            real, imaginary = (on_tensors(name, side, *rest) for side in value.both)
            return Parts(real, imaginary, value.dtype)
        case "conjugate":
            source = value.imaginary
            negated = compute(source.shape, lambda *i: on_elements("negative", element_of(source, i)), name)
            return Parts(value.real, negated, value.dtype)
        case "cholesky":
            return _cholesky(value)
        case _:
            return _solved(value, cast("Parts", rest[0]), **attributes)


def _blocks(value: Parts, diagonal: float | None, name: str) -> Tensor:
    """Real matrices of complex ones, whose diagonal elements are `diagonal`, or real if None."""
    dtype = PARTS[value.dtype]
    zero = constant(0.0, dtype)

    def element(*indices: Expr) -> Expr:
        *batch, row, column = indices
        at = (*batch, row // 2, column // 2)
        real, imaginary = (element_of(side, at) for side in value.both)
        beside = te.select(row % 2 > column % 2, imaginary, on_elements("negative", imaginary))
        is_diagonal = te.equal(row // 2, column // 2)
        own = te.select(is_diagonal, constant(diagonal, dtype), real) if diagonal is not None else real
        return te.select(te.equal(row % 2, column % 2), own, te.select(is_diagonal, zero, beside))

    *batch, rows, columns = value.shape
    return compute((*batch, simplified(rows * 2), simplified(columns * 2)), element, name)


def _of_rows(tensor: Tensor, like: Value, column: int, dtype: str) -> Parts:
    """Complex matrices with parts in alternating rows and every `column`-th column."""

    def side(number: int) -> Composed:
        def element(indices: Sequence[ExprLike]) -> Expr:
            *batch, r, c = map(as_expr, indices)
            return tensor(*batch, r * 2 + number, c * column)

        return Composed(element, tuple(like.shape), tensor.dtype)

    return Parts(side(0), side(1), dtype)


def _cholesky(matrix: Parts) -> tuple[Parts, Tensor]:
    factor, minor = on_tensors("cholesky", _blocks(matrix, None, "cholesky_blocks"))
    order = compute(minor.shape, lambda *i: (minor(*i) + 1) // 2, "cholesky_minor")
    return _of_rows(factor, matrix, 2, matrix.dtype), order


def _solved(matrix: Parts, given: Parts, *, lower: bool, unit_diagonal: bool) -> Parts:
    def quotient(value: Parts, *, is_own: bool) -> Parts:
        def part(side: int) -> Tensor:
            def element(*i: Expr) -> Expr:
                pairs = (
                    tuple(element_of(one, at) for one in source.both)
                    for source, at in ((value, i), (matrix, (*i[:-1], i[-2])))
                )
                return complex_elementwise(on_elements, "stablehlo.divide", *pairs)[side]

            return compute(value.shape, element, "triangular_solve_matrix" if is_own else "triangular_solve_rhs")

        return Parts(part(0), part(1), value.dtype)

    if not unit_diagonal:
        matrix, given = quotient(matrix, is_own=True), quotient(given, is_own=False)
    *batch, rows, columns = given.shape

    def element(*i: Expr) -> Expr:
        real, imaginary = (element_of(side, (*i[:-2], i[-2] // 2, i[-1])) for side in given.both)
        return te.select(te.equal(i[-2] % 2, 0), real, imaginary)

    lines = compute((*batch, simplified(rows * 2), columns), element, "triangular_solve_lines")
    blocks = _blocks(matrix, 1.0, "triangular_solve_blocks")
    found = on_tensors("solve_triangular", blocks, lines, lower=lower, unit_diagonal=True)
    return _of_rows(found, given, 1, given.dtype)
