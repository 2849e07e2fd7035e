"""What tir says about buffers: the regions that a block touches, and the extents and strides of dynamic buffers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from xdsl.dialects.builtin import DYNAMIC_INDEX, AffineMapAttr, DenseArrayBase, IndexType, MemRefType, i64
from xdsl.ir import Attribute, SSAValue
from xdsl.ir.affine import AffineExpr
from xdsl.irdl import IRDLOperation, irdl_op_definition, operand_def, prop_def, traits_def, var_operand_def
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.utils.exceptions import VerifyException

from weft.dialects.effects import StatesFact
from weft.dialects.index_map import canonical_map, parse_index_map, print_index_map
from weft.dialects.strides import dynamic_strides


class AccessRegionOp(IRDLOperation):
    """A box of a buffer that one instance of the enclosing block may touch, given by its corner and sizes."""

    buffer = operand_def(MemRefType)
    corner_operands = var_operand_def(IndexType)
    corner = prop_def(AffineMapAttr)
    sizes = prop_def(DenseArrayBase.constr(i64))

    traits = traits_def(StatesFact())

    def __init__(
        self,
        buffer: SSAValue,
        corner: Sequence[AffineExpr],
        corner_operands: Sequence[SSAValue],
        sizes: Sequence[int] | None = None,
    ) -> None:
        corner_map, values = canonical_map(corner, corner_operands)
        super().__init__(
            operands=[buffer, values],
            properties={
                "corner": AffineMapAttr(corner_map),
                "sizes": DenseArrayBase.from_list(i64, sizes or [1] * len(corner)),
            },
        )

    @property
    def box_sizes(self) -> tuple[int, ...]:
        return self.sizes.get_values()

    def verify_(self) -> None:
        parent = self.parent_op()
        if parent is None or parent.name != "tir.block":
            raise VerifyException(f"{self.name} stands in the body of a tir.block")
        rank = cast(MemRefType[Attribute], self.buffer.type).get_num_dims()
        if len(self.corner.data.results) != rank or len(self.box_sizes) != rank:
            raise VerifyException(
                f"{self.name} gives {len(self.corner.data.results)} corner indices and {len(self.box_sizes)} sizes "
                f"for a buffer of rank {rank}"
            )
        if any(size < 1 for size in self.box_sizes):
            raise VerifyException(f"{self.name} sizes must be positive, got {list(self.box_sizes)}")

    @classmethod
    def parse(cls, parser: Parser) -> AccessRegionOp:
        buffer = parser.parse_unresolved_operand()
        corner, operands = parse_index_map(parser)
        sizes = None
        if parser.parse_optional_keyword("sizes") is not None:
            sizes = parser.parse_comma_separated_list(parser.Delimiter.SQUARE, parser.parse_integer)
        parser.parse_punctuation(":")
        return cls(parser.resolve_operand(buffer, parser.parse_type()), corner.results, operands, sizes)

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_ssa_value(self.buffer)
        print_index_map(printer, self.corner.data.results, self.corner_operands)
        if any(size != 1 for size in self.box_sizes):
            printer.print_string(" sizes [")
            printer.print_list(self.box_sizes, lambda size: printer.print_string(str(size)))
            printer.print_string("]")
        printer.print_string(" : ")
        printer.print_attribute(self.buffer.type)


@irdl_op_definition
class ReadsOp(AccessRegionOp):
    """What an instance of the block may read: `tir.reads %A[%vi, %vk * 4] sizes [1, 4] : memref<128x128xf32>`.

    The regions read of a buffer are inferred where no op gives them. Where ops do, they cover every load of that buffer
    in the body, together and besides those in the init of the block: the check of programs refuses what provably leaves
    out an element, and accepts as stated what pointers and data decide.
    """

    name = "tir.reads"


@irdl_op_definition
class WritesOp(AccessRegionOp):
    """What an instance of the block may write, as `tir.reads`; stores in the init count."""

    name = "tir.writes"


@irdl_op_definition
class AssumeShapeOp(IRDLOperation):
    """States that the dynamic extents of a buffer are the given values; calls check it.

    ```mlir
    %m = memref.dim %A, %c0 : memref<?x?xf32>
    tir.assume_shape %B[%m] : memref<?x128xf32>
    ```
    """

    name = "tir.assume_shape"

    buffer = operand_def(MemRefType)
    extents = var_operand_def(IndexType())
    """One value for each dynamic extent of the buffer's type."""

    traits = traits_def(StatesFact())
    assembly_format = "$buffer `[` $extents `]` attr-dict `:` type($buffer)"

    def __init__(self, buffer: SSAValue, extents: Sequence[SSAValue]) -> None:
        super().__init__(operands=[buffer, extents])

    def verify_(self) -> None:
        dynamic = sum(e == DYNAMIC_INDEX for e in cast(MemRefType[Attribute], self.buffer.type).get_shape())
        if dynamic != len(self.extents):
            raise VerifyException(
                f"tir.assume_shape gives {len(self.extents)} values for {dynamic} dynamic extents of {self.buffer.type}"
            )


@irdl_op_definition
class AssumeStridesOp(IRDLOperation):
    """States that the strides of a parameter that callers decide are the given values, in elements; calls check it.

    ```mlir
    %s = low.stride %A {dimension = 0} : memref<?x?xf32, strided<[?, 1], offset: ?>>
    tir.assume_strides %B[%s] : memref<?x?xf32, strided<[?, 1], offset: ?>>
    ```
    """

    name = "tir.assume_strides"

    buffer = operand_def(MemRefType)
    strides = var_operand_def(IndexType())
    """One value for each dynamic stride of the buffer's type."""

    traits = traits_def(StatesFact())
    assembly_format = "$buffer `[` $strides `]` attr-dict `:` type($buffer)"

    def __init__(self, buffer: SSAValue, strides: Sequence[SSAValue]) -> None:
        super().__init__(operands=[buffer, strides])

    def verify_(self) -> None:
        dynamic = len(dynamic_strides(self.buffer.type))
        if dynamic != len(self.strides):
            raise VerifyException(
                f"tir.assume_strides gives {len(self.strides)} values for {dynamic} dynamic strides of "
                f"{self.buffer.type}"
            )
