"""Ops of stablehlo and chlo on whole tensors, as formulas over operators of `te.ops`.

Source: the StableHLO specification, "Ops"; for `chlo.top_k` its expansion to a sort in StableHLO's passes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, TypeAlias, cast

from xdsl.dialects.builtin import ComplexType, TensorType
from xdsl.ir import Attribute, Operation

from weft.dialects.chlo import RaggedDotOp, TopKOp
from weft.dialects.element_types import element_name
from weft.dialects.stablehlo import KeyedAttr
from weft.dialects.stablehlo_library import (
    BatchNormOp,
    CholeskyOp,
    EinsumOp,
    TorchIndexSelectOp,
    TriangularSolveOp,
    UnaryEinsumOp,
)
from weft.support.errors import CompileError
from weft.texpr.expr import is_float
from weft.texpr.stablehlo import Apply, total_order

Value: TypeAlias = Any
Formula: TypeAlias = Callable[..., Any]
"""A function of `Apply`, the op and operands."""


def _type(op: Operation, position: int = 0) -> str:
    """A result's element type; that of the parts of complex numbers."""
    type_ = cast("TensorType[Attribute]", op.results[position].type)
    element = type_.element_type
    name = element_name(cast("Attribute", element.element_type) if isinstance(element, ComplexType) else element)
    if name is None:
        raise CompileError(f"elements of type {type_.element_type} are not supported")
    return name


def _dot(apply: Apply, op: Operation, left: Value, right: Value) -> Value:
    rank, other = len(left.shape), len(right.shape)
    if rank not in (1, 2) or other not in (1, 2):
        raise CompileError(f"operands have 1 or 2 dimensions, got {rank} and {other}")
    subscripts = f"{'ik'[-rank:]},{'kj'[:other]}->{'i' * (rank - 1)}{'j' * (other - 1)}"
    return apply("einsum", subscripts, left, right, out_dtype=_type(op))


def _einsum(apply: Apply, op: EinsumOp | UnaryEinsumOp, *operands: Value) -> Value:
    config = op.einsum_config.data.replace(" ", "")
    return apply("einsum", config, *operands, out_dtype=_type(op))


# Linear algebra


def _is_complex(op: Operation) -> bool:
    return isinstance(cast("TensorType[Attribute]", op.results[0].type).element_type, ComplexType)


def _cholesky(apply: Apply, op: CholeskyOp, matrix: Value) -> Value:
    if op.lower is not None and op.lower.value.data:
        return apply("cholesky", matrix)[0]
    return _transposed(apply, apply("cholesky", _transposed(apply, matrix))[0])


def _transposed(apply: Apply, matrix: Value) -> Value:
    return apply("swapaxes", matrix, -1, -2)


def _triangular_solve(apply: Apply, op: TriangularSolveOp, matrix: Value, given: Value) -> Value:
    is_left, is_lower, is_unit = (bool(flag.value.data) for flag in (op.left_side, op.lower, op.unit_diagonal))
    is_transposed = op.transpose_a.data != "NO_TRANSPOSE"
    if op.transpose_a.data == "ADJOINT" and _is_complex(op):
        matrix = apply("conjugate", matrix)
    if is_left == is_transposed:  # the solution of X op(A) = B is that of op(A)^T X^T = B^T
        matrix, is_lower = _transposed(apply, matrix), not is_lower
    if not is_left:
        given = _transposed(apply, given)
    found = apply("solve_triangular", matrix, given, lower=is_lower, unit_diagonal=is_unit)
    return found if is_left else _transposed(apply, found)


def _batch_norm_inference(
    apply: Apply, op: BatchNormOp, x: Value, scale: Value, offset: Value, mean: Value, variance: Value
) -> Value:
    return apply("batch_norm", x, scale, offset, mean, variance, axis=op.axis, epsilon=_epsilon(op))


def _epsilon(op: BatchNormOp) -> float:
    return float(op.epsilon.value.data)


def _others(op: BatchNormOp, rank: int) -> tuple[int, ...]:
    return tuple(axis for axis in range(rank) if axis != op.axis)


def _batch_norm_training(apply: Apply, op: BatchNormOp, x: Value, scale: Value, offset: Value) -> list[Value]:
    others = _others(op, len(x.shape))
    mean, variance = apply("mean", x, axis=others), apply("var", x, axis=others)
    return [_batch_norm_inference(apply, op, x, scale, offset, mean, variance), mean, variance]


def _batch_norm_grad(
    apply: Apply, op: BatchNormOp, x: Value, scale: Value, mean: Value, variance: Value, gradient: Value
) -> list[Value]:
    rank = len(x.shape)
    others = _others(op, rank)

    def spread(vector: Value) -> Value:
        for axis in others:
            vector = apply("expand_dims", vector, axis)
        return vector

    total = apply("add", variance, _epsilon(op))
    deviation = apply("sqrt", total)
    centered = apply("subtract", x, spread(mean))
    scaled = apply("multiply", gradient, centered)
    correction = apply("multiply", centered, spread(apply("divide", apply("mean", scaled, axis=others), total)))
    rest = apply("subtract", apply("subtract", gradient, spread(apply("mean", gradient, axis=others))), correction)
    return [
        apply("multiply", spread(apply("divide", scale, deviation)), rest),
        apply("sum", apply("divide", scaled, spread(deviation)), axis=others),
        apply("sum", gradient, axis=others),
    ]


def _top_k(apply: Apply, op: TopKOp, x: Value) -> list[Value]:
    """In the total order of floats, 0 is greater than -0."""
    keys = total_order(apply, x) if is_float(str(x.dtype)) else x
    places = apply("topk", keys, op.k.value.data)[1]
    return [apply("take_along_axis", x, places, axis=-1), apply("cast", places, dtype=_type(op, 1))]


def index_select_layout(op: TorchIndexSelectOp) -> tuple[KeyedAttr, list[int]]:
    """The dimension numbers of the equivalent gather, and the operand's dimensions that slices contain entirely."""
    axis, batch = op.dim.value.data, op.batch_dims.value.data
    source, indices = (cast("TensorType[Attribute]", value.type).get_num_dims() for value in op.inputs)
    kept = [dim for dim in range(batch, source) if dim != axis]
    offsets = [dim if dim < axis else dim + indices - batch - 1 for dim in kept]
    batching = tuple(range(batch))
    return KeyedAttr(
        (
            ("offset_dims", tuple(offsets)),
            ("collapsed_slice_dims", (axis,)),
            ("operand_batching_dims", batching),
            ("start_indices_batching_dims", batching),
            ("start_index_map", (axis,)),
            ("index_vector_dim", indices),
        )
    ), kept


def _ragged_dot(apply: Apply, op: RaggedDotOp, left: Value, right: Value, sizes: Value) -> Value:
    """Each group of rows times a separate matrix; later rows are zero."""
    layout = op.ragged_dot_dimension_numbers
    wanted = {
        **{"lhs_contracting_dimensions": (1,), "rhs_contracting_dimensions": (1,)},
        **{"lhs_ragged_dimensions": (0,), "rhs_group_dimensions": (0,)},
        **{"lhs_batching_dimensions": (), "rhs_batching_dimensions": ()},
    }
    if any(layout.dims(key) != dims for key, dims in wanted.items()):
        raise CompileError("only rows of a matrix in groups, (m, k) times (g, k, n), are supported")
    ends = apply("cumsum", sizes, axis=0)
    return apply("cast", apply("grouped_matmul", left, right, ends), dtype=_type(op))


TENSOR_FORMULAS: Final[Mapping[str, Formula]] = {
    "chlo.ragged_dot": _ragged_dot,
    "chlo.top_k": _top_k,
    "stablehlo.batch_norm_grad": _batch_norm_grad,
    "stablehlo.batch_norm_inference": _batch_norm_inference,
    "stablehlo.batch_norm_training": _batch_norm_training,
    "stablehlo.cholesky": _cholesky,
    "stablehlo.dot": _dot,
    "stablehlo.einsum": _einsum,
    "stablehlo.triangular_solve": _triangular_solve,
    "stablehlo.unary_einsum": _einsum,
}
PRODUCTS: Final = frozenset({"stablehlo.dot", "stablehlo.einsum"})
"""The ops of `TENSOR_FORMULAS` that are products, also of complex numbers."""
MATRICES: Final = frozenset({"stablehlo.cholesky", "stablehlo.triangular_solve"})
"""The ops of `TENSOR_FORMULAS` whose formulas also take complex matrices and `conjugate`."""
