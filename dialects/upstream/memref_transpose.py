"""`memref.transpose`, which xDSL lacks."""

from __future__ import annotations

from xdsl.dialects.builtin import AffineMapAttr, MemRefType
from xdsl.ir.affine import AffineDimExpr
from xdsl.irdl import IRDLOperation, irdl_op_definition, operand_def, prop_def, result_def, traits_def
from xdsl.irdl.declarative_assembly_format import (
    AttributeVariable,
    CustomDirective,
    ParsingState,
    PrintingState,
    irdl_custom_directive,
)
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import Pure
from xdsl.utils.exceptions import VerifyException


@irdl_custom_directive
class PlainMap(CustomDirective):
    """A map without its attribute's name: `(i, j) -> (j, i)`."""

    map: AttributeVariable

    def parse(self, parser: Parser, state: ParsingState) -> None:
        self.map.set(state, AffineMapAttr(parser.parse_affine_map()))

    def print(self, printer: Printer, state: PrintingState, op: IRDLOperation) -> None:
        map_ = self.map.get(op)
        if isinstance(map_, AffineMapAttr):
            state.print_whitespace(printer)
            printer.print_string(str(map_.data))


@irdl_op_definition
class TransposeOp(IRDLOperation):
    """A view with permuted dimensions; d is dimension `permutation[d]` of the source.

    ```mlir
    %t = memref.transpose %A (i, j) -> (j, i) : memref<4x8xf32> to memref<8x4xf32, strided<[1, 8]>>
    ```
    """

    name = "memref.transpose"

    source = operand_def(MemRefType)
    permutation = prop_def(AffineMapAttr)
    result = result_def(MemRefType)

    traits = traits_def(Pure())
    custom_directives = (PlainMap,)
    assembly_format = "$source custom<PlainMap>($permutation) attr-dict `:` type($source) `to` type($result)"

    @property
    def order(self) -> list[int]:
        return [expr.position for expr in self.permutation.data.results if isinstance(expr, AffineDimExpr)]

    def verify_(self) -> None:
        rank = len(self.source.type.shape) if isinstance(self.source.type, MemRefType) else 0
        if sorted(self.order) != list(range(rank)) or len(self.permutation.data.results) != rank:
            raise VerifyException(f"{self.name} permutes {rank} dimensions, got {self.permutation.data}")
