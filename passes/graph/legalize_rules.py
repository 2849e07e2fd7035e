"""What each operator of the graph dialect computes, as a tensor expression: one line an op in `RULES`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import cast

from xdsl.dialects import arith
from xdsl.dialects.builtin import BFloat16Type, Float16Type, f32
from xdsl.ir import Attribute, Operation, SSAValue

from weft.dialects import graph_ops
from weft.dialects.graph_ops import ElementKind, GraphOp, Tensor, element_kind
from weft.dialects.graph_shapes import shape_of
from weft.dialects.te import Combiner
from weft.passes.graph.te_function import Body, TeFunction, broadcast_indices
from weft.support.errors import InternalError

FLOAT, INTEGER, BOOLEAN = ElementKind.FLOAT, ElementKind.INTEGER, ElementKind.BOOLEAN

Rule = Callable[[TeFunction, GraphOp], Sequence[SSAValue]]
"""Writes the body of the function of an op; returns its results."""
ScalarOps = Mapping[ElementKind, type[Operation]]
"""The scalar op for each kind of element."""


def _kind(element_type: Attribute) -> ElementKind:
    kind = element_kind(element_type)
    if kind is None:
        raise InternalError(f"the verifier let the element type {element_type} pass")
    return kind


def _result(op: GraphOp) -> Tensor:
    return cast("Tensor", op.results[0].type)


def _label(op: GraphOp) -> str:
    return op.name.removeprefix("graph.")


def apply_scalar(body: Body, ops: ScalarOps, *operands: SSAValue) -> SSAValue:
    """The scalar op of the operands' kind; its result has their type."""
    type_ = operands[0].type
    return body.emit(ops[_kind(type_)].create(operands=operands, result_types=[type_]))


def elementwise(scalar: Callable[..., SSAValue]) -> Rule:
    """Each element of the result is `scalar(body, one element of each operand...)`, operands broadcast."""

    def rule(function: TeFunction, op: GraphOp) -> Sequence[SSAValue]:
        type_ = _result(op)
        shape = shape_of(type_)

        def element(body: Body, indices: Sequence[SSAValue]) -> SSAValue:
            values = [
                body.read(argument, broadcast_indices(body, read, shape, indices))
                for argument, read in zip(function.arguments, function.shapes, strict=True)
            ]
            return scalar(body, *values)

        return [function.compute(_label(op), shape, type_.element_type, element)]

    return rule


def by_kind(ops: ScalarOps) -> Rule:
    """Element by element, one scalar op for each kind of element."""

    def scalar(body: Body, *values: SSAValue) -> SSAValue:
        return apply_scalar(body, ops, *values)

    return elementwise(scalar)


MAXIMUM: ScalarOps = {FLOAT: arith.MaximumfOp, INTEGER: arith.MaxSIOp, BOOLEAN: arith.OrIOp}
MINIMUM: ScalarOps = {FLOAT: arith.MinimumfOp, INTEGER: arith.MinSIOp, BOOLEAN: arith.AndIOp}


def relu(body: Body, value: SSAValue) -> SSAValue:
    return apply_scalar(body, MAXIMUM, value, body.constant(0, value.type))


def permute_dims(function: TeFunction, op: GraphOp) -> Sequence[SSAValue]:
    axes = cast("graph_ops.PermuteDimsOp", op).permutation
    type_ = _result(op)

    def element(body: Body, indices: Sequence[SSAValue]) -> SSAValue:
        source = [index for _, index in sorted(zip(axes, indices, strict=True), key=lambda pair: pair[0])]
        return body.read(function.arguments[0], source)

    return [function.compute("permute_dims", shape_of(type_), type_.element_type, element)]


def matmul(function: TeFunction, op: GraphOp) -> Sequence[SSAValue]:
    (left, right), (a, b) = function.shapes, function.arguments
    type_ = _result(op)
    shape = shape_of(type_)
    element_type = type_.element_type
    narrow = isinstance(element_type, Float16Type | BFloat16Type)
    sum_type = f32 if narrow else element_type
    # The contracted extent is the same on both sides, but one of them may be unknown.
    axis = function.extent(left[-1])
    has_row, has_column = len(left) > 1, len(right) > 1
    batch_rank = len(shape) - has_row - has_column

    def element(body: Body, indices: Sequence[SSAValue]) -> SSAValue:
        batch, result_batch = indices[:batch_rank], shape[:batch_rank]
        row = indices[batch_rank : batch_rank + has_row]
        column = indices[len(indices) - 1 :] if has_column else ()

        def term(inner: Body, axes: Sequence[SSAValue]) -> SSAValue:
            left_batch = broadcast_indices(inner, left[:-2], result_batch, batch)
            right_batch = broadcast_indices(inner, right[:-2], result_batch, batch)
            x = inner.read(a, [*left_batch, *row, axes[0]])
            y = inner.read(b, [*right_batch, axes[0], *column])
            if narrow:
                x, y = inner.emit(arith.ExtFOp(x, f32)), inner.emit(arith.ExtFOp(y, f32))
            return apply_scalar(inner, {FLOAT: arith.MulfOp, INTEGER: arith.MuliOp}, x, y)

        total = body.reduce(Combiner.SUM, [axis], sum_type, term, ["k"])
        return body.emit(arith.TruncFOp(total, element_type)) if narrow else total

    hints = [*(f"b{d}" for d in range(batch_rank)), *["i"] * has_row, *["j"] * has_column]
    return [function.compute("matmul", shape, element_type, element, hints)]


RULES: Mapping[type[GraphOp], Rule] = {
    graph_ops.AddOp: by_kind({FLOAT: arith.AddfOp, INTEGER: arith.AddiOp}),
    graph_ops.SubtractOp: by_kind({FLOAT: arith.SubfOp, INTEGER: arith.SubiOp}),
    graph_ops.MultiplyOp: by_kind({FLOAT: arith.MulfOp, INTEGER: arith.MuliOp}),
    graph_ops.DivideOp: by_kind({FLOAT: arith.DivfOp}),
    graph_ops.MaximumOp: by_kind(MAXIMUM),
    graph_ops.MinimumOp: by_kind(MINIMUM),
    graph_ops.ReluOp: elementwise(relu),
    graph_ops.MatmulOp: matmul,
    graph_ops.PermuteDimsOp: permute_dims,
}
