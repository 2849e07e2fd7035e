"""acme: 16-bit fixed-point numbers, and scalar operations within weft's blocks.

```mlir
%y = acme.clip %x to 1.0
%y = acme.lookup %table at %x : memref<16xf32>
%c = acme.mul %a, %b : !acme.fixed<8>
```
"""

from __future__ import annotations

from typing import ClassVar

from xdsl.dialects.builtin import Float32Type, FloatAttr, IntAttr, IntegerType, MemRefType, f32
from xdsl.ir import Dialect, ParametrizedAttribute, SSAValue, TypeAttribute
from xdsl.irdl import (
    IRDLOperation,
    VarConstraint,
    base,
    irdl_attr_definition,
    irdl_op_definition,
    operand_def,
    param_def,
    prop_def,
    result_def,
    traits_def,
)
from xdsl.parser import AttrParser
from xdsl.printer import Printer
from xdsl.traits import MemoryReadEffect, Pure
from xdsl.utils.exceptions import VerifyException


@irdl_attr_definition
class FixedType(ParametrizedAttribute, TypeAttribute):
    """A 16-bit number with the given number of fraction bits: `!acme.fixed<8>`."""

    name = "acme.fixed"

    fraction: IntAttr = param_def()

    @classmethod
    def parse_parameters(cls, parser: AttrParser) -> list[IntAttr]:
        with parser.in_angle_brackets():
            return [IntAttr(parser.parse_integer())]

    def print_parameters(self, printer: Printer) -> None:
        with printer.in_angle_brackets():
            printer.print_int(self.fraction.data)

    def verify(self) -> None:
        if not 0 <= self.fraction.data < 16:
            raise VerifyException(f"!acme.fixed has 0 to 15 bits behind the point, got {self.fraction.data}")


@irdl_op_definition
class ClipOp(IRDLOperation):
    """A number clamped between the negative limit and the limit."""

    name = "acme.clip"

    operand = operand_def(Float32Type)
    limit = prop_def(FloatAttr[Float32Type])
    result = result_def(Float32Type)

    traits = traits_def(Pure())
    assembly_format = "$operand `to` $limit attr-dict"

    def __init__(self, operand: SSAValue, limit: float) -> None:
        super().__init__(operands=[operand], properties={"limit": FloatAttr(limit, f32)}, result_types=[f32])


@irdl_op_definition
class LookupOp(IRDLOperation):
    """The element of a table at an integer, which is clamped to the table."""

    name = "acme.lookup"

    table = operand_def(MemRefType)
    position = operand_def(IntegerType(32))
    result = result_def(Float32Type)

    traits = traits_def(MemoryReadEffect())
    assembly_format = "$table `at` $position attr-dict `:` type($table)"


class _FixedOp(IRDLOperation):
    """An operation on two fixed-point numbers of one type."""

    T: ClassVar = VarConstraint("T", base(FixedType))

    lhs = operand_def(T)
    rhs = operand_def(T)
    result = result_def(T)

    traits = traits_def(Pure())
    assembly_format = "$lhs `,` $rhs attr-dict `:` type($result)"


@irdl_op_definition
class AddOp(_FixedOp):
    """The sum; it wraps."""

    name = "acme.add"


@irdl_op_definition
class MulOp(_FixedOp):
    """The product, rounded down; it wraps."""

    name = "acme.mul"


ACME = Dialect("acme", [ClipOp, LookupOp, AddOp, MulOp], [FixedType])
