"""`memref`: custom syntax, and `memref.prefetch`."""

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
)
from xdsl.ir import Attribute, Operation
from xdsl.irdl import IRDLOperation, irdl_op_definition, operand_def, prop_def, traits_def, var_operand_def

from weft.dialects.effects import StatesFact
from weft.dialects.upstream.custom_syntax import with_format, with_parser, word_directive
from weft.dialects.upstream.memref_transpose import TransposeOp

if TYPE_CHECKING:
    from xdsl.parser import Parser

ATOMIC_KINDS: Final = (
    *("addf", "addi", "andi", "assign", "maximumf", "maxnumf", "maxs", "maxu", "minimumf", "minnumf", "mins", "minu"),
    *("mulf", "muli", "ori", "xori"),
)
"""Names of `arith.AtomicRMWKind`, ordered by value (MLIR 22)."""


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


_READ_OR_WRITE: Final = word_directive("ReadOrWrite", ("read", "write"), "Expected 'write'", 1)
_INSTR_OR_DATA: Final = word_directive("InstrOrData", ("instr", "data"), "Expected 'data'", 1)


@irdl_op_definition
class PrefetchOp(IRDLOperation):
    """Hint that an element will be accessed soon.

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
    custom_directives = (_READ_OR_WRITE, _INSTR_OR_DATA)
    assembly_format = (
        "$memref `[` $indices `]` `,` custom<ReadOrWrite>($isWrite) `,` `locality` `<` $localityHint `>` `,` "
        "custom<InstrOrData>($isDataCache) attr-dict `:` type($memref)"
    )


_CAST: Final = "$source attr-dict `:` type($source) `to` type($dest)"

OPERATIONS: tuple[type[Operation], ...] = (
    TransposeOp,
    PrefetchOp,
    with_parser(memref.GlobalOp, _parse_global),
    with_format(
        memref.AtomicRMWOp,
        "custom<Kind>($kind) $value `,` $memref `[` $indices `]` attr-dict `:` "
        "`(` type($value) `,` type($memref) `)` `->` type($result)",
        word_directive("Kind", ATOMIC_KINDS, "unknown kind '{word}' of {op}"),
    ),
    with_format(memref.CastOp, _CAST),
    with_format(memref.MemorySpaceCastOp, _CAST),
    with_format(memref.CopyOp, "$source `,` $destination attr-dict `:` type($source) `to` type($destination)"),
    with_format(memref.RankOp, "$source attr-dict `:` type($source)"),
    with_format(
        memref.ExtractAlignedPointerAsIndexOp, "$source attr-dict `:` type($source) `->` type($aligned_pointer)"
    ),
)
