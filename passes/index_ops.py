"""Index expressions back into IR."""

from __future__ import annotations

from functools import lru_cache

from xdsl.dialects.affine import ApplyOp
from xdsl.dialects.arith import ConstantOp
from xdsl.dialects.builtin import AffineMapAttr, AnyFloat, FloatAttr, IndexType, IntegerAttr, IntegerType
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.ir.affine import AffineMap

from weft.analysis.index import Index
from weft.support.errors import InternalError

_INDEX = IndexType()


@lru_cache(maxsize=4096)
def index_attribute(value: int) -> IntegerAttr[IndexType]:
    """An integer of type index as an attribute, of which programs have the same few over and over."""
    return IntegerAttr(value, _INDEX)


def zero_of(type_: Attribute) -> FloatAttr | IntegerAttr:
    """The number 0 of an element type."""
    if isinstance(type_, AnyFloat):
        return FloatAttr(0.0, type_)
    if isinstance(type_, IntegerType | IndexType):
        return IntegerAttr(0, type_)
    raise InternalError(f"no number of type {type_}")


def index_op(index: Index) -> Operation:
    """A detached op that computes `index`: an `arith.constant` or an `affine.apply`."""
    if index.is_constant:
        return ConstantOp.create(result_types=[_INDEX], properties={"value": index_attribute(index.constant)})
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
