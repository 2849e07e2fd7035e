"""stablehlo and chlo: the ops of programs as `jax.export` and `jax.jit(f).lower(...)` print them.

This file defines the text form; `interp/stablehlo.py` and the pass `convert-stablehlo-to-te` define the semantics and
check shapes. Tables define ops printed as operands, keywords and types:

```mlir
%0 = stablehlo.add %a, %b : tensor<4xf32>
%1 = stablehlo.broadcast_in_dim %0, dims = [1] : (tensor<4xf32>) -> tensor<2x4xf32>
%2 = stablehlo.pad %0, %c, low = [1], high = [0], interior = [0] : (tensor<4xf32>, tensor<f32>) -> tensor<5xf32>
```

Source: the StableHLO specification (openxla.org/stablehlo/spec) and its ODS assembly formats.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, Final, TypeAlias, TypeVar, cast

from xdsl.dialects.builtin import (
    I32,
    ArrayAttr,
    BoolAttr,
    DenseArrayBase,
    DenseIntOrFPElementsAttr,
    DictionaryAttr,
    FunctionType,
    IntegerAttr,
    StringAttr,
    SymbolNameConstraint,
    SymbolRefAttr,
    TensorType,
    TupleType,
    i1,
    i64,
)
from xdsl.ir import Attribute, Block, Data, Operation, Region, SSAValue
from xdsl.ir.core import SpacedOpaqueSyntaxAttribute
from xdsl.irdl import (
    IRDLOperation,
    ParsePropInAttrDict,
    RangeOf,
    RangeVarConstraint,
    base,
    irdl_attr_definition,
    irdl_op_definition,
    operand_def,
    opt_prop_def,
    prop_def,
    region_def,
    result_def,
    traits_def,
    var_operand_def,
    var_region_def,
    var_result_def,
)
from xdsl.parser import AttrParser, Parser, UnresolvedOperand
from xdsl.printer import Printer
from xdsl.traits import IsTerminator, Pure, RecursiveMemoryEffect
from xdsl.utils.exceptions import VerifyException

from weft.dialects.printing import Piece, float_text, write
from weft.dialects.upstream.custom_syntax import parse_types

Tensor: TypeAlias = TensorType[Attribute]
Properties: TypeAlias = dict[str, Attribute]
OpT = TypeVar("OpT", bound=IRDLOperation)

NUMBERS: Final = DenseArrayBase.constr(i64)


def numbers(attribute: Attribute | None) -> tuple[int, ...]:
    """Integers of an `array<i64: ...>` or dense constant, empty if absent."""
    if attribute is None:
        return ()
    return tuple(int(n) for n in cast("DenseArrayBase[Any] | DenseIntOrFPElementsAttr[Any]", attribute).get_values())


# Attributes


class KeyedAttr(Data[tuple[tuple[str, tuple[int, ...] | int], ...]]):
    """Lists of dimensions by key: `#stablehlo.gather<offset_dims = [1], index_vector_dim = 1>`."""

    def dims(self, key: str) -> tuple[int, ...]:
        """Returns an empty list if absent."""
        found = dict(self.data).get(key, ())
        return found if isinstance(found, tuple) else (found,)

    def number(self, key: str) -> int:
        """Returns 0 if absent."""
        found = dict(self.data).get(key, 0)
        return found if isinstance(found, int) else 0

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> tuple[tuple[str, tuple[int, ...] | int], ...]:
        parser.parse_punctuation("<")
        return parse_entries(parser)

    def print_parameter(self, printer: Printer) -> None:
        with printer.in_angle_brackets():
            printer.print_string(", ".join(f"{key} = {shown(value)}" for key, value in self.data))


AttrT = TypeVar("AttrT", bound="Attribute")


def attribute(name: str, base: type[AttrT]) -> type[AttrT]:
    label = "".join(word.capitalize() for word in name.split("_")) + "Attr"
    return cast("type[AttrT]", irdl_attr_definition(type(label, (base,), {"name": f"stablehlo.{name}"})))


GatherDimensionNumbersAttr = attribute("gather", KeyedAttr)
"""The dimensions of the operand of a gather that its indices and its result refer to."""
ScatterDimensionNumbersAttr = attribute("scatter", KeyedAttr)
"""The dimensions of the operand of a scatter that its indices and its updates refer to."""
DotDimensionNumbersAttr = attribute("dot", KeyedAttr)
"""The batch and contracting dimensions of a dot_general."""
DOT_KEYS: Final = (
    ("lhs_batching_dimensions", "rhs_batching_dimensions"),
    ("lhs_contracting_dimensions", "rhs_contracting_dimensions"),
)

ConvLayout: TypeAlias = tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]


@irdl_attr_definition
class ConvDimensionNumbersAttr(Data[ConvLayout]):
    """Labels of the dimensions of input, kernel and output: `[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]`.

    Lists are parsed, too: `#stablehlo.conv<raw input_batch_dimension = 0, ...>`.
    """

    name = "stablehlo.conv"

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> ConvLayout:
        parser.parse_punctuation("<")
        at = parser.pos
        if parser.parse_optional_keyword("raw") is None:
            layout = parse_conv_layout(parser)
            parser.parse_punctuation(">")
            return layout
        dims = dict(parse_entries(parser))
        found = tuple(_letters(dims, *names) for names in _CONV_DIMS)
        if any("" in letters for letters in found):
            parser.raise_error("the dimensions of an operand of a convolution are not all different", at, parser.pos)
        return cast("ConvLayout", found)

    def print_parameter(self, printer: Printer) -> None:
        with printer.in_angle_brackets():
            printer.print_string(self.text())

    def text(self) -> str:
        """The form without angle brackets."""
        left, kernel, output = (f"[{', '.join(letters)}]" for letters in self.data)
        return f"{left}x{kernel}->{output}"


_CONV_DIMS: Final = (
    ("input", {"b": "batch_dimension", "f": "feature_dimension"}),
    ("kernel", {"i": "input_feature_dimension", "o": "output_feature_dimension"}),
    ("output", {"b": "batch_dimension", "f": "feature_dimension"}),
)
"""The operands of a convolution, and their non-spatial dimensions."""


def _letters(dims: Mapping[str, tuple[int, ...] | int], operand: str, others: Mapping[str, str]) -> tuple[str, ...]:
    """Labels of an operand's dimensions, empty unless unique."""
    spatial = dims.get(f"{operand}_spatial_dimensions", ())
    spatial = spatial if isinstance(spatial, tuple) else (spatial,)
    places = {str(at): dim for at, dim in enumerate(spatial)}
    places |= {letter: dims.get(f"{operand}_{name}") for letter, name in others.items()}
    by_place = {place: letter for letter, place in places.items()}
    return tuple(by_place.get(at, "") for at in range(len(places)))


def parse_conv_layout(parser: AttrParser) -> ConvLayout:
    def parse_letter() -> str:
        number = parser.parse_optional_integer(allow_boolean=False, allow_negative=False)
        return str(number) if number is not None else parser.parse_identifier()

    def parse_letters() -> tuple[str, ...]:
        return tuple(parser.parse_comma_separated_list(parser.Delimiter.SQUARE, parse_letter))

    left = parse_letters()
    parser.parse_keyword("x")
    kernel = parse_letters()
    parser.parse_punctuation("->")
    return left, kernel, parse_letters()


class WordAttr(Data[str], SpacedOpaqueSyntaxAttribute):
    """A word of an enumeration: `#stablehlo<precision DEFAULT>`."""

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> str:
        return parser.parse_identifier()

    def print_parameter(self, printer: Printer) -> None:
        printer.print_string(self.data)


@irdl_attr_definition
class BoundsAttr(Data[tuple[int | None, ...]]):
    """Encoding of a tensor type: maximum extents of dynamic dimensions, `#stablehlo.bounds<?, 8>`."""

    name = "stablehlo.bounds"

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> tuple[int | None, ...]:
        def parse_bound() -> int | None:
            is_unknown = parser.parse_optional_punctuation("?") is not None
            return None if is_unknown else parser.parse_integer(allow_boolean=False, allow_negative=False)

        return tuple(parser.parse_comma_separated_list(parser.Delimiter.ANGLE, parse_bound))

    def print_parameter(self, printer: Printer) -> None:
        with printer.in_angle_brackets():
            printer.print_string(", ".join("?" if bound is None else str(bound) for bound in self.data))


@irdl_attr_definition
class ResultAccuracyAttr(Data[tuple[tuple[str, str], ...]]):
    """The accuracy of an elementary function, by key, which weft ignores in favour of its most accurate form:
    `#stablehlo.result_accuracy<mode = #stablehlo.result_accuracy_mode<HIGHEST>>`."""

    name = "stablehlo.result_accuracy"

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> tuple[tuple[str, str], ...]:
        def parse_entry() -> tuple[str, str]:
            key = parser.parse_identifier()
            parser.parse_punctuation("=")
            if key != "mode":
                number = parser.parse_number()
                return key, str(number) if isinstance(number, int) else float_text(number)
            mode = parser.parse_attribute()
            if not isinstance(mode, ResultAccuracyModeAttr):
                parser.raise_error(f"the mode of an accuracy is a #stablehlo.result_accuracy_mode, got {mode}")
            return key, str(mode)

        return tuple(parser.parse_comma_separated_list(parser.Delimiter.ANGLE, parse_entry))

    def print_parameter(self, printer: Printer) -> None:
        with printer.in_angle_brackets():
            printer.print_string(", ".join(f"{key} = {value}" for key, value in self.data))


@irdl_attr_definition
class ResultAccuracyModeAttr(Data[str]):
    """DEFAULT, HIGHEST or TOLERANCE."""

    name = "stablehlo.result_accuracy_mode"

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> str:
        with parser.in_angle_brackets():
            return parser.parse_identifier()

    def print_parameter(self, printer: Printer) -> None:
        with printer.in_angle_brackets():
            printer.print_string(self.data)


ChannelHandleAttr = attribute("channel_handle", KeyedAttr)
"""The channel of an op of several devices."""
OutputOperandAliasAttr = attribute("output_operand_alias", KeyedAttr)
"""An operand of a custom call whose memory is reused for a result."""
PrecisionAttr = attribute("precision", WordAttr)
"""The precision of products. weft always uses the precision of the elements."""
ComparisonDirectionAttr = attribute("comparison_direction", WordAttr)
"""EQ, NE, GE, GT, LE or LT."""
ComparisonTypeAttr = attribute("comparison_type", WordAttr)
"""FLOAT, TOTALORDER, SIGNED, UNSIGNED, or NOTYPE."""
TransposeAttr = attribute("transpose", WordAttr)
"""NO_TRANSPOSE, TRANSPOSE or ADJOINT."""
FftTypeAttr = attribute("fft_type", WordAttr)
"""FFT, IFFT, RFFT or IRFFT."""
RngAlgorithmAttr = attribute("rng_algorithm", WordAttr)
"""DEFAULT, THREE_FRY or PHILOX."""
RngDistributionAttr = attribute("rng_distribution", WordAttr)
"""UNIFORM or NORMAL."""


@irdl_attr_definition
class DotAlgorithmAttr(Data[tuple[tuple[str, str], ...]]):
    """The algorithm of a dot_general, by key. weft computes in the precision of the elements or accumulation, whichever
    is higher.

    ```mlir
    #stablehlo.dot_algorithm<lhs_precision_type = tf32, rhs_precision_type = tf32, accumulation_type = f32,
      lhs_component_count = 1, rhs_component_count = 1, num_primitive_operations = 1,
      allow_imprecise_accumulation = false>
    ```
    """

    name = "stablehlo.dot_algorithm"

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> tuple[tuple[str, str], ...]:
        def parse_entry() -> tuple[str, str]:
            key = parser.parse_identifier()
            parser.parse_punctuation("=")
            number = parser.parse_optional_integer(allow_boolean=False)
            return key, parser.parse_identifier() if number is None else str(number)

        return tuple(parser.parse_comma_separated_list(parser.Delimiter.ANGLE, parse_entry))

    def print_parameter(self, printer: Printer) -> None:
        with printer.in_angle_brackets():
            printer.print_string(", ".join(f"{key} = {value}" for key, value in self.data))


ATTRIBUTES: Final[list[type[Attribute]]] = [
    GatherDimensionNumbersAttr,
    ScatterDimensionNumbersAttr,
    DotDimensionNumbersAttr,
    ConvDimensionNumbersAttr,
    BoundsAttr,
    ChannelHandleAttr,
    OutputOperandAliasAttr,
    PrecisionAttr,
    ResultAccuracyAttr,
    ResultAccuracyModeAttr,
    ComparisonDirectionAttr,
    ComparisonTypeAttr,
    TransposeAttr,
    FftTypeAttr,
    RngAlgorithmAttr,
    RngDistributionAttr,
    DotAlgorithmAttr,
]


# Text


def parse_entries(parser: AttrParser) -> tuple[tuple[str, tuple[int, ...] | int], ...]:
    """Parse an optional comma, keys and values, and `>`."""
    found: list[tuple[str, tuple[int, ...] | int]] = []
    while parser.parse_optional_punctuation(">") is None:
        key = parser.parse_identifier()
        parser.parse_punctuation("=")
        found.append((key, parse_numbers(parser)))
        if parser.parse_optional_punctuation(",") is None:
            parser.parse_punctuation(">")
            break
    return tuple(found)


def parse_list(parser: AttrParser) -> tuple[int, ...]:
    return tuple(parser.parse_comma_separated_list(parser.Delimiter.SQUARE, parser.parse_integer))


def parse_numbers(parser: AttrParser) -> tuple[int, ...] | int:
    number = parser.parse_optional_integer(allow_boolean=False)
    return parse_list(parser) if number is None else number


def shown(value: tuple[int, ...] | int) -> str:
    return str(value) if isinstance(value, int) else f"[{', '.join(map(str, value))}]"


def int_array(values: Sequence[int]) -> DenseArrayBase[Any]:
    return DenseArrayBase.from_list(i64, values)


def _parse_dictionary(parser: Parser, op: type[IRDLOperation]) -> tuple[Properties, Properties]:
    given = parser.parse_optional_attr_dict()
    names = op.get_irdl_definition().properties.keys()
    properties = {name: value for name, value in given.items() if name in names}
    return properties, {name: value for name, value in given.items() if name not in names}


def parse_function_type(parser: Parser) -> tuple[Sequence[Attribute], Sequence[Attribute]]:
    parser.parse_punctuation(":")
    operands = parser.parse_comma_separated_list(parser.Delimiter.PAREN, parser.parse_type)
    parser.parse_punctuation("->")
    return operands, parse_types(parser)


def parse_end(
    cls: type[OpT],
    parser: Parser,
    operands: Sequence[UnresolvedOperand],
    properties: Properties,
    at: int,
    types: Callable[[Parser], tuple[Sequence[Attribute], Sequence[Attribute]]] = parse_function_type,
) -> OpT:
    """Parse an op from its dictionary on, and create it."""
    more, attributes = _parse_dictionary(parser, cls)
    operand_types, result_types = types(parser)
    return cls.create(
        operands=parser.resolve_operands(operands, operand_types, at),
        result_types=result_types,
        properties={**properties, **more},
        attributes=attributes,
    )


def print_end(printer: Printer, op: Operation, *written: str, types: bool = True) -> None:
    """Print the remaining properties, attributes, and types."""
    rest = {name: value for name, value in op.properties.items() if name not in written}
    if rest or op.attributes:
        printer.print_string(" ")
        printer.print_attr_dict({**rest, **op.attributes})
    if types:
        printer.print_string(" : ")
        printer.print_function_type(op.operand_types, op.result_types)


def _parse_short_types(parser: Parser, count: int) -> tuple[Sequence[Attribute], Sequence[Attribute]]:
    """Parse the types of `count` operands and the results: all, or `T`, `T, U -> R` (chlo), or `P, T` (a select's
    predicate and others).
    """
    parser.parse_punctuation(":")
    at = parser.pos
    listed = parser.parse_optional_comma_separated_list(parser.Delimiter.PAREN, parser.parse_type)
    if listed is None:
        listed = parser.parse_comma_separated_list(parser.Delimiter.NONE, parser.parse_type)
        if parser.parse_optional_punctuation("->") is None:
            listed = [*listed, *[listed[-1]] * (count - len(listed))] if count else listed
            if count and len(listed) != count:
                parser.raise_error(f"{count} operands, but {len(listed)} types", at, parser.pos)
            return listed[:count], [listed[-1]]
    else:
        parser.parse_punctuation("->")
    return listed, parse_types(parser)


_WORDS: Final[Mapping[str, type[WordAttr]]] = {
    "algorithm": RngAlgorithmAttr,
    "distribution": RngDistributionAttr,
    "type": FftTypeAttr,
}
"""Maps a keyword in the text of an op to the attribute of the word after it."""


def _parse_keyword(parser: Parser, keyword: str) -> Attribute:
    """Parse a keyword's value: numbers, a truth value, a string, or a word."""
    if keyword in _WORDS:
        return _WORDS[keyword](parser.parse_identifier())
    if keyword == "precision":
        return parse_precision(parser)
    text = parser.parse_optional_str_literal()
    if text is not None:
        return StringAttr(text)
    flag = parser.parse_optional_boolean()
    if flag is not None:
        return BoolAttr.from_bool(flag)
    value = parse_numbers(parser)
    return IntegerAttr(value, i64) if isinstance(value, int) else int_array(value)


def parse_precision(parser: Parser) -> ArrayAttr[Attribute]:
    words = parser.parse_comma_separated_list(parser.Delimiter.SQUARE, parser.parse_identifier)
    return ArrayAttr([PrecisionAttr(word) for word in words])


# Ops of one form


class TensorsOp(IRDLOperation):
    ARITY: ClassVar[int | None] = None
    """The number of operands; None for any number."""
    inputs = var_operand_def(TensorType)
    outputs = var_result_def(TensorType)

    def verify_(self) -> None:
        if self.ARITY is not None and len(self.inputs) != self.ARITY:
            count = f"{self.ARITY} operand{'s' if self.ARITY != 1 else ''}"
            raise VerifyException(f"{self.name} takes {count}, got {len(self.inputs)}")


class TensorOp(TensorsOp):
    """An op without effects, printed as operands, keywords and types."""

    KEYWORDS: ClassVar[Mapping[str, str]] = {}
    """Keyword in the text -> its property, an integer or a list of integers."""
    IS_SHORT: ClassVar[bool] = False
    """Whether equal types are printed once."""

    traits = traits_def(Pure())

    def keyword(self, text: str) -> tuple[int, ...]:
        value = self._value(text)
        return (value,) if isinstance(value, int) else value

    def _value(self, keyword: str) -> tuple[int, ...] | int:
        value = self.properties[self.KEYWORDS[keyword]]
        return value.value.data if isinstance(value, IntegerAttr) else numbers(value)

    def _text(self, keyword: str) -> str:
        value = self.properties[self.KEYWORDS[keyword]]
        match value:
            case WordAttr():
                return value.data
            case StringAttr():
                return f'"{value.data}"'
            case ArrayAttr():
                return f"[{', '.join(cast('WordAttr', word).data for word in value)}]"
            case IntegerAttr() if value.type == i1:
                return str(bool(value.value.data)).lower()
            case _:
                return shown(self._value(keyword))

    @classmethod
    def parse(cls, parser: Parser) -> TensorOp:
        operands: list[Any] = []
        keywords: Properties = {}
        at = parser.pos

        def parse_item() -> None:
            operand = parser.parse_optional_unresolved_operand()
            if operand is not None:
                operands.append(operand)
                return
            keyword = parser.parse_identifier("an operand or a keyword")
            if keyword not in cls.KEYWORDS:
                known = ", ".join(cls.KEYWORDS) or "none"
                parser.raise_error(f"{cls.name} has no keyword '{keyword}' (known: {known})")
            parser.parse_punctuation("=")
            keywords[cls.KEYWORDS[keyword]] = _parse_keyword(parser, keyword)

        parser.parse_comma_separated_list(parser.Delimiter.NONE, parse_item)
        return parse_end(cls, parser, operands, keywords, at, lambda _: cls.parse_types(parser, len(operands)))

    @classmethod
    def parse_types(cls, parser: Parser, count: int) -> tuple[Sequence[Attribute], Sequence[Attribute]]:
        """Parse the types, in full or abbreviated, of `count` operands and the results."""
        return _parse_short_types(parser, count)

    def print(self, printer: Printer) -> None:
        names = [name for name in self.KEYWORDS if self.KEYWORDS[name] in self.properties]
        items = [*self.operands, *(f"{name} = {self._text(name)}" for name in names)]
        if items:
            write(printer, " ", items)
        print_end(printer, self, *(self.KEYWORDS[name] for name in names), types=False)
        self._print_types(printer)

    def _print_types(self, printer: Printer) -> None:
        types = [*self.operand_types, *self.result_types]
        if self.IS_SHORT and all(type_ == types[0] for type_ in types):
            write(printer, " : ", types[0])
        else:
            write(printer, " : ")
            printer.print_function_type(self.operand_types, self.result_types)


class ElementwiseOp(TensorOp):
    """Computes elements from those at the same index."""

    IS_SHORT: ClassVar[bool] = True


ELEMENTWISE: Final[Mapping[int, str]] = {
    1: "abs bitcast_convert cbrt ceil convert cosine count_leading_zeros exponential exponential_minus_one floor "
    "imag is_finite log log_plus_one logistic negate not popcnt real round_nearest_afz round_nearest_even rsqrt sign "
    "sine sqrt tan tanh uniform_dequantize uniform_quantize",
    2: "add and atan2 divide maximum minimum multiply or power remainder shift_left shift_right_arithmetic "
    "shift_right_logical subtract xor",
    3: "clamp",
}
"""Maps a number of operands to the names of the elementwise ops of stablehlo."""
_WITH_ACCURACY: Final = frozenset(
    (
        *("cbrt", "cosine", "exponential", "exponential_minus_one", "log", "log_plus_one", "logistic", "rsqrt"),
        *("sine", "sqrt", "tan", "tanh"),
    )
)
_LISTS: Final[Mapping[str, tuple[int | None, Mapping[str, str]]]] = {
    "broadcast": (1, {"sizes": "broadcast_sizes"}),
    "broadcast_in_dim": (1, {"dims": "broadcast_dimensions"}),
    "concatenate": (None, {"dim": "dimension"}),
    "dynamic_broadcast_in_dim": (2, {"dims": "broadcast_dimensions"}),
    "dynamic_iota": (1, {"dim": "iota_dimension"}),
    "dynamic_reshape": (2, {}),
    "dynamic_slice": (None, {"sizes": "slice_sizes"}),
    "dynamic_update_slice": (None, {}),
    "dynamic_pad": (5, {}),
    "get_dimension_size": (1, {"dim": "dimension"}),
    "iota": (0, {"dim": "iota_dimension"}),
    "pad": (2, {"low": "edge_padding_low", "high": "edge_padding_high", "interior": "interior_padding"}),
    "real_dynamic_slice": (4, {}),
    "reshape": (1, {}),
    "reverse": (1, {"dims": "dimensions"}),
    "transpose": (1, {"dims": "permutation"}),
}
"""Maps a name to the number of operands, and the keywords with their properties."""
_SHORT: Final = ("iota", "reverse")
_KNOWN_DIMENSIONS: Final = ("known_expanding_dimensions", "known_nonexpanding_dimensions")
"""Properties of dynamic_broadcast_in_dim, which follow from the extents."""
_NUMBER: Final = ("dimension", "iota_dimension")
"""Properties that are a single integer."""


def declared(dialect: str, name: str, base: type[TensorOp], **members: Any) -> type[TensorOp]:
    label = "".join(word.capitalize() for word in name.split("_")) + "Op"
    namespace = {
        "name": f"{dialect}.{name}",
        "__doc__": f"`{dialect}.{name}` of the StableHLO specification.",
        "__annotations__": {member: ClassVar[Any] for member in members if member.isupper()},
    }
    return irdl_op_definition(type(label, (base,), {**namespace, **members}))


def _with_keywords(name: str, arity: int | None, keywords: Mapping[str, str]) -> type[TensorOp]:
    kinds = {p: prop_def(IntegerAttr if p in _NUMBER else NUMBERS) for p in keywords.values()}
    kinds |= {p: opt_prop_def(NUMBERS) for p in _KNOWN_DIMENSIONS if name == "dynamic_broadcast_in_dim"}
    return declared("stablehlo", name, TensorOp, ARITY=arity, KEYWORDS=dict(keywords), IS_SHORT=name in _SHORT, **kinds)


_TABLE: Final[tuple[type[TensorOp], ...]] = (
    *(
        declared(
            "stablehlo",
            name,
            ElementwiseOp,
            ARITY=arity,
            IS_SHORT=name != "bitcast_convert",
            **({"result_accuracy": opt_prop_def(ResultAccuracyAttr)} if name in _WITH_ACCURACY else {}),
        )
        for arity, names in ELEMENTWISE.items()
        for name in names.split()
    ),
    *(_with_keywords(name, arity, keywords) for name, (arity, keywords) in _LISTS.items()),
)


@irdl_op_definition
class SelectOp(ElementwiseOp):
    """`stablehlo.select %p, %a, %b : tensor<4xi1>, tensor<4xf32>`; the predicate may be a scalar."""

    name = "stablehlo.select"
    ARITY: ClassVar[int | None] = 3

    def _print_types(self, printer: Printer) -> None:
        types: Sequence[Attribute] = self.operand_types[:2]
        if len({*self.operand_types[1:], *self.result_types}) > 1:
            types = (FunctionType.from_lists(self.operand_types, self.result_types),)
        write(printer, " : ", [*types])


@irdl_op_definition
class OptimizationBarrierOp(IRDLOperation):
    """An identity that optimizations do not cross: `stablehlo.optimization_barrier %a, %b : tensor<4xf32>,
    tensor<2xf32>`."""

    name = "stablehlo.optimization_barrier"
    T: ClassVar = RangeVarConstraint("T", RangeOf(base(TensorType)))
    inputs = var_operand_def(T)
    outputs = var_result_def(T)
    traits = traits_def(Pure())
    assembly_format = "($inputs^ `:` type($inputs))? attr-dict"


@irdl_op_definition
class CompareOp(ElementwiseOp):
    """`stablehlo.compare LT, %a, %b, SIGNED : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi1>`."""

    name = "stablehlo.compare"
    ARITY: ClassVar[int | None] = 2
    comparison_direction = prop_def(ComparisonDirectionAttr)
    compare_type = opt_prop_def(ComparisonTypeAttr)

    @classmethod
    def parse(cls, parser: Parser) -> CompareOp:
        properties: Properties = {"comparison_direction": ComparisonDirectionAttr(parser.parse_identifier())}
        at = parser.pos
        operands: list[Any] = []
        for _ in range(2):
            parser.parse_punctuation(",")
            operands.append(parser.parse_unresolved_operand())
        if parser.parse_optional_punctuation(",") is not None:
            properties["compare_type"] = ComparisonTypeAttr(parser.parse_identifier())
        return parse_end(cls, parser, operands, properties, at, lambda _: _parse_short_types(parser, 2))

    def print(self, printer: Printer) -> None:
        words = [] if self.compare_type is None else [self.compare_type.data]
        write(printer, " ", [self.comparison_direction.data, *self.operands, *words])
        print_end(printer, self, "comparison_direction", "compare_type")


class DenseConstantOp(IRDLOperation):
    """A constant tensor, stored as integers if elements are quantised: `stablehlo.constant() {value = dense<3> :
    tensor<4xi8>} : () -> tensor<4x!quant.uniform<i8:f32, 0.5>>`."""

    value = prop_def(DenseIntOrFPElementsAttr)
    output = result_def(TensorType)
    traits = traits_def(Pure())

    @classmethod
    def parse(cls, parser: Parser) -> DenseConstantOp:
        at = parser.pos
        if parser.parse_optional_punctuation("(") is not None:
            parser.parse_punctuation(")")
            properties = parser.parse_optional_properties_dict()
            return parse_end(cls, parser, [], properties, at)
        attributes = parser.parse_optional_attr_dict()
        at = parser.pos
        value = parser.parse_attribute()
        if not isinstance(value, DenseIntOrFPElementsAttr):
            parser.raise_error(f"the elements of a constant are written as dense<...>, got {value}", at, parser.pos)
        type_ = cast("Attribute", value.type)
        return cls.create(result_types=[type_], properties={"value": value}, attributes=attributes)

    def print(self, printer: Printer) -> None:
        if self.output.type != self.value.type:
            write(printer, "()")
            print_end(printer, self)
            return
        print_end(printer, self, "value", types=False)
        write(printer, " ", self.value)


@irdl_op_definition
class ConstantOp(DenseConstantOp):
    """`stablehlo.constant dense<0.0> : tensor<4xf32>`."""

    name = "stablehlo.constant"


@irdl_op_definition
class SliceOp(TensorOp):
    """`stablehlo.slice %x [0:8:2, 1:5] : (tensor<8x8xf32>) -> tensor<4x4xf32>`."""

    name = "stablehlo.slice"
    ARITY: ClassVar[int | None] = 1
    start_indices = prop_def(NUMBERS)
    limit_indices = prop_def(NUMBERS)
    strides = prop_def(NUMBERS)

    @classmethod
    def parse(cls, parser: Parser) -> SliceOp:
        at = parser.pos
        operand = parser.parse_unresolved_operand()

        def parse_range() -> tuple[int, int, int]:
            start = parser.parse_integer()
            parser.parse_punctuation(":")
            limit = parser.parse_integer()
            return start, limit, 1 if parser.parse_optional_punctuation(":") is None else parser.parse_integer()

        ranges = parser.parse_comma_separated_list(parser.Delimiter.SQUARE, parse_range)
        columns = list(zip(*ranges, strict=True)) or [(), (), ()]
        names = ("start_indices", "limit_indices", "strides")
        properties: Properties = {name: int_array(column) for name, column in zip(names, columns, strict=True)}
        return parse_end(cls, parser, [operand], properties, at)

    def print(self, printer: Printer) -> None:
        columns = (numbers(self.start_indices), numbers(self.limit_indices), numbers(self.strides))
        texts = [f"{s}:{e}" + (f":{step}" if step != 1 else "") for s, e, step in zip(*columns, strict=True)]
        write(printer, " ", self.inputs[0], " [", texts, "]")
        print_end(printer, self, "start_indices", "limit_indices", "strides")


@irdl_op_definition
class DotGeneralOp(TensorOp):
    """`stablehlo.dot_general %a, %b, batching_dims = [0] x [0], contracting_dims = [2] x [1] : (T, U) -> R`."""

    name = "stablehlo.dot_general"
    ARITY: ClassVar[int | None] = 2
    dot_dimension_numbers = prop_def(DotDimensionNumbersAttr)
    precision_config = opt_prop_def(ArrayAttr)
    algorithm = opt_prop_def(DotAlgorithmAttr)

    @classmethod
    def parse(cls, parser: Parser) -> DotGeneralOp:
        at = parser.pos
        left = parser.parse_unresolved_operand()
        parser.parse_punctuation(",")
        operands = [left, parser.parse_unresolved_operand()]
        keys: dict[str, tuple[int, ...]] = {}
        properties: Properties = {}
        pairs = dict(zip(("batching_dims", "contracting_dims"), DOT_KEYS, strict=True))
        while parser.parse_optional_punctuation(",") is not None:
            keyword = parser.parse_identifier()
            parser.parse_punctuation("=")
            if keyword == "precision":
                properties["precision_config"] = parse_precision(parser)
            elif keyword == "algorithm":
                properties["algorithm"] = DotAlgorithmAttr(DotAlgorithmAttr.parse_parameter(parser))
            elif keyword in pairs:
                keys[pairs[keyword][0]] = parse_list(parser)
                parser.parse_keyword("x")
                keys[pairs[keyword][1]] = parse_list(parser)
            else:
                parser.raise_error(f"stablehlo.dot_general: keyword '{keyword}' is not supported")
        properties["dot_dimension_numbers"] = DotDimensionNumbersAttr(tuple(keys.items()))
        return parse_end(cls, parser, operands, properties, at)

    def print(self, printer: Printer) -> None:
        items: list[Piece] = [*self.operands]
        for keyword, (left, right) in zip(("batching_dims", "contracting_dims"), DOT_KEYS, strict=True):
            pair = self.dot_dimension_numbers.dims(left), self.dot_dimension_numbers.dims(right)
            if pair != ((), ()) or keyword == "contracting_dims":
                items.append(f"{keyword} = {shown(pair[0])} x {shown(pair[1])}")
        if self.precision_config is not None:
            words = ", ".join(cast("WordAttr", word).data for word in self.precision_config)
            items.append(f"precision = [{words}]")
        if self.algorithm is not None:
            entries = ", ".join(f"{key} = {value}" for key, value in self.algorithm.data)
            items.append(f"algorithm = <{entries}>")
        write(printer, " ", items)
        print_end(printer, self, "dot_dimension_numbers", "precision_config", "algorithm")


_WINDOW: Final = {
    "stride": "window_strides",
    "pad": "padding",
    "lhs_dilate": "lhs_dilation",
    "rhs_dilate": "rhs_dilation",
    "reverse": "window_reversal",
}
"""Maps a keyword of the window of a convolution to its property."""


@irdl_op_definition
class ConvolutionOp(TensorOp):
    """A convolution in any layout.

    ```mlir
    %0 = stablehlo.convolution(%x, %w) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f],
        window = {stride = [2, 2], pad = [[0, 1], [0, 1]], lhs_dilate = [1, 1], rhs_dilate = [1, 1]}
        {batch_group_count = 1 : i64, feature_group_count = 2 : i64} : (T, U) -> R
    ```
    """

    name = "stablehlo.convolution"
    ARITY: ClassVar[int | None] = 2
    window_strides = opt_prop_def(NUMBERS)
    padding = opt_prop_def(DenseIntOrFPElementsAttr)
    lhs_dilation = opt_prop_def(NUMBERS)
    rhs_dilation = opt_prop_def(NUMBERS)
    window_reversal = opt_prop_def(DenseArrayBase.constr(i1))
    dimension_numbers = prop_def(ConvDimensionNumbersAttr)
    feature_group_count = prop_def(IntegerAttr)
    batch_group_count = prop_def(IntegerAttr)
    precision_config = opt_prop_def(ArrayAttr)

    @classmethod
    def parse(cls, parser: Parser) -> ConvolutionOp:
        at = parser.pos
        operands = parser.parse_comma_separated_list(parser.Delimiter.PAREN, parser.parse_unresolved_operand)
        parser.parse_keyword("dim_numbers")
        parser.parse_punctuation("=")
        properties: Properties = {"dimension_numbers": ConvDimensionNumbersAttr(parse_conv_layout(parser))}

        def parse_entry() -> None:
            keyword = parser.parse_identifier()
            if keyword not in _WINDOW:
                parser.raise_error(f"a window has {', '.join(_WINDOW)}, got '{keyword}'")
            parser.parse_punctuation("=")
            properties[_WINDOW[keyword]] = _parse_window_entry(parser, keyword)

        if parser.parse_optional_punctuation(",") is not None:
            parser.parse_keyword("window")
            parser.parse_punctuation("=")
            parser.parse_comma_separated_list(parser.Delimiter.BRACES, parse_entry)
        return parse_end(cls, parser, operands, properties, at)

    def print(self, printer: Printer) -> None:
        texts: list[str] = []
        for keyword, name in _WINDOW.items():
            if (value := self.properties.get(name)) is None:
                continue
            values = numbers(value)
            pairs = [f"[{low}, {high}]" for low, high in zip(values[::2], values[1::2], strict=False)]
            words = [str(bool(v)).lower() if keyword == "reverse" else str(v) for v in values]
            texts.append(f"{keyword} = [{', '.join(pairs if keyword == 'pad' else words)}]")
        dims = self.dimension_numbers.text()
        write(printer, "(", [*self.operands], f") dim_numbers = {dims}, window = {{", texts, "}")
        print_end(printer, self, "dimension_numbers", *_WINDOW.values())


@irdl_op_definition
class DynamicConvOp(TensorsOp):
    """A convolution padded by its third operand, one row per spatial dimension."""

    name = "stablehlo.dynamic_conv"
    ARITY: ClassVar[int | None] = 3
    window_strides = opt_prop_def(NUMBERS)
    lhs_dilation = opt_prop_def(NUMBERS)
    rhs_dilation = opt_prop_def(NUMBERS)
    window_reversal = opt_prop_def(DenseArrayBase.constr(i1))
    dimension_numbers = prop_def(ConvDimensionNumbersAttr)
    feature_group_count = prop_def(IntegerAttr)
    batch_group_count = prop_def(IntegerAttr)
    precision_config = opt_prop_def(ArrayAttr)
    traits = traits_def(Pure())


def _parse_window_entry(parser: Parser, keyword: str) -> Attribute:
    if keyword == "pad":
        pairs = parser.parse_comma_separated_list(parser.Delimiter.SQUARE, lambda: parse_list(parser))
        flat = [number for pair in pairs for number in pair]
        return DenseIntOrFPElementsAttr.from_list(TensorType(i64, [len(pairs), 2]), flat)
    if keyword == "reverse":
        flags = parser.parse_comma_separated_list(parser.Delimiter.SQUARE, parser.parse_integer)
        return DenseArrayBase.from_list(i1, flags)
    return int_array(parse_list(parser))


# Ops with regions


@irdl_op_definition
class ReturnOp(IRDLOperation):
    """`stablehlo.return %a, %b : tensor<f32>, tensor<i32>`, terminates a region."""

    name = "stablehlo.return"
    values = var_operand_def(TensorType)
    traits = traits_def(IsTerminator(), Pure())
    assembly_format = "($values^ `:` type($values))? attr-dict"


class RegionOp(TensorsOp):
    """An op whose regions combine values, printed in the generic form by default."""

    traits = traits_def(RecursiveMemoryEffect())


def floor_division(op: Operation) -> tuple[SSAValue, SSAValue] | None:
    """Dividend and divisor of an integer quotient rounded down, else None.

    JAX writes it as the truncated quotient, minus one if the signs differ and the remainder is not 0. `op` is the last
    op: a select, or a call of a function that selects.
    """

    def made_by(value: SSAValue, name: str) -> Sequence[SSAValue]:
        owner = value.owner
        return owner.operands if isinstance(owner, Operation) and owner.name == name else ()

    if op.name not in ("stablehlo.select", "func.call") or len(op.operands) != 3:
        return None
    condition, lower, quotient = op.operands
    pair = tuple(made_by(quotient, "stablehlo.divide"))
    less = made_by(lower, "stablehlo.subtract")
    both = [made_by(side, "stablehlo.compare") for side in made_by(condition, "stablehlo.and")]
    if not pair or not less or less[0] is not quotient or not _is_number(less[1], 1) or len(both) != 2 or not all(both):
        return None
    signs, rest = both
    are_signs = all(tuple(made_by(side, "stablehlo.sign")) == (x,) for side, x in zip(signs, pair, strict=True))
    is_rest = tuple(made_by(rest[0], "stablehlo.remainder")) == pair and _is_number(rest[1], 0)
    compares = [
        cast("CompareOp", cast("Operation", side.owner)) for side in cast("Operation", condition.owner).operands
    ]
    are_unequal = all(compare.comparison_direction.data == "NE" for compare in compares)
    return (pair[0], pair[1]) if are_signs and is_rest and are_unequal else None


def _is_number(value: SSAValue, number: int) -> bool:
    """Whether all elements of a constant, possibly broadcast, equal `number`."""
    owner = value.owner
    while isinstance(owner, Operation) and owner.name == "stablehlo.broadcast_in_dim":
        owner = owner.operands[0].owner
    return isinstance(owner, DenseConstantOp) and all(element == number for element in owner.value.get_values())


def lone_op(block: Block) -> ElementwiseOp | None:
    """The block's only op, if it combines the two arguments and is returned."""
    ops = list(block.ops)
    if len(ops) != 2 or len(block.args) != 2 or not isinstance(ops[0], ElementwiseOp) or ops[0].properties:
        return None
    is_all = tuple(ops[0].operands) == tuple(block.args) and tuple(ops[1].operands) == tuple(ops[0].results)
    return ops[0] if is_all and ops[1].has_trait(IsTerminator) else None


class CombiningOp(RegionOp):
    body = region_def("single_block")

    @property
    def operand_count(self) -> int:
        """Reduced tensors; as many initial values follow."""
        return len(self.inputs) // 2

    @property
    def lone_op(self) -> Operation | None:
        """The region's op, if there is no other."""
        return lone_op(self.body.block)


@irdl_op_definition
class ReduceOp(CombiningOp):
    """Combine elements along dimensions, by an op or a region.

    ```mlir
    %0 = stablehlo.reduce(%x init: %c) applies stablehlo.add across dimensions = [1] : (T, tensor<f32>) -> R
    %1:2 = stablehlo.reduce(%x init: %c), (%i init: %d) across dimensions = [1] : (T, U, tensor<f32>, tensor<i32>) -> (R, S)
     reducer(%a: tensor<f32>, %b: tensor<f32>) (%j: tensor<i32>, %k: tensor<i32>)  { ... }
    ```
    """  # noqa: E501

    name = "stablehlo.reduce"
    dimensions = prop_def(NUMBERS)

    @classmethod
    def parse(cls, parser: Parser) -> ReduceOp:
        at = parser.pos
        pairs: list[tuple[UnresolvedOperand, UnresolvedOperand]] = []

        def parse_pair() -> None:
            with parser.in_parens():
                value = parser.parse_unresolved_operand()
                parser.parse_keyword("init")
                parser.parse_punctuation(":")
                pairs.append((value, parser.parse_unresolved_operand()))

        parser.parse_comma_separated_list(parser.Delimiter.NONE, parse_pair)
        combining = None
        if parser.parse_optional_keyword("applies") is not None:
            combining = parser.parse_identifier()
        parser.parse_keyword("across")
        parser.parse_keyword("dimensions")
        parser.parse_punctuation("=")
        properties: Properties = {"dimensions": int_array(parse_list(parser))}
        operands = [pair[side] for side in range(2) for pair in pairs]
        op = parse_end(cls, parser, operands, properties, at)
        scalars = op.operand_types[len(pairs) :]
        op.add_region(
            cls._combining(parser, combining, scalars) if combining else cls._parse_reducer(parser, len(pairs))
        )
        return op

    @staticmethod
    def _combining(parser: Parser, name: str, scalars: Sequence[Attribute]) -> Region:
        kind = next((op for op in _TABLE if op.name == name), None)
        if kind is None or len(scalars) != 1:
            parser.raise_error(f"'{name}' combines no two elements")
        block = Block(arg_types=[*scalars, *scalars])
        combined = kind.create(operands=block.args, result_types=scalars)
        block.add_ops([combined, ReturnOp.create(operands=combined.results)])
        return Region(block)

    @staticmethod
    def _parse_reducer(parser: Parser, count: int) -> Region:
        parser.parse_keyword("reducer")
        pairs: list[list[Any]] = []

        def parse_argument() -> Any:
            argument = parser.parse_argument()
            parser.parse_optional_location()
            return argument

        for _ in range(count):
            pairs.append(parser.parse_comma_separated_list(parser.Delimiter.PAREN, parse_argument))
        return parser.parse_region([pair[side] for side in range(2) for pair in pairs])

    def print(self, printer: Printer) -> None:
        count = self.operand_count
        pairs = zip(self.inputs[:count], self.inputs[count:], strict=True)
        lone = self.lone_op
        applies = "" if lone is None else f" applies {lone.name}"
        dimensions = shown(numbers(self.dimensions))
        write(
            printer,
            [("(", value, " init: ", initial, ")") for value, initial in pairs],
            f"{applies} across dimensions = {dimensions}",
        )
        print_end(printer, self, "dimensions")
        if lone is not None:
            return
        printer.print_string("\n reducer")
        arguments = self.body.block.args
        for position in range(count):
            with printer.in_parens():
                pair = [arguments[position], arguments[count + position]]
                printer.print_list(pair, printer.print_block_argument)
            printer.print_string(" ")
        printer.print_region(self.body, print_entry_block_args=False)


@irdl_op_definition
class ReduceWindowOp(CombiningOp):
    """Combine the elements at each position of a window."""

    name = "stablehlo.reduce_window"
    window_dimensions = prop_def(NUMBERS)
    window_strides = opt_prop_def(NUMBERS)
    base_dilations = opt_prop_def(NUMBERS)
    window_dilations = opt_prop_def(NUMBERS)
    padding = opt_prop_def(DenseIntOrFPElementsAttr)


_PlacesOfDims: TypeAlias = "Mapping[str, int]"
"""Maps a key of dimension numbers to the position of the tensor whose dimensions they are; -1 is the result."""
_GATHER_DIMS: Final[_PlacesOfDims] = {
    **{"collapsed_slice_dims": 0, "operand_batching_dims": 0, "start_index_map": 0},
    **{"start_indices_batching_dims": 1, "offset_dims": -1},
}
_SCATTER_DIMS: Final[_PlacesOfDims] = {
    **{"inserted_window_dims": 0, "input_batching_dims": 0, "scatter_dims_to_operand_dims": 0},
    **{"scatter_indices_batching_dims": 1, "update_window_dims": 2},
}


def _verify_dims(op: Operation, layout: KeyedAttr, places: _PlacesOfDims, operands: int, indices: int = 1) -> None:
    """Check the operand count, and that dimension numbers are distinct and in range."""
    if len(op.operands) < operands or not op.results:
        raise VerifyException(f"'{op.name}' has {operands} operands or more and a result, got {len(op.operands)}")
    types = [*(operand.type for operand in op.operands), op.results[0].type]
    for key, place in places.items():
        rank, dims = cast("TensorType[Attribute]", types[place]).get_num_dims(), layout.dims(key)
        if len({*dims}) < len(dims) or not all(0 <= dim < rank for dim in dims):
            raise VerifyException(f"'{op.name}': {key} are different dimensions of {types[place]}, got {[*dims]}")
    rank, vector = cast("TensorType[Attribute]", types[indices]).get_num_dims(), layout.number("index_vector_dim")
    if not 0 <= vector <= rank:
        raise VerifyException(f"'{op.name}': index_vector_dim is 0 to {rank}, got {vector}")


@irdl_op_definition
class GatherOp(TensorsOp):
    """Slices at given start indices."""

    name = "stablehlo.gather"
    dimension_numbers = prop_def(GatherDimensionNumbersAttr)
    slice_sizes = prop_def(NUMBERS)
    indices_are_sorted = opt_prop_def(BoolAttr)
    traits = traits_def(Pure())

    def verify_(self) -> None:
        _verify_dims(self, self.dimension_numbers, _GATHER_DIMS, 2)


@irdl_op_definition
class DynamicGatherOp(TensorsOp):
    """A gather; operand 2 is the slice sizes."""

    name = "stablehlo.dynamic_gather"
    dimension_numbers = prop_def(GatherDimensionNumbersAttr)
    indices_are_sorted = opt_prop_def(BoolAttr)
    traits = traits_def(Pure())

    def verify_(self) -> None:
        _verify_dims(self, self.dimension_numbers, _GATHER_DIMS, 3)


@irdl_op_definition
class ScatterOp(CombiningOp):
    """Combine updates into an operand at given indices."""

    name = "stablehlo.scatter"
    scatter_dimension_numbers = prop_def(ScatterDimensionNumbersAttr)
    indices_are_sorted = opt_prop_def(BoolAttr)
    unique_indices = opt_prop_def(BoolAttr)

    def verify_(self) -> None:
        # Several operands are updated at the same indices.
        count = len(self.operands) // 2
        places = {key: place * count for key, place in _SCATTER_DIMS.items()}
        _verify_dims(self, self.scatter_dimension_numbers, places, 3, count)


@irdl_op_definition
class SortOp(CombiningOp):
    """Sort tensors together along a dimension."""

    name = "stablehlo.sort"
    dimension = opt_prop_def(IntegerAttr)
    is_stable = opt_prop_def(BoolAttr)


@irdl_op_definition
class CaseOp(RegionOp):
    """The results of the branch with a given index, of the last if out of range."""

    name = "stablehlo.case"
    branches = var_region_def("single_block")


@irdl_op_definition
class IfOp(RegionOp):
    name = "stablehlo.if"
    branches = var_region_def("single_block")


@irdl_op_definition
class WhileOp(RegionOp):
    """Repeat `body` while `cond` holds.

    ```mlir
    %0:2 = stablehlo.while(%i = %c, %v = %x) : tensor<i32>, tensor<4xf32>
    cond { ... stablehlo.return %p : tensor<i1> } do { ... stablehlo.return %j, %w : tensor<i32>, tensor<4xf32> }
    ```
    """

    name = "stablehlo.while"
    cond = region_def("single_block")
    body = region_def("single_block")

    @classmethod
    def parse(cls, parser: Parser) -> WhileOp:
        at = parser.pos
        arguments: list[Any] = []
        operands: list[Any] = []

        def parse_value() -> None:
            arguments.append(parser.parse_argument(expect_type=False))
            parser.parse_punctuation("=")
            operands.append(parser.parse_unresolved_operand())

        parser.parse_comma_separated_list(parser.Delimiter.PAREN, parse_value)
        types: list[Attribute] = []
        if operands:
            parser.parse_punctuation(":")
            types = parser.parse_comma_separated_list(parser.Delimiter.NONE, parser.parse_type)
        given = parser.parse_optional_attr_dict_with_keyword()
        resolved = parser.resolve_operands(operands, types, at)
        typed = [argument.resolve(type_) for argument, type_ in zip(arguments, types, strict=True)]
        parser.parse_keyword("cond")
        cond = parser.parse_region(typed)
        parser.parse_keyword("do")
        body = parser.parse_region(typed)
        attributes = dict(given.data) if given is not None else {}
        return cls.create(operands=resolved, result_types=types, regions=[cond, body], attributes=attributes)

    def print(self, printer: Printer) -> None:
        variables = self.cond.block.args
        write(
            printer,
            "(",
            [(variable, " = ", value) for variable, value in zip(variables, self.inputs, strict=True)],
            ")",
        )
        # The arguments of both regions have the same name in the text.
        names = printer._ssa_values  # pyright: ignore[reportPrivateUsage]
        names.update({other: names[variable] for variable, other in zip(variables, self.body.block.args, strict=True)})
        if self.inputs:
            write(printer, " : ", [*self.operand_types])
        printer.print_op_attributes(self.attributes, print_keyword=True)
        printer.print_string("\ncond ")
        printer.print_region(self.cond, print_entry_block_args=False)
        printer.print_string(" do ")
        printer.print_region(self.body, print_entry_block_args=False)


@irdl_op_definition
class CustomCallOp(TensorsOp):
    """Call an external function: `stablehlo.custom_call @shape_assertion(%p, %n) {...} : (T, U) -> ()`."""

    name = "stablehlo.custom_call"
    call_target_name = prop_def(SymbolNameConstraint())
    has_side_effect = opt_prop_def(BoolAttr)
    called_computations = opt_prop_def(ArrayAttr[SymbolRefAttr])
    backend_config = opt_prop_def(Attribute)
    api_version = opt_prop_def(IntegerAttr)
    operand_layouts = opt_prop_def(ArrayAttr)
    result_layouts = opt_prop_def(ArrayAttr)
    output_operand_aliases = opt_prop_def(ArrayAttr)

    irdl_options = (ParsePropInAttrDict(),)
    assembly_format = "$call_target_name `(` $inputs `)` attr-dict `:` functional-type($inputs, $outputs)"


@irdl_op_definition
class CompositeOp(TensorsOp):
    """An op of another op set, with the function that defines it.

    ```mlir
    %0 = stablehlo.composite "chlo.erf" %x {decomposition = @chlo.erf.impl} : (tensor<4xf32>) -> tensor<4xf32>
    ```
    """

    name = "stablehlo.composite"
    composite_name = prop_def(StringAttr, prop_name="name")
    composite_attributes = opt_prop_def(DictionaryAttr)
    decomposition = prop_def(SymbolRefAttr)
    version = opt_prop_def(IntegerAttr)
    traits = traits_def(Pure())

    irdl_options = (ParsePropInAttrDict(),)
    assembly_format = "$name $inputs attr-dict `:` functional-type($inputs, $outputs)"


@irdl_op_definition
class TupleOp(IRDLOperation):
    """`stablehlo.tuple %x, %y : tuple<tensor<4xf32>, tensor<i32>>`, which weft rejects."""

    name = "stablehlo.tuple"
    elements = var_operand_def(Attribute)
    output = result_def(TupleType)
    traits = traits_def(Pure())

    @classmethod
    def parse(cls, parser: Parser) -> TupleOp:
        at = parser.pos
        operands = parser.parse_optional_undelimited_comma_separated_list(
            parser.parse_optional_unresolved_operand, parser.parse_unresolved_operand
        )

        def types(parser: Parser) -> tuple[Sequence[Attribute], Sequence[Attribute]]:
            parser.parse_punctuation(":")
            type_ = parser.parse_type()
            if not isinstance(type_, TupleType):
                parser.raise_error(f"a tuple type is expected, got {type_}")
            return [*type_.types], [type_]

        return parse_end(cls, parser, operands or [], {}, at, types)

    def print(self, printer: Printer) -> None:
        write(printer, *([" ", [*self.elements]] if self.elements else []))
        print_end(printer, self, types=False)
        write(printer, " : ", self.output.type)


@irdl_op_definition
class GetTupleElementOp(IRDLOperation):
    """`stablehlo.get_tuple_element %t[1] : (tuple<tensor<4xf32>, tensor<i32>>) -> tensor<i32>`."""

    name = "stablehlo.get_tuple_element"
    operand = operand_def(TupleType)
    index = prop_def(IntegerAttr[I32])
    output = result_def(Attribute)
    traits = traits_def(Pure())

    assembly_format = "$operand `[` $index `]` attr-dict `:` functional-type($operand, $output)"


@irdl_op_definition
class SelectAndScatterOp(RegionOp):
    """Combine each element of `source` into the element that a comparison selects in its window."""

    name = "stablehlo.select_and_scatter"
    window_dimensions = opt_prop_def(NUMBERS)
    window_strides = opt_prop_def(NUMBERS)
    padding = opt_prop_def(DenseIntOrFPElementsAttr)
    select = region_def("single_block")
    scatter = region_def("single_block")

    def verify_(self) -> None:
        if len(self.inputs) != 3 or len(self.outputs) != 1:
            raise VerifyException(f"'{self.name}' has 3 operands and 1 result, got {len(self.inputs)}")


OPS: Final[list[type[Operation]]] = [
    *_TABLE,
    CaseOp,
    CompareOp,
    CompositeOp,
    ConstantOp,
    ConvolutionOp,
    CustomCallOp,
    DotGeneralOp,
    DynamicConvOp,
    DynamicGatherOp,
    GatherOp,
    GetTupleElementOp,
    IfOp,
    OptimizationBarrierOp,
    ReduceOp,
    ReduceWindowOp,
    ReturnOp,
    ScatterOp,
    SelectAndScatterOp,
    SelectOp,
    SliceOp,
    SortOp,
    TupleOp,
    WhileOp,
]

DIALECTS: Final = ("stablehlo", "chlo")
