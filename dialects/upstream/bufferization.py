"""`bufferization` on buffers of any layout, which xDSL's ops reject."""

from __future__ import annotations

from typing import Final

from xdsl.dialects.builtin import DYNAMIC_INDEX, IntegerAttr, MemRefType, TensorType, UnitAttr
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute
from xdsl.irdl import (
    IRDLOperation,
    base,
    irdl_op_definition,
    operand_def,
    opt_prop_def,
    opt_result_def,
    result_def,
)
from xdsl.utils.exceptions import VerifyException

WRITABLE: Final = "bufferization.writable"
"""Attribute of a tensor argument: the function may write its buffer."""


def is_writable(function: FuncOp, at: int) -> bool:
    if function.arg_attrs is None:
        return False
    attribute = function.arg_attrs.data[at].data.get(WRITABLE)
    return isinstance(attribute, UnitAttr) or (isinstance(attribute, IntegerAttr) and attribute.value.data != 0)


def _check_same(op: IRDLOperation, left: Attribute, right: Attribute) -> None:
    """Raises `VerifyException` for different elements or shapes."""
    if not isinstance(left, TensorType | MemRefType) or not isinstance(right, TensorType | MemRefType):
        return
    if left.element_type != right.element_type:
        raise VerifyException(f"{op.name}: {left} and {right} have different elements")
    shapes = left.get_shape(), right.get_shape()
    ranks = set(map(len, shapes))
    pairs = zip(*shapes, strict=False)
    if len(ranks) > 1 or any(a != b and DYNAMIC_INDEX not in (a, b) for a, b in pairs):
        raise VerifyException(f"{op.name}: {left} and {right} have different shapes")


@irdl_op_definition
class ToTensorOp(IRDLOperation):
    """A buffer's contents: `%t = bufferization.to_tensor %m restrict writable : memref<4xf32> to tensor<4xf32>`.

    `restrict`: only the tensor accesses this memory. `writable`: it may be written.
    """

    name = "bufferization.to_tensor"

    memref = operand_def(MemRefType)
    restrict = opt_prop_def(UnitAttr)
    writable = opt_prop_def(UnitAttr)
    tensor = result_def(TensorType)

    assembly_format = (
        "$memref (`restrict` $restrict^)? (`writable` $writable^)? attr-dict `:` type($memref) `to` type($tensor)"
    )

    def verify_(self) -> None:
        _check_same(self, self.memref.type, self.tensor.type)


@irdl_op_definition
class ToBufferOp(IRDLOperation):
    """A tensor's buffer: `%m = bufferization.to_buffer %t read_only : tensor<4xf32> to memref<4xf32>`."""

    name = "bufferization.to_buffer"

    tensor = operand_def(TensorType)
    read_only = opt_prop_def(UnitAttr)
    memref = result_def(MemRefType)

    assembly_format = "$tensor (`read_only` $read_only^)? attr-dict `:` type($tensor) `to` type($memref)"

    def verify_(self) -> None:
        _check_same(self, self.tensor.type, self.memref.type)


@irdl_op_definition
class MaterializeInDestinationOp(IRDLOperation):
    """Store a tensor in another tensor's place, or a buffer.

    `bufferization.materialize_in_destination %t in restrict writable %m : (tensor<4xf32>, memref<4xf32>) -> ()`
    """

    name = "bufferization.materialize_in_destination"

    source = operand_def(TensorType)
    dest = operand_def(base(TensorType) | base(MemRefType))
    restrict = opt_prop_def(UnitAttr)
    writable = opt_prop_def(UnitAttr)
    result = opt_result_def(TensorType)

    assembly_format = (
        "$source `in` (`restrict` $restrict^)? (`writable` $writable^)? $dest attr-dict `:` "
        "functional-type(operands, results)"
    )

    def verify_(self) -> None:
        _check_same(self, self.source.type, self.dest.type)
        if (self.result is not None) != isinstance(self.dest.type, TensorType):
            raise VerifyException(f"{self.name} has a result if its destination is a tensor")


@irdl_op_definition
class DeallocTensorOp(IRDLOperation):
    """End a tensor buffer's lifetime: `bufferization.dealloc_tensor %t : tensor<4xf32>`."""

    name = "bufferization.dealloc_tensor"

    tensor = operand_def(TensorType)

    assembly_format = "$tensor attr-dict `:` type($tensor)"


OPERATIONS = (ToTensorOp, ToBufferOp, MaterializeInDestinationOp, DeallocTensorOp)
