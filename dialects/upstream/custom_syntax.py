"""Custom syntax of upstream ops whose xDSL classes lack MLIR's syntax or types.

A class made by `with_format` or `with_parser` is registered in place of an op, and parses MLIR's text into ops of
xDSL's class.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING, Any, ClassVar

from xdsl.dialects.builtin import IndexType, IntegerAttr, IntegerType
from xdsl.irdl.declarative_assembly_format import (
    AttributeVariable,
    CustomDirective,
    FormatProgram,
    ParsingState,
    PrintingState,
    irdl_custom_directive,
)
from xdsl.parser import Parser, UnresolvedOperand
from xdsl.printer import Printer

if TYPE_CHECKING:
    from xdsl.ir import Attribute, Operation, Region, SSAValue
    from xdsl.irdl import IRDLOperation


def with_format(op: type[IRDLOperation], assembly_format: str, *directives: type[CustomDirective]) -> type[Operation]:
    """A class that parses and prints `op` by a declarative format, possibly with `directives`."""

    @cache
    def program() -> FormatProgram:
        definition = op.get_irdl_definition()
        custom = {directive.__name__: directive for directive in directives}
        return FormatProgram.from_str(assembly_format, replace(definition, custom_directives=custom))

    def print_op(self: IRDLOperation, printer: Printer) -> None:
        program().print(printer, self)

    reader = with_parser(op, lambda parser: program().parse(parser, op))
    return type(op.__name__, (reader,), {"print": print_op, "__module__": __name__})


def with_parser(op: type[IRDLOperation], parse: Callable[[Parser], Operation]) -> type[Operation]:
    """A class that parses `op` by a function, called after the op's name."""

    def parse_op(_: type[Operation], parser: Parser) -> Operation:
        return parse(parser)

    def create(_: type[Operation], **parts: Any) -> Operation:
        return op.create(**parts)

    return type(
        op.__name__, (op,), {"parse": classmethod(parse_op), "create": classmethod(create), "__module__": __name__}
    )


@irdl_custom_directive
class _Word(CustomDirective):
    """An integer printed as the word at its position."""

    stored: AttributeVariable
    WORDS: ClassVar[Sequence[str]] = ()
    TYPE: ClassVar[IntegerType] = IntegerType(64)
    UNKNOWN: ClassVar[str] = ""

    def is_anchorable(self) -> bool:
        return self.stored.is_optional

    def is_present(self, op: IRDLOperation) -> bool:
        return self.stored.get(op) is not None

    def parse(self, parser: Parser, state: ParsingState) -> None:
        at = parser.pos
        word = parser.parse_identifier()
        if word not in self.WORDS:
            message = self.UNKNOWN.format(word=word, op=state.op_type.name, words=", ".join(self.WORDS))
            parser.raise_error(message, at, parser.pos)
        self.stored.set(state, IntegerAttr(self.WORDS.index(word), self.TYPE))

    def print(self, printer: Printer, state: PrintingState, op: IRDLOperation) -> None:
        number = self.stored.get(op)
        if isinstance(number, IntegerAttr):
            state.print_whitespace(printer)
            printer.print_string(self.WORDS[abs(number.value.data)])  # true is -1


def word_directive(name: str, words: Sequence[str], unknown: str, type_: int = 64) -> type[CustomDirective]:
    """`custom<name>($attribute)`: an integer of `type_` bits as the word at its position. `unknown` is the error for
    others, formatted with `{word}`, `{words}` and `{op}`."""
    return type(name, (_Word,), {"WORDS": words, "UNKNOWN": unknown, "TYPE": IntegerType(type_)})


def parse_indices(parser: Parser) -> list[SSAValue]:
    """`(%i, %j)` of type `index`"""
    return parser.parse_comma_separated_list(Parser.Delimiter.PAREN, lambda: parser.parse_operand(IndexType()))


def parse_variables(parser: Parser) -> list[Parser.Argument]:
    """`(%i, %j)`: loop variables"""
    return parser.parse_comma_separated_list(
        Parser.Delimiter.PAREN, lambda: parser.parse_argument(expect_type=False).resolve(IndexType())
    )


def parse_typed_names(parser: Parser) -> tuple[Sequence[UnresolvedOperand], Sequence[Attribute], int]:
    """`%a, %b : type, type`, for `resolve_operands`"""
    at = parser.pos
    values = parser.parse_comma_separated_list(Parser.Delimiter.NONE, parser.parse_unresolved_operand)
    parser.parse_punctuation(":")
    return values, parser.parse_comma_separated_list(Parser.Delimiter.NONE, parser.parse_type), at


def parse_optional_results(parser: Parser) -> Sequence[Attribute]:
    """Optional `-> type` or `-> (type, type)`."""
    return [] if parser.parse_optional_punctuation("->") is None else parse_types(parser)


def parse_types(parser: Parser) -> Sequence[Attribute]:
    """`type` or `(type, type)`"""
    types = parser.parse_optional_comma_separated_list(Parser.Delimiter.PAREN, parser.parse_type)
    return [parser.parse_type()] if types is None else types


def terminated(region: Region, terminator: type[Operation]) -> Region:
    """Add a missing terminator without operands."""
    if not isinstance(region.block.last_op, terminator):
        region.block.add_op(terminator.create())
    return region
