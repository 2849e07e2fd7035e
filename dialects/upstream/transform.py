"""`transform`: operations of MLIR's transform scripts, in the syntax of MLIR 22, which xDSL mostly lacks."""

from __future__ import annotations

import re
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
    i64,
)
from xdsl.dialects.transform import TransformHandleType
from xdsl.dialects.utils import (
    parse_dynamic_index_list_without_types,
    print_dynamic_index_list,
)
from xdsl.ir import Attribute, Block, Operation, Region
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


_Layout: Final = word_directive("_Layout", _LAYOUTS, "unknown layout map '{word}', known are {words}", 32)
_Mode: Final = word_directive("_Mode", MODES, "unknown failure mode '{word}', known are propagate and suppress", 32)


@irdl_custom_directive
class _ListedSizes(CustomDirective):
    """Optional `word [4, %n]`: integers, some as operands."""

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
        """`[4, %n, 0]`; a scalable size `[[4]]` has its own error."""
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
    """`tile_sizes [4, %n]`, with flags for scalable sizes."""

    dynamic: VariadicOperandVariable
    static: AttributeVariable
    scalable: AttributeVariable
    WORD = "tile_sizes"

    def parse_sizes(self, parser: Parser, state: ParsingState) -> None:
        super().parse_sizes(parser, state)
        self.scalable.set(state, no_flags(len(cast("Any", state.properties[self.static.name]))))


@irdl_custom_directive
class _Packed(_ListedSizes):
    """Optional `word [4, %n]`, or `word *(%sizes)`: one handle's parameters."""

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
    """`scalable_sizes` without scalable sizes."""
    return DenseArrayBase.from_list(i1, [0] * count)


def _print_word(printer: Printer, state: PrintingState, *pieces: Piece) -> None:
    write(printer, *pieces)
    state.last_was_punctuation, state.should_emit_space = False, True


def _sizes_directive(word: str, equals: str = "", base: type[_ListedSizes] = _ListedSizes) -> type[CustomDirective]:
    name = "".join(part.capitalize() for part in word.split("_")) + "List"
    return type(name, (base,), {"WORD": word, "EQUALS": equals})


@irdl_custom_directive
class _NumberOrOperand(CustomDirective):
    """An integer or operand; a word makes it optional, `WORD =`."""

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
    """`{ ... }, { ... }`, each one block with `transform.yield`."""

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
    """One type, of all named operands and results."""

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
    """Types of operands and results; nothing is printed for no operands."""

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


PREDICATES: Final = ("eq", "ne", "le", "lt", "ge", "gt")

_DIRECTIVES: Final = {
    directive.__name__: directive
    for directive in (
        *(_Layout, _Mode, TileSizes, _NumberOrOperand, _SelectedRegion, _ListedDims, _Actions, _Results, _Regions),
        word_directive("_Predicate", PREDICATES, "unknown predicate '{word}', known are {words}", 32),
        *(_OneType, _sizes_directive("tile_sizes"), _sizes_directive("pad_to_multiple_of")),
        *(_sizes_directive("packed_sizes", " ="), _sizes_directive("vector_sizes", base=TileSizes)),
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
    "symbols": ArrayAttr[SymbolRefAttr],
    "list": ArrayAttr,
    "dict": DictionaryAttr,
    "any": Attribute,
}


def _members(operands: str, properties: str, results: str) -> dict[str, Any]:
    """Fields of an op: `name`, `name?` (optional), `name*` (variadic), or `name:kind` for properties."""
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
    name: str, syntax: str, operands: str = "", properties: str = "", results: str = "", doc: str = "", **members: Any
) -> type[IRDLOperation]:
    """An op with the declarative format `syntax`, in which types of operands and results are `types(list)`,
    `types(function)` or `types(either)`."""
    members |= _members(operands, properties, results)
    if syntax:
        directives = [one for key, one in _DIRECTIVES.items() if f"custom<{key}>" in syntax]
        for form, is_function in {"list": False, "function": True, "either": None}.items():
            if f"types({form})" in syntax:
                types = _types(re.sub(r"[?*]", "", operands), re.sub(r"[?*]", "", results), is_function)
                directives.append(types)
                syntax = syntax.replace(f"types({form})", types.TEXT)
        members |= {"assembly_format": syntax, "custom_directives": tuple(directives)}
    title = "".join(part.capitalize() for part in name.replace(".", "_").split("_"))
    described = {"name": f"transform.{name}", "__doc__": doc or f"`transform.{name}` of MLIR.", "__module__": __name__}
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
    """`transform.name %target {...} : (T) -> U`."""
    return _op(name, f"$target {_FUNCTION}", "target", properties, results)


def _on(name: str, properties: str = "", word: str = "") -> type[IRDLOperation]:
    """`transform.name to %target {...} : T`."""
    return _op(name, f"{word} $target {_TYPED}", "target", properties)


@irdl_op_definition
class YieldOp(IRDLOperation):
    """`transform.yield %a : !transform.any_op`, terminates a sequence or region."""

    name = "transform.yield"

    operands_ = var_operand_def(TransformHandleType)
    traits = traits_def(IsTerminator())
    assembly_format = "$operands_ attr-dict (`:` type($operands_)^)?"


_SequenceTypes = _types("root extra_bindings")


@irdl_op_definition
class SequenceOp(IRDLOperation):
    """A top-level script, for the whole payload or a handle's ops.

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
        "`failures` `(` custom<_Mode>($failure_propagation_mode) `)` attr-dict-with-keyword custom<_Regions>($body)"
    )


_TileUsingForallTypes = _types(
    "target num_threads tile_sizes packed_num_threads packed_tile_sizes", "tiled_op forall_op", is_function=True
)


@irdl_op_definition
class TileUsingForallOp(IRDLOperation):
    """Parallel tiles, by sizes or number.

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
    """Tile, and fuse operands' producers: `%op, %loop = transform.structured.fuse %a tile_sizes [4, 0] interchange [1,
    0] {apply_cleanup} : (T) -> (T, T)`."""

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


def _verify_knob(op: Operation) -> None:
    selected = op.properties.get("selected")
    if selected is not None and selected not in cast("ArrayAttr[Attribute]", op.properties["options"]).data:
        raise VerifyException(f"{op.name}: {selected} is not one of its options")


def _match_listed(name: str, listed: str, kinds: tuple[str, str], doc: str) -> type[IRDLOperation]:
    """Conditions on dimensions or operands of a structured op: `%a[except(-1)] {kind} : (T) -> U`."""

    def verify_(op: Operation) -> None:
        if all(kind in op.properties for kind in kinds):
            raise VerifyException(f"{op.name} has one of {' and '.join(kinds)}")

    return _op(
        f"match.structured.{name}",
        f"$operand_handle custom<_ListedDims>(${listed}, $is_inverted, $is_all) attr-dict types(either)",
        "operand_handle",
        f"{listed}:ints is_inverted?:unit is_all?:unit {kinds[0]}?:unit {kinds[1]}?:unit",
        "outputs*",
        doc,
        verify_=verify_,
    )


_POSITIONS: Final = "raw_position_list", ("permutation", "projected_permutation")
_DECLARED: Final = (
    # Sequences and regions.
    _op(
        "include",
        f"$target `failures` `(` custom<_Mode>($failure_propagation_mode) `)` ` ` `(` operands `)` {_FUNCTION}",
        "operands_*",
        "target:symbol failure_propagation_mode:i32",
        "results_*",
        "A call of a named sequence: `%r = transform.include @s failures(suppress) (%a) : (T) -> U`.",
    ),
    _op(
        "foreach",
        "$targets (`with_zip_shortest` $with_zip_shortest^)? `:` type($targets) custom<_Results>(type($results_)) "
        "custom<_Regions>($body) attr-dict",
        "targets*",
        "with_zip_shortest?:unit",
        "results_*",
        "The region applied to each payload op: `%r = transform.foreach %a : T -> U { ^bb0(%one: T): ... }`.",
        body=var_region_def(),
    ),
    _op(
        "foreach_match",
        "(`restrict_root` $restrict_root^)? (`flatten_results` $flatten_results^)? `in` operands "
        f"custom<_Actions>($matchers, $actions) {_FUNCTION}",
        "root forwarded_inputs*",
        "matchers:symbols actions:symbols restrict_root?:unit flatten_results?:unit",
        "updated forwarded_outputs*",
        "Sequences applied to the payload ops that other sequences match: "
        "`%r = transform.foreach_match restrict_root in %a @m -> @act, @n -> @other : (T) -> T`.",
    ),
    _op(
        "alternatives",
        "($scope^ `:` type($scope))? custom<_Results>(type($results_)) attr-dict-with-keyword "
        "custom<_Regions>($alternatives)",
        "scope?",
        results="results_*",
        doc="The first region that does not fail: `transform.alternatives %a : T { ^bb0(%b: T): ... }, { ... }`.",
        alternatives=var_region_def(),
    ),
    _op(
        "tune.knob",
        "`<` $name `>` (`=` $selected^ `from`)? `options` `=` $options attr-dict `->` type($result)",
        properties="name:str options:list selected?:any",
        results="result",
        doc='A parameter chosen by a search: `%p = transform.tune.knob<"tile"> = 8 from options = [8, 16] -> T`.',
        verify_=_verify_knob,
    ),
    _op(
        "tune.alternatives",
        "`<` $name `>` custom<_SelectedRegion>($selected_region, $selected_region_attr) attr-dict-with-keyword "
        "(`:` type($selected_region)^)? custom<_Results>(type($results_)) custom<_Regions>($alternatives)",
        "selected_region?",
        "name:str selected_region_attr?:int",
        "results_*",
        'One of several regions, chosen by a search: `transform.tune.alternatives<"n"> selected_region = 0 { }, { }`.',
        alternatives=var_region_def(),
    ),
    _op(
        "apply_patterns",
        "`to` $target $patterns attr-dict `:` type($target)",
        "target",
        "apply_cse?:unit max_iterations?:int max_num_rewrites?:int",
        doc="Apply patterns to a fixed point: `transform.apply_patterns to %a { patterns } {apply_cse} : T`.",
        patterns=region_def(),
        traits=traits_def(NoTerminator()),
    ),
    _op(
        "match.structured",
        "(`failures` `(` custom<_Mode>($failure_propagation_mode)^ `)`)? $current attr-dict types(either) $body_region",
        "current",
        "failure_propagation_mode?:i32",
        "outputs*",
        "Conditions on a structured op: `%r = transform.match.structured %a : (T) -> U { ^bb0(%s: T): ... }`.",
        body_region=region_def(),
    ),
    _match_listed("dim", "raw_dim_list", ("parallel", "reduction"), "Kinds and extents of dimensions."),
    _match_listed("input", *_POSITIONS, "Indexing maps, producers and values of inputs."),
    _match_listed("init", *_POSITIONS, "Indexing maps, producers and values of inits."),
    # Handles and parameters.
    _op(
        "match.param.cmpi",
        "custom<_Predicate>($predicate) $param `,` $reference attr-dict `:` "
        "custom<_OneType>(type($param), type($reference))",
        "param reference",
        "predicate:i32",
        doc="A comparison of parameters, which fails unless it holds: `transform.match.param.cmpi eq %a, %b : T`.",
    ),
    _op(
        "merge_handles",
        "(`deduplicate` $deduplicate^)? $handles attr-dict `:` custom<_OneType>(type($handles), type($result))",
        "handles*",
        "deduplicate?:unit",
        "result",
        "The payload ops of several handles: `%c = transform.merge_handles deduplicate %a, %b : T`.",
    ),
    _op(
        "annotate",
        "$target $name attr-dict (`=` $param^)? types(list)",
        "target param?",
        "name:str",
        doc='Attach an attribute to payload ops: `transform.annotate %a "name" = %value : T, U`.',
    ),
    _op("print", "($target^)? attr-dict (`:` type($target)^)?", "target?", "name?:str skip_regions?:unit"),
    _op(
        "structured.split",
        "$target `after` custom<_NumberOrOperand>($dynamic_chunk_sizes, $static_chunk_sizes) attr-dict types(list)",
        "target dynamic_chunk_sizes?",
        "dimension:int static_chunk_sizes:int multiway?:unit",
        "split_list",
        "Split a structured op into two, of which the first has the given number of iterations: "
        "`%parts = transform.structured.split %a after 42 {dimension = 0 : i64} : T`, or `after %n ... : T, P`.",
    ),
    _op(
        "structured.vectorize",
        "$target custom<VectorSizesList>($vector_sizes, $static_vector_sizes, $scalable_sizes) attr-dict types(list)",
        "target vector_sizes*",
        "static_vector_sizes?:ints scalable_sizes?:bools vectorize_nd_extract?:unit "
        "assume_dynamic_dims_match_vec_sizes?:unit create_named_contraction?:unit",
        doc="Vectorize structured ops: `transform.structured.vectorize %a vector_sizes [8, 16] : T`.",
    ),
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
        "(`layout` `{` custom<_Layout>($function_boundary_type_conversion)^ `}`)? $target " + _FUNCTION,
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
OPERATIONS: Final = (*(*_DECLARED, *PATTERNS, YieldOp, SequenceOp, TileUsingForallOp, FuseOp),)
"""The ops that weft's tools parse in addition to xDSL's `named_sequence` and `structured.match`, or instead of
xDSL's."""
