"""Matrix products, and sums of products by subscripts."""

from __future__ import annotations

from collections.abc import Sequence

from weft.dialects.graph_traits import Product, declare
from weft.support.argument_types import shown
from weft.texpr import reductions as te
from weft.texpr.expr import Expr, error
from weft.texpr.math import const, select
from weft.texpr.ops.arguments import (
    broadcast_shape,
    checked_axis,
    compute,
    floating,
    integral,
    is_one,
    numeric,
    one_dtype,
    product_dtype,
    ranked,
    read_broadcast,
    shaped,
    sum_dtype,
)
from weft.texpr.ops.elementwise import add
from weft.texpr.shapes import Extent, agree, is_same, known_of, shape_text
from weft.texpr.tensor import Tensor

__all__ = ["batch_matmul", "cross", "dense", "det", "einsum", "grouped_matmul", "matmul", "outer"]


def matmul(
    tensor_a: Tensor,
    tensor_b: Tensor,
    transpose_a: bool = False,
    transpose_b: bool = False,
    out_dtype: object = None,
    *,
    name: str = "matmul",
) -> Tensor:
    """The product of matrices (m, k) and (k, n), with broadcast leading dimensions; vectors as in NumPy.

    Transposed operands are (k, m) or (n, k). With `out_dtype`, operands are converted to it, and products and sums
    formed in it: uint8 and int8 give exact int32 results.

    Dtypes: numbers.
    Equals: `np.matmul(a, b)`, with `np.swapaxes(a, -1, -2)` for a transposed `a`.
    """
    a, b = numeric(tensor_a, "matmul: tensor_a"), numeric(tensor_b, "matmul: tensor_b")
    dtype = product_dtype("matmul", out_dtype, a, b)
    return product_of("matmul", a, b, transpose_a, transpose_b, dtype, name)


def product_of(what: str, a: Tensor, b: Tensor, transpose_a: bool, transpose_b: bool, dtype: str, name: str) -> Tensor:
    for tensor in (a, b):
        if tensor.ndim == 0:
            raise error(f"{what} takes vectors and matrices, {tensor.name} has rank 0")
    sums = sum_dtype(dtype)
    inner_a = a.ndim - 2 if transpose_a and a.ndim > 1 else a.ndim - 1
    inner_b = b.ndim - 1 if transpose_b or b.ndim == 1 else b.ndim - 2
    _check_inner(what, a, inner_a, b, inner_b)
    rows: list[Extent] = [a.shape[2 * a.ndim - 3 - inner_a]] if a.ndim > 1 else []
    columns: list[Extent] = [b.shape[2 * b.ndim - 3 - inner_b]] if b.ndim > 1 else []
    batch = broadcast_shape(what, a.shape[:-2], b.shape[:-2])
    k = te.reduce_axis((0, a.shape[inner_a]), "k")

    def element(*indices: Expr) -> Expr:
        outer, inner = indices[: len(batch)], indices[len(batch) :]
        row, column = inner[: len(rows)], inner[len(rows) :]
        x = _element(a, batch, outer, (*row, k) if inner_a == a.ndim - 1 else (k, *row))
        y = _element(b, batch, outer, (*column, k) if inner_b == b.ndim - 1 else (k, *column))
        return te.sum(x.astype(sums) * y.astype(sums), axis=k).astype(dtype)

    names = [*(f"b{d}" for d in range(len(batch))), *["i"] * len(rows), *["j"] * len(columns)]
    return compute((*batch, *rows, *columns), element, name, names)


def _check_inner(what: str, a: Tensor, axis_a: int, b: Tensor, axis_b: int) -> None:
    if not agree(a.shape[axis_a], b.shape[axis_b]):
        raise error(
            f"{what}: {a.name} of shape {shape_text(a.shape)} has {a.shape[axis_a]} elements in axis {axis_a}, "
            f"{b.name} of shape {shape_text(b.shape)} has {b.shape[axis_b]} in axis {axis_b}"
        )


def _element(tensor: Tensor, batch: tuple[Extent, ...], outer: tuple[Expr, ...], inner: tuple[Expr, ...]) -> Expr:
    extents = tensor.shape[len(tensor.shape) - len(inner) :]
    if len(tensor.shape) == len(inner):
        return tensor(*inner)
    return read_broadcast(tensor, (*batch, *extents), (*outer, *inner))


def batch_matmul(
    tensor_a: Tensor,
    tensor_b: Tensor,
    transpose_a: bool = False,
    transpose_b: bool = True,
    out_dtype: object = None,
    *,
    name: str = "batch_matmul",
) -> Tensor:
    """The products of batches of matrices, (b, m, k) and (b, n, k), with b of 1 in at most one. As in topi, the second
    is transposed by default. See `matmul`.

    Dtypes: numbers.
    Equals: `np.matmul(a, np.swapaxes(b, 1, 2))`.
    """
    a, b = ranked(tensor_a, "batch_matmul: tensor_a", 3), ranked(tensor_b, "batch_matmul: tensor_b", 3)
    return matmul(a, b, transpose_a, transpose_b, out_dtype, name=name)


def dense(
    data: Tensor, weight: Tensor, bias: Tensor | None = None, out_dtype: object = None, *, name: str = "dense"
) -> Tensor:
    """A linear layer: data (..., in) times weight (out, in) transposed, plus bias (out,), a separate stage. Dtypes as
    in `matmul`.

    Dtypes: numbers.
    Equals: `data @ weight.T + bias`; `torch.nn.functional.linear(data, weight, bias)`.
    """
    ranked(weight, "dense: weight", 2)
    if bias is None:
        return matmul(data, weight, False, True, out_dtype, name=name)
    product = matmul(data, weight, False, True, out_dtype, name=f"{name}_matmul")
    shaped(bias, "dense: bias", weight.shape[:1])
    one_dtype("dense", product, bias)
    return add(product, bias, name=name)


def grouped_matmul(data: Tensor, weight: Tensor, ends: Tensor, *, name: str = "grouped_matmul") -> Tensor:
    """Products of groups of rows with a matrix per group: data (m, k), weight (groups, k, n), as in mixtures of experts
    for tokens sorted by expert.

    Group g has the rows from `ends[g - 1]`, or 0, to `ends[g]`; ends do not decrease. Rows after the last end give
    zero. Raises CompileError without groups.

    Dtypes: numbers; `ends` of an integer dtype.
    Equals: `np.concatenate([rows @ w for rows, w in zip(np.split(data, ends[:-1]), weight)])` where the last end is m.
    """
    rows = ranked(numeric(data, "grouped_matmul: data"), "grouped_matmul: data", 2)
    matrices = ranked(numeric(weight, "grouped_matmul: weight"), "grouped_matmul: weight", 3)
    groups, inner, columns = matrices.shape
    last = shaped(integral(ends, "grouped_matmul: ends"), "grouped_matmul: ends", (groups,))
    if is_same(groups, 0):
        raise error(f"grouped_matmul: {matrices.name} of shape {shape_text(matrices.shape)} has no group")
    _check_inner("grouped_matmul", rows, 1, matrices, 1)
    dtype = product_dtype("grouped_matmul", None, rows, matrices)
    sums = sum_dtype(dtype)
    g, k = te.reduce_axis((0, groups), "g"), te.reduce_axis((0, inner), "k")

    def group(i: Expr) -> Expr:
        is_before = select(last(g).astype("int64") <= i, const(1, "int64"), const(0, "int64"))
        return te.sum(is_before, axis=g)

    of_row = compute((rows.shape[0],), group, f"{name}_group", "i")

    def product(i: Expr, j: Expr) -> Expr:
        factor = matrices(te.min(of_row(i), groups - 1), k, j)
        return te.sum(rows(i, k).astype(sums) * factor.astype(sums), axis=k).astype(dtype)

    products = compute((rows.shape[0], columns), product, f"{name}_product", "ij")

    def element(i: Expr, j: Expr) -> Expr:
        return select(of_row(i) < groups, products(i, j), const(0, dtype))

    return compute(products.shape, element, name, "ij")


def outer(a: Tensor, b: Tensor, *, name: str = "outer") -> Tensor:
    """The outer product of two vectors.

    Dtypes: numbers.
    Equals: `np.outer(a, b)`.
    """
    x, y = (ranked(numeric(t, f"outer: {what}"), f"outer: {what}", 1) for what, t in (("a", a), ("b", b)))
    one_dtype("outer", x, y)

    def element(i: Expr, j: Expr) -> Expr:
        return x(i) * y(j)

    return compute((*x.shape, *y.shape), element, name, "ij")


def det(data: Tensor, *, name: str = "det") -> Tensor:
    """The determinants of matrices of 1 to 4 rows, the last two axes, expanded along the first row.

    16-bit floats use float32. Raises CompileError for other matrices.

    Dtypes: floats.
    Equals: `np.linalg.det(data)`.
    """
    source = floating(data, "det: data")
    size = source.shape[-1] if source.ndim >= 2 else None
    if not isinstance(size, int) or source.shape[-2] != size or not 1 <= size <= 4:
        raise error(f"det takes square matrices of 1 to 4 rows, got {source.name} of shape {shape_text(source.shape)}")
    wide = sum_dtype(source.dtype)

    def element(*i: Expr) -> Expr:
        rows = [[source(*i, r, c).astype(wide) for c in range(size)] for r in range(size)]
        return _determinant(rows).astype(source.dtype)

    return compute(source.shape[:-2], element, name)


def _determinant(rows: Sequence[Sequence[Expr]]) -> Expr:
    if len(rows) == 1:
        return rows[0][0]
    total, *rest = [x * _determinant([[*row[:c], *row[c + 1 :]] for row in rows[1:]]) for c, x in enumerate(rows[0])]
    for column, term in enumerate(rest):
        total = total + term if column % 2 else total - term
    return total


def cross(a: Tensor, b: Tensor, axis: int = -1, *, name: str = "cross") -> Tensor:
    """The cross products along an axis of 3 elements, counted in the result; other axes are broadcast.

    Dtypes: numbers.
    Equals: `np.linalg.cross(a, b, axis=axis)`.
    """
    x, y = numeric(a, "cross: a"), numeric(b, "cross: b")
    one_dtype("cross", x, y)
    shape = broadcast_shape("cross", x.shape, y.shape)
    along = checked_axis("cross", axis, len(shape))
    for tensor in (x, y):
        place = along - len(shape) + tensor.ndim
        if place < 0 or not agree(tensor.shape[place], 3):
            raise error(f"cross: axis {axis} of {tensor.name} of shape {shape_text(tensor.shape)} must have 3 elements")

    def element(*indices: Expr) -> Expr:
        def at(tensor: Tensor, step: int) -> Expr:
            place = (indices[along] + step) % 3
            return read_broadcast(tensor, shape, (*indices[:along], place, *indices[along + 1 :]))

        return at(x, 1) * at(y, 2) - at(x, 2) * at(y, 1)

    return compute(shape, element, name)


def einsum(subscripts: str, *tensors: Tensor, out_dtype: object = None, name: str = "einsum") -> Tensor:
    """The sum of products by subscripts: "ij,jk->ik" is a matrix product.

    A letter twice in an operand is a diagonal, one not in the result is summed over; extents of 1 are broadcast. One
    stage multiplies the operands in order. Sums are in `out_dtype` (that of the operands by default). Raises
    CompileError for subscripts without "->".

    Dtypes: numbers.
    Equals: `np.einsum(subscripts, *tensors)`.
    """
    inputs, output = _parsed(subscripts, len(tensors))
    given = [numeric(tensor, f"einsum: operand {position}") for position, tensor in enumerate(tensors)]
    dtype = product_dtype("einsum", out_dtype, *given)
    extents = _extents(subscripts, inputs, given)
    for letter in output:
        if letter not in extents or output.count(letter) > 1:
            raise error(f"einsum '{subscripts}': letter {letter} of the result is not once in it and in an operand")
    over = {letter: te.reduce_axis((0, extents[letter]), letter) for letter in extents if letter not in output}
    sums = sum_dtype(dtype)

    def element(*indices: Expr) -> Expr:
        at: dict[str, Expr] = {**dict(zip(output, indices, strict=True)), **over}
        product: Expr | None = None
        for letters, tensor in zip(inputs, given, strict=True):
            places = [
                0 if is_one(extent) and not is_one(extents[letter]) else at[letter]
                for letter, extent in zip(letters, tensor.shape, strict=True)
            ]
            factor = tensor(*places).astype(sums)
            product = factor if product is None else product * factor
        value = product if product is not None else given[0]()
        return (te.sum(value, axis=list(over.values())) if over else value).astype(dtype)

    return compute([extents[letter] for letter in output], element, name, list(output))


def _parsed(subscripts: object, count: int) -> tuple[list[str], str]:
    if not isinstance(subscripts, str) or subscripts.count("->") != 1:
        raise error(f"einsum: subscripts are explicit, as in 'ij,jk->ik', got {shown(subscripts)}")
    left, output = subscripts.replace(" ", "").split("->")
    inputs = left.split(",")
    if not all(part == "" or (part.isalpha() and part.isascii()) for part in (*inputs, output)):
        raise error(f"einsum: subscripts are letters, got {shown(subscripts)}")
    if len(inputs) != count:
        raise error(f"einsum '{subscripts}' is of {len(inputs)} operands, got {count}")
    return inputs, output


def _extents(subscripts: str, inputs: list[str], operands: list[Tensor]) -> dict[str, Extent]:
    extents: dict[str, Extent] = {}
    for letters, tensor in zip(inputs, operands, strict=True):
        if len(letters) != tensor.ndim:
            raise error(
                f"einsum '{subscripts}': '{letters}' has {len(letters)} letters, {tensor.name} of shape "
                f"{shape_text(tensor.shape)} has rank {tensor.ndim}"
            )
        for letter, extent in zip(letters, tensor.shape, strict=True):
            known = extents.setdefault(letter, extent)
            if is_one(known):
                extents[letter] = extent
            elif not is_one(extent):
                if not agree(known, extent):
                    raise error(f"einsum '{subscripts}': letter {letter} is {known} and {extent}")
                extents[letter] = known_of(known, extent)
    return extents


declare(Product(of_matrices=True), batch_matmul, dense, matmul)
