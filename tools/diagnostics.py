"""`--verify-diagnostics`: the diagnostics of a run, compared with the expectations in comments of the program.

    // expected-error@+1 {{the loops do not cover it}}        an error on the next line whose message holds the text
    // expected-remark@below 2 {{left as it is}}              two remarks; 1+ is one at least, 0-2 two at most
    // expected-error-re@-1 {{block "{{[A-Z]}}" has {{.*}} loops}}  regular expressions in `{{...}}`

Kinds are error, warning, note and remark. The location is the line of the comment, `@+n`, `@-n`, `@above` and `@below`
(the nearest line without such a comment), or `@unknown` for diagnostics without a location in the file.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Final

from weft.support.errors import CompileError, Remark, ScheduleError
from weft.support.locations import SourceLocation

_KINDS: Final = ("error", "warning", "note", "remark")
_DESIGNATOR = re.compile(
    r"expected-(?P<kind>[a-z]+)(?P<regex>-re)?\s*(?P<place>@[^\s{]+)?\s*(?:(?P<least>\d+)(?P<more>\+|-\d+)?)?\s*\{\{"
)
_BRACES = re.compile(r"\{\{+|\}\}+")
_ANYWHERE = 0


@dataclass(frozen=True)
class Diagnostic:
    """`kind` is error, warning, note or remark."""

    kind: str
    message: str
    location: SourceLocation | None = None


def diagnostics_of(error: Exception | Warning) -> list[Diagnostic]:
    if isinstance(error, Remark):
        return [Diagnostic("remark", error.message, error.location)]
    if isinstance(error, CompileError):
        notes = [Diagnostic("note", message, location) for message, location in error.notes]
        return [Diagnostic("error", error.message, error.location), *notes]
    location = error.location if isinstance(error, ScheduleError) else None
    return [Diagnostic("warning" if isinstance(error, Warning) else "error", str(error), location)]


@dataclass
class Expectation:
    """From `least` to `most` diagnostics are expected on line `line` (0: unknown location)."""

    kind: str
    text: str
    pattern: re.Pattern[str]
    line: int
    written_at: SourceLocation
    least: int = 1
    most: float = 1
    found: int = field(default=0, init=False)

    def take(self, diagnostic: Diagnostic, line: int) -> bool:
        """Count a diagnostic if it is expected here."""
        if self.found >= self.most or (self.kind, self.line) != (diagnostic.kind, line):
            return False
        if self.pattern.search(diagnostic.message) is None:
            return False
        self.found += 1
        return True


def expectations_in(text: str, file: str, line_offset: int = 0) -> list[Expectation]:
    """The text begins after line `line_offset` of `file`. Raises `CompileError` for an unknown form."""
    found: list[Expectation] = []
    below: list[Expectation] = []
    plain = line_offset
    for number, line in enumerate(text.split("\n"), start=line_offset + 1):
        here = list(_in_line(line, file, number))
        for expectation, place in here:
            if place == "@above":
                expectation.line = plain
            elif place == "@below":
                below.append(expectation)
        if not here:
            plain = number
            for expectation in below:
                expectation.line = number
            below.clear()
        found.extend(expectation for expectation, _ in here)
    return found


def _in_line(line: str, file: str, number: int) -> Iterator[tuple[Expectation, str | None]]:
    at = line.find("//")
    while at >= 0 and (match := _DESIGNATOR.search(line, at)) is not None:
        end = _end_of_text(line, match.end(), nested=match["regex"] is not None)
        text, at = line[match.end() : end], end
        place = SourceLocation(file, number, match.start() + 1, end + 2 - match.start())
        if match["kind"] not in _KINDS:
            raise CompileError(
                f"expected-{match['kind']} is not known: it is one of {', '.join(_KINDS)}", location=place
            )
        least = int(match["least"] or 1)
        most = least if not match["more"] else float("inf") if match["more"] == "+" else int(match["more"][1:])
        pattern = _pattern(text, place) if match["regex"] else re.compile(re.escape(text))
        target = _line_of(match["place"], number, match["kind"], place)
        yield Expectation(match["kind"], text, pattern, target, place, least, most), match["place"]


def _end_of_text(line: str, start: int, *, nested: bool) -> int:
    """In a run of more than two braces, the last two close the text."""
    depth = 1
    for braces in _BRACES.finditer(line, start):
        levels = len(braces.group()) // 2
        if braces.group()[0] == "{":
            depth += levels if nested else 0
        elif levels >= depth:
            return braces.end() - 2
        else:
            depth -= levels
    return len(line)


def _pattern(text: str, at: SourceLocation) -> re.Pattern[str]:
    """`{{...}}` are regular expressions."""
    parts = re.split(r"\{\{(.*?\}*)\}\}", text)
    try:
        return re.compile("".join(f"(?:{part})" if odd % 2 else re.escape(part) for odd, part in enumerate(parts)))
    except re.error as error:
        raise CompileError(f"'{text}' has a wrong regular expression: {error}", location=at) from None


def _line_of(place: str | None, own: int, kind: str, at: SourceLocation) -> int:
    if place is None or place in ("@above", "@below"):
        return own
    if place == "@unknown":
        return _ANYWHERE
    if re.fullmatch(r"@[+-]\d+", place):
        return own + int(place[1:])
    raise CompileError(f"expected-{kind}{place}: the place is @+n, @-n, @above, @below or @unknown", location=at)


def unmet(expectations: list[Expectation], diagnostics: Iterable[Diagnostic], file: str) -> list[CompileError]:
    wrong: list[CompileError] = []
    for diagnostic in diagnostics:
        place = diagnostic.location
        line = place.line if place is not None and place.file == file else _ANYWHERE
        if not any(expectation.take(diagnostic, line) for expectation in expectations):
            wrong.append(CompileError(f"unexpected {diagnostic.kind}: {diagnostic.message}", location=place))
    for expectation in expectations:
        if expectation.found < expectation.least:
            times = (
                f"produced {expectation.found} times of {expectation.least}" if expectation.found else "not produced"
            )
            message = f"expected {expectation.kind} {expectation.text!r} was {times}"
            wrong.append(CompileError(message, location=expectation.written_at))
    return wrong
