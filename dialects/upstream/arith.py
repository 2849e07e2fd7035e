"""Ops of `arith` on tensors and vectors that xDSL takes on scalars alone: comparisons, selections and conversions.

The classes here are registered in the place of xDSL's. What is parsed on scalars is an op of xDSL's own class, and on
vectors the op that does the same on every lane (`dialects/low_lanes.py`): `arith.cmpf` is `low.cmpf` there.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

from xdsl.dialects import arith
from xdsl.dialects.builtin import IndexType, IntegerAttr, IntegerType, TensorType, VectorType, i1, i64
from xdsl.ir import Attribute, Block, Operation, SSAValue
from xdsl.irdl import IRDLOperation, irdl_op_definition, operand_def, opt_prop_def, prop_def, result_def, traits_def
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import Pure
from xdsl.utils.exceptions import VerifyException
from xdsl.utils.type import get_element_type_or_self

from weft.dialects.low_lanes import LANE_FORMS


class _OnTensors(IRDLOperation):
    """An op whose results are tensors; `create` makes one of xDSL's class, or one on lanes, where they are none."""

    @classmethod
    def create(cls, *, result_types: Sequence[Attribute] = (), **parts: Any) -> Any:
        if any(isinstance(type_, TensorType) for type_ in result_types):
            return super().create(result_types=result_types, **parts)
        scalar = _SCALAR[cls.name]
        form = LANE_FORMS.get(scalar)
        if form is None or not isinstance(parts["operands"][0].type, VectorType):
            return scalar.create(result_types=result_types, **parts)
        # Flags of casts, such as `nneg`, allow more than the op on lanes needs.
        known = cast("type[IRDLOperation]", form).get_irdl_definition().properties
        properties = {name: value for name, value in parts.pop("properties", {}).items() if name in known}
        return form.create(result_types=result_types, properties=properties, **parts)

    def verify_(self) -> None:
        types = [value.type for value in (*self.operands, *self.results)]
        shapes = {type_.get_shape() for type_ in types if isinstance(type_, TensorType)}
        if len(shapes) != 1:
            raise VerifyException(f"{self.name} takes and gives tensors of one shape")


def is_tensor(value: SSAValue) -> bool:
    return isinstance(value.type, TensorType)


class _Conversion(_OnTensors):
    """`%y = arith.extf %x : tensor<4xf32> to tensor<4xf64>`."""

    input = operand_def()
    result = result_def()

    traits = traits_def(Pure())

    @classmethod
    def parse(cls, parser: Parser) -> Operation:
        value = parser.parse_unresolved_operand()
        # Flags are hints, which are not kept.
        for keyword in ("nneg", "to_nearest_even"):
            parser.parse_optional_keyword(keyword)
        for keyword, flags in (("overflow", arith.IntegerOverflowAttr), ("fastmath", arith.FastMathFlagsAttr)):
            if parser.parse_optional_keyword(keyword) is not None:
                flags.parse_parameter(parser)
        attributes = parser.parse_optional_attr_dict()
        parser.parse_punctuation(":")
        operand = parser.resolve_operand(value, parser.parse_type())
        parser.parse_keyword("to")
        return cls.create(operands=[operand], result_types=[parser.parse_type()], attributes=attributes)

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_ssa_value(self.input)
        printer.print_op_attributes(self.attributes)
        printer.print_string(" : ")
        printer.print_attribute(self.input.type)
        printer.print_string(" to ")
        printer.print_attribute(self.result.type)


def _conversion(scalar: type[Operation]) -> type[Operation]:
    definition = {"name": scalar.name, "__module__": __name__, "__doc__": _Conversion.__doc__}
    return irdl_op_definition(type(scalar.__name__, (_Conversion,), definition))


class _Comparison(_OnTensors):
    """`%c = arith.cmpf olt, %x, %y : tensor<4xf32>`."""

    predicate = prop_def(IntegerAttr)
    fastmath = opt_prop_def(arith.FastMathFlagsAttr)
    lhs = operand_def()
    rhs = operand_def()
    result = result_def()

    traits = traits_def(Pure())

    @classmethod
    def parse(cls, parser: Parser) -> Operation:
        at = parser.pos
        name = parser.parse_identifier()
        if name not in _PREDICATES[cls.name]:
            parser.raise_error(f"'{cls.name}' compares by {', '.join(_PREDICATES[cls.name])}", at)
        parser.parse_punctuation(",")
        operands = [parser.parse_unresolved_operand()]
        parser.parse_punctuation(",")
        operands.append(parser.parse_unresolved_operand())
        fastmath = None
        if parser.parse_optional_keyword("fastmath") is not None:
            fastmath = arith.FastMathFlagsAttr(arith.FastMathFlagsAttr.parse_parameter(parser))
        attributes = parser.parse_optional_attr_dict()
        parser.parse_punctuation(":")
        type_ = parser.parse_type()
        properties: dict[str, Attribute] = {"predicate": IntegerAttr(_PREDICATES[cls.name].index(name), i64)}
        if cls.name == arith.CmpfOp.name:
            properties["fastmath"] = fastmath or arith.FastMathFlagsAttr("none")
        result: Attribute = i1
        if isinstance(type_, TensorType | VectorType):
            result = type(type_)(i1, type_.get_shape())
        values = parser.resolve_operands(operands, [type_, type_], at)
        return cls.create(operands=values, result_types=[result], properties=properties, attributes=attributes)

    def print(self, printer: Printer) -> None:
        printer.print_string(f" {_PREDICATES[self.name][self.predicate.value.data]}, ")
        printer.print_list(self.operands, printer.print_ssa_value)
        if self.fastmath is not None and self.fastmath != arith.FastMathFlagsAttr("none"):
            printer.print_string(" fastmath")
            self.fastmath.print_parameter(printer)
        printer.print_op_attributes(self.attributes)
        printer.print_string(" : ")
        printer.print_attribute(self.lhs.type)


@irdl_op_definition
class CmpfOp(_Comparison):
    name = "arith.cmpf"


@irdl_op_definition
class CmpiOp(_Comparison):
    name = "arith.cmpi"


@irdl_op_definition
class SelectOp(_OnTensors):
    """`%r = arith.select %c, %x, %y : tensor<4xi1>, tensor<4xf32>`, or by one condition for all elements."""

    name = "arith.select"

    cond = operand_def()
    lhs = operand_def()
    rhs = operand_def()
    result = result_def()

    traits = traits_def(Pure())

    @classmethod
    def parse(cls, parser: Parser) -> Operation:
        at = parser.pos
        operands = parser.parse_comma_separated_list(parser.Delimiter.NONE, parser.parse_unresolved_operand)
        attributes = parser.parse_optional_attr_dict()
        parser.parse_punctuation(":")
        types = parser.parse_comma_separated_list(parser.Delimiter.NONE, parser.parse_type)
        condition = types[0] if len(types) == 2 else i1
        values = parser.resolve_operands(operands, [condition, types[-1], types[-1]], at)
        return cls.create(operands=values, result_types=[types[-1]], attributes=attributes)

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_list(self.operands, printer.print_ssa_value)
        printer.print_op_attributes(self.attributes)
        printer.print_string(" : ")
        if is_tensor(self.cond):
            printer.print_attribute(self.cond.type)
            printer.print_string(", ")
        printer.print_attribute(self.lhs.type)


_CONVERSIONS = (
    *(arith.ExtFOp, arith.ExtSIOp, arith.ExtUIOp, arith.FPToSIOp, arith.FPToUIOp, arith.IndexCastOp),
    *(arith.SIToFPOp, arith.TruncFOp, arith.TruncIOp, arith.UIToFPOp),
)
_SCALAR = {op.name: op for op in (arith.CmpfOp, arith.CmpiOp, arith.SelectOp, *_CONVERSIONS)}
_PREDICATES = {
    arith.CmpfOp.name: arith.CMPF_COMPARISON_OPERATIONS,
    arith.CmpiOp.name: arith.CMPI_COMPARISON_OPERATIONS,
}


@irdl_op_definition
class IndexCastUIOp(IRDLOperation):
    """`arith.index_castui`: an index from an integer or the other way round, extended by zeros where it is wider."""

    name = "arith.index_castui"

    input = operand_def()
    result = result_def()

    traits = traits_def(Pure())
    assembly_format = "$input attr-dict `:` type($input) `to` type($result)"

    def verify_(self) -> None:
        elements = {type(get_element_type_or_self(value.type)) for value in (self.input, self.result)}
        if elements != {IndexType, IntegerType}:
            raise VerifyException(f"{self.name} does not convert {self.input.type} to {self.result.type}")


@irdl_op_definition
class RemFOp(arith.FloatingPointLikeBinaryOperation):
    """`arith.remf`: the remainder of a division that is rounded toward zero, as C's `fmod`: exact, with the sign of the
    dividend."""

    name = "arith.remf"

    traits = traits_def(Pure())


OPERATIONS = (CmpfOp, CmpiOp, SelectOp, *map(_conversion, _CONVERSIONS), IndexCastUIOp, RemFOp)


def element_form(op: Operation) -> Block:
    """A block that computes an element of the result of an elementwise op, of one of each operand that is a tensor."""
    types = [cast("TensorType[Attribute]", value.type).element_type for value in op.operands if is_tensor(value)]
    block = Block(arg_types=types)
    elements = iter(block.args)
    scalar = type(op).create(
        operands=[next(elements) if is_tensor(value) else value for value in op.operands],
        result_types=[cast("TensorType[Attribute]", result.type).element_type for result in op.results],
        properties=dict(op.properties),
        attributes=dict(op.attributes),
    )
    scalar.location = op.location
    block.add_op(scalar)
    return block
