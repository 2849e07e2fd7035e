"""What te computations and reductions share: extents, element types, the end of a region; and the shapes of inputs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias, cast

from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    AnyFloat,
    IndexType,
    IntegerType,
    TensorType,
)
from xdsl.ir import Attribute, Operation, Region, SSAValue
from xdsl.irdl import (
    IRDLOperation,
    irdl_op_definition,
    operand_def,
    traits_def,
    var_operand_def,
)
from xdsl.parser import Parser
from xdsl.traits import IsTerminator, Pure
from xdsl.utils.exceptions import VerifyException

from weft.dialects.effects import StatesFact

Extent: TypeAlias = "int | SSAValue"
"""The number of values of an axis, static or an index value."""


def is_element_type(type: Attribute) -> bool:
    """Whether tensors of weft may hold elements of this type: i1, i8 to i64, floats."""
    if isinstance(type, IntegerType):
        return type.width.data in (1, 8, 16, 32, 64)
    return isinstance(type, AnyFloat)


def type_list(values: Sequence[SSAValue]) -> str:
    return ", ".join(str(value.type) for value in values) or "nothing"


def verify_region(op: Operation, what: str, region: Region, arguments: Sequence[Attribute]) -> YieldOp:
    """Check that `region` is one block over `arguments` that ends in `te.yield`; returns that."""
    if len(region.blocks) != 1:
        raise VerifyException(f"{what} holds exactly one block of operations, got {len(region.blocks)}")
    block = region.block
    if [argument.type for argument in block.args] != list(arguments):
        expected = ", ".join(map(str, arguments)) or "nothing"
        raise VerifyException(f"{what} takes arguments of types {expected}, got {type_list(block.args)}")
    last = block.last_op
    if not isinstance(last, YieldOp):
        raise VerifyException(f"{what} must end in te.yield, got {'nothing' if last is None else last.name}")
    return last


def parse_extent(parser: Parser) -> Extent:
    extent = parser.parse_optional_integer(allow_boolean=False, allow_negative=False)
    return parser.parse_operand(IndexType()) if extent is None else extent


@irdl_op_definition
class YieldOp(IRDLOperation):
    """The values of an element, of a reduction's expression, of a combiner or of an identity: `te.yield %a : f32`."""

    name = "te.yield"

    values = var_operand_def()

    traits = traits_def(IsTerminator(), Pure())

    assembly_format = "attr-dict ($values^ `:` type($values))?"

    def __init__(self, *values: SSAValue) -> None:
        super().__init__(operands=[values])

    def verify_(self) -> None:
        parent = self.parent_op()
        if parent is None or parent.name not in ("te.compute", "te.reduce"):
            raise VerifyException("te.yield stands in a region of te.compute or te.reduce")


@irdl_op_definition
class AssumeShapeOp(IRDLOperation):
    """States that the dynamic extents of a tensor are the given values; calls check it.

    ```mlir
    %m = tensor.dim %A, %c0 : tensor<?x128xf32>
    te.assume_shape %B[%m] : tensor<?x128xf32>
    ```
    """

    name = "te.assume_shape"

    tensor = operand_def(TensorType)
    extents = var_operand_def(IndexType())
    """One value for each dynamic extent of the tensor's type."""

    traits = traits_def(StatesFact())
    assembly_format = "$tensor `[` $extents `]` attr-dict `:` type($tensor)"

    def __init__(self, tensor: SSAValue, extents: Sequence[SSAValue]) -> None:
        super().__init__(operands=[tensor, extents])

    def verify_(self) -> None:
        dynamic = cast("TensorType[Attribute]", self.tensor.type).get_shape().count(DYNAMIC_INDEX)
        if dynamic != len(self.extents):
            raise VerifyException(
                f"te.assume_shape gives {len(self.extents)} values for {dynamic} dynamic extents of {self.tensor.type}"
            )
