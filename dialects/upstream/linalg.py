"""The named ops of linalg.

xDSL has some, without MLIR's casts (`f16` times `f16` into `f32`), indexing maps (`linalg.matmul` of a transposed
operand) and defaults (`strides` of ones). Text therefore parses to ops of this module, including `linalg.generic` with
several results; `structure_of` also accepts xDSL's classes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, Final, cast

from xdsl.dialects.builtin import (
    AffineMapAttr,
    ArrayAttr,
    DenseArrayBase,
    DenseIntElementsAttr,
    MemRefType,
    ShapedType,
    StringAttr,
    TensorType,
    i64,
)
from xdsl.dialects.linalg import ops
from xdsl.dialects.linalg.abstract_ops import LinalgStructuredOperation
from xdsl.dialects.linalg.attrs import IteratorType, IteratorTypeAttr
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.ir.affine import AffineMap
from xdsl.irdl import (
    IRDLOperation,
    ParsePropInAttrDict,
    SameVariadicOperandSize,
    irdl_op_definition,
    operand_def,
    opt_prop_def,
    prop_def,
    region_def,
    traits_def,
    var_operand_def,
    var_result_def,
)
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import EffectInstance, MemoryEffect, MemoryEffectKind, NoMemoryEffect
from xdsl.utils.exceptions import VerifyException

from weft.dialects.printing import grouped, write
from weft.dialects.upstream.custom_syntax import parse_optional_results, parse_typed_names
from weft.dialects.upstream.linalg_bodies import body_of
from weft.dialects.upstream.linalg_forms import (
    FORMS,
    MAPPED,
    ElementwiseKindAttr,
    Form,
    FormOp,
    TypeFnAttr,
    default_maps,
    element_type,
    maps_of,
    output_count,
    region_of,
)


class DestinationEffects(MemoryEffect):
    """Reads all buffers and writes the last."""

    @classmethod
    def get_effects(cls, op: Operation) -> frozenset[EffectInstance] | None:
        buffers = [operand for operand in op.operands if isinstance(operand.type, MemRefType)]
        reads = {EffectInstance(MemoryEffectKind.READ, buffer) for buffer in buffers}
        outputs = [operand for operand in op.operands[-output_count(op) :] if isinstance(operand.type, MemRefType)]
        return frozenset(reads | {EffectInstance(MemoryEffectKind.WRITE, buffer) for buffer in outputs})


def _parse_operands(parser: Parser, keyword: str) -> list[SSAValue]:
    """Optional `ins(%a, %b : type, type)`."""
    if parser.parse_optional_keyword(keyword) is None:
        return []
    with parser.in_parens():
        names = parse_typed_names(parser)
    return list(parser.resolve_operands(*names))


def _print_operands(printer: Printer, keyword: str, operands: Sequence[SSAValue]) -> None:
    if operands:
        write(printer, f" {keyword}(", [*operands], " : ", [operand.type for operand in operands], ")")


def _parse_integers(parser: Parser, keyword: str) -> DenseArrayBase[Any]:
    parser.parse_keyword(keyword)
    parser.parse_punctuation("=")
    numbers = parser.parse_comma_separated_list(Parser.Delimiter.SQUARE, parser.parse_integer)
    return DenseArrayBase.from_list(i64, numbers)


def _tensor_types(outputs: Sequence[SSAValue]) -> list[Attribute]:
    return [output.type for output in outputs if isinstance(output.type, TensorType)]


def _verify_results(op: Operation) -> None:
    outputs = _tensor_types(op.operands[-output_count(op) :])
    if [result.type for result in op.results] != outputs:
        raise VerifyException(f"{op.name} gives a result for each output that is a tensor, of its type")


def _iterator_types(maps: Sequence[AffineMap], inputs: int) -> ArrayAttr[IteratorTypeAttr]:
    """Loops that index an output are parallel, others reductions."""
    kept = {dim for map_ in maps[inputs:] for result in map_.results for dim in result.used_dims()}
    kinds = (IteratorType.PARALLEL if d in kept else IteratorType.REDUCTION for d in range(maps[-1].num_dims))
    return ArrayAttr(IteratorTypeAttr(kind) for kind in kinds)


class NamedOp(FormOp):
    """An op of `FORMS`, with MLIR's region."""

    traits = traits_def(DestinationEffects())

    def __init__(
        self,
        inputs: Sequence[SSAValue],
        outputs: Sequence[SSAValue],
        properties: Mapping[str, Attribute | None] | None = None,
        attributes: Mapping[str, Attribute] | None = None,
    ) -> None:
        """Raises `VerifyException` for types on which the op is undefined."""
        given = {name: value for name, value in (properties or {}).items() if value is not None}
        super().__init__(
            inputs,
            outputs,
            [_tensor_types(outputs)],
            given,
            attributes,
            region_of(self.name, [*inputs, *outputs], given),
        )

    @classmethod
    def get_hidden_region(cls, inputs: Sequence[SSAValue], outputs: Sequence[SSAValue]) -> Region:
        return region_of(cls.name, [*inputs, *outputs], {})

    def get_default_indexing_maps(self) -> Sequence[AffineMap]:
        return maps_of(self)

    def get_iterator_types(self) -> ArrayAttr[IteratorTypeAttr]:
        return _iterator_types(self.get_default_indexing_maps(), len(self.inputs))

    def verify_(self) -> None:
        _verify_results(self)
        super().verify_()

    @classmethod
    def parse(cls, parser: Parser) -> NamedOp:
        at = parser.pos
        known = cls.get_irdl_definition().properties
        properties: dict[str, Attribute] = {}
        for name in ("kind", "indexing_maps"):
            if name in known and parser.parse_optional_keyword(name) is not None:
                parser.parse_punctuation("=")
                properties[name] = parser.parse_attribute()
        attributes = dict(parser.parse_optional_attr_dict())
        properties |= {name: attributes.pop(name) for name in [*attributes] if name in known}
        inputs, outputs = _parse_operands(parser, "ins"), _parse_operands(parser, "outs")
        results = parse_optional_results(parser)
        try:
            op = cls(inputs, outputs, properties, attributes)
            if [*results] != [result.type for result in op.results]:
                raise VerifyException(f"{cls.name} gives a result for each output that is a tensor, of its type")
        except VerifyException as error:
            parser.raise_error(f"{cls.name}: {error}", at, parser.pos)
        return op

    def print(self, printer: Printer) -> None:
        kind, maps = self.properties.get("kind"), self.properties.get("indexing_maps")
        if kind is not None:
            write(printer, " kind=", kind)
        if maps is not None and (self.name == "linalg.contract" or maps != _maps_attribute(default_maps(self))):
            write(printer, " indexing_maps = ", maps)
        hidden = ("kind", "indexing_maps", "operandSegmentSizes", _MEMOIZED)
        shown = {name: a for name, a in {**self.properties, **self.attributes}.items() if name not in hidden}
        if shown:
            printer.print_string(" ")
            printer.print_attr_dict(shown)
        _print_operands(printer, "ins", self.inputs)
        _print_operands(printer, "outs", self.outputs)
        if self.results:
            write(printer, " -> ", grouped(self.result_types))


_MEMOIZED: Final = "linalg.memoized_indexing_maps"


def _maps_attribute(maps: Sequence[AffineMap]) -> ArrayAttr[AffineMapAttr]:
    return ArrayAttr(AffineMapAttr(map_) for map_ in maps)


class _WindowOp(NamedOp):
    """Strides and dilations are 1 by default."""

    strides = opt_prop_def(DenseIntElementsAttr)
    dilations = opt_prop_def(DenseIntElementsAttr)


class _CopyOp(NamedOp):
    cast = opt_prop_def(TypeFnAttr)


class _MappedOp(_CopyOp):
    indexing_maps = opt_prop_def(ArrayAttr[AffineMapAttr])


class _ContractOp(_CopyOp):
    indexing_maps = prop_def(ArrayAttr[AffineMapAttr])


class _ElementwiseOp(NamedOp):
    kind = prop_def(ElementwiseKindAttr)
    indexing_maps = opt_prop_def(ArrayAttr[AffineMapAttr])


def _named_op(name: str, form: Form) -> type[NamedOp]:
    base = _WindowOp if form.has_windows else _MappedOp if name in MAPPED else NamedOp
    base = {"copy": _CopyOp, "contract": _ContractOp, "elementwise": _ElementwiseOp}.get(name, base)
    title = "".join(part.capitalize() for part in name.split("_"))
    described = f"`linalg.{name}`: {form.body or 'its kind'}, by loops `{form.loops or 'of the output'}`."
    members = {"name": f"linalg.{name}", "__doc__": described}
    return cast("Any", irdl_op_definition)(type(f"{title}Op", (base,), members))


class _DimensionsOp(LinalgStructuredOperation):
    """A list of dimensions determines the maps: `transpose`, `broadcast`, `reduce`."""

    inputs = var_operand_def()
    outputs = var_operand_def(ShapedType)
    res = var_result_def(TensorType)
    irdl_options = (SameVariadicOperandSize(), ParsePropInAttrDict())
    traits = traits_def(DestinationEffects())
    LISTED: ClassVar[str] = "dimensions"
    """The property with the dimensions."""

    def __init__(
        self, inputs: Sequence[SSAValue], outputs: Sequence[SSAValue], listed: Attribute, body: Region | None = None
    ) -> None:
        """The default region copies."""
        types = [element_type(operand) for operand in (*inputs, *outputs)]
        super().__init__(
            operands=[inputs, outputs],
            result_types=[_tensor_types(outputs)],
            properties={self.LISTED: listed},
            regions=[body_of("copy", types, False) if body is None else body],
        )

    def get_indexing_maps(self) -> ArrayAttr[AffineMapAttr]:
        return _maps_attribute(maps_of(self))

    def get_iterator_types(self) -> ArrayAttr[IteratorTypeAttr]:
        return _iterator_types(maps_of(self), len(self.inputs))

    def verify_(self) -> None:
        _verify_results(self)
        super().verify_()

    @classmethod
    def parse(cls, parser: Parser) -> _DimensionsOp:
        at = parser.pos
        inputs, outputs = _parse_operands(parser, "ins"), _parse_operands(parser, "outs")
        listed = _parse_integers(parser, cls.LISTED)
        attributes = parser.parse_optional_attr_dict()
        try:
            op = cls(inputs, outputs, listed)
        except VerifyException as error:
            parser.raise_error(f"{cls.name}: {error}", at, parser.pos)
        op.attributes |= attributes
        return op

    def print(self, printer: Printer) -> None:
        _print_operands(printer, "ins", self.inputs)
        _print_operands(printer, "outs", self.outputs)
        self.print_listed(printer)

    def print_listed(self, printer: Printer) -> None:
        numbers = cast("DenseArrayBase[Any]", self.properties[self.LISTED]).get_values()
        write(printer, f" {self.LISTED} = [", [*numbers], "]")
        if self.attributes:
            printer.print_string(" ")
            printer.print_attr_dict(self.attributes)


@irdl_op_definition
class TransposeOp(_DimensionsOp):
    """`linalg.transpose ins(%a : t) outs(%b : t) permutation = [1, 0]`: output dimension d is `permutation[d]` of the
    input."""

    name = "linalg.transpose"
    LISTED: ClassVar[str] = "permutation"
    permutation = prop_def(DenseArrayBase.constr(i64))
    body = region_def("single_block")


@irdl_op_definition
class BroadcastOp(_DimensionsOp):
    """`linalg.broadcast ins(%a : t) outs(%b : t) dimensions = [1]`: those that the input lacks."""

    name = "linalg.broadcast"
    dimensions = prop_def(DenseArrayBase.constr(i64))
    body = region_def("single_block")


@irdl_op_definition
class ReduceOp(_DimensionsOp):
    """`linalg.reduce { arith.addf } ins(%a : t) outs(%b : t) dimensions = [1]`, or with a region `(%in: f32, %init:
    f32) { ... }` at the end; any number of inputs."""

    name = "linalg.reduce"
    dimensions = prop_def(DenseArrayBase.constr(i64))
    body = region_def("single_block")

    @classmethod
    def parse(cls, parser: Parser) -> ReduceOp:
        inputs, outputs, listed, attributes, body = _parse_with_payload(
            parser, cls.LISTED, lambda arguments: [arguments[-1], *arguments[:-1]]
        )
        op = cls(inputs, outputs, listed, body)
        op.attributes |= attributes
        return op

    def print(self, printer: Printer) -> None:
        super().print(printer)
        _print_body(printer, self.body)


@irdl_op_definition
class MapOp(IRDLOperation):
    """`linalg.map { arith.addf } ins(%a, %b : t, t) outs(%c : t)`, or with a region `(%x: f32, %y: f32, %old: f32) {
    ... }` at the end: elementwise."""

    name = "linalg.map"

    inputs = var_operand_def()
    init = operand_def(ShapedType)
    res = var_result_def(TensorType)
    body = region_def("single_block")
    traits = traits_def(DestinationEffects())

    def __init__(self, inputs: Sequence[SSAValue], init: SSAValue, body: Region) -> None:
        super().__init__(operands=[inputs, init], result_types=[_tensor_types([init])], regions=[body])

    @property
    def outputs(self) -> Sequence[SSAValue]:
        return (self.init,)

    def verify_(self) -> None:
        _verify_results(self)
        types = [element_type(operand) for operand in self.operands]
        if list(self.body.block.arg_types) != types:
            raise VerifyException(
                f"linalg.map: the region takes an element of each operand, {', '.join(map(str, types))}, "
                f"got {', '.join(map(str, self.body.block.arg_types))}"
            )
        shape = self.init.type.get_shape()  # pyright: ignore[reportAttributeAccessIssue, reportUnknownVariableType]
        for operand in self.inputs:
            if not isinstance(operand.type, ShapedType) or operand.type.get_shape() != shape:
                raise VerifyException(f"linalg.map: operands have one shape, got {operand.type} and {self.init.type}")

    @classmethod
    def parse(cls, parser: Parser) -> MapOp:
        inputs, outputs, _, attributes, body = _parse_with_payload(parser, None, lambda arguments: arguments[:-1])
        if len(body.block.args) == len(inputs):  # before MLIR 22
            body.block.insert_arg(element_type(outputs[0]), len(inputs))
        op = cls(inputs, outputs[0], body)
        op.attributes |= attributes
        return op

    def print(self, printer: Printer) -> None:
        _print_operands(printer, "ins", self.inputs)
        _print_operands(printer, "outs", self.outputs)
        if self.attributes:
            printer.print_string(" ")
            printer.print_attr_dict(self.attributes)
        _print_body(printer, self.body)


def _parse_with_payload(
    parser: Parser, listed: str | None, operands_of: Callable[[Sequence[SSAValue]], Sequence[SSAValue]]
) -> tuple[list[SSAValue], list[SSAValue], Any, Mapping[str, Attribute], Region]:
    """`{ op } ins(...) outs(...) listed = [...] {attributes}`, or a region at the end for the op: inputs, outputs, the
    optional list, attributes and region."""
    at = parser.pos
    payload = _parse_payload(parser)
    inputs, outputs = _parse_operands(parser, "ins"), _parse_operands(parser, "outs")
    numbers = None if listed is None else _parse_integers(parser, listed)
    attributes = parser.parse_optional_attr_dict()
    if listed is None and len(outputs) != 1:
        parser.raise_error("linalg.map has one output", at, parser.pos)
    if payload is None:
        body = parser.parse_region(parser.parse_comma_separated_list(Parser.Delimiter.PAREN, parser.parse_argument))
    else:
        types = [element_type(operand) for operand in (*inputs, *outputs)]
        body = _payload_region(parser, payload, types, operands_of, at)
    return inputs, outputs, numbers, attributes, body


_Payload = tuple[str, dict[str, Attribute]]


def _parse_payload(parser: Parser) -> _Payload | None:
    """`{ arith.addf {attributes} }`: the region's only op."""
    if parser.parse_optional_punctuation("{") is None:
        return None
    name = parser.parse_identifier()
    attributes = dict(parser.parse_optional_attr_dict())
    parser.parse_punctuation("}")
    return name, attributes


def _payload_region(
    parser: Parser,
    payload: _Payload,
    types: Sequence[Attribute],
    operands_of: Callable[[Sequence[SSAValue]], Sequence[SSAValue]],
    at: int,
) -> Region:
    name, attributes = payload
    op_class = parser.ctx.get_optional_op(name)
    if op_class is None or not issubclass(op_class, IRDLOperation):
        parser.raise_error(f"unknown operation '{name}'", at, parser.pos)
    known = op_class.get_irdl_definition().properties
    properties = {key: given.default_value for key, given in known.items() if given.default_value is not None}
    properties |= {key: attributes.pop(key) for key in [*attributes] if key in known}
    block = Block(arg_types=types)
    op = op_class.create(
        operands=operands_of(block.args), result_types=[types[-1]], properties=properties, attributes=attributes
    )
    block.add_ops([op, ops.YieldOp(*op.results)])
    return Region(block)


def _print_body(printer: Printer, body: Region) -> None:
    printer.print_string(" (")
    printer.print_list(body.block.args, printer.print_block_argument)
    printer.print_string(") ")
    printer.print_region(body, print_entry_block_args=False)


class GenericOp(ops.GenericOp):
    """xDSL's op with effects, and MLIR's syntax of several results."""

    traits = traits_def(DestinationEffects())

    def verify_(self) -> None:
        _verify_results(self)
        super().verify_()

    @classmethod
    def parse(cls, parser: Parser) -> GenericOp:
        at = parser.pos
        attributes = dict(parser.parse_optional_attr_dict())
        maps, kinds = attributes.pop("indexing_maps", None), attributes.pop("iterator_types", None)
        if not isinstance(maps, ArrayAttr) or not isinstance(kinds, ArrayAttr):
            parser.raise_error("linalg.generic needs indexing_maps and iterator_types, which are lists", at, parser.pos)
        doc, library_call = attributes.pop("doc", None), attributes.pop("library_call", None)
        known: list[Attribute] = []
        for kind in kinds:
            if isinstance(kind, StringAttr) and kind.data in set(IteratorType):
                kind = IteratorTypeAttr(IteratorType(kind.data))
            if not isinstance(kind, IteratorTypeAttr):
                parser.raise_error(f"unknown iterator type {kind}", at, parser.pos)
            known.append(kind)
        inputs, outputs = _parse_operands(parser, "ins"), _parse_operands(parser, "outs")
        if parser.parse_optional_keyword("attrs") is not None:
            parser.parse_punctuation("=")
            attributes |= parser.parse_optional_attr_dict()
        body = parser.parse_region()
        results = parse_optional_results(parser)
        op = cls(
            inputs,
            outputs,
            body,
            cast("ArrayAttr[AffineMapAttr]", maps),
            known,
            results,
            cast("StringAttr | None", doc),
            cast("StringAttr | None", library_call),
        )
        op.attributes |= attributes
        return op


class IndexOp(ops.IndexOp):
    """Supports regions of ops such as `linalg.map`."""

    traits = traits_def(NoMemoryEffect())


OPERATIONS: Final[tuple[type[Operation] | type[Attribute], ...]] = (
    *(_named_op(name, form) for name, form in FORMS.items()),
    *(TransposeOp, BroadcastOp, ReduceOp, MapOp, GenericOp, IndexOp),
    *(TypeFnAttr, ElementwiseKindAttr),
)
"""Parsed in place of xDSL's, with their attributes."""
