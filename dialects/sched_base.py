"""What the steps of a schedule share: the types of handles, the function that holds them, and their syntax."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

from xdsl.dialects.builtin import ArrayAttr, IntegerAttr, StringAttr, SymbolNameConstraint, i64
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
from xdsl.parser import Parser
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


BLOCK = BlockType()
LOOP = LoopType()
SHORT_NAMES: Mapping[str, Attribute] = {"block": BLOCK, "loop": LOOP}


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

    HANDLE_TYPES: ClassVar[tuple[Attribute, ...]] = ()
    """The types of the operands; the last one repeats for a variadic group."""
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
            expected = cls.HANDLE_TYPES[min(position, len(cls.HANDLE_TYPES) - 1)] if cls.HANDLE_TYPES else LOOP
            operands.append(parser.resolve_operand(operand, expected))
        properties = {**cls.parse_leading(parser), **parser.parse_optional_attr_dict()}
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
        if self.operands:
            printer.print_string(" ")
            printer.print_list(self.operands, printer.print_ssa_value)
        leading = self.print_leading(printer)
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
    """Integers of the default type are printed without it."""
    if isinstance(value, IntegerAttr) and value.type == i64:
        printer.print_string(str(value.value.data))
    elif isinstance(value, ArrayAttr):
        printer.print_string("[")
        elements: tuple[Attribute, ...] = value.data  # pyright: ignore[reportUnknownVariableType]
        printer.print_list(elements, lambda element: _print_plain(printer, element))
        printer.print_string("]")
    else:
        printer.print_attribute(value)
