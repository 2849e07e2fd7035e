"""Facts that a function relies on and calls check: relations of symbols, extents and strides of buffers."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum

from xdsl.dialects.builtin import AffineMapAttr, IndexType, MemRefType, StringAttr
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, SSAValue
from xdsl.ir.affine import AffineBinaryOpExpr, AffineBinaryOpKind, AffineDimExpr, AffineExpr
from xdsl.irdl import (
    IRDLOperation,
    irdl_op_definition,
    operand_def,
    opt_prop_def,
    prop_def,
    traits_def,
    var_operand_def,
)
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.utils.exceptions import VerifyException

from weft.dialects.effects import StatesFact
from weft.dialects.index_map import canonical_map, parse_index_map, parse_second_map, print_index_map
from weft.dialects.printing import write
from weft.dialects.strides import dynamic_extents, dynamic_strides


class Relation(StrEnum):
    EQUAL = "=="
    AT_MOST = "<="
    LESS = "<"


@irdl_op_definition
class AssumeOp(IRDLOperation):
    """State a fact about extents and index parameters of the function, which calls check.

    ```mlir
    tir.assume [%n mod 32] == [0]
    tir.assume [%m] <= [1024]
    tir.assume [%n] == [%m * 2]
    tir.assume [5] <= [%n] because "block \\"B\\" reads A out of bounds otherwise"
    ```
    Both sides are index expressions over parameters and their extents. The op precedes the function's loops. A minimum
    below 0 is a disjunction: an operand is negative. Error messages of calls contain the reason.

    Syntax: `tir.assume [expression] relation [expression] (because reason)?`, where the relation is `==`, `<=` or `<`.
    """

    name = "tir.assume"

    symbols = var_operand_def(IndexType)
    sides = prop_def(AffineMapAttr)
    """Left and right, over `symbols`."""
    relation = prop_def(StringAttr)
    reason = opt_prop_def(StringAttr)

    traits = traits_def(StatesFact())

    def __init__(
        self,
        left: AffineExpr,
        relation: Relation,
        right: AffineExpr,
        operands: Sequence[SSAValue],
        reason: str | None = None,
    ) -> None:
        map_, values = canonical_map([left, right], operands)
        properties: dict[str, Attribute | None] = {
            "sides": AffineMapAttr(map_),
            "relation": StringAttr(relation.value),
            "reason": None if reason is None else StringAttr(reason),
        }
        super().__init__(operands=[values], properties=properties)

    @property
    def kind(self) -> Relation:
        return Relation(self.relation.data)

    @property
    def left(self) -> AffineExpr:
        return self.sides.data.results[0]

    @property
    def right(self) -> AffineExpr:
        return self.sides.data.results[1]

    def verify_(self) -> None:
        if self.relation.data not in set(Relation):
            raise VerifyException(f"tir.assume compares by {', '.join(Relation)}, got {self.relation.data!r}")
        map_ = self.sides.data
        if len(map_.results) != 2 or map_.num_symbols or map_.num_dims != len(self.symbols):
            raise VerifyException("tir.assume has two sides over its symbols")
        if not isinstance(self.parent_op(), FuncOp):
            raise VerifyException("tir.assume must be at the top of a function, not in a loop or block")
        op = self.prev_op
        while op is not None:
            if op.name in ("tir.for", "tir.block"):
                raise VerifyException("tir.assume must precede the loops of a function")
            op = op.prev_op

    @classmethod
    def parse(cls, parser: Parser) -> AssumeOp:
        left, left_values = parse_index_map(parser)
        relation = cls._parse_relation(parser)
        at = parser.pos
        right, values = parse_second_map(parser, left, left_values)
        if len(left.results) != 1 or len(right) != 1:
            parser.raise_error("tir.assume compares one expression with one", at, parser.pos)
        reason = parser.parse_str_literal() if parser.parse_optional_keyword("because") is not None else None
        return cls(left.results[0], relation, right[0], values, reason)

    @staticmethod
    def _parse_relation(parser: Parser) -> Relation:
        if parser.parse_optional_punctuation("<") is not None:
            return Relation.AT_MOST if parser.parse_optional_punctuation("=") is not None else Relation.LESS
        parser.parse_punctuation("=", " in a relation (==, <= or <)")
        parser.parse_punctuation("=", " in a relation (==, <= or <)")
        return Relation.EQUAL

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        print_index_map(printer, [self.left], self.symbols)
        printer.print_string(f" {self.relation.data} ")
        print_index_map(printer, [self.right], self.symbols)
        if self.reason is not None:
            write(printer, " because ", self.reason)


@irdl_op_definition
class CheckSizeOp(IRDLOperation):
    """State that a data-dependent size is in 0 .. `most`; checked builds log violations.

    ```mlir
    %count = memref.load %found[] : memref<index>
    tir.check_size "k" %count at_most %n
    ```
    """

    name = "tir.check_size"

    label = prop_def(StringAttr)
    size = operand_def(IndexType())
    most = operand_def(IndexType())

    traits = traits_def(StatesFact())
    assembly_format = "$label $size `at_most` $most attr-dict"

    def __init__(self, label: str, size: SSAValue, most: SSAValue) -> None:
        super().__init__(operands=[size, most], properties={"label": StringAttr(label)})


class AssumeSizesOp(IRDLOperation):
    """States the dynamic sizes of a buffer (or tensor), which calls check."""

    buffer = operand_def(MemRefType)
    values = var_operand_def(IndexType())
    """One for each of `dimensions`."""

    traits = traits_def(StatesFact())
    assembly_format = "$buffer `[` $values `]` attr-dict `:` type($buffer)"

    def __init__(self, buffer: SSAValue, values: Sequence[SSAValue]) -> None:
        super().__init__(operands=[buffer, values])

    @property
    def is_of_strides(self) -> bool:
        return isinstance(self, AssumeStridesOp)

    @property
    def dimensions(self) -> tuple[int, ...]:
        """Dimensions with a dynamic extent or stride."""
        return (dynamic_strides if self.is_of_strides else dynamic_extents)(self.buffer.type)

    def verify_(self) -> None:
        dynamic, what = len(self.dimensions), "strides" if self.is_of_strides else "extents"
        if dynamic != len(self.values):
            raise VerifyException(
                f"{self.name} gives {len(self.values)} values for {dynamic} dynamic {what} of {self.buffer.type}"
            )


@irdl_op_definition
class AssumeShapeOp(AssumeSizesOp):
    """State the dynamic extents of a buffer, which calls check.

    ```mlir
    %m = memref.dim %A, %c0 : memref<?x?xf32>
    tir.assume_shape %B[%m] : memref<?x128xf32>
    ```
    """

    name = "tir.assume_shape"


@irdl_op_definition
class AssumeStridesOp(AssumeSizesOp):
    """State the dynamic strides of a parameter, in elements, which calls check.

    ```mlir
    %s = low.stride %A {dimension = 0} : memref<?x?xf32, strided<[?, 1], offset: ?>>
    tir.assume_strides %B[%s] : memref<?x?xf32, strided<[?, 1], offset: ?>>
    ```
    """

    name = "tir.assume_strides"


_SIGNS = {
    AffineBinaryOpKind.Add: "+",
    AffineBinaryOpKind.Mul: "*",
    AffineBinaryOpKind.FloorDiv: "//",
    AffineBinaryOpKind.Mod: "%",
}


def affine_text(expr: AffineExpr, names: Sequence[str], *, inner: bool = False) -> str:
    """Python syntax: `n % 32`."""
    if isinstance(expr, AffineDimExpr):
        return names[expr.position]
    if not isinstance(expr, AffineBinaryOpExpr):
        return str(expr)
    left, right = (affine_text(side, names, inner=True) for side in (expr.lhs, expr.rhs))
    sign = _SIGNS.get(expr.kind)
    text = f"-(-{left} // {right})" if sign is None else f"{left} {sign} {right}"
    return f"({text})" if inner else text


def assumptions_of(function: FuncOp) -> list[AssumeOp]:
    """Facts precede the loops, so that the search is short."""
    found: list[AssumeOp] = []
    op = function.body.block.first_op if function.body.blocks else None
    while op is not None and op.name not in ("tir.for", "tir.block"):
        if isinstance(op, AssumeOp):
            found.append(op)
        op = op.next_op
    return found
