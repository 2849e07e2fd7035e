"""Lane-wise comparisons, selection and casts of `low`: what `arith` has for scalars only.

xDSL types `arith.cmpi`, `cmpf`, `select` (by a mask), `index_cast` and the conversions from and to integers for
scalars. Each op here is the same operation on every lane of vectors of one length, with the operand, result and
property names of its scalar form: `low.cmpi` is to `vector<8xi32>` what `arith.cmpi` is to `i32`. The other `arith`
and `math` ops take vectors as they are.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from xdsl.dialects import arith
from xdsl.dialects.builtin import (
    AnyFloat,
    Float32Type,
    Float64Type,
    IndexType,
    IntegerAttr,
    IntegerType,
    VectorType,
    i1,
    i64,
)
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.irdl import (
    AnyAttr,
    IRDLOperation,
    VarConstraint,
    irdl_op_definition,
    operand_def,
    prop_def,
    result_def,
    traits_def,
)
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import Pure
from xdsl.utils.exceptions import VerifyException
from xdsl.utils.type import get_element_type_or_self

_CMPI = arith.CMPI_COMPARISON_OPERATIONS
_CMPF = arith.CMPF_COMPARISON_OPERATIONS


def mask_type(lanes: Attribute) -> VectorType[Attribute]:
    """The type of a mask for vectors of type `lanes`: one i1 a lane."""
    if not isinstance(lanes, VectorType):
        raise VerifyException(f"a mask belongs to a vector, got {lanes}")
    return VectorType(i1, lanes.get_shape())


class _LaneCompareOp(IRDLOperation):
    """`low.cmpi slt, %a, %b : vector<8xi32>` gives a `vector<8xi1>`."""

    lhs = operand_def(VectorType)
    rhs = operand_def(VectorType)
    predicate = prop_def(IntegerAttr)
    result = result_def(VectorType)

    traits = traits_def(Pure())

    def __init__(self, lhs: SSAValue, rhs: SSAValue, predicate: int) -> None:
        super().__init__(
            operands=[lhs, rhs],
            properties={"predicate": IntegerAttr(predicate, i64)},
            result_types=[mask_type(lhs.type)],
        )

    @classmethod
    def predicates(cls) -> list[str]:
        raise NotImplementedError

    def verify_(self) -> None:
        if self.lhs.type != self.rhs.type or self.result.type != mask_type(self.lhs.type):
            raise VerifyException(
                f"{self.name} compares equal types to a mask, "
                f"got {self.lhs.type}, {self.rhs.type} -> {self.result.type}"
            )
        if not 0 <= self.predicate.value.data < len(self.predicates()):
            raise VerifyException(f"{self.name} has no predicate {self.predicate.value.data}")

    @classmethod
    def parse(cls, parser: Parser) -> _LaneCompareOp:
        at = parser.pos
        name = parser.parse_identifier()
        if name not in cls.predicates():
            parser.raise_error(f"unknown predicate '{name}' of {cls.name}", at, parser.pos)
        parser.parse_punctuation(",")
        lhs = parser.parse_unresolved_operand()
        parser.parse_punctuation(",")
        rhs = parser.parse_unresolved_operand()
        flags = cls.parse_flags(parser)
        parser.parse_punctuation(":")
        type_ = parser.parse_type()
        op = cls(parser.resolve_operand(lhs, type_), parser.resolve_operand(rhs, type_), cls.predicates().index(name))
        op.properties.update(flags)
        return op

    @classmethod
    def parse_flags(cls, parser: Parser) -> dict[str, Attribute]:
        """Properties that stand between the operands and the type."""
        return {}

    def print_flags(self, printer: Printer) -> None:
        """Print what `parse_flags` reads."""

    def print(self, printer: Printer) -> None:
        printer.print_string(f" {self.predicates()[self.predicate.value.data]}, ")
        printer.print_list([self.lhs, self.rhs], printer.print_ssa_value)
        self.print_flags(printer)
        printer.print_string(" : ")
        printer.print_attribute(self.lhs.type)


@irdl_op_definition
class CmpiOp(_LaneCompareOp):
    """`arith.cmpi` on every lane, also of index vectors."""

    name = "low.cmpi"

    @classmethod
    def predicates(cls) -> list[str]:
        return _CMPI


@irdl_op_definition
class CmpfOp(_LaneCompareOp):
    """`arith.cmpf` on every lane: `low.cmpf olt, %a, %b fastmath<nnan> : vector<8xf32>`."""

    name = "low.cmpf"

    fastmath = prop_def(arith.FastMathFlagsAttr, default_value=arith.FastMathFlagsAttr("none"))

    @classmethod
    def predicates(cls) -> list[str]:
        return _CMPF

    @classmethod
    def parse_flags(cls, parser: Parser) -> dict[str, Attribute]:
        if parser.parse_optional_keyword("fastmath") is None:
            return {}
        return {"fastmath": arith.FastMathFlagsAttr(arith.FastMathFlagsAttr.parse_parameter(parser))}

    def print_flags(self, printer: Printer) -> None:
        if self.fastmath.data:
            printer.print_string(" fastmath")
            self.fastmath.print_parameter(printer)


@irdl_op_definition
class SelectOp(IRDLOperation):
    """Lane l is that of `lhs` where the mask `cond` is true, else that of `rhs`.

    ```mlir
    %r = low.select %mask, %a, %b : vector<8xf32>
    ```
    """

    name = "low.select"

    cond = operand_def(VectorType)
    lhs = operand_def(VectorType)
    rhs = operand_def(VectorType)
    result = result_def(VectorType)

    traits = traits_def(Pure())

    def __init__(self, cond: SSAValue, lhs: SSAValue, rhs: SSAValue) -> None:
        super().__init__(operands=[cond, lhs, rhs], result_types=[lhs.type])

    def verify_(self) -> None:
        if not self.lhs.type == self.rhs.type == self.result.type or self.cond.type != mask_type(self.lhs.type):
            raise VerifyException(
                f"{self.name} chooses between equal types by a mask, "
                f"got {self.cond.type}, {self.lhs.type}, {self.rhs.type}"
            )

    @classmethod
    def parse(cls, parser: Parser) -> SelectOp:
        operands = [parser.parse_unresolved_operand()]
        for _ in range(2):
            parser.parse_punctuation(",")
            operands.append(parser.parse_unresolved_operand())
        parser.parse_punctuation(":")
        type_ = parser.parse_type()
        cond, lhs, rhs = operands
        return cls(
            parser.resolve_operand(cond, mask_type(type_)),
            parser.resolve_operand(lhs, type_),
            parser.resolve_operand(rhs, type_),
        )

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_list(self.operands, printer.print_ssa_value)
        printer.print_string(" : ")
        printer.print_attribute(self.result.type)


class _LaneCastOp(IRDLOperation):
    """`low.sitofp %v : vector<8xi32> to vector<8xf32>`."""

    input = operand_def(VectorType)
    result = result_def(VectorType)

    assembly_format = "$input attr-dict `:` type($input) `to` type($result)"
    traits = traits_def(Pure())

    def __init__(self, input_: SSAValue, result_type: Attribute) -> None:
        super().__init__(operands=[input_], result_types=[result_type])

    def converts(self, source: Attribute, target: Attribute) -> bool:
        """Whether the scalar form converts `source` to `target`."""
        raise NotImplementedError

    def verify_(self) -> None:
        source, target = self.input.type, self.result.type
        if mask_type(source) != mask_type(target) or not self.converts(
            get_element_type_or_self(source), get_element_type_or_self(target)
        ):
            raise VerifyException(f"{self.name} does not convert {source} to {target}")


class _IntToFloatOp(_LaneCastOp):
    def converts(self, source: Attribute, target: Attribute) -> bool:
        return isinstance(source, IntegerType) and isinstance(target, AnyFloat)


class _FloatToIntOp(_LaneCastOp):
    def converts(self, source: Attribute, target: Attribute) -> bool:
        return isinstance(source, AnyFloat) and isinstance(target, IntegerType)


def _widths(source: Attribute, target: Attribute) -> tuple[int, int] | None:
    if isinstance(source, IntegerType) and isinstance(target, IntegerType):
        return source.width.data, target.width.data
    return None


class _WidenOp(_LaneCastOp):
    def converts(self, source: Attribute, target: Attribute) -> bool:
        widths = _widths(source, target)
        return widths is not None and widths[0] < widths[1]


@irdl_op_definition
class SIToFPOp(_IntToFloatOp):
    """`arith.sitofp` on every lane."""

    name = "low.sitofp"


@irdl_op_definition
class UIToFPOp(_IntToFloatOp):
    """`arith.uitofp` on every lane."""

    name = "low.uitofp"


@irdl_op_definition
class FPToSIOp(_FloatToIntOp):
    """`arith.fptosi` on every lane."""

    name = "low.fptosi"


@irdl_op_definition
class FPToUIOp(_FloatToIntOp):
    """`arith.fptoui` on every lane."""

    name = "low.fptoui"


@irdl_op_definition
class ExtSIOp(_WidenOp):
    """`arith.extsi` on every lane."""

    name = "low.extsi"


@irdl_op_definition
class ExtUIOp(_WidenOp):
    """`arith.extui` on every lane."""

    name = "low.extui"


@irdl_op_definition
class TruncIOp(_LaneCastOp):
    """`arith.trunci` on every lane."""

    name = "low.trunci"

    def converts(self, source: Attribute, target: Attribute) -> bool:
        widths = _widths(source, target)
        return widths is not None and widths[0] > widths[1]


@irdl_op_definition
class IndexCastOp(_LaneCastOp):
    """`arith.index_cast` on every lane: between signed integers and index."""

    name = "low.index_cast"

    def converts(self, source: Attribute, target: Attribute) -> bool:
        return (isinstance(source, IndexType) and isinstance(target, IntegerType)) or (
            isinstance(source, IntegerType) and isinstance(target, IndexType)
        )


@irdl_op_definition
class LdexpOp(IRDLOperation):
    """`low.ldexp %p, %n : vector<16xf32>`: p * 2^n on every lane, or of scalars, rounded once. n is a whole number of
    the same type; results may be subnormal, infinite or zero. Some processors have an instruction for it."""

    name = "low.ldexp"

    T: ClassVar = VarConstraint("T", AnyAttr())

    significand = operand_def(T)
    exponent = operand_def(T)
    result = result_def(T)

    traits = traits_def(Pure())
    assembly_format = "$significand `,` $exponent attr-dict `:` type($result)"

    def __init__(self, significand: SSAValue, exponent: SSAValue) -> None:
        super().__init__(operands=[significand, exponent], result_types=[significand.type])

    def verify_(self) -> None:
        type_ = self.result.type
        if not isinstance(get_element_type_or_self(type_), Float32Type | Float64Type):
            raise VerifyException(f"{self.name} works on f32 and f64, got {type_}")


LANE_FORMS: Mapping[type[Operation], type[Operation]] = {
    arith.CmpiOp: CmpiOp,
    arith.CmpfOp: CmpfOp,
    arith.SelectOp: SelectOp,
    arith.SIToFPOp: SIToFPOp,
    arith.UIToFPOp: UIToFPOp,
    arith.FPToSIOp: FPToSIOp,
    arith.FPToUIOp: FPToUIOp,
    arith.ExtSIOp: ExtSIOp,
    arith.ExtUIOp: ExtUIOp,
    arith.TruncIOp: TruncIOp,
    arith.IndexCastOp: IndexCastOp,
}
"""Scalar op -> the op that does the same on every lane."""
