"""`gpu`: custom syntax of kernels and launches, and `gpu.shuffle`."""

from __future__ import annotations

from typing import ClassVar, Final

from xdsl.dialects import gpu
from xdsl.dialects.builtin import (
    ArrayAttr,
    DenseArrayBase,
    DictionaryAttr,
    FunctionType,
    IntegerType,
    SymbolRefAttr,
    UnitAttr,
    i32,
)
from xdsl.dialects.utils.enum_attribute import EnumAttribute
from xdsl.ir import Attribute, Operation, SpacedOpaqueSyntaxAttribute, SSAValue
from xdsl.irdl import (
    AnyAttr,
    IRDLOperation,
    VarConstraint,
    irdl_attr_definition,
    irdl_op_definition,
    operand_def,
    prop_def,
    result_def,
    traits_def,
)
from xdsl.irdl.declarative_assembly_format import (
    CustomDirective,
    ParsingState,
    PrintingState,
    irdl_custom_directive,
)
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.utils.str_enum import StrEnum

from weft.dialects.effects import Synchronizes
from weft.dialects.upstream.custom_syntax import parse_indices, parse_optional_results, with_format, with_parser
from weft.dialects.upstream.gpu_mapping import MAPPINGS

KERNEL: Final = "gpu.kernel"
"""Unit attribute of a `gpu.func` that is a kernel."""
BLOCK_SIZE: Final = "known_block_size"
"""Threads of a block on each axis, as `array<i32: 64, 1, 1>`."""


class ShuffleMode(StrEnum):
    """The lane to read, as in `low.shuffle`."""

    XOR = "xor"
    UP = "up"
    DOWN = "down"
    IDX = "idx"


@irdl_attr_definition
class ShuffleModeAttr(EnumAttribute[ShuffleMode], SpacedOpaqueSyntaxAttribute):
    name = "gpu.shuffle_mode"


@irdl_op_definition
class ShuffleOp(IRDLOperation):
    """The value of another of `width` lanes, and whether that lane exists.

    ```mlir
    %r, %valid = gpu.shuffle xor %x, %offset, %width : f32
    ```
    """

    name = "gpu.shuffle"

    T: ClassVar = VarConstraint("T", AnyAttr())

    value = operand_def(T)
    offset = operand_def(i32)
    width = operand_def(i32)
    mode = prop_def(ShuffleModeAttr)
    shuffle_result = result_def(T)
    valid = result_def(IntegerType(1))

    traits = traits_def(Synchronizes())
    assembly_format = "$mode $value `,` $offset `,` $width attr-dict `:` type($value)"


@irdl_custom_directive
class UpperBound(CustomDirective):
    """An ignored hint."""

    def parse(self, parser: Parser, state: ParsingState) -> None:
        if parser.parse_optional_keyword("upper_bound") is not None:
            parser.parse_integer()

    def print(self, printer: Printer, state: PrintingState, op: IRDLOperation) -> None:
        pass


def _parse_func(parser: Parser) -> Operation:
    """`gpu.func @k(%A: memref<?xf32>) kernel attributes {known_block_size = array<i32: 64, 1, 1>} { ... }`."""
    name = parser.parse_symbol_name()
    noted: list[DictionaryAttr] = []

    def parse_argument() -> Parser.Argument:
        argument = parser.parse_argument()
        noted.append(DictionaryAttr(parser.parse_optional_dictionary_attr_dict()))
        return argument

    arguments = parser.parse_comma_separated_list(parser.Delimiter.PAREN, parse_argument)
    results = parse_optional_results(parser)
    for keyword in ("workgroup", "private"):
        if parser.parse_optional_keyword(keyword) is not None:
            parser.raise_error(
                f"buffers of gpu.func by '{keyword}(...)' are not read: a memref.global of the gpu.module, or a "
                "memref.alloca, is one"
            )
    attributes: dict[str, Attribute] = {"sym_name": name}
    if parser.parse_optional_keyword("kernel") is not None:
        attributes[KERNEL] = UnitAttr()
    given = parser.parse_optional_attr_dict_with_keyword()
    attributes |= {} if given is None else given.data
    if any(note.data for note in noted):
        attributes["arg_attrs"] = ArrayAttr(noted)
    type_ = FunctionType.from_lists([argument.type for argument in arguments], results)
    body = parser.parse_region(arguments)
    return gpu.FuncOp.create(properties={"function_type": type_}, attributes=attributes, regions=[body])


def _parse_launch(parser: Parser) -> Operation:
    """`gpu.launch_func @kernels::@k blocks in (%x, %y, %z) threads in (%a, %b, %c) args(%A : memref<?xf32>)`."""
    kernel = parser.parse_attribute()
    if not isinstance(kernel, SymbolRefAttr):
        parser.raise_error(f"gpu.launch_func names a kernel, @module::@kernel, got {kernel}")
    sizes: list[list[SSAValue]] = []
    for keyword in ("blocks", "threads"):
        parser.parse_keyword(keyword)
        parser.parse_keyword("in")
        sizes.append(parse_indices(parser))
    shared: list[SSAValue] = []
    if parser.parse_optional_keyword("dynamic_shared_memory_size") is not None:
        shared.append(parser.parse_operand(i32))
    arguments: list[SSAValue] = []
    if parser.parse_optional_keyword("args") is not None:

        def parse_argument() -> SSAValue:
            operand = parser.parse_unresolved_operand()
            parser.parse_punctuation(":")
            return parser.resolve_operand(operand, parser.parse_type())

        arguments = parser.parse_comma_separated_list(parser.Delimiter.PAREN, parse_argument)
    attributes = parser.parse_optional_attr_dict()
    segments = [0, *[1] * 6, 0, 0, 0, len(shared), len(arguments), 0]
    return gpu.LaunchFuncOp.create(
        operands=[*sizes[0], *sizes[1], *shared, *arguments],
        properties={"kernel": kernel, "operandSegmentSizes": DenseArrayBase.from_list(i32, segments)},
        attributes=attributes,
    )


PLACES: Final = (gpu.BlockDimOp, gpu.BlockIdOp, gpu.GlobalIdOp, gpu.GridDimOp, gpu.ThreadIdOp)
"""Positions of a thread, which newer versions of MLIR parse in the custom form only."""

OPERATIONS: tuple[type[Operation] | type[Attribute], ...] = (
    *MAPPINGS,
    ShuffleModeAttr,
    ShuffleOp,
    *(with_format(place, "$dimension custom<UpperBound>() attr-dict", UpperBound) for place in PLACES),
    with_format(gpu.ModuleOp, "$sym_name attr-dict-with-keyword $body"),
    with_parser(gpu.FuncOp, _parse_func),
    with_parser(gpu.LaunchFuncOp, _parse_launch),
    with_format(gpu.BarrierOp, "attr-dict"),
    with_format(gpu.TerminatorOp, "attr-dict"),
    with_format(gpu.ReturnOp, "attr-dict ($args^ `:` type($args))?"),
)
