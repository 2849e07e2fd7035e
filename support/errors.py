"""The errors that users see, and the one that indicates a bug in weft. Errors become text only when printed, so that a
search with thousands of rejections does not pay for messages."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field
from difflib import get_close_matches
from functools import cached_property
from typing import TYPE_CHECKING

from xdsl.utils.exceptions import PassFailedException

from weft.support.locations import SourceLocation, location_of, render_operation, render_source_line

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from xdsl.ir import Operation


class WeftError(PassFailedException):
    """Base of errors about user input; xDSL's drivers report them as diagnostics."""

    passes: tuple[str, ...] = ()
    """The passes in which it was raised, innermost first, if a tool or a caller chose them."""

    def add_pass(self, name: str) -> None:
        """`name` encloses the recorded passes."""
        if name not in self.passes:
            self.passes = (*self.passes, name)

    def with_passes(self, message: str) -> str:
        """Returns `message (pass 'cse' in 'func.func')`, unless the message names the passes."""
        names = [repr(name) for name in self.passes if f"pass '{name}'" not in message]
        if not names:
            return message
        kind = "pass" if len(names) == len(self.passes) else "in"
        return f"{message} ({kind} {' in '.join(names)})"


@dataclass(eq=False, repr=False)
class CompileError(WeftError):
    """An error in a program, an option or a target.

    `str(error)` is `file:line:col: error: message`, with the source line and a caret if `location` is known, then
    `notes`: related places.
    """

    message: str
    location: SourceLocation | None = field(default=None, kw_only=True)
    notes: tuple[tuple[str, SourceLocation], ...] = field(default=(), kw_only=True)

    @staticmethod
    def at(operation: Operation, message: str) -> CompileError:
        return CompileError(message, location=location_of(operation))

    def __str__(self) -> str:
        from weft.support.error_codes import with_code  # start-up: 1 ms

        texts = [_placed("error", with_code(self.with_passes(self.message)), self.location)]
        return "\n".join([*texts, *(_placed("note", message, location) for message, location in self.notes)])


def _placed(kind: str, message: str, location: SourceLocation | None) -> str:
    if location is None:
        return f"{kind}: {message}"
    return f"{location}: {kind}: {message}\n{render_source_line(location)}".rstrip("\n")


class Remark(UserWarning):
    """A remark of a pass about a valid operation that it left unchanged: `file:line:col: remark: ...`. Filters of
    `warnings` apply."""

    def __init__(self, message: str, location: SourceLocation | None = None) -> None:
        super().__init__(message)
        self.message, self.location = message, location

    def __str__(self) -> str:
        return _placed("remark", self.message, self.location)


def remark(operation: Operation, message: str, *, strict: bool = False) -> None:
    """Emit a warning, or with `strict` raise a `CompileError`."""
    if strict:
        raise CompileError.at(operation, message)
    warnings.warn(Remark(message, location_of(operation)), stacklevel=2)


@dataclass
class Violation:
    """`claim` is "refuted" (`counterexample` may have two concrete iterations or an index) or "not proved" (`detail`
    states the undecided part). `kind` is the claim after validation."""

    detail: str
    claim: str = "refuted"
    counterexample: dict[str, dict[str, int]] = field(default_factory=dict[str, dict[str, int]])
    """Maps the role of a point (for example "first iteration") to the values of its variables. The points are only
    candidates unless validated."""
    legal: str | None = None
    """A legal alternative."""
    validate: Callable[[], bool] | None = field(default=None, repr=False, compare=False)
    """Evaluates the program at the counterexample. Called when `kind` is read or the error is printed."""

    @cached_property
    def kind(self) -> str:
        failed = self.claim == "refuted" and self.validate is not None and not self.validate()
        return "not proved" if failed else self.claim

    def __str__(self) -> str:
        if self.kind == self.claim:
            return f"{self.kind}: {self.detail}" if self.kind == "not proved" else self.detail
        return (
            "not proved: accesses are approximated here, and the approximation allows what evaluating the program does "
            f"not confirm: {self.detail}"
        )


@dataclass(eq=False, repr=False)
class ScheduleError(WeftError):
    """A schedule primitive was rejected; the IR is unchanged."""

    primitive: str
    """The name of the primitive."""
    requirement: int
    """The number in the docstring of the primitive; 0 for invalid arguments."""
    summary: str
    """The requirement in words."""
    violation: Violation
    operation: Operation | None = None
    """Its location is that of the error."""
    subject: str = ""
    """The block or loop that the primitive was applied to."""

    @property
    def code(self) -> str:
        """The code of the requirement, `vectorize.2`; empty for invalid arguments."""
        return f"{self.primitive.partition('(')[0]}.{self.requirement}" if self.requirement else ""

    @property
    def location(self) -> SourceLocation | None:
        return None if self.operation is None else location_of(self.operation)

    def __str__(self) -> str:
        subject = f" on {self.subject}" if self.subject else ""
        requirement = f"requirement {self.requirement}, {self.summary}" if self.requirement else self.summary
        code = f" [{self.code}]" if self.code else ""
        lines = [self.with_passes(f"error: {self.primitive}{subject}: {requirement}") + code]
        lines.append(f"  {self.violation}")
        if self.operation is not None:
            lines.append(render_operation(self.operation))
        if self.violation.legal:
            lines.append(f"  legal: {self.violation.legal}")
        return "\n".join(lines)


class InternalError(Exception):
    """A bug in weft, which weft never catches; please report it with the program that caused it."""

    def __str__(self) -> str:
        return f"{super().__str__()}\nThis is a bug in weft, not in your program. Please report it with the input."


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Returns ", did you mean 'x'?" with the closest of `known`, or a list of them if none is close."""
    names = sorted(known)
    near = get_close_matches(name, names, n=3, cutoff=0.5)
    if near:
        return ", did you mean " + " or ".join(f"'{n}'" for n in near) + "?"
    if names:
        shown = ", ".join(f"'{n}'" for n in names[:12])
        return f" (known: {shown}{', ...' if len(names) > 12 else ''})"
    return ""
