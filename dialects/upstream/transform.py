"""`transform`: the operations of MLIR's transform scripts, in the syntax of MLIR 22.

xDSL's classes lack most of them, and the custom syntax of others. Each operation is one row of the tables below.
"""

from __future__ import annotations

from abc import ABC
from collections.abc import Sequence
from typing import Any, ClassVar, Final, Self, cast

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
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
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
    ParsingState,
    PrintingState,
    VariadicOperandVariable,
    irdl_custom_directive,
)
from xdsl.parser import Parser, UnresolvedOperand
from xdsl.printer import Printer
from xdsl.traits import IsTerminator, NoTerminator
from xdsl.utils.exceptions import VerifyException

from weft.dialects.printing import grouped, write
from weft.dialects.upstream.custom_syntax import parse_optional_results, parse_types

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
class _Sizes(CustomDirective):
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
        dynamic, static = _parse_sizes(parser)
        self.dynamic.set(state, dynamic)
        self.static.set(state, static)

    def print(self, printer: Printer, state: PrintingState, op: IRDLOperation) -> None:
        static = self.static.get(op)
        if isinstance(static, DenseArrayBase):
            write(printer, f" {self.WORD}{self.EQUALS} ")
            values: Sequence[int] = cast("Any", static).get_values()
            print_dynamic_index_list(printer, DYNAMIC_INDEX, list(self.dynamic.get(op)), values)
            state.last_was_punctuation, state.should_emit_space = False, True


@irdl_custom_directive
class TileSizes(_Sizes):
    """`tile_sizes [4, %n]`, with a flag for each size that states whether it is scalable."""

    dynamic: VariadicOperandVariable
    static: AttributeVariable
    scalable: AttributeVariable
    WORD = "tile_sizes"

    def parse(self, parser: Parser, state: ParsingState) -> None:
        super().parse(parser, state)
        static = state.properties.get("static_sizes")
        if isinstance(static, DenseArrayBase):
            self.scalable.set(state, no_flags(len(static)))


def no_flags(count: int) -> DenseArrayBase[Any]:
    """Returns `scalable_sizes` for sizes that are not scalable."""
    return DenseArrayBase.from_list(i1, [0] * count)


def _parse_sizes(parser: Parser) -> tuple[list[Any], DenseArrayBase[Any]]:
    """Parse `[4, %n, 0]`; a scalable size `[[4]]` is rejected with a separate error."""
    dynamic, static = parse_dynamic_index_list_without_types(parser, DYNAMIC_INDEX)
    return list(dynamic), DenseArrayBase.from_list(i64, static)


def _sizes_directive(word: str, equals: str = "") -> type[CustomDirective]:
    name = "".join(part.capitalize() for part in word.split("_")) + "List"
    return type(name, (_Sizes,), {"WORD": word, "EQUALS": equals})


_SIZES: Final = {
    directive.__name__: directive
    for directive in (
        *(_Layout, TileSizes, _sizes_directive("tile_sizes")),
        _sizes_directive("pad_to_multiple_of"),
        _sizes_directive("packed_sizes", " ="),
    )
}


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
    """Returns the fields of an op: `name`, `name?` (optional), `name*` (variadic); a property is `name:kind`."""
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
    """Returns an op that is parsed and printed by the declarative format `syntax`."""
    members |= _members(operands, properties, results)
    if syntax:
        members["assembly_format"] = syntax
        members["custom_directives"] = tuple(one for key, one in _SIZES.items() if f"custom<{key}>" in syntax)
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
    """Defines an op of the form `transform.name %target {...} : (T) -> U`."""
    return _op(name, f"$target {_FUNCTION}", "target", properties, results)


def _on(name: str, properties: str = "", word: str = "") -> type[IRDLOperation]:
    """Defines an op of the form `transform.name to %target {...} : T`."""
    return _op(name, f"{word} $target {_TYPED}", "target", properties)


def _resolve(parser: Parser, names: Sequence[UnresolvedOperand], types: Sequence[Attribute], at: int) -> list[SSAValue]:
    return list(parser.resolve_operands(list(names), list(types), at))


def _parse_function_type(parser: Parser) -> tuple[Sequence[Attribute], Sequence[Attribute]]:
    """Parse `: (T, U) -> V`."""
    parser.parse_punctuation(":")
    inputs = parser.parse_comma_separated_list(Parser.Delimiter.PAREN, parser.parse_type)
    parser.parse_punctuation("->")
    return inputs, parse_types(parser)


def _print_function_type(printer: Printer, op: Operation) -> None:
    write(printer, " : (", [operand.type for operand in op.operands], ") -> ", _grouped(op.result_types))


def _grouped(types: Sequence[Attribute]) -> Any:
    return grouped(types) if types else "()"


def _print_attributes(printer: Printer, op: Operation, hidden: Sequence[str] = ()) -> None:
    shown = {**op.properties, **op.attributes}
    shown = {name: value for name, value in shown.items() if name not in (*hidden, "operandSegmentSizes")}
    if shown:
        printer.print_string(" ")
        printer.print_attr_dict(shown)


def _parse_regions(parser: Parser) -> list[Region]:
    """Parse `{ ... }, { ... }`, each of one block that ends in `transform.yield`."""
    regions = parser.parse_comma_separated_list(Parser.Delimiter.NONE, parser.parse_region)
    for region in regions:
        if not region.blocks:
            region.add_block(Block())
        if not isinstance(region.block.last_op, YieldOp):
            region.block.add_op(YieldOp.create())
    return regions


def _print_regions(printer: Printer, regions: Sequence[Region]) -> None:
    printer.print_string(" ")
    printer.print_list(
        regions,
        lambda region: printer.print_region(
            region, print_block_terminators=bool(region.block.last_op and region.block.last_op.operands)
        ),
    )


@irdl_op_definition
class YieldOp(IRDLOperation):
    """Terminate a sequence or region with its results: `transform.yield %a : !transform.any_op`."""

    name = "transform.yield"

    operands_ = var_operand_def(TransformHandleType)
    traits = traits_def(IsTerminator())

    @classmethod
    def parse(cls, parser: Parser) -> YieldOp:
        values: Sequence[SSAValue] = ()
        attributes: dict[str, Attribute] = {}
        if parser.parse_optional_punctuation(":") is None and (first := parser.parse_optional_unresolved_operand()):
            names, at = [first], parser.pos
            while parser.parse_optional_punctuation(",") is not None:
                names.append(parser.parse_unresolved_operand())
            attributes = parser.parse_optional_attr_dict()
            parser.parse_punctuation(":")
            types = parser.parse_comma_separated_list(Parser.Delimiter.NONE, parser.parse_type)
            values = _resolve(parser, names, types, at)
        return cls.create(operands=values, attributes=attributes or parser.parse_optional_attr_dict())

    def print(self, printer: Printer) -> None:
        if self.operands:
            write(printer, " ", [*self.operands])
        _print_attributes(printer, self)
        if self.operands:
            write(printer, " : ", [operand.type for operand in self.operands])


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

    @classmethod
    def parse(cls, parser: Parser) -> SequenceOp:
        at = parser.pos
        names: list[UnresolvedOperand] = []
        while (name := parser.parse_optional_unresolved_operand()) is not None:
            names.append(name)
            if parser.parse_optional_punctuation(",") is None:
                break
        values: list[SSAValue] = []
        if names:
            parser.parse_punctuation(":")
            given = parser.parse_optional_comma_separated_list(Parser.Delimiter.PAREN, parser.parse_type)
            types = given or parser.parse_comma_separated_list(Parser.Delimiter.NONE, parser.parse_type)
            values = _resolve(parser, names, types, at)
        results = parse_optional_results(parser)
        mode = _parse_mode(parser)
        attributes = parser.parse_optional_attr_dict_with_keyword()
        (region,) = _parse_regions(parser)
        return cls.build(
            operands=[values[:1], values[1:]],
            result_types=[results],
            properties={"failure_propagation_mode": mode},
            attributes={} if attributes is None else dict(attributes.data),
            regions=[[region]],
        )

    def print(self, printer: Printer) -> None:
        if self.operands:
            write(printer, " ", [*self.operands], " : ", [operand.type for operand in self.operands])
        if self.results:
            write(printer, " -> ", _grouped(self.result_types))
        _print_mode(printer, self.failure_propagation_mode)
        printer.print_op_attributes(self.attributes, print_keyword=True)
        _print_regions(printer, self.regions)


def _parse_mode(parser: Parser) -> IntegerAttr[Any]:
    """Parse `failures(propagate)`."""
    parser.parse_keyword("failures")
    with parser.in_parens():
        at = parser.pos
        word = parser.parse_identifier()
        if word not in MODES[1:]:
            parser.raise_error(f"unknown failure mode '{word}', known are propagate and suppress", at, parser.pos)
    return IntegerAttr(MODES.index(word), i32)


def _print_mode(printer: Printer, mode: IntegerAttr[Any]) -> None:
    write(printer, f" failures({MODES[mode.value.data]})")


@irdl_op_definition
class IncludeOp(IRDLOperation):
    """A call of a named sequence: `%r = transform.include @s failures(suppress) (%a) : (!transform.any_op) -> ...`."""

    name = "transform.include"

    target = prop_def(SymbolRefAttr)
    failure_propagation_mode = prop_def(IntegerAttr[I32])
    operands_ = var_operand_def(TransformHandleType)
    results_ = var_result_def(TransformHandleType)

    @classmethod
    def parse(cls, parser: Parser) -> IncludeOp:
        name = parser.parse_symbol_name()
        mode = _parse_mode(parser)
        at = parser.pos
        names = parser.parse_comma_separated_list(Parser.Delimiter.PAREN, parser.parse_unresolved_operand)
        attributes = parser.parse_optional_attr_dict()
        inputs, results = _parse_function_type(parser)
        return cls.create(
            operands=_resolve(parser, names, inputs, at),
            result_types=results,
            properties={"target": SymbolRefAttr(name), "failure_propagation_mode": mode},
            attributes=attributes,
        )

    def print(self, printer: Printer) -> None:
        write(printer, " ", self.target)
        _print_mode(printer, self.failure_propagation_mode)
        write(printer, " (", [*self.operands], ")")
        printer.print_op_attributes(self.attributes)
        _print_function_type(printer, self)


class _ScopesOp(IRDLOperation):
    """Operands, results and regions: `%a, %b : T, U -> V { ... }, { ... }`."""

    @classmethod
    def parse_parts(cls, parser: Parser) -> tuple[list[SSAValue], Sequence[Attribute], dict[str, Attribute]]:
        at = parser.pos
        names: list[UnresolvedOperand] = []
        while (name := parser.parse_optional_unresolved_operand()) is not None:
            names.append(name)
            if parser.parse_optional_punctuation(",") is None:
                break
        properties: dict[str, Attribute] = {}
        if parser.parse_optional_keyword("with_zip_shortest") is not None:
            properties["with_zip_shortest"] = UnitAttr()
        types: Sequence[Attribute] = ()
        if names:
            parser.parse_punctuation(":")
            types = parser.parse_comma_separated_list(Parser.Delimiter.NONE, parser.parse_type)
        return _resolve(parser, names, types, at), parse_optional_results(parser), properties

    @classmethod
    def parse(cls, parser: Parser) -> _ScopesOp:
        operands, results, properties = cls.parse_parts(parser)
        keyed = parser.parse_optional_attr_dict_with_keyword()
        attributes = {} if keyed is None else dict(keyed.data)
        regions = _parse_regions(parser)
        attributes |= parser.parse_optional_attr_dict()
        return cls.create(
            operands=operands, result_types=results, properties=properties, attributes=attributes, regions=regions
        )

    def print(self, printer: Printer) -> None:
        if self.operands:
            write(printer, " ", [*self.operands])
            if "with_zip_shortest" in self.properties:
                write(printer, " with_zip_shortest")
            write(printer, " : ", [operand.type for operand in self.operands])
        if self.results:
            write(printer, " -> ", _grouped(self.result_types))
        printer.print_op_attributes(self.attributes, print_keyword=True)
        _print_regions(printer, self.regions)


@irdl_op_definition
class ForeachOp(_ScopesOp):
    """The region applied to each payload op: `%r = transform.foreach %a : T -> U { ^bb0(%one: T): ... }`."""

    name = "transform.foreach"

    targets = var_operand_def(TransformHandleType)
    with_zip_shortest = opt_prop_def(UnitAttr)
    results_ = var_result_def(TransformHandleType)
    body = var_region_def()


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

    @classmethod
    def parse(cls, parser: Parser) -> ForeachMatchOp:
        flags = ("restrict_root", "flatten_results")
        properties: dict[str, Attribute] = {
            flag: UnitAttr() for flag in flags if parser.parse_optional_keyword(flag) is not None
        }
        parser.parse_keyword("in")
        at = parser.pos
        names = parser.parse_comma_separated_list(Parser.Delimiter.NONE, parser.parse_unresolved_operand)
        pairs: list[tuple[StringAttr, StringAttr]] = []
        while not pairs or parser.parse_optional_punctuation(",") is not None:
            matcher = parser.parse_symbol_name()
            parser.parse_punctuation("->")
            pairs.append((matcher, parser.parse_symbol_name()))
        properties["matchers"] = ArrayAttr([SymbolRefAttr(matcher) for matcher, _ in pairs])
        properties["actions"] = ArrayAttr([SymbolRefAttr(action) for _, action in pairs])
        attributes = parser.parse_optional_attr_dict()
        inputs, results = _parse_function_type(parser)
        return cls.create(
            operands=_resolve(parser, names, inputs, at),
            result_types=results,
            properties=properties,
            attributes=attributes,
        )

    def print(self, printer: Printer) -> None:
        flags = [f" {flag}" for flag in ("restrict_root", "flatten_results") if flag in self.properties]
        write(printer, *flags, " in ", [*self.operands])
        for at, (matcher, action) in enumerate(zip(self.matchers, self.actions, strict=True)):
            write(printer, ", " if at else " ", matcher, " -> ", action)
        printer.print_op_attributes(self.attributes)
        _print_function_type(printer, self)


PREDICATES: Final = ("eq", "ne", "le", "lt", "ge", "gt")


@irdl_op_definition
class CompareParamsOp(IRDLOperation):
    """A comparison of parameters, which fails unless it holds: `transform.match.param.cmpi eq %a, %b : T`."""

    name = "transform.match.param.cmpi"

    param = operand_def(TransformHandleType)
    reference = operand_def(TransformHandleType)
    predicate = prop_def(IntegerAttr[I32])

    @classmethod
    def parse(cls, parser: Parser) -> CompareParamsOp:
        at = parser.pos
        word = parser.parse_identifier()
        if word not in PREDICATES:
            parser.raise_error(f"unknown predicate '{word}', known are {', '.join(PREDICATES)}", at, parser.pos)
        names = parser.parse_comma_separated_list(Parser.Delimiter.NONE, parser.parse_unresolved_operand)
        attributes = parser.parse_optional_attr_dict()
        parser.parse_punctuation(":")
        type_ = parser.parse_type()
        return cls.create(
            operands=_resolve(parser, names, [type_] * len(names), at),
            properties={"predicate": IntegerAttr(PREDICATES.index(word), i32)},
            attributes=attributes,
        )

    def print(self, printer: Printer) -> None:
        write(printer, f" {PREDICATES[self.predicate.value.data]} ", [*self.operands])
        printer.print_op_attributes(self.attributes)
        write(printer, " : ", self.param.type)


@irdl_op_definition
class AlternativesOp(_ScopesOp):
    """The first region that does not fail: `transform.alternatives %a : T { ^bb0(%b: T): ... }, { ... }`."""

    name = "transform.alternatives"

    scope = opt_operand_def(TransformHandleType)
    results_ = var_result_def(TransformHandleType)
    alternatives = var_region_def()


def _parse_name(parser: Parser) -> StringAttr:
    """Parse `<"name">`."""
    with parser.in_angle_brackets():
        return StringAttr(parser.parse_str_literal())


@irdl_op_definition
class KnobOp(IRDLOperation):
    """A parameter chosen by a search: `%p = transform.tune.knob<"tile"> = 8 from options = [8, 16] -> T`."""

    name = "transform.tune.knob"

    name_ = prop_def(StringAttr, prop_name="name")
    options = prop_def(ArrayAttr)
    selected = opt_prop_def(Attribute)
    result = result_def(TransformHandleType)

    def verify_(self) -> None:
        if self.selected is not None and self.selected not in self.options.data:
            raise VerifyException(f"{self.name}: {self.selected} is not one of its options")

    @classmethod
    def parse(cls, parser: Parser) -> KnobOp:
        properties: dict[str, Attribute] = {"name": _parse_name(parser)}
        if parser.parse_optional_punctuation("=") is not None:
            properties["selected"] = parser.parse_attribute()
            parser.parse_keyword("from")
        parser.parse_keyword("options")
        parser.parse_punctuation("=")
        properties["options"] = parser.parse_attribute()
        attributes = parser.parse_optional_attr_dict()
        return cls.create(result_types=parse_optional_results(parser), properties=properties, attributes=attributes)

    def print(self, printer: Printer) -> None:
        write(printer, "<", self.name_, ">")
        if self.selected is not None:
            write(printer, " = ", self.selected, " from")
        write(printer, " options = ", self.options)
        printer.print_op_attributes(self.attributes)
        write(printer, " -> ", self.result.type)


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

    @classmethod
    def parse(cls, parser: Parser) -> TuneAlternativesOp:
        properties: dict[str, Attribute] = {"name": _parse_name(parser)}
        names: list[UnresolvedOperand] = []
        at = parser.pos
        if parser.parse_optional_keyword("selected_region") is not None:
            parser.parse_punctuation("=")
            number = parser.parse_optional_integer()
            if number is None:
                names.append(parser.parse_unresolved_operand())
            else:
                properties["selected_region_attr"] = IntegerAttr(number, i64)
        keyed = parser.parse_optional_attr_dict_with_keyword()
        operands: list[SSAValue] = []
        if parser.parse_optional_punctuation(":") is not None:
            operands = _resolve(parser, names, [parser.parse_type()], at)
        results = parse_optional_results(parser)
        return cls.create(
            operands=operands,
            result_types=results,
            properties=properties,
            attributes={} if keyed is None else dict(keyed.data),
            regions=_parse_regions(parser),
        )

    def print(self, printer: Printer) -> None:
        write(printer, "<", self.name_, ">")
        selected = self.selected_region_attr
        if selected is not None:
            write(printer, " selected_region = ", selected.value.data)
        if self.selected_region is not None:
            write(printer, " selected_region = ", self.selected_region)
        printer.print_op_attributes(self.attributes, print_keyword=True)
        if self.selected_region is not None:
            write(printer, " : ", self.selected_region.type)
        if self.results:
            write(printer, " -> ", _grouped(self.result_types))
        _print_regions(printer, self.regions)


_Given = tuple[list[UnresolvedOperand], DenseArrayBase[Any] | None, UnresolvedOperand | None]


def _parse_packed(parser: Parser) -> _Given:
    """Parse `[4, %n]` or `*(%sizes)`."""
    if parser.parse_optional_punctuation("*") is not None:
        with parser.in_parens():
            return [], None, parser.parse_unresolved_operand()
    dynamic, static = parse_dynamic_index_list_without_types(parser, DYNAMIC_INDEX)
    return list(dynamic), DenseArrayBase.from_list(i64, static), None


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

    @classmethod
    def parse(cls, parser: Parser) -> TileUsingForallOp:
        at = parser.pos
        target = parser.parse_unresolved_operand()
        empty: _Given = ([], None, None)
        given: dict[str, _Given] = {"num_threads": empty, "tile_sizes": empty}
        while word := next((one for one in given if parser.parse_optional_keyword(one) is not None), None):
            given[word] = _parse_packed(parser)
        properties: dict[str, Attribute | None] = {f"static_{word}": given[word][1] for word in given}
        if parser.parse_optional_punctuation("(") is not None:
            parser.parse_keyword("mapping")
            parser.parse_punctuation("=")
            properties["mapping"] = parser.parse_attribute()
            parser.parse_punctuation(")")
        attributes = parser.parse_optional_attr_dict()
        inputs, results = _parse_function_type(parser)
        threads, sizes = given["num_threads"], given["tile_sizes"]
        names = [target, *threads[0], *sizes[0], *(name for name in (threads[2], sizes[2]) if name is not None)]
        values = _resolve(parser, names, inputs, at)
        rest = values[1:]
        groups = [len(threads[0]), len(sizes[0]), int(threads[2] is not None), int(sizes[2] is not None)]
        operands: list[list[SSAValue]] = []
        for size in groups:
            operands.append(rest[:size])
            rest = rest[size:]
        return cls.build(
            operands=[values[0], *operands],
            result_types=[*results],
            properties=properties,
            attributes=attributes,
        )

    def print(self, printer: Printer) -> None:
        write(printer, " ", self.target)
        for word in ("num_threads", "tile_sizes"):
            static, packed = self.properties.get(f"static_{word}"), getattr(self, f"packed_{word}")
            if packed is not None:
                write(printer, f" {word} *(", packed, ")")
            elif static is not None:
                write(printer, f" {word} ")
                numbers = cast("Any", static).get_values()
                print_dynamic_index_list(printer, DYNAMIC_INDEX, list(getattr(self, word)), numbers)
        if self.mapping is not None:
            write(printer, "(mapping = ", self.mapping, ")")
        _print_attributes(printer, self, ("static_num_threads", "static_tile_sizes", "mapping"))
        _print_function_type(printer, self)


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
    irdl_options = (AttrSizedOperandSegments(as_property=True),)

    @classmethod
    def parse(cls, parser: Parser) -> FuseOp:
        at = parser.pos
        names = [parser.parse_unresolved_operand()]
        properties: dict[str, Attribute | None] = {}
        groups: list[int] = []
        for word in ("tile_sizes", "interchange"):
            groups.append(0)
            if parser.parse_optional_keyword(word) is not None:
                dynamic, static = _parse_sizes(parser)
                properties[f"static_tile_{word.removeprefix('tile_')}"] = static
                names += dynamic
                groups[-1] = len(dynamic)
        attributes = dict(parser.parse_optional_attr_dict())
        properties |= {name: attributes.pop(name) for name in ("apply_cleanup", "use_forall") if name in attributes}
        inputs, results = _parse_function_type(parser)
        target, *given = _resolve(parser, names, inputs, at)
        return cls.build(
            operands=[target, given[: groups[0]], given[groups[0] :]],
            result_types=[results[0], results[1:]],
            properties=properties,
            attributes=attributes,
        )

    def print(self, printer: Printer) -> None:
        write(printer, " ", self.target)
        for word, dynamic in (("tile_sizes", self.tile_sizes), ("interchange", self.tile_interchange)):
            static = self.properties.get(f"static_tile_{word.removeprefix('tile_')}")
            if static is not None:
                write(printer, f" {word} ")
                print_dynamic_index_list(printer, DYNAMIC_INDEX, list(dynamic), cast("Any", static).get_values())
        _print_attributes(printer, self, ("static_tile_sizes", "static_tile_interchange"))
        _print_function_type(printer, self)


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

    @classmethod
    def parse(cls, parser: Parser) -> SplitOp:
        at = parser.pos
        names = [parser.parse_unresolved_operand()]
        parser.parse_keyword("after")
        number = parser.parse_optional_integer()
        if number is None:
            number = DYNAMIC_INDEX
            names.append(parser.parse_unresolved_operand())
        attributes = dict(parser.parse_optional_attr_dict())
        if "dimension" not in attributes:
            parser.raise_error(f"{cls.name} needs the attribute dimension", at, parser.pos)
        properties: dict[str, Attribute] = {"static_chunk_sizes": IntegerAttr(number, i64)}
        properties |= {name: attributes.pop(name) for name in ("dimension", "multiway") if name in attributes}
        parser.parse_punctuation(":")
        types = parser.parse_comma_separated_list(Parser.Delimiter.NONE, parser.parse_type)
        operands = _resolve(parser, names, types, at)
        return cls.create(operands=operands, result_types=[types[0]], properties=properties, attributes=attributes)

    def print(self, printer: Printer) -> None:
        write(printer, " ", self.target, " after ")
        dynamic = self.dynamic_chunk_sizes
        write(printer, self.static_chunk_sizes.value.data if dynamic is None else dynamic)
        _print_attributes(printer, self, ("static_chunk_sizes",))
        write(printer, " : ", [operand.type for operand in self.operands])


class _TypesLastOp(IRDLOperation):
    """Ops that end in the types of their operands: `%a ... {...} : T, U`."""

    @classmethod
    def parse_rest(cls, parser: Parser, names: Sequence[UnresolvedOperand], properties: dict[str, Attribute]) -> Any:
        """Parse attributes and types after the operands."""
        at = parser.pos
        known = cls.get_irdl_definition().properties
        attributes = dict(parser.parse_optional_attr_dict())
        if parser.parse_optional_punctuation("=") is not None:
            names = [*names, parser.parse_unresolved_operand()]
        properties |= {name: attributes.pop(name) for name in [*attributes] if name in known}
        types: Sequence[Attribute] = ()
        if names:
            parser.parse_punctuation(":")
            types = parser.parse_comma_separated_list(Parser.Delimiter.NONE, parser.parse_type)
        operands = _resolve(parser, names, types, at)
        return cls.create(operands=operands, properties=properties, attributes=attributes)

    def print_types(self, printer: Printer) -> None:
        if self.operands:
            write(printer, " : ", [operand.type for operand in self.operands])


@irdl_op_definition
class AnnotateOp(_TypesLastOp):
    """Attach an attribute to payload ops: `transform.annotate %a "name" = %value : !transform.any_op, T`."""

    name = "transform.annotate"

    target = operand_def(TransformHandleType)
    param = opt_operand_def(TransformHandleType)
    name_ = prop_def(StringAttr, prop_name="name")

    @classmethod
    def parse(cls, parser: Parser) -> AnnotateOp:
        target = parser.parse_unresolved_operand()
        return cls.parse_rest(parser, [target], {"name": StringAttr(parser.parse_str_literal())})

    def print(self, printer: Printer) -> None:
        write(printer, " ", self.target, " ", self.name_)
        printer.print_op_attributes(self.attributes)
        if self.param is not None:
            write(printer, " = ", self.param)
        self.print_types(printer)


@irdl_op_definition
class PrintOp(_TypesLastOp):
    """Print payload ops: `transform.print %a {name = "after tiling"} : !transform.any_op`."""

    name = "transform.print"

    target = opt_operand_def(TransformHandleType)
    name_ = opt_prop_def(StringAttr, prop_name="name")
    skip_regions = opt_prop_def(UnitAttr)

    @classmethod
    def parse(cls, parser: Parser) -> PrintOp:
        target = parser.parse_optional_unresolved_operand()
        return cls.parse_rest(parser, [] if target is None else [target], {})

    def print(self, printer: Printer) -> None:
        if self.target is not None:
            write(printer, " ", self.target)
        _print_attributes(printer, self)
        self.print_types(printer)


@irdl_op_definition
class VectorizeOp(_TypesLastOp):
    """Vectorize structured ops: `transform.structured.vectorize %a vector_sizes [8, 16] : T`."""

    name = "transform.structured.vectorize"

    target = operand_def(TransformHandleType)
    vector_sizes = var_operand_def(TransformHandleType)
    static_vector_sizes = opt_prop_def(DenseArrayBase.constr(i64))
    scalable_sizes = opt_prop_def(DenseArrayBase.constr(i1))
    vectorize_nd_extract = opt_prop_def(UnitAttr)
    assume_dynamic_dims_match_vec_sizes = opt_prop_def(UnitAttr)
    create_named_contraction = opt_prop_def(UnitAttr)

    @classmethod
    def parse(cls, parser: Parser) -> VectorizeOp:
        names = [parser.parse_unresolved_operand()]
        properties: dict[str, Attribute] = {}
        if parser.parse_optional_keyword("vector_sizes") is not None:
            dynamic, static = _parse_sizes(parser)
            names += dynamic
            properties["static_vector_sizes"] = static
            properties["scalable_sizes"] = no_flags(len(static))
        return cls.parse_rest(parser, names, properties)

    def print(self, printer: Printer) -> None:
        write(printer, " ", self.target)
        if self.static_vector_sizes is not None:
            printer.print_string(" vector_sizes ")
            numbers = cast("Any", self.static_vector_sizes).get_values()
            print_dynamic_index_list(printer, DYNAMIC_INDEX, list(self.vector_sizes), numbers)
        _print_attributes(printer, self, ("static_vector_sizes", "scalable_sizes"))
        self.print_types(printer)


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

    @classmethod
    def parse(cls, parser: Parser) -> MergeHandlesOp:
        properties = {} if parser.parse_optional_keyword("deduplicate") is None else {"deduplicate": UnitAttr()}
        at = parser.pos
        names = parser.parse_comma_separated_list(Parser.Delimiter.NONE, parser.parse_unresolved_operand)
        attributes = parser.parse_optional_attr_dict()
        parser.parse_punctuation(":")
        type_ = parser.parse_type()
        operands = _resolve(parser, names, [type_] * len(names), at)
        return cls.create(operands=operands, result_types=[type_], properties=properties, attributes=attributes)

    def print(self, printer: Printer) -> None:
        write(printer, " deduplicate" if self.deduplicate is not None else "", " ", [*self.handles])
        printer.print_op_attributes(self.attributes)
        write(printer, " : ", self.result.type)


@irdl_op_definition
class MatchStructuredOp(IRDLOperation):
    """Conditions on a structured op: `%r = transform.match.structured %a : (T) -> U { ^bb0(%s: T): ... }`."""

    name = "transform.match.structured"

    current = operand_def(TransformHandleType)
    failure_propagation_mode = opt_prop_def(IntegerAttr[I32])
    outputs = var_result_def(TransformHandleType)
    body_region = region_def()

    @classmethod
    def parse(cls, parser: Parser) -> MatchStructuredOp:
        is_current = parser.parse_optional_unresolved_operand()
        properties = {} if is_current is not None else {"failure_propagation_mode": _parse_mode(parser)}
        at = parser.pos
        name = is_current or parser.parse_unresolved_operand()
        attributes = parser.parse_optional_attr_dict()
        inputs, results = _parse_constraint_type(parser)
        return cls.create(
            operands=_resolve(parser, [name], inputs, at),
            result_types=results,
            properties=properties,
            attributes=attributes,
            regions=[parser.parse_region()],
        )

    def print(self, printer: Printer) -> None:
        if self.failure_propagation_mode is not None:
            _print_mode(printer, self.failure_propagation_mode)
        write(printer, " ", self.current)
        printer.print_op_attributes(self.attributes)
        _print_constraint_type(printer, self)
        printer.print_string(" ")
        printer.print_region(self.body_region)


class _MatchListedOp(IRDLOperation, ABC):
    """Conditions on some dimensions or operands of a structured op: `%a[except(-1)] {kind} : (T) -> U`."""

    LISTED: ClassVar[str]
    """The property with the list."""
    KINDS: ClassVar[tuple[str, str]]

    operand_handle = operand_def(TransformHandleType)
    is_inverted = opt_prop_def(UnitAttr)
    is_all = opt_prop_def(UnitAttr)
    outputs = var_result_def(TransformHandleType)

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        at = parser.pos
        name = parser.parse_unresolved_operand()
        properties: dict[str, Attribute] = {}
        dims: Sequence[int] = ()
        with parser.in_square_brackets():
            if parser.parse_optional_keyword("all") is not None:
                properties["is_all"] = UnitAttr()
            elif parser.parse_optional_keyword("except") is not None:
                properties["is_inverted"] = UnitAttr()
                dims = parser.parse_comma_separated_list(Parser.Delimiter.PAREN, parser.parse_integer)
            else:
                dims = parser.parse_comma_separated_list(Parser.Delimiter.NONE, parser.parse_integer)
        properties[cls.LISTED] = DenseArrayBase.from_list(i64, dims)
        attributes = parser.parse_optional_attr_dict()
        kinds = [kind for kind in cls.KINDS if kind in attributes]
        properties |= {kind: attributes.pop(kind) for kind in kinds}
        inputs, results = _parse_constraint_type(parser)
        return cls.create(
            operands=_resolve(parser, [name], inputs, at),
            result_types=results,
            properties=properties,
            attributes=attributes,
        )

    def print(self, printer: Printer) -> None:
        dims = ", ".join(map(str, cast("Any", self.properties[self.LISTED]).get_values()))
        text = "all" if self.is_all is not None else f"except({dims})" if self.is_inverted is not None else dims
        write(printer, " ", self.operand_handle, f"[{text}]")
        kinds = {kind: UnitAttr() for kind in self.KINDS if kind in self.properties}
        printer.print_op_attributes({**kinds, **self.attributes})
        _print_constraint_type(printer, self)

    def verify_(self) -> None:
        if all(kind in self.properties for kind in self.KINDS):
            raise VerifyException(f"{self.name} has one of {' and '.join(self.KINDS)}")


@irdl_op_definition
class MatchDimOp(_MatchListedOp):
    """Kinds and extents of dimensions: `%d = transform.match.structured.dim %a[except(-1)] {parallel} : (T) -> U`."""

    name = "transform.match.structured.dim"
    LISTED: ClassVar[str] = "raw_dim_list"
    KINDS: ClassVar[tuple[str, str]] = ("parallel", "reduction")

    raw_dim_list = prop_def(DenseArrayBase.constr(i64))
    parallel = opt_prop_def(UnitAttr)
    reduction = opt_prop_def(UnitAttr)


class _MatchOperandOp(_MatchListedOp, ABC):
    LISTED: ClassVar[str] = "raw_position_list"
    KINDS: ClassVar[tuple[str, str]] = ("permutation", "projected_permutation")

    raw_position_list = prop_def(DenseArrayBase.constr(i64))
    permutation = opt_prop_def(UnitAttr)
    projected_permutation = opt_prop_def(UnitAttr)


@irdl_op_definition
class MatchInputOp(_MatchOperandOp):
    """Indexing maps, producers and values of inputs:
    `%v = transform.match.structured.input %a[0] {projected_permutation} : (T) -> !transform.any_value`."""

    name = "transform.match.structured.input"


@irdl_op_definition
class MatchInitOp(_MatchOperandOp):
    """Indexing maps, producers and values of inits: `%v = transform.match.structured.init %a[0] : (T) -> U`."""

    name = "transform.match.structured.init"


def _parse_constraint_type(parser: Parser) -> tuple[Sequence[Attribute], Sequence[Attribute]]:
    """Parse `: T` or `: (T) -> U`."""
    parser.parse_punctuation(":")
    inputs = parser.parse_optional_comma_separated_list(Parser.Delimiter.PAREN, parser.parse_type)
    if inputs is None:
        return [parser.parse_type()], []
    parser.parse_punctuation("->")
    return inputs, parse_types(parser)


def _print_constraint_type(printer: Printer, op: Operation) -> None:
    if op.results:
        _print_function_type(printer, op)
    else:
        write(printer, " : ", op.operands[0].type)


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
