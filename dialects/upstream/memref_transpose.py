"""`memref.transpose`, which xDSL lacks."""

from __future__ import annotations

from xdsl.dialects.builtin import AffineMapAttr, MemRefType
from xdsl.ir import Attribute
from xdsl.ir.affine import AffineDimExpr
from xdsl.irdl import IRDLOperation, irdl_op_definition, operand_def, prop_def, result_def, traits_def
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import Pure
from xdsl.utils.exceptions import VerifyException


@irdl_op_definition
class TransposeOp(IRDLOperation):
    """The same elements with dimensions in another order; dimension d is dimension `permutation[d]` of the source.

    ```mlir
    %t = memref.transpose %A (i, j) -> (j, i) : memref<4x8xf32> to memref<8x4xf32, strided<[1, 8]>>
    ```
    """

    name = "memref.transpose"

    source = operand_def(MemRefType)
    permutation = prop_def(AffineMapAttr)
    result = result_def(MemRefType)

    traits = traits_def(Pure())

    @property
    def order(self) -> list[int]:
        """The dimension of the source that each of the result is."""
        return [expr.position for expr in self.permutation.data.results if isinstance(expr, AffineDimExpr)]

    def verify_(self) -> None:
        rank = len(self.source.type.shape) if isinstance(self.source.type, MemRefType) else 0
        if sorted(self.order) != list(range(rank)) or len(self.permutation.data.results) != rank:
            raise VerifyException(f"{self.name} permutes {rank} dimensions, got {self.permutation.data}")

    @classmethod
    def parse(cls, parser: Parser) -> TransposeOp:
        source = parser.parse_unresolved_operand()
        permutation = parser.parse_affine_map()
        attributes = parser.parse_optional_attr_dict()
        parser.parse_punctuation(":")
        operand = parser.resolve_operand(source, parser.parse_type())
        parser.parse_keyword("to")
        result: Attribute = parser.parse_type()
        return cls.create(
            operands=[operand],
            result_types=[result],
            properties={"permutation": AffineMapAttr(permutation)},
            attributes=attributes,
        )

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_ssa_value(self.source)
        printer.print_string(f" {self.permutation.data}")
        printer.print_op_attributes(self.attributes)
        printer.print_string(" : ")
        printer.print_attribute(self.source.type)
        printer.print_string(" to ")
        printer.print_attribute(self.result.type)
