"""`memref`: the custom syntax of operations that xDSL reads in the generic form only, and `memref.prefetch`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, cast

from xdsl.dialects import memref
from xdsl.dialects.builtin import (
    I32,
    BoolAttr,
    IndexType,
    IntegerAttr,
    MemRefType,
    StringAttr,
    TensorType,
    UnitAttr,
    i32,
    i64,
)
from xdsl.ir import Attribute, Operation
from xdsl.irdl import IRDLOperation, irdl_op_definition, operand_def, prop_def, traits_def, var_operand_def

from weft.dialects.effects import StatesFact
from weft.dialects.upstream.custom_syntax import with_format, with_parser
from weft.dialects.upstream.memref_transpose import TransposeOp

if TYPE_CHECKING:
    from xdsl.parser import Parser
    from xdsl.printer import Printer

ATOMIC_KINDS: Final = (
    *("addf", "addi", "andi", "assign", "maximumf", "maxnumf", "maxs", "maxu", "minimumf", "minnumf", "mins", "minu"),
    *("mulf", "muli", "ori", "xori"),
)
"""Names of `arith.AtomicRMWKind` in the order of their numbers (MLIR 22)."""


def _parse_global(parser: Parser) -> Operation:
    """`memref.global "private" constant @name : memref<2xf32> = dense<1.0> {alignment = 64}`."""
    visibility = parser.parse_optional_str_literal()
    constant = parser.parse_optional_keyword("constant")
    name = parser.parse_symbol_name()
    parser.parse_punctuation(":")
    type_ = parser.parse_type()
    if not isinstance(type_, MemRefType):
        parser.raise_error(f"memref.global has a memref type, got {type_}")
    if parser.parse_optional_punctuation("=") is None:
        parser.raise_error("memref.global has a value here, or is uninitialized: one of another module is not read")
    value: Attribute = UnitAttr()
    if parser.parse_optional_keyword("uninitialized") is None:
        parser.parse_keyword("dense")
        shaped = cast("TensorType[Any]", TensorType(type_.element_type, type_.shape))
        value = parser.parse_dense_int_or_fp_elements_attr(shaped)
    attributes = parser.parse_optional_attr_dict()
    properties: dict[str, Attribute] = {
        "sym_name": name,
        "sym_visibility": StringAttr("public" if visibility is None else visibility),
        "type": type_,
        "initial_value": value,
    }
    if constant is not None:
        properties["constant"] = UnitAttr()
    if "alignment" in attributes:
        properties["alignment"] = attributes.pop("alignment")
    return memref.GlobalOp.create(properties=properties, attributes=attributes)


def _parse_atomic_rmw(parser: Parser) -> Operation:
    """`memref.atomic_rmw addf %v, %A[%i] : (f32, memref<8xf32>) -> f32`."""
    at = parser.pos
    kind = parser.parse_identifier()
    if kind not in ATOMIC_KINDS:
        parser.raise_error(f"unknown kind '{kind}' of memref.atomic_rmw", at, parser.pos)
    value = parser.parse_unresolved_operand()
    parser.parse_punctuation(",")
    buffer = parser.parse_unresolved_operand()
    indices = parser.parse_comma_separated_list(parser.Delimiter.SQUARE, lambda: parser.parse_operand(IndexType()))
    attributes = parser.parse_optional_attr_dict()
    parser.parse_punctuation(":")
    type_ = parser.parse_function_type()
    operands = parser.resolve_operands([value, buffer], type_.inputs.data, at)
    return memref.AtomicRMWOp.create(
        operands=[*operands, *indices],
        result_types=type_.outputs.data,
        properties={"kind": IntegerAttr(ATOMIC_KINDS.index(kind), i64)},
        attributes=attributes,
    )


@irdl_op_definition
class PrefetchOp(IRDLOperation):
    """An element will be accessed soon: a hint, which changes no value.

    ```mlir
    memref.prefetch %A[%i, %j], read, locality<3>, data : memref<4x32xf32>
    ```
    """

    name = "memref.prefetch"

    memref = operand_def(MemRefType)
    indices = var_operand_def(IndexType())
    isWrite = prop_def(BoolAttr)
    localityHint = prop_def(IntegerAttr[I32])
    isDataCache = prop_def(BoolAttr)

    traits = traits_def(StatesFact())

    @classmethod
    def parse(cls, parser: Parser) -> PrefetchOp:
        buffer = parser.parse_unresolved_operand()
        indices = parser.parse_comma_separated_list(parser.Delimiter.SQUARE, lambda: parser.parse_operand(IndexType()))
        is_write = _one_of(parser, "read", "write")
        parser.parse_punctuation(",")
        parser.parse_characters("locality")
        with parser.in_angle_brackets():
            locality = parser.parse_integer()
        is_data = _one_of(parser, "instr", "data")
        attributes = parser.parse_optional_attr_dict()
        parser.parse_punctuation(":")
        type_ = parser.parse_type()
        return cls.create(
            operands=[parser.resolve_operand(buffer, type_), *indices],
            properties={
                "isWrite": BoolAttr.from_bool(is_write),
                "localityHint": IntegerAttr(locality, i32),
                "isDataCache": BoolAttr.from_bool(is_data),
            },
            attributes=attributes,
        )

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_ssa_value(self.memref)
        with printer.in_square_brackets():
            printer.print_list(self.indices, printer.print_ssa_value)
        printer.print_string(", write" if self.isWrite.value.data else ", read")
        printer.print_string(f", locality<{self.localityHint.value.data}>")
        printer.print_string(", data" if self.isDataCache.value.data else ", instr")
        printer.print_op_attributes(self.attributes)
        printer.print_string(" : ")
        printer.print_attribute(self.memref.type)


def _one_of(parser: Parser, no: str, yes: str) -> bool:
    parser.parse_punctuation(",")
    if parser.parse_optional_keyword(no) is not None:
        return False
    parser.parse_keyword(yes)
    return True


_CAST: Final = "$source attr-dict `:` type($source) `to` type($dest)"

OPERATIONS: tuple[type[Operation], ...] = (
    TransposeOp,
    PrefetchOp,
    with_parser(memref.GlobalOp, _parse_global),
    with_parser(memref.AtomicRMWOp, _parse_atomic_rmw),
    with_format(memref.CastOp, _CAST),
    with_format(memref.MemorySpaceCastOp, _CAST),
    with_format(memref.CopyOp, "$source `,` $destination attr-dict `:` type($source) `to` type($destination)"),
    with_format(memref.RankOp, "$source attr-dict `:` type($source)"),
    with_format(
        memref.ExtractAlignedPointerAsIndexOp, "$source attr-dict `:` type($source) `->` type($aligned_pointer)"
    ),
)
