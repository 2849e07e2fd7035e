"""Operations of linalg that are not structured: `softmax`, `pack`, `unpack`, and Winograd transforms."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Final, cast

from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    DenseArrayBase,
    IndexType,
    IntegerAttr,
    ShapedType,
    TensorType,
    i32,
    i64,
)
from xdsl.dialects.utils import parse_dynamic_index_list_without_types, print_dynamic_index_list
from xdsl.irdl import (
    AttrSizedOperandSegments,
    IRDLOperation,
    irdl_op_definition,
    operand_def,
    opt_operand_def,
    opt_prop_def,
    prop_def,
    result_def,
    traits_def,
    var_operand_def,
    var_result_def,
)
from xdsl.traits import Pure
from xdsl.utils.exceptions import VerifyException
from xdsl.utils.type import get_element_type_or_self

from weft.dialects.printing import write
from weft.dialects.upstream import linalg
from weft.dialects.upstream.custom_syntax import parse_optional_results

if TYPE_CHECKING:
    from collections.abc import Sequence

    from xdsl.ir import Attribute, Operation, SSAValue
    from xdsl.parser import Parser
    from xdsl.printer import Printer


def _parse_group(parser: Parser, keyword: str) -> SSAValue:
    """`ins(%a : type)`"""
    parser.parse_keyword(keyword)
    with parser.in_parens():
        name = parser.parse_unresolved_operand()
        parser.parse_punctuation(":")
        return parser.resolve_operand(name, parser.parse_type())


def _print_groups(printer: Printer, op: SoftmaxOp | WinogradOp, setting: str) -> None:
    """`{attributes} setting ins(%a : type) outs(%o : type) -> type`"""
    if op.attributes:
        printer.print_string(" ")
        printer.print_attr_dict(op.attributes)
    write(printer, f" {setting} ins(", op.input, " : ", op.input.type, ")")
    write(printer, " outs(", op.output, " : ", op.output.type, ")")
    if op.results:
        write(printer, " -> ", op.results[0].type)


def _shape(value: SSAValue) -> Sequence[int]:
    return cast("TensorType[Attribute]", value.type).get_shape()


@irdl_op_definition
class SoftmaxOp(IRDLOperation):
    """`exp(x - max) / sum(exp(x - max))` along one dimension.

    ```mlir
    %r = linalg.softmax dimension(1) ins(%a : tensor<4x8xf32>) outs(%o : tensor<4x8xf32>) -> tensor<4x8xf32>
    ```
    """

    name = "linalg.softmax"

    input = operand_def(ShapedType)
    output = operand_def(ShapedType)
    dimension = prop_def(IntegerAttr)
    res = var_result_def(TensorType)

    traits = traits_def(linalg.DestinationEffects())

    def verify_(self) -> None:
        shape = _shape(self.input)
        if not 0 <= self.dimension.value.data < len(shape):
            raise VerifyException(f"{self.name} along dimension {self.dimension.value.data} of {self.input.type}")
        if shape != _shape(self.output):
            raise VerifyException(f"{self.name} gives the shape of {self.input.type}, not that of {self.output.type}")
        if [*self.result_types] != [t for t in (self.output.type,) if isinstance(t, TensorType)]:
            raise VerifyException(f"{self.name} gives a result of the type of its output, if that is a tensor")

    @classmethod
    def parse(cls, parser: Parser) -> SoftmaxOp:
        attributes = parser.parse_optional_attr_dict()
        parser.parse_keyword("dimension")
        with parser.in_parens():
            dimension = parser.parse_integer()
        operands = [_parse_group(parser, "ins"), _parse_group(parser, "outs")]
        return cls.create(
            operands=operands,
            result_types=parse_optional_results(parser),
            properties={"dimension": IntegerAttr(dimension, i64)},
            attributes=attributes,
        )

    def print(self, printer: Printer) -> None:
        _print_groups(printer, self, f"dimension({self.dimension.value.data})")


class LayoutOp(IRDLOperation):
    outer_dims_perm = opt_prop_def(DenseArrayBase.constr(i64))
    inner_dims_pos = prop_def(DenseArrayBase.constr(i64))
    static_inner_tiles = prop_def(DenseArrayBase.constr(i64))

    traits = traits_def(linalg.DestinationEffects())
    PACKED: ClassVar[int]
    """The operand in tiles: source (0) or destination (1)."""

    @property
    def tiles(self) -> tuple[int, ...]:
        return self.static_inner_tiles.get_values()

    @property
    def tiled(self) -> tuple[int, ...]:
        """Dimension of each innermost dimension."""
        return self.inner_dims_pos.get_values()

    @property
    def outer(self) -> tuple[int, ...]:
        """Dimension whose tiles, or elements, each outer one counts."""
        stated = () if self.outer_dims_perm is None else self.outer_dims_perm.get_values()
        return stated or tuple(range(self.rank))

    @property
    def packed(self) -> SSAValue:
        return self.operands[self.PACKED]

    @property
    def plain(self) -> SSAValue:
        return self.operands[1 - self.PACKED]

    @property
    def rank(self) -> int:
        return len(_shape(self.plain))

    def verify_(self) -> None:
        rank, tiled = self.rank, self.tiled
        source, dest = self.operands[0].type, self.operands[1].type
        if type(source) is not type(dest):
            raise VerifyException(f"{self.name} is of two tensors or two buffers, not of {source} and {dest}")
        if [*self.result_types] != [t for t in (dest,) if isinstance(t, TensorType)]:
            raise VerifyException(f"{self.name} gives a result of the type of its destination, if that is a tensor")
        if len(set(tiled)) != len(tiled) or not all(0 <= d < rank for d in tiled) or len(tiled) != len(self.tiles):
            raise VerifyException(f"{self.name} has tiles {list(self.tiles)} of dimensions {list(tiled)} of {rank}")
        if sorted(self.outer) != list(range(rank)):
            raise VerifyException(f"{self.name}: outer_dims_perm {list(self.outer)} is no permutation of {rank}")
        if len(_shape(self.packed)) != rank + len(tiled):
            raise VerifyException(f"{self.name}: {self.packed.type} has no {rank} dimensions and {len(tiled)} tiles")
        elements = [get_element_type_or_self(value.type) for value in (self.plain, self.packed)]
        if elements[0] != elements[1]:
            raise VerifyException(f"{self.name}: elements are {elements[0]} in the plain array, {elements[1]} in tiles")
        for at, tile in enumerate(self.tiles):
            if tile not in (DYNAMIC_INDEX, _shape(self.packed)[rank + at]):
                raise VerifyException(f"{self.name}: tile {at} is of {tile}, in {self.packed.type}")
            if tile == 0:
                raise VerifyException(f"{self.name}: tile {at} is of 0 elements")
        sizes = dict(zip(tiled, self.tiles, strict=True))
        for at, d in enumerate(self.outer):
            extent, count, tile = _shape(self.plain)[d], _shape(self.packed)[at], sizes.get(d, 1)
            if DYNAMIC_INDEX not in (extent, count, tile) and count * tile < extent:
                raise VerifyException(
                    f"{self.name}: {count} tiles of {tile} do not hold dimension {d} of {extent} in {self.plain.type}"
                )

    @classmethod
    def parse(cls, parser: Parser) -> LayoutOp:
        def positions() -> DenseArrayBase[Any]:
            parser.parse_punctuation("=")
            numbers = parser.parse_comma_separated_list(parser.Delimiter.SQUARE, parser.parse_integer)
            return DenseArrayBase.from_list(i64, numbers)

        properties: dict[str, Attribute | None] = {}
        source = parser.parse_unresolved_operand()
        padding: list[SSAValue] = []
        if cls is PackOp and parser.parse_optional_keyword("padding_value") is not None:
            with parser.in_parens():
                name = parser.parse_unresolved_operand()
                parser.parse_punctuation(":")
                padding.append(parser.resolve_operand(name, parser.parse_type()))
        if parser.parse_optional_keyword("outer_dims_perm") is not None:
            properties["outer_dims_perm"] = positions()
        parser.parse_keyword("inner_dims_pos")
        properties["inner_dims_pos"] = positions()
        parser.parse_keyword("inner_tiles")
        parser.parse_punctuation("=")
        at = parser.pos
        names, sizes = parse_dynamic_index_list_without_types(parser, DYNAMIC_INDEX)
        properties["static_inner_tiles"] = DenseArrayBase.from_list(i64, sizes)
        tiles = parser.resolve_operands(list(names), [IndexType()] * len(names), at)
        parser.parse_keyword("into")
        dest = parser.parse_unresolved_operand()
        attributes = parser.parse_optional_attr_dict()
        parser.parse_punctuation(":")
        source_type = parser.parse_type()
        parser.parse_punctuation("->")
        dest_type = parser.parse_type()
        operands = [parser.resolve_operand(source, source_type), parser.resolve_operand(dest, dest_type)]
        groups = [padding, tiles] if cls is PackOp else [tiles]
        results = [dest_type] if isinstance(dest_type, TensorType) else []
        return cls.build(
            operands=[*operands, *groups], result_types=[results], properties=properties, attributes=attributes
        )

    def print(self, printer: Printer) -> None:
        source, dest, *tiles = self.operands
        write(printer, " ", source)
        if isinstance(self, PackOp) and self.padding_value is not None:
            write(printer, " padding_value(", self.padding_value, " : ", self.padding_value.type, ")")
            tiles = tiles[1:]
        if self.outer_dims_perm is not None:
            write(printer, f" outer_dims_perm = {list(self.outer_dims_perm.get_values())}")
        write(printer, f" inner_dims_pos = {list(self.tiled)} inner_tiles = ")
        print_dynamic_index_list(printer, DYNAMIC_INDEX, tiles, self.tiles)
        write(printer, " into ", dest)
        printer.print_op_attributes(self.attributes)
        write(printer, " : ", source.type, " -> ", dest.type)


@irdl_op_definition
class PackOp(LayoutOp):
    """A tensor in tiles, the last of which are padded.

    ```mlir
    %r = linalg.pack %a padding_value(%z : f32) inner_dims_pos = [1] inner_tiles = [8] into %o
        : tensor<10x15xf32> -> tensor<10x2x8xf32>
    ```
    """

    name = "linalg.pack"
    PACKED: ClassVar[int] = 1

    source = operand_def(ShapedType)
    dest = operand_def(ShapedType)
    padding_value = opt_operand_def()
    inner_tiles = var_operand_def(IndexType)
    res = var_result_def(TensorType)

    irdl_options = (AttrSizedOperandSegments(as_property=True),)

    def verify_(self) -> None:
        super().verify_()
        if self.padding_value is not None:
            padding, element = self.padding_value.type, cast("TensorType[Attribute]", self.dest.type).element_type
            if padding != element:
                raise VerifyException(f"{self.name}: the padding_value is a {padding}, the elements are {element}")
            return
        for d, tile in zip(self.tiled, self.tiles, strict=True):
            extent = _shape(self.plain)[d]
            if DYNAMIC_INDEX not in (extent, tile) and extent % tile:
                raise VerifyException(
                    f"{self.name}: tiles of {tile} do not divide dimension {d} of {self.plain.type}, which needs a "
                    "padding_value"
                )


@irdl_op_definition
class UnpackOp(LayoutOp):
    """A tensor of the elements in tiles, without their padding.

    ```mlir
    %r = linalg.unpack %a inner_dims_pos = [1] inner_tiles = [8] into %o : tensor<10x2x8xf32> -> tensor<10x15xf32>
    ```
    """

    name = "linalg.unpack"
    PACKED: ClassVar[int] = 0

    source = operand_def(ShapedType)
    dest = operand_def(ShapedType)
    inner_tiles = var_operand_def(IndexType)
    res = var_result_def(TensorType)


WINOGRAD: Final = ("F_2_3", "F_4_3", "F_2_5")
"""Output tile and filter, as MLIR numbers them."""


class WinogradOp(IRDLOperation):
    """A transform of a tensor for products in Winograd's form; weft's tools read it, no pass takes it.

    `%r = linalg.winograd_input_transform fmr(F_4_3) ins(%a : tensor<2x6x6x5xf32>)
    outs(%o : tensor<6x6x1x1x2x5xf32>) -> tensor<6x6x1x1x2x5xf32>`
    """

    input = operand_def(TensorType)
    output = operand_def(TensorType)
    fmr = prop_def(IntegerAttr)
    res = result_def(TensorType)

    traits = traits_def(Pure())

    def verify_(self) -> None:
        if not 0 <= self.fmr.value.data < len(WINOGRAD):
            raise VerifyException(f"{self.name}: fmr is from 0 to {len(WINOGRAD) - 1}, got {self.fmr.value.data}")

    @classmethod
    def parse(cls, parser: Parser) -> WinogradOp:
        attributes = parser.parse_optional_attr_dict()
        parser.parse_keyword("fmr")
        with parser.in_parens():
            at = parser.pos
            size = parser.parse_identifier()
        if size not in WINOGRAD:
            parser.raise_error(f"{cls.name} has sizes {', '.join(WINOGRAD)}, got {size}", at, parser.pos)
        operands = [_parse_group(parser, "ins"), _parse_group(parser, "outs")]
        return cls.create(
            operands=operands,
            result_types=parse_optional_results(parser),
            properties={"fmr": IntegerAttr(WINOGRAD.index(size), i32)},
            attributes=attributes,
        )

    def print(self, printer: Printer) -> None:
        _print_groups(printer, self, f"fmr({WINOGRAD[self.fmr.value.data]})")


@irdl_op_definition
class WinogradFilterOp(WinogradOp):
    """The transform of a filter."""

    name = "linalg.winograd_filter_transform"


@irdl_op_definition
class WinogradInputOp(WinogradOp):
    """The transform of the tiles of an image."""

    name = "linalg.winograd_input_transform"


@irdl_op_definition
class WinogradOutputOp(WinogradOp):
    """The transform of the tiles of a result."""

    name = "linalg.winograd_output_transform"


OPERATIONS: Final[tuple[type[Operation] | type[Attribute], ...]] = (
    *linalg.OPERATIONS,
    *(SoftmaxOp, PackOp, UnpackOp),
    *(WinogradFilterOp, WinogradInputOp, WinogradOutputOp),
)
"""All that weft's tools read of linalg."""
