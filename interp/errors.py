"""What the interpreter raises when a program does something that has no meaning."""

from __future__ import annotations

from dataclasses import dataclass
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


class IterationLimitError(CompileError):
    """A call has run more iterations of loops than it may."""


@dataclass
class IterationLimit:
    """The number of iterations of loops that a call may run, all loops together."""

    most: int
    left: int = 0

    def begin(self) -> None:
        """Start counting: a call begins."""
        self.left = self.most

    def spend(self, operation: Operation, iterations: int) -> bool:
        """Count `iterations` of a loop; true. Raises `IterationLimitError` if the call has run more than it may."""
        self.left -= iterations
        if self.left < 0:
            message = f"a call runs more than {self.most:,} iterations, the limit"
            raise IterationLimitError(message, location=location_of(operation))
        return True

    def counted(self, operation: Operation, iterable: Sequence[int]) -> Sequence[int]:
        """`iterable`, with its elements counted as iterations of a loop."""
        is_range = isinstance(iterable, range)  # `len` refuses the long ones
        count = max(-((iterable.start - iterable.stop) // iterable.step), 0) if is_range else len(iterable)
        self.spend(operation, count)
        return iterable


def fail(operation: Operation, message: str, *values: object) -> NoReturn:
    """Raises `InterpreterError` with a message that is a format of `values`."""
    raise InterpreterError(operation, message.format(*values))


class AssumptionError(InterpreterError, ValueError):
    """A call does not meet what the function assumes of its extents and index parameters."""
