"""What the interpreter raises when a program does something that has no meaning."""

from __future__ import annotations

from typing import TYPE_CHECKING, NoReturn

from weft.support.errors import CompileError
from weft.support.locations import location_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from xdsl.ir import Operation


class InterpreterError(CompileError):
    """A run reached something undefined: an access out of bounds, a read of memory never written, a division by zero.

    `operation` is the operation that did it. Accesses also tell `buffer` (its name in the IR), `index` and `shape`.
    """

    def __init__(
        self,
        operation: Operation,
        message: str,
        *,
        buffer: str | None = None,
        index: Sequence[int] = (),
        shape: Sequence[int] = (),
    ) -> None:
        super().__init__(message, location=location_of(operation))
        self.operation = operation
        self.buffer = buffer
        self.index = tuple(index)
        self.shape = tuple(shape)


def fail(operation: Operation, message: str, *values: object) -> NoReturn:
    """Raises `InterpreterError` with a message that is a format of `values`."""
    raise InterpreterError(operation, message.format(*values))


class AssumptionError(InterpreterError, ValueError):
    """A call does not meet what the function assumes of its extents and index parameters."""
