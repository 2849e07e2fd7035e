"""Checks `// expected-error@+1 {{text}}` comments against the errors that a program provokes."""

from __future__ import annotations

import re
from dataclasses import dataclass

from weft.support.errors import CompileError, ScheduleError, WeftError
from weft.support.locations import SourceLocation

_ANNOTATION = re.compile(r"expected-(?P<kind>[a-z]+)\s*(?P<place>@\S+)?\s*\{\{(?P<text>.*?)\}\}")
_ANYWHERE = 0


@dataclass(frozen=True)
class Expectation:
    """An error whose message holds `text` is expected on line `line` (0: in no particular place)."""

    text: str
    line: int
    written_at: SourceLocation


def expectations_in(text: str, file: str, line_offset: int = 0) -> list[Expectation]:
    """The `expected-error` comments of `text`, which begins after line `line_offset` of `file`.

    The place is the comment's own line, or `@+n`, `@-n`, `@above`, `@below`, or `@unknown` for an error without place.
    Raises `CompileError` on a comment that asks for anything else.
    """
    found: list[Expectation] = []
    for number, line in enumerate(text.split("\n"), start=line_offset + 1):
        for match in _ANNOTATION.finditer(line):
            if "//" not in line[: match.start()]:
                continue
            at = SourceLocation(file, number, match.start() + 1, len(match.group()))
            if match["kind"] != "error":
                raise CompileError(f"expected-{match['kind']} is not known: weft reports errors only", location=at)
            found.append(Expectation(match["text"], _line_of(match["place"], number, at), at))
    return found


def _line_of(place: str | None, own: int, at: SourceLocation) -> int:
    if place is None:
        return own
    named = {"@above": own - 1, "@below": own + 1, "@unknown": _ANYWHERE}
    if place in named:
        return named[place]
    if re.fullmatch(r"@[+-]\d+", place):
        return own + int(place[1:])
    raise CompileError(f"expected-error{place}: the place is @+n, @-n, @above, @below or @unknown", location=at)


def unmet(expectations: list[Expectation], errors: list[Exception]) -> list[CompileError]:
    """What differs between the errors that were expected and those that happened; empty when all match."""
    missing = list(expectations)
    wrong: list[CompileError] = []
    for error in errors:
        message, location = _facts(error)
        line = location.line if location is not None else _ANYWHERE
        match = next((e for e in missing if e.line == line and e.text in message), None)
        if match is not None:
            missing.remove(match)
        else:
            wrong.append(CompileError(f"unexpected error: {message}", location=location))
    wrong.extend(CompileError(f"expected error {e.text!r} was not produced", location=e.written_at) for e in missing)
    return wrong


def _facts(error: Exception) -> tuple[str, SourceLocation | None]:
    if isinstance(error, CompileError):
        return error.message, error.location
    if isinstance(error, ScheduleError):
        return str(error), error.location
    return (str(error) if isinstance(error, WeftError) else f"{error}"), None
