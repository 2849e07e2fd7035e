"""Replacement of one operation by others."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, cast

from xdsl.dialects import arith, vector
from xdsl.dialects.builtin import (
    BFloat16Type,
    DenseArrayBase,
    DenseIntOrFPElementsAttr,
    Float16Type,
    IndexType,
    IntegerAttr,
    UnregisteredOp,
    VectorType,
    i64,
)

from weft.passes.index_builders import arith_op
from weft.support.errors import InternalError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from xdsl.dialects.builtin import IntegerType
    from xdsl.ir import Attribute, Operation, SSAValue

SIXTEEN_BIT_FLOATS: Final = (BFloat16Type, Float16Type)
_NOTHING: Final[Mapping[str, Attribute]] = {}


class OpRewriter:
    """Inserts ops before the rewritten one, with its location."""

    def __init__(self, op: Operation) -> None:
        if op.parent is None:
            raise InternalError(f"{op.name} is rewritten outside of any block")
        self.rewritten = op
        self.inserted: list[Operation] = []
        self._block = op.parent

    def add(self, op: Operation) -> None:
        op.location = self.rewritten.location
        self._block.insert_op_before(op, self.rewritten)
        self.inserted.append(op)

    def insert(self, op: Operation) -> SSAValue:
        self.add(op)
        return op.results[0]

    def op(
        self,
        kind: type[Operation],
        operands: Sequence[SSAValue],
        result: Attribute,
        properties: Mapping[str, Attribute] = _NOTHING,
        attributes: Mapping[str, Attribute] = _NOTHING,
    ) -> SSAValue:
        """Types are not verified."""
        return self.insert(
            kind.create(
                operands=operands, result_types=[result], properties=dict(properties), attributes=dict(attributes)
            )
        )

    def index(self, number: int) -> SSAValue:
        return self.insert(arith.ConstantOp(IntegerAttr(number, IndexType())))

    def constant_lanes(self, type_: Attribute, numbers: Sequence[int]) -> SSAValue:
        """Integers, or integral floats; a single number fills all lanes."""
        value = DenseIntOrFPElementsAttr.from_list(cast("VectorType[IntegerType]", type_), list(numbers))
        return self.op(arith.ConstantOp, (), type_, {"value": value})

    def combine(self, kind: type[Operation], left: SSAValue, right: SSAValue) -> SSAValue:
        return self.insert(arith_op(kind, left, right))

    def shuffle(self, left: SSAValue, right: SSAValue, lanes: Sequence[int]) -> SSAValue:
        type_ = VectorType(element_of(left.type), [len(lanes)])
        return self.op(vector.ShuffleOp, (left, right), type_, {"mask": DenseArrayBase.from_list(i64, list(lanes))})

    def extract(self, value: SSAValue, lane: int) -> SSAValue:
        return self.insert(vector.ExtractOp(value, [lane], element_of(value.type)))

    def lane_by_lane(self, call: Callable[[list[SSAValue]], SSAValue]) -> SSAValue:
        """Apply `call` to the operands, or per lane if the result is a vector."""
        operands, type_ = list(self.rewritten.operands), self.rewritten.results[0].type
        if not isinstance(type_, VectorType):
            return call(operands)
        result = self.insert(vector.BroadcastOp(call([self.extract(operand, 0) for operand in operands]), type_))
        for lane in range(1, lanes_of(type_)):
            called = call([self.extract(operand, lane) for operand in operands])
            result = self.insert(vector.InsertOp(called, result, [lane]))
        return result

    def replace(self, *values: SSAValue) -> None:
        for result, value in zip(self.rewritten.results, values, strict=True):
            if result.name_hint is not None:
                value.name_hint = result.name_hint
            result.replace_all_uses_with(value)
        self.erase()

    def become(self, op: Operation) -> None:
        self.add(op)
        self.replace(*op.results)

    def erase(self) -> None:
        self.rewritten.detach()
        self.rewritten.erase()


def upstream_op(
    name: str,
    operands: Sequence[SSAValue],
    results: Sequence[Attribute],
    properties: Mapping[str, Attribute],
) -> Operation:
    """An op that xDSL lacks, or only defines for scalars."""
    return UnregisteredOp.with_name(name).create(operands=operands, result_types=results, properties=dict(properties))


def element_of(type_: Attribute) -> Attribute:
    return type_.element_type if type(type_) is VectorType else type_


def is_sixteen_bit_float(type_: Attribute) -> bool:
    return isinstance(element_of(type_), SIXTEEN_BIT_FLOATS)


def lanes_of(type_: Attribute) -> int:
    """0 for a scalar."""
    return type_.get_shape()[0] if type(type_) is VectorType else 0


def like(type_: Attribute, element: Attribute) -> Attribute:
    return VectorType(element, type_.get_shape()) if type(type_) is VectorType else element
