"""Errors for programs with undefined behaviour."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NoReturn

from weft.support.errors import CompileError
from weft.support.locations import location_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from xdsl.ir import Operation


class InterpreterError(CompileError):
    """Undefined behaviour at run time: an access out of bounds, a read of memory never written, a division by zero.
    Errors of accesses have `buffer` (its name), `index` and `shape`."""

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
    """A call exceeded its number of loop iterations."""


@dataclass
class IterationLimit:
    most: int
    left: int = 0

    def begin(self) -> None:
        self.left = self.most

    def spend(self, operation: Operation, iterations: int) -> bool:
        """Returns True. Raises `IterationLimitError`."""
        self.left -= iterations
        if self.left < 0:
            message = f"a call runs more than {self.most:,} iterations, the limit"
            raise IterationLimitError(message, location=location_of(operation))
        return True

    def counted(self, operation: Operation, iterable: Sequence[int]) -> Sequence[int]:
        is_range = isinstance(iterable, range)  # `len` rejects long ranges
        count = max(-((iterable.start - iterable.stop) // iterable.step), 0) if is_range else len(iterable)
        self.spend(operation, count)
        return iterable


def fail(operation: Operation, message: str, *values: object) -> NoReturn:
    raise InterpreterError(operation, message.format(*values))


class AssumptionError(InterpreterError, ValueError):
    """A call violates an assumption on extents or index parameters."""
