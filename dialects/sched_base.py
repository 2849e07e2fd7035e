"""What the steps of a schedule share: the types of handles, the function that holds them, and their syntax."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import isfinite
from typing import ClassVar

from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    ArrayAttr,
    DictionaryAttr,
    FloatAttr,
    IntegerAttr,
    StringAttr,
    SymbolNameConstraint,
    f64,
    i64,
)
from xdsl.ir import (
    Attribute,
    Block,
    ParametrizedAttribute,
    Region,
    SSAValue,
    TypeAttribute,
)
from xdsl.irdl import (
    IRDLOperation,
    irdl_attr_definition,
    irdl_op_definition,
    prop_def,
    region_def,
    traits_def,
)
from xdsl.parser import Parser, UnresolvedOperand
from xdsl.printer import Printer
from xdsl.traits import HasParent, NoTerminator, SymbolOpInterface
from xdsl.utils.exceptions import VerifyException


@irdl_attr_definition
class BlockType(ParametrizedAttribute, TypeAttribute):
    """A handle on a block."""

    name = "sched.block"


@irdl_attr_definition
class LoopType(ParametrizedAttribute, TypeAttribute):
    """A handle on a loop."""

    name = "sched.loop"


@irdl_attr_definition
class IntType(ParametrizedAttribute, TypeAttribute):
    """A handle on an integer that was sampled."""

    name = "sched.int"


BLOCK = BlockType()
LOOP = LoopType()
INT = IntType()
SHORT_NAMES: Mapping[str, Attribute] = {"block": BLOCK, "loop": LOOP, "int": INT}
SAMPLED = DYNAMIC_INDEX
"""Stands in a list of integers for one that an operand gives."""


@irdl_op_definition
class FuncOp(IRDLOperation):
    """A schedule: steps to apply, in order, to the module that holds it."""

    name = "sched.func"

    sym_name = prop_def(SymbolNameConstraint())
    body = region_def("single_block")

    traits = traits_def(NoTerminator(), SymbolOpInterface())

    def __init__(self, name: str, body: Region) -> None:
        super().__init__(properties={"sym_name": StringAttr(name)}, regions=[body])

    def verify_(self) -> None:
        consumed: dict[SSAValue, str] = {}
        for op in self.body.block.ops:
            if not isinstance(op, StepOp):
                raise VerifyException(f"sched.func @{self.sym_name.data} holds schedule steps only, got {op.name}")
            given = sum(operand.type == INT for operand in op.operands)
            if op.INTEGERS is not None and given != integers_of(op.properties.get(op.INTEGERS)).count(SAMPLED):
                raise VerifyException(f"{op.name} uses {given} integer handles, but not in its {op.INTEGERS}")
            for operand in op.operands:
                if operand in consumed:
                    raise VerifyException(
                        f"{op.name} uses handle %{operand.name_hint or '?'}, "
                        f"which {consumed[operand]} before it has consumed"
                    )
            for operand in op.consumed_handles:
                consumed[operand] = op.name

    @classmethod
    def parse(cls, parser: Parser) -> FuncOp:
        name = parser.parse_symbol_name()
        region = parser.parse_region()
        if not region.blocks:
            region.add_block(Block())
        return cls(name.data, region)

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_symbol_name(self.sym_name.data)
        printer.print_string(" ")
        printer.print_region(self.body, print_empty_block=False)


class StepOp(IRDLOperation):
    """One step of a schedule, with the syntax that all steps share."""

    HANDLE_TYPES: ClassVar[tuple[tuple[Attribute, ...], ...]] = ()
    """The types that each operand may have; the last one repeats for a variadic group."""
    INTEGERS: ClassVar[str | None] = None
    """The property, a list of integers, of which some may be operands: then it is written `[%t0, 4]`."""
    CONSUMES: ClassVar[bool] = False
    """Whether the loop handles given are gone afterwards."""

    traits = traits_def(HasParent(FuncOp))

    @property
    def consumed_handles(self) -> Sequence[SSAValue]:
        return [o for o in self.operands if o.type == LOOP] if self.CONSUMES else []

    @classmethod
    def parse(cls, parser: Parser) -> StepOp:
        operands: list[SSAValue] = []
        first = parser.parse_optional_unresolved_operand()
        unresolved = [] if first is None else [first]
        while unresolved and parser.parse_optional_punctuation(",") is not None:
            unresolved.append(parser.parse_unresolved_operand())
        for position, operand in enumerate(unresolved):
            expected = cls.HANDLE_TYPES[min(position, len(cls.HANDLE_TYPES) - 1)] if cls.HANDLE_TYPES else (LOOP,)
            operands.append(_resolve(parser, operand, expected))
        properties = cls.parse_leading(parser)
        if cls.INTEGERS is not None:
            properties.update(_parse_integers(parser, cls.INTEGERS, operands))
        properties.update(parser.parse_optional_attr_dict())
        results = _parse_result_types(parser)
        return cls.create(operands=operands, result_types=results, properties=properties)

    @classmethod
    def parse_leading(cls, parser: Parser) -> dict[str, Attribute]:
        """Properties that stand before the braces."""
        return {}

    def print_leading(self, printer: Printer) -> frozenset[str]:
        """Print what `parse_leading` reads; returns the names of those properties."""
        return frozenset()

    def print(self, printer: Printer) -> None:
        integers = [o for o in self.operands if o.type == INT] if self.INTEGERS is not None else []
        handles = [o for o in self.operands if o not in integers]
        if handles:
            printer.print_string(" ")
            printer.print_list(handles, printer.print_ssa_value)
        leading = self.print_leading(printer)
        if self.INTEGERS is not None and integers:
            _print_integers(printer, self.properties[self.INTEGERS], integers)
            leading |= {self.INTEGERS}
        rest = {name: value for name, value in self.properties.items() if name not in leading}
        if rest:
            printer.print_string(" {")
            printer.print_list(rest.items(), lambda item: _print_property(printer, *item))
            printer.print_string("}")
        if self.results:
            printer.print_string(" : ")
            names = {type_: name for name, type_ in SHORT_NAMES.items()}
            printer.print_list(self.results, lambda result: printer.print_string(names[result.type]))


def verify_handles(step: StepOp, given: int) -> None:
    """A step names all of the handles that it gives, or none."""
    if step.results and len(step.results) != given:
        raise VerifyException(f"{step.name} gives {given} handles, {len(step.results)} are named")


def _resolve(parser: Parser, operand: UnresolvedOperand, expected: tuple[Attribute, ...]) -> SSAValue[Attribute]:
    """The value of an operand; where several types are possible, it has been defined with one of them."""
    known = parser.ssa_values.get(operand.operand_name)
    found = next((v.type for v in known or () if v.type in expected), expected[0])
    return parser.resolve_operand(operand, found)


def _parse_integers(parser: Parser, name: str, operands: list[SSAValue]) -> dict[str, Attribute]:
    """`[%t0, 4]`; adds the handles to the operands."""

    def parse_integer() -> IntegerAttr:
        operand = parser.parse_optional_unresolved_operand()
        if operand is None:
            return IntegerAttr(parser.parse_integer(), i64)
        operands.append(parser.resolve_operand(operand, INT))
        return IntegerAttr(SAMPLED, i64)

    found = parser.parse_optional_comma_separated_list(parser.Delimiter.SQUARE, parse_integer)
    return {} if found is None else {name: ArrayAttr(found)}


def _print_integers(printer: Printer, attribute: Attribute, operands: Sequence[SSAValue]) -> None:
    handles = iter(operands)

    def print_integer(value: int) -> None:
        if value == SAMPLED:
            printer.print_ssa_value(next(handles))
        else:
            printer.print_string(str(value))

    printer.print_string(" [")
    printer.print_list(integers_of(attribute), print_integer)
    printer.print_string("]")


def integers_of(attribute: Attribute | None) -> list[int]:
    """The elements of a list of integers."""
    elements: tuple[Attribute, ...] = attribute.data if isinstance(attribute, ArrayAttr) else ()
    return [element.value.data for element in elements if isinstance(element, IntegerAttr)]


def _parse_result_types(parser: Parser) -> list[Attribute]:
    if parser.parse_optional_punctuation(":") is None:
        return []

    def parse_short() -> Attribute:
        for name, type_ in SHORT_NAMES.items():
            if parser.parse_optional_keyword(name) is not None:
                return type_
        parser.raise_error(f"expected a handle type, one of {', '.join(SHORT_NAMES)}")

    return parser.parse_comma_separated_list(parser.Delimiter.NONE, parse_short)


def _print_property(printer: Printer, name: str, value: Attribute) -> None:
    printer.print_string(f"{name} = ")
    _print_plain(printer, value)


def _print_plain(printer: Printer, value: Attribute) -> None:
    """Integers and floats of the default types are printed without them, and floats so that they read back equal."""
    if isinstance(value, IntegerAttr) and value.type == i64:
        printer.print_string(str(value.value.data))
    elif isinstance(value, ArrayAttr):
        printer.print_string("[")
        elements: tuple[Attribute, ...] = value.data  # pyright: ignore[reportUnknownVariableType]
        printer.print_list(elements, lambda element: _print_plain(printer, element))
        printer.print_string("]")
    elif isinstance(value, DictionaryAttr):
        printer.print_string("{")
        printer.print_list(value.data.items(), lambda item: _print_entry(printer, *item))
        printer.print_string("}")
    elif not _print_float(printer, value):
        printer.print_attribute(value)


def _print_entry(printer: Printer, key: str, value: Attribute) -> None:
    printer.print_identifier_or_string_literal(key)
    printer.print_string(" = ")
    _print_plain(printer, value)


def _print_float(printer: Printer, value: Attribute) -> bool:
    """Print a finite float of the default type; false for anything else."""
    if not isinstance(value, FloatAttr) or value.type != f64 or not isfinite(value.value.data):
        return False
    digits, _, exponent = repr(value.value.data).partition("e")
    printer.print_string((digits if "." in digits else f"{digits}.0") + (f"e{exponent}" if exponent else ""))
    return True
