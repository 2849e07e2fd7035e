"""Unstructured operations of linalg: `softmax`, `pack`, `unpack`, and Winograd transforms."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Final, cast

from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    I64,
    DenseArrayBase,
    IndexType,
    IntegerAttr,
    ShapedType,
    TensorType,
    i64,
)
from xdsl.dialects.utils import DynamicIndexList
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
from xdsl.irdl.declarative_assembly_format import (
    CustomDirective,
    ParsingState,
    PrintingState,
    TypeDirective,
    irdl_custom_directive,
)
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import Pure
from xdsl.utils.exceptions import VerifyException
from xdsl.utils.type import get_element_type_or_self

from weft.dialects.upstream import linalg
from weft.dialects.upstream.custom_syntax import word_directive

if TYPE_CHECKING:
    from collections.abc import Sequence

    from xdsl.ir import Attribute, Operation, SSAValue


@irdl_custom_directive
class DestinationTypes(CustomDirective):
    """The destination's type, also the result's if it is a tensor."""

    destination: TypeDirective
    result: TypeDirective

    def parse(self, parser: Parser, state: ParsingState) -> None:
        type_ = parser.parse_type()
        self.destination.set(state, [type_])
        self.result.set(state, [type_] if isinstance(type_, TensorType) else [])

    def print(self, printer: Printer, state: PrintingState, op: IRDLOperation) -> None:
        self.destination.print(printer, state, op)


_GROUPS: Final = "`ins` `(` $input `:` type($input) `)` `outs` `(` $output `:` type($output) `)`"
_TILES: Final = (
    "(`outer_dims_perm` `=` $outer_dims_perm^)? `inner_dims_pos` `=` $inner_dims_pos "
    "`inner_tiles` `=` custom<DynamicIndexList>($inner_tiles, $static_inner_tiles) "
    "`into` $dest attr-dict `:` type($source) `->` custom<DestinationTypes>(type($dest), type($res))"
)


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
    dimension = prop_def(IntegerAttr[I64])
    res = var_result_def(TensorType)

    traits = traits_def(linalg.DestinationEffects())
    assembly_format = f"attr-dict `dimension` `(` $dimension `)` {_GROUPS} (`->` type($res)^)?"

    def verify_(self) -> None:
        shape = _shape(self.input)
        if not 0 <= self.dimension.value.data < len(shape):
            raise VerifyException(f"{self.name} along dimension {self.dimension.value.data} of {self.input.type}")
        if shape != _shape(self.output):
            raise VerifyException(f"{self.name} gives the shape of {self.input.type}, not that of {self.output.type}")
        if [*self.result_types] != [t for t in (self.output.type,) if isinstance(t, TensorType)]:
            raise VerifyException(f"{self.name} gives a result of the type of its output, if that is a tensor")


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


@irdl_op_definition
class PackOp(LayoutOp):
    """A tensor in tiles, the last ones padded.

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
    inner_tiles = var_operand_def(IndexType())
    res = var_result_def(TensorType)

    irdl_options = (AttrSizedOperandSegments(as_property=True),)
    custom_directives = (DynamicIndexList, DestinationTypes)
    assembly_format = f"$source (`padding_value` `(` $padding_value^ `:` type($padding_value) `)`)? {_TILES}"

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
    """The elements of tiles, without padding.

    ```mlir
    %r = linalg.unpack %a inner_dims_pos = [1] inner_tiles = [8] into %o : tensor<10x2x8xf32> -> tensor<10x15xf32>
    ```
    """

    name = "linalg.unpack"
    PACKED: ClassVar[int] = 0

    source = operand_def(ShapedType)
    dest = operand_def(ShapedType)
    inner_tiles = var_operand_def(IndexType())
    res = var_result_def(TensorType)
    custom_directives = (DynamicIndexList, DestinationTypes)
    assembly_format = f"$source {_TILES}"


WINOGRAD: Final = ("F_2_3", "F_4_3", "F_2_5")
"""Output tile and filter, as MLIR numbers them."""
_Size = word_directive("_Size", WINOGRAD, "{op} has sizes {words}, got {word}", 32)


class WinogradOp(IRDLOperation):
    """A transform for Winograd's products, which no pass accepts.

    `%r = linalg.winograd_input_transform fmr(F_4_3) ins(%a : tensor<2x6x6x5xf32>) outs(%o : tensor<6x6x1x1x2x5xf32>) ->
    tensor<6x6x1x1x2x5xf32>`
    """

    input = operand_def(TensorType)
    output = operand_def(TensorType)
    fmr = prop_def(IntegerAttr)
    res = result_def(TensorType)

    traits = traits_def(Pure())
    custom_directives = (_Size,)
    assembly_format = f"attr-dict `fmr` `(` custom<_Size>($fmr) `)` {_GROUPS} `->` type($res)"

    def verify_(self) -> None:
        if not 0 <= self.fmr.value.data < len(WINOGRAD):
            raise VerifyException(f"{self.name}: fmr is from 0 to {len(WINOGRAD) - 1}, got {self.fmr.value.data}")


@irdl_op_definition
class WinogradFilterOp(WinogradOp):
    name = "linalg.winograd_filter_transform"


@irdl_op_definition
class WinogradInputOp(WinogradOp):
    """Transforms an image's tiles."""

    name = "linalg.winograd_input_transform"


@irdl_op_definition
class WinogradOutputOp(WinogradOp):
    """Transforms a result's tiles."""

    name = "linalg.winograd_output_transform"


OPERATIONS: Final[tuple[type[Operation] | type[Attribute], ...]] = (
    *linalg.OPERATIONS,
    *(SoftmaxOp, PackOp, UnpackOp),
    *(WinogradFilterOp, WinogradInputOp, WinogradOutputOp),
)
"""All that weft's tools read of linalg."""
