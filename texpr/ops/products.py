"""Products of matrices: matmul, batch_matmul, dense."""

from __future__ import annotations

from weft.texpr.expr import Expr
from weft.texpr.ops.arguments import compute, numeric, one_dtype, ranked, result_dtype, shaped, sum_dtype
from weft.texpr.ops.arithmetic import add
from weft.texpr.ops.broadcasting import broadcast_shape, read_broadcast
from weft.texpr.ops.extents import is_same, shape_text
from weft.texpr.places import error
from weft.texpr.reductions import reduce_axis
from weft.texpr.reductions import sum as sum_over
from weft.texpr.shapes import Extent
from weft.texpr.tensor import Tensor

__all__ = ["batch_matmul", "dense", "matmul"]


def matmul(
    tensor_a: Tensor,
    tensor_b: Tensor,
    transpose_a: bool = False,
    transpose_b: bool = False,
    out_dtype: object = None,
    *,
    name: str = "matmul",
) -> Tensor:
    """The product of matrices (m, k) and (k, n), in dimensions before these broadcast; vectors as in NumPy.

    A transposed operand is given as (k, m) or (n, k). With `out_dtype`, products and sums are formed in it: int8
    matrices give exact int32 results. Floats of 16 bits are summed in float32. Raises CompileError for extents and
    dtypes that differ, and for scalars.

    Dtypes: numbers.
    Equals: `np.matmul(a, b)`, with `np.swapaxes(a, -1, -2)` for a transposed `a`.
    """
    a, b = numeric(tensor_a, "matmul: tensor_a"), numeric(tensor_b, "matmul: tensor_b")
    dtype = result_dtype(out_dtype, one_dtype("matmul", a, b))
    return product_of("matmul", a, b, transpose_a, transpose_b, dtype, name)


def product_of(what: str, a: Tensor, b: Tensor, transpose_a: bool, transpose_b: bool, dtype: str, name: str) -> Tensor:
    """`matmul` for the operator `what`, of tensors that may have different dtypes."""
    for tensor in (a, b):
        if tensor.ndim == 0:
            raise error(f"{what} takes vectors and matrices, {tensor.name} has rank 0")
    sums = sum_dtype(dtype)
    inner_a = a.ndim - 2 if transpose_a and a.ndim > 1 else a.ndim - 1
    inner_b = b.ndim - 1 if transpose_b or b.ndim == 1 else b.ndim - 2
    if not is_same(a.shape[inner_a], b.shape[inner_b]):
        raise error(
            f"{what}: {a.name} of shape {shape_text(a.shape)} has {a.shape[inner_a]} elements in axis {inner_a}, "
            f"{b.name} of shape {shape_text(b.shape)} has {b.shape[inner_b]} in axis {inner_b}"
        )
    rows: list[Extent] = [a.shape[2 * a.ndim - 3 - inner_a]] if a.ndim > 1 else []
    columns: list[Extent] = [b.shape[2 * b.ndim - 3 - inner_b]] if b.ndim > 1 else []
    batch = broadcast_shape(what, a.shape[:-2], b.shape[:-2])
    k = reduce_axis((0, a.shape[inner_a]), "k")

    def element(*indices: Expr) -> Expr:
        outer, inner = indices[: len(batch)], indices[len(batch) :]
        row, column = inner[: len(rows)], inner[len(rows) :]
        x = _element(a, batch, outer, (*row, k) if inner_a == a.ndim - 1 else (k, *row))
        y = _element(b, batch, outer, (*column, k) if inner_b == b.ndim - 1 else (k, *column))
        return sum_over(x.astype(sums) * y.astype(sums), axis=k).astype(dtype)

    names = [*(f"b{d}" for d in range(len(batch))), *["i"] * len(rows), *["j"] * len(columns)]
    return compute((*batch, *rows, *columns), element, name, names)


def _element(tensor: Tensor, batch: tuple[Extent, ...], outer: tuple[Expr, ...], inner: tuple[Expr, ...]) -> Expr:
    """The element of a matrix of a batch that is broadcast."""
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
    """The products of matrices of two batches, (b, m, k) and (b, n, k), where b may be 1 in one of them.

    As in topi, the second operand is transposed unless `transpose_b=False`. See `matmul`.

    Dtypes: numbers.
    Equals: `np.matmul(a, np.swapaxes(b, 1, 2))`.
    """
    a, b = ranked(tensor_a, "batch_matmul: tensor_a", 3), ranked(tensor_b, "batch_matmul: tensor_b", 3)
    return matmul(a, b, transpose_a, transpose_b, out_dtype, name=name)


def dense(
    data: Tensor, weight: Tensor, bias: Tensor | None = None, out_dtype: object = None, *, name: str = "dense"
) -> Tensor:
    """A linear layer: data (..., in) times weight (out, in) transposed, plus bias (out,).

    The bias is added by a stage of its own. Dtypes and sums as in `matmul`.

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
