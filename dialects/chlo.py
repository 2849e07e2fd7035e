"""chlo: client ops of StableHLO.

```mlir
%0 = chlo.erf %x : tensor<4xf32> -> tensor<4xf32>
%1 = chlo.broadcast_add %a, %b : (tensor<2x3xf32>, tensor<3xf32>) -> tensor<2x3xf32>
%v, %i = chlo.top_k(%x, k = 3) : tensor<2x5xf32> -> (tensor<2x3xf32>, tensor<2x3xi32>)
%y, %c = chlo.scan(%x) inits (%z) dimension=1 { ... } : (tensor<2x5xf32>, tensor<2xf32>) -> (...)
```

Source: the ODS assembly formats of chlo.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Final

from xdsl.dialects.builtin import ArrayAttr, BoolAttr, DenseArrayBase, IntegerAttr, TensorType, i32, i64
from xdsl.ir import Attribute, Operation
from xdsl.irdl import (
    AttrSizedOperandSegments,
    AttrSizedResultSegments,
    IRDLOperation,
    irdl_attr_definition,
    irdl_op_definition,
    opt_prop_def,
    prop_def,
    region_def,
    traits_def,
    var_operand_def,
    var_result_def,
)
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import Pure, RecursiveMemoryEffect
from xdsl.utils.exceptions import VerifyException

from weft.dialects.printing import write
from weft.dialects.stablehlo import (
    NUMBERS,
    DenseConstantOp,
    ElementwiseOp,
    KeyedAttr,
    Properties,
    TensorOp,
    TensorsOp,
    WordAttr,
    declared,
    parse_end,
    parse_function_type,
    print_end,
)


def _attribute(name: str, base: Any) -> Any:
    label = "".join(word.capitalize() for word in name.split("_")) + "Attr"
    return irdl_attr_definition(type(label, (base,), {"name": f"chlo.{name}"}))


RaggedDotDimensionNumbersAttr = _attribute("ragged_dot", KeyedAttr)
"""The batch, contracting, ragged and group dimensions of a ragged_dot."""
ChloPrecisionAttr = _attribute("precision", WordAttr)
ChloComparisonDirectionAttr = _attribute("comparison_direction", WordAttr)
ChloComparisonTypeAttr = _attribute("comparison_type", WordAttr)
ATTRIBUTES: Final[list[type[Attribute]]] = [
    ChloComparisonDirectionAttr,
    ChloComparisonTypeAttr,
    ChloPrecisionAttr,
    RaggedDotDimensionNumbersAttr,
]


class ChloOp(ElementwiseOp):
    """An elementwise op: `chlo.erf %x : tensor<4xf32> -> tensor<4xf32>`."""

    def _print_types(self, printer: Printer) -> None:
        write(printer, " : ", [*self.operand_types], " -> ", self.result_types[0])


CHLO: Final[Mapping[int, str]] = {
    1: "acos acosh asin asinh atan atanh bessel_i1e conj cosh digamma erf erf_inv erfc is_inf is_neg_inf is_pos_inf "
    "lgamma sinh square tan",
    2: "mulhi next_after polygamma zeta",
}
"""Maps a number of operands to the names of the elementwise ops of chlo."""


class BroadcastingOp(TensorOp):
    """An elementwise op on operands broadcast to one shape: `chlo.broadcast_add`. Dimensions of 1 are repeated. An
    operand of smaller rank has the last dimensions, or `broadcast_dimensions`."""

    BASE: ClassVar[str]
    """The name of the elementwise op."""
    broadcast_dimensions = opt_prop_def(NUMBERS)


_STABLEHLO_BASES: Final = (
    "add and atan2 complex divide maximum minimum multiply or power remainder shift_left shift_right_arithmetic "
    "shift_right_logical subtract xor"
)
_BROADCASTING: Final[Mapping[str, str]] = {
    **{name: f"stablehlo.{name}" for name in _STABLEHLO_BASES.split()},
    **{name: f"chlo.{name}" for name in ("next_after", "polygamma", "zeta")},
}
"""Maps the name of an op after `broadcast_` to the elementwise op."""


@irdl_op_definition
class BroadcastCompareOp(BroadcastingOp):
    """`chlo.broadcast_compare %a, %b {comparison_direction = #chlo<comparison_direction LT>} : (T, U) -> R`."""

    name = "chlo.broadcast_compare"
    BASE: ClassVar[str] = "stablehlo.compare"
    ARITY: ClassVar[int | None] = 2
    comparison_direction = prop_def(ChloComparisonDirectionAttr)
    compare_type = opt_prop_def(ChloComparisonTypeAttr)


@irdl_op_definition
class BroadcastSelectOp(BroadcastingOp):
    """`chlo.broadcast_select %p, %a, %b : (tensor<3xi1>, tensor<2x3xf32>, tensor<f32>) -> tensor<2x3xf32>`."""

    name = "chlo.broadcast_select"
    BASE: ClassVar[str] = "stablehlo.select"
    ARITY: ClassVar[int | None] = 3


@irdl_op_definition
class ChloConstantOp(DenseConstantOp):
    """`chlo.constant dense<0.0> : tensor<4xf32>`."""

    name = "chlo.constant"


@irdl_op_definition
class ConstantLikeOp(TensorsOp):
    """A splat of another tensor's shape: `"chlo.constant_like"(%x) <{value = 2.0 : f32}> : (T) -> T`."""

    name = "chlo.constant_like"
    ARITY: ClassVar[int | None] = 1
    value = prop_def(Attribute)
    traits = traits_def(Pure())


@irdl_op_definition
class TopKOp(TensorsOp):
    """The greatest elements of the last dimension, with indices: `chlo.top_k(%x, k = 3) : T -> (R, S)`."""

    name = "chlo.top_k"
    k = prop_def(IntegerAttr)
    traits = traits_def(Pure())

    def verify_(self) -> None:
        if len(self.inputs) != 1 or len(self.outputs) != 2:
            raise VerifyException(f"{self.name} has 1 operand and 2 results, got {len(self.inputs)}")

    @classmethod
    def parse(cls, parser: Parser) -> TopKOp:
        at = parser.pos
        with parser.in_parens():
            operand = parser.parse_unresolved_operand()
            parser.parse_punctuation(",")
            parser.parse_keyword("k")
            parser.parse_punctuation("=")
            properties: Properties = {"k": IntegerAttr(parser.parse_integer(), i64)}
        return parse_end(cls, parser, [operand], properties, at, lambda _: TensorOp.parse_types(parser, 1))

    def print(self, printer: Printer) -> None:
        write(printer, "(", self.inputs[0], f", k = {self.k.value.data})")
        print_end(printer, self, "k", types=False)
        write(printer, " : ", self.inputs[0].type, " -> (", [*self.result_types], ")")


@irdl_op_definition
class RaggedDotOp(TensorsOp):
    """Products of groups of rows, each with its own matrix, in the generic form. Operand 2 is the group sizes."""

    name = "chlo.ragged_dot"
    ARITY: ClassVar[int | None] = 3
    ragged_dot_dimension_numbers = prop_def(RaggedDotDimensionNumbersAttr)
    precision_config = opt_prop_def(ArrayAttr)
    traits = traits_def(Pure())


@irdl_op_definition
class ScanOp(IRDLOperation):
    """Apply a region to slices along a dimension, in order, with carried values.

    ```mlir
    %y, %c = chlo.scan(%x) inits (%z) dimension=1 {
    ^bb0(%slice: tensor<2xf32>, %carry: tensor<2xf32>):
      %s = stablehlo.add %slice, %carry : tensor<2xf32>
      stablehlo.return %s, %s : tensor<2xf32>, tensor<2xf32>
    } : (tensor<2x5xf32>, tensor<2xf32>) -> (tensor<2x5xf32>, tensor<2xf32>)
    ```
    """

    name = "chlo.scan"
    inputs = var_operand_def(TensorType)
    inits = var_operand_def(TensorType)
    outputs = var_result_def(TensorType)
    carries = var_result_def(TensorType)
    dimension = prop_def(IntegerAttr)
    scan_dim_size = opt_prop_def(IntegerAttr)
    is_reverse = opt_prop_def(BoolAttr)
    is_associative = opt_prop_def(BoolAttr)
    body = region_def("single_block")
    irdl_options = (AttrSizedOperandSegments(as_property=True), AttrSizedResultSegments(as_property=True))
    traits = traits_def(RecursiveMemoryEffect())

    def verify_(self) -> None:
        if len(self.carries) != len(self.inits):
            raise VerifyException(f"{self.name} carries {len(self.inits)} values, got {len(self.carries)} results")
        if len(self.body.block.args) != len(self.operands):
            raise VerifyException(
                f"{self.name}: the region takes {len(self.operands)} slices and values, got "
                f"{len(self.body.block.args)} arguments"
            )

    @classmethod
    def parse(cls, parser: Parser) -> ScanOp:
        at = parser.pos
        inputs = parser.parse_comma_separated_list(parser.Delimiter.PAREN, parser.parse_unresolved_operand)
        parser.parse_keyword("inits")
        inits = parser.parse_comma_separated_list(parser.Delimiter.PAREN, parser.parse_unresolved_operand)
        parser.parse_keyword("dimension")
        parser.parse_punctuation("=")
        properties: Properties = {"dimension": IntegerAttr(parser.parse_integer(), i64)}
        given = parser.parse_optional_attr_dict_with_keyword()
        if given is not None:
            properties |= given.data
        region = parser.parse_region()
        operand_types, result_types = parse_function_type(parser)
        carries = len(inits)
        for name, first, second in (
            ("operandSegmentSizes", len(inputs), len(inits)),
            ("resultSegmentSizes", len(result_types) - carries, carries),
        ):
            properties[name] = DenseArrayBase.from_list(i32, [first, second])
        operands = parser.resolve_operands([*inputs, *inits], operand_types, at)
        return cls.create(operands=operands, result_types=result_types, properties=properties, regions=[region])

    def print(self, printer: Printer) -> None:
        write(printer, "(", [*self.inputs], ") inits (", [*self.inits], f") dimension={self.dimension.value.data} ")
        hidden = ("dimension", "operandSegmentSizes", "resultSegmentSizes")
        rest = {name: value for name, value in self.properties.items() if name not in hidden}
        printer.print_op_attributes({**rest, **self.attributes}, print_keyword=True)
        printer.print_string(" ")
        printer.print_region(self.body)
        printer.print_string(" : ")
        printer.print_function_type(self.operand_types, self.result_types)


CHLO_OPS: Final[list[type[Operation]]] = [
    *(declared("chlo", name, ChloOp, ARITY=arity) for arity, names in CHLO.items() for name in names.split()),
    *(
        declared("chlo", f"broadcast_{name}", BroadcastingOp, ARITY=2, BASE=base)
        for name, base in _BROADCASTING.items()
    ),
    BroadcastCompareOp,
    BroadcastSelectOp,
    ChloConstantOp,
    ConstantLikeOp,
    RaggedDotOp,
    ScanOp,
    TopKOp,
]
