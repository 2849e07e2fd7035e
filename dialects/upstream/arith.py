"""Ops of `arith` on tensors and vectors that xDSL defines on scalars only.

These classes replace xDSL's. Text on scalars parses to ops of xDSL's classes, on vectors to lane-wise ops
(`dialects/low_lanes.py`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, cast

from xdsl.dialects import arith
from xdsl.dialects.builtin import IndexType, IntegerAttr, IntegerType, TensorType, VectorType, i1
from xdsl.ir import Attribute, Block, Operation, SSAValue
from xdsl.irdl import (
    AnyAttr,
    IRDLOperation,
    VarConstraint,
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
from xdsl.traits import Pure
from xdsl.utils.exceptions import VerifyException
from xdsl.utils.type import get_element_type_or_self

from weft.dialects.printing import write
from weft.dialects.type_rule import TypeByRule
from weft.dialects.upstream.custom_syntax import word_directive


class _OnTensors(IRDLOperation):
    """An op on tensors; for others, `create` makes xDSL's or a lane-wise op."""

    @classmethod
    def create(cls, *, result_types: Sequence[Attribute] = (), **parts: Any) -> Any:
        if any(isinstance(type_, TensorType) for type_ in result_types):
            return super().create(result_types=result_types, **parts)
        scalar = _SCALAR[cls.name]
        if not isinstance(parts["operands"][0].type, VectorType):
            return scalar.create(result_types=result_types, **parts)
        from weft.dialects.low_lanes import LANE_FORMS  # start-up: 11 ms

        form = LANE_FORMS.get(scalar)
        if form is None:
            return scalar.create(result_types=result_types, **parts)
        # Flags such as `nneg` only permit optimizations.
        known = cast("type[IRDLOperation]", form).get_irdl_definition().properties
        properties = {name: value for name, value in parts.pop("properties", {}).items() if name in known}
        return form.create(result_types=result_types, properties=properties, **parts)

    @classmethod
    def build(cls, **parts: Any) -> Any:
        properties: dict[str, Any] = dict(parts["properties"])
        for name, given in cls.get_irdl_definition().properties.items():
            if given.default_value is not None:
                properties.setdefault(name, given.default_value)
        operands, types = ([one for group in parts[name] for one in group] for name in ("operands", "result_types"))
        return cls.create(operands=operands, result_types=types, properties=properties, attributes=parts["attributes"])

    def verify_(self) -> None:
        types = [value.type for value in (*self.operands, *self.results)]
        shapes = {type_.get_shape() for type_ in types if isinstance(type_, TensorType)}
        if len(shapes) != 1:
            raise VerifyException(f"{self.name} takes and gives tensors of one shape")


def is_tensor(value: SSAValue) -> bool:
    return isinstance(value.type, TensorType)


@irdl_custom_directive
class Hints(CustomDirective):
    """Ignored flags of a conversion."""

    def parse(self, parser: Parser, state: ParsingState) -> None:
        for keyword in ("nneg", "to_nearest_even"):
            parser.parse_optional_keyword(keyword)
        for keyword, flags in (("overflow", arith.IntegerOverflowAttr), ("fastmath", arith.FastMathFlagsAttr)):
            if parser.parse_optional_keyword(keyword) is not None:
                flags.parse_parameter(parser)

    def print(self, printer: Printer, state: PrintingState, op: IRDLOperation) -> None:
        pass


class _Conversion(_OnTensors):
    """`%y = arith.extf %x : tensor<4xf32> to tensor<4xf64>`."""

    input = operand_def()
    result = result_def()

    traits = traits_def(Pure())
    custom_directives = (Hints,)
    assembly_format = "$input custom<Hints>() attr-dict `:` type($input) `to` type($result)"


def _conversion(scalar: type[Operation]) -> type[Operation]:
    definition = {"name": scalar.name, "__module__": __name__, "__doc__": _Conversion.__doc__}
    return irdl_op_definition(type(scalar.__name__, (_Conversion,), definition))


_T: Final = VarConstraint("T", AnyAttr())


def _truths(type_: Attribute) -> Attribute:
    return type(type_)(i1, type_.get_shape()) if isinstance(type_, TensorType | VectorType) else i1


class _Comparison(_OnTensors):
    """`%c = arith.cmpf olt, %x, %y : tensor<4xf32>`."""

    predicate = prop_def(IntegerAttr)
    lhs = operand_def(_T)
    rhs = operand_def(_T)
    result = result_def(TypeByRule("T", _truths))

    traits = traits_def(Pure())


def _predicate(names: Sequence[str]) -> type[CustomDirective]:
    return word_directive("Predicate", names, "'{op}' compares by {words}")


@irdl_op_definition
class CmpfOp(_Comparison):
    name = "arith.cmpf"
    fastmath = prop_def(arith.FastMathFlagsAttr, default_value=arith.FastMathFlagsAttr("none"))
    custom_directives = (_predicate(arith.CMPF_COMPARISON_OPERATIONS),)
    assembly_format = (
        "custom<Predicate>($predicate) `,` $lhs `,` $rhs (`fastmath` `` $fastmath^)? attr-dict `:` type($lhs)"
    )


@irdl_op_definition
class CmpiOp(_Comparison):
    name = "arith.cmpi"
    custom_directives = (_predicate(arith.CMPI_COMPARISON_OPERATIONS),)
    assembly_format = "custom<Predicate>($predicate) `,` $lhs `,` $rhs attr-dict `:` type($lhs)"


@irdl_op_definition
class SelectOp(_OnTensors):
    """`%r = arith.select %c, %x, %y : tensor<4xi1>, tensor<4xf32>`, or with a scalar condition."""

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
        write(printer, " ", [*self.operands])
        printer.print_op_attributes(self.attributes)
        write(printer, " : ", [*([self.cond.type] if is_tensor(self.cond) else []), self.lhs.type])


_CONVERSIONS = (
    *(arith.ExtFOp, arith.ExtSIOp, arith.ExtUIOp, arith.FPToSIOp, arith.FPToUIOp, arith.IndexCastOp),
    *(arith.SIToFPOp, arith.TruncFOp, arith.TruncIOp, arith.UIToFPOp),
)
_SCALAR = {op.name: op for op in (arith.CmpfOp, arith.CmpiOp, arith.SelectOp, *_CONVERSIONS)}


@irdl_op_definition
class IndexCastUIOp(IRDLOperation):
    """Between index and integer, zero-extended to a wider result."""

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
    """The exact remainder, with the sign of the dividend, as C's `fmod`."""

    name = "arith.remf"

    traits = traits_def(Pure())


OPERATIONS = (CmpfOp, CmpiOp, SelectOp, *map(_conversion, _CONVERSIONS), IndexCastUIOp, RemFOp)


def element_form(op: Operation) -> Block:
    """An element of an elementwise op, from one of each tensor operand."""
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
