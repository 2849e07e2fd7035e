"""Printing of numbers and several pieces at once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from xdsl.ir import Attribute, SSAValue
from xdsl.printer import Printer

Piece: TypeAlias = "str | int | SSAValue | Attribute | tuple[Piece, ...] | Sequence[Piece]"


def grouped(types: Sequence[Attribute]) -> Piece:
    return types[0] if len(types) == 1 else ("(", [*types], ")")


def float_text(number: float) -> str:
    """A number with a decimal point, for MLIR's parser."""
    digits, has_exponent, exponent = repr(number).partition("e")
    return f"{digits if '.' in digits else f'{digits}.0'}{has_exponent}{exponent}"


def write(printer: Printer, *pieces: Piece) -> None:
    """Print strings and numbers verbatim, values by name, and attributes; lists with commas, tuples concatenated.

    ```python
    write(printer, " (", [(index, " in ", extent) for index, extent in domain], ") : ", self.result.type)
    ```
    """
    for piece in pieces:
        if isinstance(piece, str):
            printer.print_string(piece)
        elif isinstance(piece, SSAValue):
            printer.print_ssa_value(piece)
        elif isinstance(piece, Attribute):
            printer.print_attribute(piece)
        elif isinstance(piece, tuple):
            write(printer, *piece)
        elif isinstance(piece, Sequence):
            printer.print_list(piece, lambda element: write(printer, element))
        else:
            printer.print_string(str(piece))
