"""`transform`: the operations of MLIR's transform scripts, in the syntax of MLIR 22.

xDSL's classes lack most of them, and the custom syntax of others. Each operation is one row of the tables below.
"""

from __future__ import annotations

from abc import ABC
from collections.abc import Sequence
from typing import Any, ClassVar, Final, cast

from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    I32,
    I64,
    ArrayAttr,
    DenseArrayBase,
    DictionaryAttr,
    IntegerAttr,
    StringAttr,
    SymbolRefAttr,
    UnitAttr,
    i1,
    i32,
    i64,
)
from xdsl.dialects.transform import TransformHandleType
from xdsl.dialects.utils import (
    parse_dynamic_index_list_without_types,
    print_dynamic_index_list,
)
from xdsl.ir import Attribute, Block, Region
from xdsl.irdl import (
    AttrSizedOperandSegments,
    IRDLOperation,
    ParsePropInAttrDict,
    irdl_op_definition,
    operand_def,
    opt_operand_def,
    opt_prop_def,
    prop_def,
    region_def,
    result_def,
    traits_def,
    var_operand_def,
    var_region_def,
    var_result_def,
)
from xdsl.irdl.declarative_assembly_format import (
    AttributeVariable,
    CustomDirective,
    OptionalOperandVariable,
    ParsingState,
    PrintingState,
    TypeDirective,
    VariadicOperandVariable,
    VariadicRegionVariable,
    VariadicResultVariable,
    irdl_custom_directive,
)
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import IsTerminator, NoTerminator
from xdsl.utils.exceptions import VerifyException

from weft.dialects.printing import Piece, grouped, write
from weft.dialects.upstream.custom_syntax import parse_optional_results, parse_types, terminated, word_directive

# Directives

MODES: Final = ("", "propagate", "suppress")
_LAYOUTS: Final = ("InferLayoutMap", "IdentityLayoutMap", "FullyDynamicLayoutMap")


@irdl_custom_directive
class _Layout(CustomDirective):
    """Optional `layout{IdentityLayoutMap}`."""

    stored: AttributeVariable

    def parse(self, parser: Parser, state: ParsingState) -> None:
        if parser.parse_optional_keyword("layout") is None:
            return
        with parser.in_braces():
            at = parser.pos
            word = parser.parse_identifier()
            if word not in _LAYOUTS:
                parser.raise_error(f"unknown layout map '{word}', known are {', '.join(_LAYOUTS)}", at, parser.pos)
        self.stored.set(state, IntegerAttr(_LAYOUTS.index(word), i32))

    def print(self, printer: Printer, state: PrintingState, op: IRDLOperation) -> None:
        stored = self.stored.get(op)
        if isinstance(stored, IntegerAttr):
            write(printer, f" layout{{{_LAYOUTS[stored.value.data]}}}")
            state.last_was_punctuation, state.should_emit_space = False, True


@irdl_custom_directive
class _Mode(CustomDirective):
    """`failures(propagate)`, optional if the property is."""

    stored: AttributeVariable

    def parse(self, parser: Parser, state: ParsingState) -> None:
        if self.stored.is_optional and parser.parse_optional_keyword("failures") is None:
            return
        if not self.stored.is_optional:
            parser.parse_keyword("failures")
        with parser.in_parens():
            at = parser.pos
            word = parser.parse_identifier()
            if word not in MODES[1:]:
                parser.raise_error(f"unknown failure mode '{word}', known are propagate and suppress", at, parser.pos)
        self.stored.set(state, IntegerAttr(MODES.index(word), i32))

    def print(self, printer: Printer, state: PrintingState, op: IRDLOperation) -> None:
        stored = self.stored.get(op)
        if isinstance(stored, IntegerAttr):
            _print_word(printer, state, f" failures({MODES[stored.value.data]})")


@irdl_custom_directive
class _ListedSizes(CustomDirective):
    """Optional `word [4, %n]`: integers, some of which are operands."""

    dynamic: VariadicOperandVariable
    static: AttributeVariable
    WORD = ""
    EQUALS = ""

    def parse(self, parser: Parser, state: ParsingState) -> None:
        if parser.parse_optional_keyword(self.WORD) is None:
            self.dynamic.set(state, [])
            return
        parser.parse_optional_punctuation("=")
        self.parse_sizes(parser, state)

    def parse_sizes(self, parser: Parser, state: ParsingState) -> None:
        """`[4, %n, 0]`; a scalable size `[[4]]` is rejected with its own error."""
        dynamic, static = parse_dynamic_index_list_without_types(parser, DYNAMIC_INDEX)
        self.dynamic.set(state, list(dynamic))
        self.static.set(state, DenseArrayBase.from_list(i64, static))

    def print(self, printer: Printer, state: PrintingState, op: IRDLOperation) -> None:
        static = self.static.get(op)
        if isinstance(static, DenseArrayBase):
            write(printer, f" {self.WORD}{self.EQUALS} ")
            values: Sequence[int] = cast("Any", static).get_values()
            print_dynamic_index_list(printer, DYNAMIC_INDEX, list(self.dynamic.get(op)), values)
            state.last_was_punctuation, state.should_emit_space = False, True


@irdl_custom_directive
class TileSizes(_ListedSizes):
    """`tile_sizes [4, %n]`, with a flag for each size that states whether it is scalable."""

    dynamic: VariadicOperandVariable
    static: AttributeVariable
    scalable: AttributeVariable
    WORD = "tile_sizes"

    def parse_sizes(self, parser: Parser, state: ParsingState) -> None:
        super().parse_sizes(parser, state)
        self.scalable.set(state, no_flags(len(cast("Any", state.properties[self.static.name]))))


@irdl_custom_directive
class _Packed(_ListedSizes):
    """Optional `word [4, %n]`, or `word *(%sizes)`: all sizes are the parameters of one handle."""

    dynamic: VariadicOperandVariable
    static: AttributeVariable
    packed: OptionalOperandVariable

    def parse(self, parser: Parser, state: ParsingState) -> None:
        self.packed.set(state, None)
        super().parse(parser, state)

    def parse_sizes(self, parser: Parser, state: ParsingState) -> None:
        if parser.parse_optional_punctuation("*") is None:
            super().parse_sizes(parser, state)
            return
        self.dynamic.set(state, [])
        with parser.in_parens():
            self.packed.set(state, parser.parse_unresolved_operand())

    def print(self, printer: Printer, state: PrintingState, op: IRDLOperation) -> None:
        packed = self.packed.get(op)
        if packed is None:
            super().print(printer, state, op)
        else:
            _print_word(printer, state, f" {self.WORD} *(", packed, ")")


def no_flags(count: int) -> DenseArrayBase[Any]:
    """`scalable_sizes` for sizes that are not scalable."""
    return DenseArrayBase.from_list(i1, [0] * count)


def _print_word(printer: Printer, state: PrintingState, *pieces: Piece) -> None:
    write(printer, *pieces)
    state.last_was_punctuation, state.should_emit_space = False, True


def _sizes_directive(word: str, equals: str = "", base: type[_ListedSizes] = _ListedSizes) -> type[CustomDirective]:
    name = "".join(part.capitalize() for part in word.split("_")) + "List"
    return type(name, (base,), {"WORD": word, "EQUALS": equals})


_DIRECTIVES: Final = {
    directive.__name__: directive
    for directive in (
        *(_Layout, TileSizes, _sizes_directive("tile_sizes")),
        _sizes_directive("pad_to_multiple_of"),
        _sizes_directive("packed_sizes", " ="),
    )
}


@irdl_custom_directive
class _NumberOrOperand(CustomDirective):
    """An integer, or an operand; after `WORD =`, which is optional, if there is a word."""

    dynamic: OptionalOperandVariable
    static: AttributeVariable
    WORD = ""

    def parse(self, parser: Parser, state: ParsingState) -> None:
        self.dynamic.set(state, None)
        if self.WORD:
            if parser.parse_optional_keyword(self.WORD) is None:
                return
            parser.parse_punctuation("=")
        number = parser.parse_optional_integer()
        if number is None:
            self.dynamic.set(state, parser.parse_unresolved_operand())
        if number is not None or not self.static.is_optional:
            self.static.set(state, IntegerAttr(DYNAMIC_INDEX if number is None else number, i64))

    def print(self, printer: Printer, state: PrintingState, op: IRDLOperation) -> None:
        dynamic, static = self.dynamic.get(op), self.static.get(op)
        shown = static.value.data if dynamic is None and isinstance(static, IntegerAttr) else dynamic
        if shown is not None:
            _print_word(printer, state, f" {self.WORD} = " if self.WORD else " ", shown)


class _SelectedRegion(_NumberOrOperand):
    WORD = "selected_region"


@irdl_custom_directive
class _ListedDims(CustomDirective):
    """`[0, 1]`, `[except(0)]` or `[all]`"""

    listed: AttributeVariable
    is_inverted: AttributeVariable
    is_all: AttributeVariable

    def parse(self, parser: Parser, state: ParsingState) -> None:
        dims: Sequence[int] = ()
        with parser.in_square_brackets():
            if parser.parse_optional_keyword("all") is not None:
                self.is_all.set(state, UnitAttr())
            elif parser.parse_optional_keyword("except") is not None:
                self.is_inverted.set(state, UnitAttr())
                dims = parser.parse_comma_separated_list(Parser.Delimiter.PAREN, parser.parse_integer)
            else:
                dims = parser.parse_comma_separated_list(Parser.Delimiter.NONE, parser.parse_integer)
        self.listed.set(state, DenseArrayBase.from_list(i64, dims))

    def print(self, printer: Printer, state: PrintingState, op: IRDLOperation) -> None:
        dims = ", ".join(map(str, cast("Any", self.listed.get(op)).get_values()))
        text = "all" if self.is_all.get(op) is not None else f"except({dims})" if self.is_inverted.get(op) else dims
        _print_word(printer, state, f"[{text}]")


@irdl_custom_directive
class _Actions(CustomDirective):
    """`@matcher -> @action, @other -> @action`"""

    matchers: AttributeVariable
    actions: AttributeVariable

    def parse(self, parser: Parser, state: ParsingState) -> None:
        def parse_pair() -> tuple[StringAttr, StringAttr]:
            matcher = parser.parse_symbol_name()
            parser.parse_punctuation("->")
            return matcher, parser.parse_symbol_name()

        pairs = parser.parse_comma_separated_list(Parser.Delimiter.NONE, parse_pair)
        for variable, names in zip((self.matchers, self.actions), zip(*pairs, strict=True), strict=True):
            variable.set(state, ArrayAttr([SymbolRefAttr(name) for name in names]))

    def print(self, printer: Printer, state: PrintingState, op: IRDLOperation) -> None:
        pairs = zip(cast("Any", self.matchers.get(op)), cast("Any", self.actions.get(op)), strict=True)
        _print_word(printer, state, " ", [(matcher, " -> ", action) for matcher, action in pairs])


@irdl_custom_directive
class _Results(CustomDirective):
    """Optional `-> T` or `-> (T, U)`."""

    types: TypeDirective

    def parse(self, parser: Parser, state: ParsingState) -> None:
        self.types.set(state, parse_optional_results(parser))

    def print(self, printer: Printer, state: PrintingState, op: IRDLOperation) -> None:
        if op.results:
            _print_word(printer, state, " -> ", _grouped(op.result_types))


@irdl_custom_directive
class _Regions(CustomDirective):
    """`{ ... }, { ... }`, each of one block that ends in `transform.yield`."""

    regions: VariadicRegionVariable

    def parse(self, parser: Parser, state: ParsingState) -> None:
        regions = parser.parse_comma_separated_list(Parser.Delimiter.NONE, parser.parse_region)
        for region in regions:
            if not region.blocks:
                region.add_block(Block())
            terminated(region, YieldOp)
        self.regions.set(state, regions)

    def print(self, printer: Printer, state: PrintingState, op: IRDLOperation) -> None:
        def print_region(region: Region) -> None:
            has_results = bool(region.block.last_op and region.block.last_op.operands)
            printer.print_region(region, print_block_terminators=has_results)

        printer.print_string(" ")
        printer.print_list(self.regions.get(op), print_region)


@irdl_custom_directive
class _OneType(CustomDirective):
    """One type, of all operands and results that are named."""

    first: TypeDirective
    second: TypeDirective

    def parse(self, parser: Parser, state: ParsingState) -> None:
        type_ = parser.parse_type()
        for directive in (self.first, self.second):
            inner = directive.inner
            is_list = isinstance(inner, VariadicOperandVariable)
            directive.set(state, [type_] * (len(state.operands[inner.index] or ()) if is_list else 1))

    def print(self, printer: Printer, state: PrintingState, op: IRDLOperation) -> None:
        state.print_whitespace(printer)
        printer.print_attribute(self.second.get(op)[0])


class _Types(CustomDirective):
    """The types of operands and results. Of no operands, nothing is printed."""

    IS_FUNCTION: ClassVar[bool | None]
    """True: `: (T, U) -> V`. False: `: T, U`, and a result has the first type. None: `: T`, or `: (T, U) -> V`."""
    COUNT: ClassVar[int]
    """The number of parameters that are operands; results follow."""
    TEXT: ClassVar[str]
    """The directive in a format."""

    def __init__(self, *types: TypeDirective) -> None:
        self.operands, self.results = types[: self.COUNT], types[self.COUNT :]

    def parse(self, parser: Parser, state: ParsingState) -> None:
        sizes = [len(group or ()) for group in state.operands]
        if not any(sizes) and not self.IS_FUNCTION:
            for directive in self.operands:
                directive.set(state, ())
            return
        parser.parse_punctuation(":")
        at = parser.pos
        inputs = parser.parse_optional_comma_separated_list(Parser.Delimiter.PAREN, parser.parse_type)
        if inputs is not None and self.IS_FUNCTION is not False:
            parser.parse_punctuation("->")
            results = parse_types(parser)
        elif self.IS_FUNCTION:
            parser.raise_error("'(' expected", at)
        else:
            inputs = inputs or parser.parse_comma_separated_list(Parser.Delimiter.NONE, parser.parse_type)
            results = inputs[:1] if self.IS_FUNCTION is False and self.results else []
        if len(inputs) != sum(sizes):
            parser.raise_error(f"{sum(sizes)} operands, but {len(inputs)} types", at, parser.pos)
        for directive, size in zip(self.operands, sizes, strict=True):
            directive.set(state, inputs[:size])
            inputs = inputs[size:]
        for position, directive in enumerate(self.results):
            is_list = isinstance(directive.inner, VariadicResultVariable)
            taken = results[position:] if is_list else results[position : position + 1]
            if not is_list and not taken:
                parser.raise_error(f"{state.op_type.name} has {len(self.results)} results", at, parser.pos)
            directive.set(state, taken)

    def print(self, printer: Printer, state: PrintingState, op: IRDLOperation) -> None:
        if self.IS_FUNCTION or (self.IS_FUNCTION is None and op.results):
            write(printer, " : (", [*op.operand_types], ") -> ", _grouped(op.result_types))
        elif op.operands:
            write(printer, " : ", [*op.operand_types])
        state.last_was_punctuation, state.should_emit_space = False, True


def _grouped(types: Sequence[Attribute]) -> Piece:
    return grouped(types) if types else "()"


def _types(operands: str, results: str = "", is_function: bool | None = False) -> type[_Types]:
    """`custom<Types>(...)` of operands and results."""
    names = [*operands.split(), *results.split()]
    members: dict[str, Any] = {"IS_FUNCTION": is_function, "COUNT": len(operands.split())}
    members["TEXT"] = f"custom<Types>({', '.join(f'type(${name})' for name in names)})"
    return type("Types", (_Types,), {**members, "parameters": dict.fromkeys(names, TypeDirective)})


# Declarations

_KINDS: Final[dict[str, Any]] = {
    "ints": DenseArrayBase.constr(i64),
    "bools": DenseArrayBase.constr(i1),
    "int": IntegerAttr,
    "i64": IntegerAttr[I64],
    "i32": IntegerAttr[I32],
    "str": StringAttr,
    "unit": UnitAttr,
    "symbol": SymbolRefAttr,
    "list": ArrayAttr,
    "dict": DictionaryAttr,
    "any": Attribute,
}


def _members(operands: str, properties: str, results: str) -> dict[str, Any]:
    """The fields of an op: `name`, `name?` (optional), `name*` (variadic); a property is `name:kind`."""
    members: dict[str, Any] = {}
    for operand in operands.split():
        make = {"?": opt_operand_def, "*": var_operand_def}.get(operand[-1], operand_def)
        members[operand.rstrip("?*")] = make(TransformHandleType)
    for declared in properties.split():
        name, _, kind = declared.partition(":")
        make = opt_prop_def if name[-1] == "?" else prop_def
        name = name.rstrip("?")
        members["name_" if name == "name" else name] = make(_KINDS[kind], prop_name=name)
    for result in results.split():
        members[result.rstrip("*")] = (var_result_def if result[-1] == "*" else result_def)(TransformHandleType)
    if sum(operand[-1] in "?*" for operand in operands.split()) > 1:
        members["irdl_options"] = (AttrSizedOperandSegments(as_property=True), ParsePropInAttrDict())
    else:
        members["irdl_options"] = (ParsePropInAttrDict(),)
    return members


def _op(
    name: str, syntax: str, operands: str = "", properties: str = "", results: str = "", **members: Any
) -> type[IRDLOperation]:
    """An op that is parsed and printed by the declarative format `syntax`."""
    members |= _members(operands, properties, results)
    if syntax:
        members["assembly_format"] = syntax
        members["custom_directives"] = tuple(one for key, one in _DIRECTIVES.items() if f"custom<{key}>" in syntax)
    title = "".join(part.capitalize() for part in name.replace(".", "_").split("_"))
    described = {"name": f"transform.{name}", "__doc__": f"`transform.{name}` of MLIR.", "__module__": __name__}
    return cast("Any", irdl_op_definition)(type(f"{title}Op", (IRDLOperation,), {**described, **members}))


_PARENT: Final = "isolated_from_above?:unit allow_empty_results?:unit op_name?:str deduplicate?:unit nth_parent?:int"
_HANDLES: Final = "pass_through_empty_handle?:any fail_on_payload_too_small?:any overflow_result?:int"
_BUFFERIZATION: Final = (
    "function_boundary_type_conversion?:i32 allow_return_allocs_from_loops?:any allow_unknown_ops?:any "
    "bufferize_function_boundaries?:any dump_alias_sets?:any test_analysis_only?:any print_conflicts?:any "
    "check_parallel_regions?:any memcpy_op?:any"
)
_VECTORIZE_CHILDREN: Final = (
    "fold_type_extensions_into_contract?:unit vectorize_padding?:unit vectorize_nd_extract?:unit "
    "flatten_1d_depthwise_conv?:unit disable_multi_reduction_to_contract_patterns?:unit "
    "disable_transfer_permutation_map_lowering_patterns?:unit"
)
_PAD: Final = (
    "padding_values?:list padding_dimensions?:list static_pad_to_multiple_of?:ints nofold_flags?:list "
    "transpose_paddings?:list copy_back_op?:str use_prescribed_tensor_shapes?:unit"
)
_SPLIT_RESULTS: Final = "init_or_alloc_op fill_op split_linalg_op combining_linalg_op"
_SPLIT_REDUCTION: Final = (
    "split_factor?:int insert_split_dimension?:int inner_parallel?:unit use_scaling_algorithm?:unit use_alloc?:unit"
)
_FUNCTION: Final = "attr-dict `:` functional-type(operands, results)"
_TYPED: Final = "attr-dict `:` type($target)"


def _functional(name: str, results: str = "result", properties: str = "") -> type[IRDLOperation]:
    """`transform.name %target {...} : (T) -> U`"""
    return _op(name, f"$target {_FUNCTION}", "target", properties, results)


def _on(name: str, properties: str = "", word: str = "") -> type[IRDLOperation]:
    """`transform.name to %target {...} : T`"""
    return _op(name, f"{word} $target {_TYPED}", "target", properties)


@irdl_op_definition
class YieldOp(IRDLOperation):
    """Terminate a sequence or region with its results: `transform.yield %a : !transform.any_op`."""

    name = "transform.yield"

    operands_ = var_operand_def(TransformHandleType)
    traits = traits_def(IsTerminator())
    assembly_format = "$operands_ attr-dict (`:` type($operands_)^)?"


_SequenceTypes = _types("root extra_bindings")


@irdl_op_definition
class SequenceOp(IRDLOperation):
    """A top-level script, applied to the whole payload or to the payload ops of a handle.

    `transform.sequence %root : !transform.any_op -> !transform.any_op failures(propagate) { ^bb0(...): ... }`
    """

    name = "transform.sequence"

    root = opt_operand_def(TransformHandleType)
    extra_bindings = var_operand_def(TransformHandleType)
    failure_propagation_mode = prop_def(IntegerAttr[I32])
    results_ = var_result_def(TransformHandleType)
    body = var_region_def()
    irdl_options = (AttrSizedOperandSegments(as_property=True),)
    custom_directives = (_SequenceTypes, _Results, _Mode, _Regions)
    assembly_format = (
        f"($root^)? (`,` $extra_bindings^)? {_SequenceTypes.TEXT} custom<_Results>(type($results_)) "
        "custom<_Mode>($failure_propagation_mode) attr-dict-with-keyword custom<_Regions>($body)"
    )


@irdl_op_definition
class IncludeOp(IRDLOperation):
    """A call of a named sequence: `%r = transform.include @s failures(suppress) (%a) : (!transform.any_op) -> ...`."""

    name = "transform.include"

    target = prop_def(SymbolRefAttr)
    failure_propagation_mode = prop_def(IntegerAttr[I32])
    operands_ = var_operand_def(TransformHandleType)
    results_ = var_result_def(TransformHandleType)
    custom_directives = (_Mode,)
    assembly_format = f"$target custom<_Mode>($failure_propagation_mode) ` ` `(` operands `)` {_FUNCTION}"


@irdl_op_definition
class ForeachOp(IRDLOperation):
    """The region applied to each payload op: `%r = transform.foreach %a : T -> U { ^bb0(%one: T): ... }`."""

    name = "transform.foreach"

    targets = var_operand_def(TransformHandleType)
    with_zip_shortest = opt_prop_def(UnitAttr)
    results_ = var_result_def(TransformHandleType)
    body = var_region_def()
    custom_directives = (_Results, _Regions)
    assembly_format = (
        "$targets (`with_zip_shortest` $with_zip_shortest^)? `:` type($targets) custom<_Results>(type($results_)) "
        "custom<_Regions>($body) attr-dict"
    )


@irdl_op_definition
class ForeachMatchOp(IRDLOperation):
    """Sequences applied to the payload ops that other sequences match:
    `%r = transform.foreach_match restrict_root in %a @m -> @act, @n -> @other : (T) -> T`."""

    name = "transform.foreach_match"

    root = operand_def(TransformHandleType)
    forwarded_inputs = var_operand_def(TransformHandleType)
    matchers = prop_def(ArrayAttr[SymbolRefAttr])
    actions = prop_def(ArrayAttr[SymbolRefAttr])
    restrict_root = opt_prop_def(UnitAttr)
    flatten_results = opt_prop_def(UnitAttr)
    updated = result_def(TransformHandleType)
    forwarded_outputs = var_result_def(TransformHandleType)
    custom_directives = (_Actions,)
    assembly_format = (
        "(`restrict_root` $restrict_root^)? (`flatten_results` $flatten_results^)? `in` operands "
        f"custom<_Actions>($matchers, $actions) {_FUNCTION}"
    )


PREDICATES: Final = ("eq", "ne", "le", "lt", "ge", "gt")
_Predicate = word_directive("_Predicate", PREDICATES, "unknown predicate '{word}', known are {words}", 32)


@irdl_op_definition
class CompareParamsOp(IRDLOperation):
    """A comparison of parameters, which fails unless it holds: `transform.match.param.cmpi eq %a, %b : T`."""

    name = "transform.match.param.cmpi"

    param = operand_def(TransformHandleType)
    reference = operand_def(TransformHandleType)
    predicate = prop_def(IntegerAttr[I32])
    custom_directives = (_Predicate, _OneType)
    assembly_format = (
        "custom<_Predicate>($predicate) $param `,` $reference attr-dict `:` "
        "custom<_OneType>(type($param), type($reference))"
    )


@irdl_op_definition
class AlternativesOp(IRDLOperation):
    """The first region that does not fail: `transform.alternatives %a : T { ^bb0(%b: T): ... }, { ... }`."""

    name = "transform.alternatives"

    scope = opt_operand_def(TransformHandleType)
    results_ = var_result_def(TransformHandleType)
    alternatives = var_region_def()
    custom_directives = (_Results, _Regions)
    assembly_format = (
        "($scope^ `:` type($scope))? custom<_Results>(type($results_)) attr-dict-with-keyword "
        "custom<_Regions>($alternatives)"
    )


@irdl_op_definition
class KnobOp(IRDLOperation):
    """A parameter chosen by a search: `%p = transform.tune.knob<"tile"> = 8 from options = [8, 16] -> T`."""

    name = "transform.tune.knob"

    name_ = prop_def(StringAttr, prop_name="name")
    options = prop_def(ArrayAttr)
    selected = opt_prop_def(Attribute)
    result = result_def(TransformHandleType)
    assembly_format = "`<` $name `>` (`=` $selected^ `from`)? `options` `=` $options attr-dict `->` type($result)"

    def verify_(self) -> None:
        if self.selected is not None and self.selected not in self.options.data:
            raise VerifyException(f"{self.name}: {self.selected} is not one of its options")


@irdl_op_definition
class TuneAlternativesOp(IRDLOperation):
    """One of several regions, chosen by a search:
    `transform.tune.alternatives<"name"> selected_region = 0 { ... }, { ... }`."""

    name = "transform.tune.alternatives"

    name_ = prop_def(StringAttr, prop_name="name")
    selected_region = opt_operand_def(TransformHandleType)
    selected_region_attr = opt_prop_def(IntegerAttr)
    results_ = var_result_def(TransformHandleType)
    alternatives = var_region_def()
    custom_directives = (_SelectedRegion, _Results, _Regions)
    assembly_format = (
        "`<` $name `>` custom<_SelectedRegion>($selected_region, $selected_region_attr) attr-dict-with-keyword "
        "(`:` type($selected_region)^)? custom<_Results>(type($results_)) custom<_Regions>($alternatives)"
    )


_TileUsingForallTypes = _types(
    "target num_threads tile_sizes packed_num_threads packed_tile_sizes", "tiled_op forall_op", is_function=True
)


@irdl_op_definition
class TileUsingForallOp(IRDLOperation):
    """Parallel tiles, given by their sizes or by their number.

    `%op, %loop = transform.structured.tile_using_forall %a tile_sizes [4, %n] (mapping = [...]) : (T, P) -> (T, T)`
    """

    name = "transform.structured.tile_using_forall"

    target = operand_def(TransformHandleType)
    num_threads = var_operand_def(TransformHandleType)
    tile_sizes = var_operand_def(TransformHandleType)
    packed_num_threads = opt_operand_def(TransformHandleType)
    packed_tile_sizes = opt_operand_def(TransformHandleType)
    static_num_threads = opt_prop_def(DenseArrayBase.constr(i64))
    static_tile_sizes = opt_prop_def(DenseArrayBase.constr(i64))
    mapping = opt_prop_def(ArrayAttr)
    tiled_op = result_def(TransformHandleType)
    forall_op = result_def(TransformHandleType)
    irdl_options = (AttrSizedOperandSegments(as_property=True),)
    custom_directives = (
        *(_sizes_directive("num_threads", base=_Packed), _sizes_directive("tile_sizes", base=_Packed)),
        _TileUsingForallTypes,
    )
    assembly_format = (
        "$target custom<NumThreadsList>($num_threads, $static_num_threads, $packed_num_threads) "
        "custom<TileSizesList>($tile_sizes, $static_tile_sizes, $packed_tile_sizes) "
        f"(`(` `mapping` `=` $mapping^ `)`)? attr-dict {_TileUsingForallTypes.TEXT}"
    )


_FuseTypes = _types("target tile_sizes tile_interchange", "transformed loops", is_function=True)


@irdl_op_definition
class FuseOp(IRDLOperation):
    """Tile, and fuse the producers of the operands into the tiles:
    `%op, %loop = transform.structured.fuse %a tile_sizes [4, 0] interchange [1, 0] {apply_cleanup} : (T) -> (T, T)`."""

    name = "transform.structured.fuse"

    target = operand_def(TransformHandleType)
    tile_sizes = var_operand_def(TransformHandleType)
    tile_interchange = var_operand_def(TransformHandleType)
    static_tile_sizes = opt_prop_def(DenseArrayBase.constr(i64))
    static_tile_interchange = opt_prop_def(DenseArrayBase.constr(i64))
    apply_cleanup = opt_prop_def(Attribute)
    use_forall = opt_prop_def(Attribute)
    transformed = result_def(TransformHandleType)
    loops = var_result_def(TransformHandleType)
    irdl_options = (AttrSizedOperandSegments(as_property=True), ParsePropInAttrDict())
    custom_directives = (_sizes_directive("tile_sizes"), _sizes_directive("interchange"), _FuseTypes)
    assembly_format = (
        "$target custom<TileSizesList>($tile_sizes, $static_tile_sizes) "
        f"custom<InterchangeList>($tile_interchange, $static_tile_interchange) attr-dict {_FuseTypes.TEXT}"
    )


_SplitTypes = _types("target dynamic_chunk_sizes", "split_list")


@irdl_op_definition
class SplitOp(IRDLOperation):
    """Split a structured op into two, of which the first has the given number of iterations:
    `%parts = transform.structured.split %a after 42 {dimension = 0 : i64} : T`, or `after %n ... : T, P`."""

    name = "transform.structured.split"

    target = operand_def(TransformHandleType)
    dynamic_chunk_sizes = opt_operand_def(TransformHandleType)
    dimension = prop_def(IntegerAttr)
    static_chunk_sizes = prop_def(IntegerAttr)
    multiway = opt_prop_def(UnitAttr)
    split_list = result_def(TransformHandleType)
    irdl_options = (ParsePropInAttrDict(),)
    custom_directives = (_NumberOrOperand, _SplitTypes)
    assembly_format = (
        "$target `after` custom<_NumberOrOperand>($dynamic_chunk_sizes, $static_chunk_sizes) "
        f"attr-dict {_SplitTypes.TEXT}"
    )


_AnnotateTypes = _types("target param")


@irdl_op_definition
class AnnotateOp(IRDLOperation):
    """Attach an attribute to payload ops: `transform.annotate %a "name" = %value : !transform.any_op, T`."""

    name = "transform.annotate"

    target = operand_def(TransformHandleType)
    param = opt_operand_def(TransformHandleType)
    name_ = prop_def(StringAttr, prop_name="name")
    custom_directives = (_AnnotateTypes,)
    assembly_format = f"$target $name attr-dict (`=` $param^)? {_AnnotateTypes.TEXT}"


@irdl_op_definition
class PrintOp(IRDLOperation):
    """Print payload ops: `transform.print %a {name = "after tiling"} : !transform.any_op`."""

    name = "transform.print"

    target = opt_operand_def(TransformHandleType)
    name_ = opt_prop_def(StringAttr, prop_name="name")
    skip_regions = opt_prop_def(UnitAttr)
    irdl_options = (ParsePropInAttrDict(),)
    assembly_format = "($target^)? attr-dict (`:` type($target)^)?"


_VectorizeTypes = _types("target vector_sizes")


@irdl_op_definition
class VectorizeOp(IRDLOperation):
    """Vectorize structured ops: `transform.structured.vectorize %a vector_sizes [8, 16] : T`."""

    name = "transform.structured.vectorize"

    target = operand_def(TransformHandleType)
    vector_sizes = var_operand_def(TransformHandleType)
    static_vector_sizes = opt_prop_def(DenseArrayBase.constr(i64))
    scalable_sizes = opt_prop_def(DenseArrayBase.constr(i1))
    vectorize_nd_extract = opt_prop_def(UnitAttr)
    assume_dynamic_dims_match_vec_sizes = opt_prop_def(UnitAttr)
    create_named_contraction = opt_prop_def(UnitAttr)
    irdl_options = (ParsePropInAttrDict(),)
    custom_directives = (_sizes_directive("vector_sizes", base=TileSizes), _VectorizeTypes)
    assembly_format = (
        "$target custom<VectorSizesList>($vector_sizes, $static_vector_sizes, $scalable_sizes) "
        f"attr-dict {_VectorizeTypes.TEXT}"
    )


# Operations with a declarative format

_STRATEGY: Final = "(`lowering_strategy` `=` $lowering_strategy^)? (`max_transfer_rank` `=` $max_transfer_rank^)?"
PATTERNS: Final = (
    *(
        _op(f"apply_patterns.{name}", "attr-dict")
        for name in (
            *("canonicalization", "linalg.tiling_canonicalization", "scf.for_loop_canonicalization"),
            *("linalg.erase_unnecessary_inputs", "memref.fold_memref_alias_ops", "tensor.fold_tensor_empty"),
            *("tensor.fold_tensor_subset_ops", "tensor.merge_consecutive_insert_extract_slice"),
            *("vector.reduction_to_contract", "vector.transfer_permutation_patterns", "vector.lower_masks"),
            *("vector.lower_masked_transfers", "vector.lower_shape_cast", "vector.lower_outerproduct"),
            *("vector.lower_broadcast", "vector.cast_away_vector_leading_one_dim"),
            *("linalg.decompose_pack_unpack", "linalg.decompose_pad", "linalg.fold_add_into_dest"),
            *("linalg.fold_pack_unpack_into_empty", "linalg.fold_unit_extent_dims_via_reshapes"),
            *("linalg.fold_unit_extent_dims_via_slices", "linalg.pad_vectorization", "memref.expand_ops"),
            *("memref.expand_strided_metadata", "memref.extract_address_computations"),
            *("memref.resolve_ranked_shaped_type_result_dims", "tensor.bubble_up_extract_slice"),
            *("tensor.decompose_concat", "tensor.drop_redundant_insert_slice_rank_expansion"),
            *("tensor.fold_into_pack_and_unpack", "tensor.fold_tensor_subset_ops_into_vector_transfers"),
            *("tensor.reassociative_reshape_folding", "tensor.rewrite_as_constant"),
            *("vector.drop_inner_most_unit_dims_from_xfer_ops", "vector.drop_unit_dims_with_shape_cast"),
            *("vector.elementwise_to_vector", "vector.fold_arith_extension", "vector.lower_bitcast"),
            *("vector.lower_create_mask", "vector.lower_gather", "vector.lower_interleave", "vector.lower_scan"),
            *("vector.materialize_masks", "vector.rank_reducing_subview_patterns", "vector.rewrite_narrow_types"),
            *("vector.sink_mem_ops", "vector.sink_ops", "vector.unroll_from_elements", "vector.unroll_to_elements"),
        )
    ),
    *(
        _op(
            f"apply_patterns.vector.{name}",
            f"{_STRATEGY} attr-dict",
            properties="lowering_strategy?:any max_transfer_rank?:any",
        )
        for name in ("lower_contraction", "lower_multi_reduction", "lower_transfer", "lower_transpose")
    ),
)
"""Clean-ups and lowerings of vectors; they preserve semantics."""


@irdl_op_definition
class ApplyPatternsOp(IRDLOperation):
    """Apply patterns to a fixed point:
    `transform.apply_patterns to %a { patterns } {apply_cse} : !transform.any_op`."""

    name = "transform.apply_patterns"

    target = operand_def(TransformHandleType)
    apply_cse = opt_prop_def(UnitAttr)
    max_iterations = opt_prop_def(IntegerAttr)
    max_num_rewrites = opt_prop_def(IntegerAttr)
    patterns = region_def()
    traits = traits_def(NoTerminator())
    irdl_options = (ParsePropInAttrDict(),)
    assembly_format = "`to` $target $patterns attr-dict `:` type($target)"


@irdl_op_definition
class MergeHandlesOp(IRDLOperation):
    """The payload ops of several handles: `%c = transform.merge_handles deduplicate %a, %b : !transform.any_op`."""

    name = "transform.merge_handles"

    handles = var_operand_def(TransformHandleType)
    deduplicate = opt_prop_def(UnitAttr)
    result = result_def(TransformHandleType)
    custom_directives = (_OneType,)
    assembly_format = (
        "(`deduplicate` $deduplicate^)? $handles attr-dict `:` custom<_OneType>(type($handles), type($result))"
    )


_CurrentTypes = _types("current", "outputs", is_function=None)


@irdl_op_definition
class MatchStructuredOp(IRDLOperation):
    """Conditions on a structured op: `%r = transform.match.structured %a : (T) -> U { ^bb0(%s: T): ... }`."""

    name = "transform.match.structured"

    current = operand_def(TransformHandleType)
    failure_propagation_mode = opt_prop_def(IntegerAttr[I32])
    outputs = var_result_def(TransformHandleType)
    body_region = region_def()
    custom_directives = (_Mode, _CurrentTypes)
    assembly_format = f"custom<_Mode>($failure_propagation_mode) $current attr-dict {_CurrentTypes.TEXT} $body_region"


class _MatchListedOp(IRDLOperation, ABC):
    """Conditions on some dimensions or operands of a structured op: `%a[except(-1)] {kind} : (T) -> U`."""

    KINDS: ClassVar[tuple[str, str]]

    operand_handle = operand_def(TransformHandleType)
    is_inverted = opt_prop_def(UnitAttr)
    is_all = opt_prop_def(UnitAttr)
    outputs = var_result_def(TransformHandleType)
    irdl_options = (ParsePropInAttrDict(),)

    def verify_(self) -> None:
        if all(kind in self.properties for kind in self.KINDS):
            raise VerifyException(f"{self.name} has one of {' and '.join(self.KINDS)}")


_Listed = _types("operand_handle", "outputs", is_function=None)


@irdl_op_definition
class MatchDimOp(_MatchListedOp):
    """Kinds and extents of dimensions: `%d = transform.match.structured.dim %a[except(-1)] {parallel} : (T) -> U`."""

    name = "transform.match.structured.dim"
    KINDS: ClassVar[tuple[str, str]] = ("parallel", "reduction")

    raw_dim_list = prop_def(DenseArrayBase.constr(i64))
    parallel = opt_prop_def(UnitAttr)
    reduction = opt_prop_def(UnitAttr)
    custom_directives = (_ListedDims, _Listed)
    assembly_format = (
        f"$operand_handle custom<_ListedDims>($raw_dim_list, $is_inverted, $is_all) attr-dict {_Listed.TEXT}"
    )


class _MatchOperandOp(_MatchListedOp, ABC):
    KINDS: ClassVar[tuple[str, str]] = ("permutation", "projected_permutation")

    raw_position_list = prop_def(DenseArrayBase.constr(i64))
    permutation = opt_prop_def(UnitAttr)
    projected_permutation = opt_prop_def(UnitAttr)
    custom_directives = (_ListedDims, _Listed)
    assembly_format = (
        f"$operand_handle custom<_ListedDims>($raw_position_list, $is_inverted, $is_all) attr-dict {_Listed.TEXT}"
    )


@irdl_op_definition
class MatchInputOp(_MatchOperandOp):
    """Indexing maps, producers and values of inputs:
    `%v = transform.match.structured.input %a[0] {projected_permutation} : (T) -> !transform.any_value`."""

    name = "transform.match.structured.input"


@irdl_op_definition
class MatchInitOp(_MatchOperandOp):
    """Indexing maps, producers and values of inits: `%v = transform.match.structured.init %a[0] : (T) -> U`."""

    name = "transform.match.structured.init"


_DECLARED: Final = (
    # Queries.
    _functional("get_parent_op", properties=_PARENT),
    _op(
        "get_producer_of_operand",
        f"$target `[` $operand_number `]` {_FUNCTION}",
        "target",
        "operand_number:i64",
        "result",
    ),
    _op(
        "get_consumers_of_result",
        f"$target `[` $result_number `]` {_FUNCTION}",
        "target",
        "result_number:i64",
        "result",
    ),
    _op("split_handle", f"$handle {_FUNCTION}", "handle", _HANDLES, "results_*"),
    _op("cast", "$input attr-dict `:` type($input) `to` type($output)", "input", results="output"),
    _op("select", f"$op_name `in` $target {_FUNCTION}", "target", "op_name:str", "result"),
    _functional("num_associations"),
    _op("collect_matching", f"$matcher `in` $root {_FUNCTION}", "root", "matcher:symbol", "results_*"),
    _op("match.operation_name", f"$target $op_names {_TYPED}", "target", "op_names:list"),
    _op("match.operation_empty", f"$target {_TYPED}", "target"),
    _functional("match.structured.rank"),
    _functional("match.structured.num_inputs"),
    _functional("match.structured.num_inits"),
    _functional("match.structured.elemental_bitwidth"),
    _functional("match.structured.classify_contraction_dims", "batch m n k"),
    _op(
        "match.structured.result",
        "$target `[` $position `]` (`any` $any^)? (`single` $single^)? " + _FUNCTION,
        "target",
        "position:i64 any?:unit single?:unit",
        "result",
    ),
    _on("match.structured.body", "passthrough?:unit reduction_position?:int contraction?:list"),
    _op(
        "match.structured.yield",
        "($handles^ `:` type($handles))? attr-dict",
        "handles*",
        traits=traits_def(IsTerminator()),
    ),
    _op("param.constant", "$value attr-dict `->` type($result)", properties="value:any", results="result"),
    # Messages and annotations.
    _op("debug.emit_remark_at", "$target `,` $message attr-dict `:` type($target)", "target", "message:str"),
    # Clean-ups and passes.
    _on("apply_cse", word="`to`"),
    _on("apply_dce", word="`to`"),
    _on("apply_licm", word="`to`"),
    _op(
        "apply_registered_pass",
        f"$pass_name (`with` `options` `=` $options^)? `to` $target {_FUNCTION}",
        "target",
        "pass_name:str options?:dict",
        "result",
    ),
    _op(
        "bufferization.one_shot_bufferize",
        f"custom<_Layout>($function_boundary_type_conversion) $target {_FUNCTION}",
        "target",
        _BUFFERIZATION,
        "result",
    ),
    _on("bufferization.eliminate_empty_tensors"),
    _functional("structured.hoist_redundant_vector_transfers", properties="verify_non_zero_trip?:unit"),
    _functional("structured.hoist_redundant_vector_broadcasts"),
    _on("loop.hoist_loop_invariant_subsets"),
    # Structured operations.
    _op(
        "structured.tile_using_for",
        "$target custom<TileSizes>($dynamic_sizes, $static_sizes, $scalable_sizes) (`interchange` `=` $interchange^)? "
        + _FUNCTION,
        "target dynamic_sizes*",
        "static_sizes?:ints interchange?:ints scalable_sizes?:bools",
        "tiled_linalg_op loops*",
    ),
    _op(
        "structured.fuse_into_containing_op",
        f"$producer_op `into` $containing_op {_FUNCTION}",
        "producer_op containing_op",
        results="fused_op new_containing_op",
    ),
    _op(
        "structured.interchange",
        f"$target (`iterator_interchange` `=` $iterator_interchange^)? {_FUNCTION}",
        "target",
        "iterator_interchange?:ints",
        "result",
    ),
    _functional("structured.generalize"),
    _functional("structured.decompose"),
    _functional("structured.specialize"),
    _functional("structured.convert_to_loops"),
    _functional("structured.convert_conv2d_to_img2col", "img2col_tensor transformed"),
    _functional("structured.vectorize_children_and_apply_patterns", properties=_VECTORIZE_CHILDREN),
    _op(
        "structured.pad",
        "$target custom<PadToMultipleOfList>($pad_to_multiple_of, $static_pad_to_multiple_of) " + _FUNCTION,
        "target pad_to_multiple_of*",
        _PAD,
        "padded pad copy",
    ),
    _op(
        "structured.pack",
        "$target custom<PackedSizesList>($packed_sizes, $static_packed_sizes) " + _FUNCTION,
        "target packed_sizes*",
        "static_packed_sizes?:ints",
        "packed_op",
    ),
    _op(
        "structured.pack_transpose",
        "$target `with_compute_op` `(` $compute_op `)` (`outer_perm` `=` $outer_perm^)? "
        f"(`inner_perm` `=` $inner_perm^)? {_FUNCTION}",
        "target compute_op",
        "outer_perm?:ints inner_perm?:ints",
        "packed_op pack_op un_pack_op",
    ),
    _functional("structured.split_reduction", _SPLIT_RESULTS, _SPLIT_REDUCTION),
    _op(
        "structured.tile_reduction_using_for",
        "$target (`reduction_dims` `=` $reduction_dims^)? `by` "
        f"custom<TileSizesList>($dynamic_sizes, $tile_sizes) {_FUNCTION}",
        "target dynamic_sizes*",
        "reduction_dims?:ints tile_sizes?:ints",
        "results_*",
    ),
    _op(
        "structured.tile_reduction_using_forall",
        "$target (`reduction_dims` `=` $reduction_dims^)? `by` (`num_threads` `=` $num_threads^)? " + _FUNCTION,
        "target",
        "reduction_dims?:ints num_threads?:ints tile_sizes?:ints mapping?:list",
        "results_*",
    ),
    # Loops.
    _on("loop.unroll", "factor:int"),
    _functional("loop.peel", "peeled_loop remainder_loop", "peel_front?:any fail_if_already_divisible?:any"),
    _functional("loop.pipeline", properties="iteration_interval?:int read_latency?:int"),
    _functional("loop.coalesce"),
    _op("loop.fuse_sibling", f"$target `into` $source {_FUNCTION}", "target source", results="fused_loop"),
    _functional("loop.outline", "function call", "func_name:str"),
    _functional("loop.forall_to_for", "results_*"),
    _functional("loop.forall_to_parallel"),
)
OPERATIONS: Final = (
    *_DECLARED,
    *PATTERNS,
    *(
        YieldOp,
        SequenceOp,
        IncludeOp,
        ForeachOp,
        ForeachMatchOp,
        CompareParamsOp,
        MatchStructuredOp,
        MatchDimOp,
        MatchInitOp,
        MatchInputOp,
        AlternativesOp,
        KnobOp,
        TuneAlternativesOp,
        TileUsingForallOp,
        SplitOp,
        FuseOp,
    ),
    *(ApplyPatternsOp, MergeHandlesOp, AnnotateOp, PrintOp, VectorizeOp),
)
"""The ops that weft's tools parse in addition to xDSL's `named_sequence` and `structured.match`, or instead of
xDSL's."""
