"""Index expressions back into IR."""

from __future__ import annotations

from xdsl.dialects.affine import ApplyOp
from xdsl.dialects.arith import ConstantOp
from xdsl.dialects.builtin import AffineMapAttr, IndexType, IntegerAttr
from xdsl.ir import Operation, SSAValue
from xdsl.ir.affine import AffineMap

from weft.analysis.index import Index

_INDEX = IndexType()


def index_op(index: Index) -> Operation:
    """A detached op that computes `index`: an `arith.constant` or an `affine.apply`."""
    if index.is_constant:
        return ConstantOp(IntegerAttr(index.constant, _INDEX))
    expr, operands = index.to_expr()
    return ApplyOp.create(
        operands=operands,
        result_types=[_INDEX],
        properties={"map": AffineMapAttr(AffineMap(len(operands), 0, (expr,)))},
    )


def materialize(index: Index) -> tuple[SSAValue, list[Operation]]:
    """The value of `index` and the ops to insert before its use; none when the index is a value that exists."""
    value = index.single_value
    if value is not None:
        return value, []
    op = index_op(index)
    return op.results[0], [op]
