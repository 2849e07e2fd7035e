"""Source locations of operations, and their rendering in errors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, cast

if TYPE_CHECKING:
    from xdsl.dialects.builtin import ArrayAttr, FileLineColLoc, LocationAttr
    from xdsl.ir import Attribute, Operation
    from xdsl.parser import Parser


@dataclass(frozen=True)
class SourceLocation:
    """A file, line and column, counted from 1; or the name of a node of a model, at line 0."""

    file: str
    line: int
    column: int
    length: int = field(default=0, compare=False)
    """The number of characters that errors underline; 0 for the word at the place."""

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}" if self.line else self.file

    def attribute(self) -> FileLineColLoc:
        return _attribute(self.file, self.line, self.column)


@lru_cache(maxsize=1024)
def _attribute(file: str, line: int, column: int) -> FileLineColLoc:
    """Cached, because most operations of one line of Python have the same location."""
    from xdsl.dialects.builtin import FileLineColLoc, IntAttr, StringAttr

    return FileLineColLoc(StringAttr(file), IntAttr(line), IntAttr(column))


_texts: dict[str, str] = {}
"""Texts that are not in a file (standard input, strings), by the file name of their locations."""


def remember_text(file: str, text: str) -> None:
    """Keep the text of inputs that cannot be read again from disk."""
    _texts[file] = text


def source_location(attribute: Attribute) -> SourceLocation | None:
    """Returns the first known place of a fused location."""
    from xdsl.dialects.builtin import FileLineColLoc, FusedLoc

    if isinstance(attribute, FileLineColLoc):
        return SourceLocation(attribute.filename.data, attribute.line.data, attribute.column.data)
    if isinstance(attribute, FusedLoc):
        for part in attribute.locations:  # pyright: ignore[reportGeneralTypeIssues, reportUnknownVariableType]
            if (found := source_location(part)) is not None:  # pyright: ignore[reportUnknownArgumentType]
                return found
    return None


def location_parts(attribute: Attribute) -> Sequence[Attribute]:
    """A location that is not fused is its only part."""
    from xdsl.dialects.builtin import FusedLoc

    if not isinstance(attribute, FusedLoc):
        return (attribute,)
    return cast("ArrayAttr[Attribute]", attribute.locations).data


def location_of(operation: Operation) -> SourceLocation | None:
    """Returns the place of `operation` or of the nearest enclosing operation with one."""
    op: Operation | None = operation
    while op is not None:
        if (found := source_location(op.location)) is not None:
            return found
        op = op.parent_op()
    return None


def record_places(ops: Sequence[type[Operation]]) -> list[type[Operation]]:
    """Let custom formats record locations in parsers other than weft's."""
    for op in ops:
        if "parse" in dir(op):
            op.parse = classmethod(_placing(op.parse.__func__))  # pyright: ignore[reportAttributeAccessIssue]
    return list(ops)


def _placing(parse: Callable[[type[Operation], Parser], Operation]) -> Callable[[type[Operation], Parser], Operation]:
    from xdsl.dialects.builtin import UnknownLoc

    def parse_and_place(cls: type[Operation], parser: Parser) -> Operation:
        if hasattr(parser, "place"):
            return parse(cls, parser)
        text, behind = parser.lexer.input, parser.pos
        op = parse(cls, parser)
        if isinstance(op.location, UnknownLoc):
            start = text.content.rfind(cls.name.rpartition(".")[2], 0, behind) - len(cls.dialect_name()) - 1
            line = text.content.count("\n", 0, start) + 1
            op.location = _attribute(text.name, line, start - text.content.rfind("\n", 0, start))
        return op

    return parse_and_place


def _lines(text: str) -> tuple[str, ...]:
    """Only a newline ends a line, as in the parser."""
    return tuple(line.removesuffix("\r") for line in text.split("\n"))


@lru_cache(maxsize=32)
def _lines_on_disk(file: str) -> tuple[str, ...]:
    try:
        return _lines(Path(file).read_bytes().decode("utf-8"))
    except (OSError, UnicodeDecodeError):
        return ()


def node_location(name: str) -> FileLineColLoc:
    return _attribute(name, 0, 0)


def joined_location(locations: Sequence[LocationAttr], own: LocationAttr) -> LocationAttr:
    """Errors show the first part: the names of the model nodes. Fewer than two locations give `own`."""
    from xdsl.dialects.builtin import FusedLoc, NoneAttr

    if len(locations) < 2:
        return own
    places = [source_location(location) for location in locations]
    names = list(dict.fromkeys(place.file for place in places if place is not None and not place.line))
    shown = own
    if len(names) > 1:
        shown = node_location(", ".join(names[:4]) + (f" and {len(names) - 4} more" if len(names) > 4 else ""))
    return FusedLoc((shown, *locations), NoneAttr())


def source_line(location: SourceLocation) -> str | None:
    """Returns None if the text is not available."""
    if not location.line:
        return None
    lines = _lines(_texts[location.file]) if location.file in _texts else _lines_on_disk(location.file)
    return lines[location.line - 1] if 0 < location.line <= len(lines) else None


def _carets(line: str, location: SourceLocation) -> str:
    rest = line[location.column - 1 :]
    if location.length:
        return "^" * max(1, min(location.length, len(rest)))
    for width, character in enumerate(rest):
        if character in " (){}[]<>,:" and width > 0:
            return "^" * width
    return "^" * max(1, len(rest))


def _blank(text: str) -> str:
    return "".join("\t" if character == "\t" else " " for character in text)


_WIDEST = 160
"""Lines of more characters are clipped around the place: constants have thousands of digits."""


def _clipped(line: str, location: SourceLocation) -> tuple[str, SourceLocation]:
    """Returns the shown part, and the place within it."""
    if len(line) <= _WIDEST:
        return line, location
    start = max(0, location.column - 1 - _WIDEST // 2) if location.column > _WIDEST * 3 // 4 else 0
    head, tail = "... " if start else "", " ..." if start + _WIDEST < len(line) else ""
    column = location.column - start + len(head)
    return f"{head}{line[start : start + _WIDEST]}{tail}", replace(location, column=column)


def render_source_line(location: SourceLocation) -> str:
    """Empty if the source is not available."""
    line = source_line(location)
    if line is None:
        return ""
    line, place = _clipped(line, location)
    return f"{line}\n{_blank(line[: place.column - 1])}{_carets(line, place)}"


def render_operation(operation: Operation) -> str:
    """Returns the place and its source line, or the underlined line of the printed function: programs built or
    transformed in memory have no source text."""
    location = source_location(operation.location)
    if location is not None and (line := source_line(location)) is not None:
        head = f"  at {location}: "
        line, place = _clipped(line, location)
        body = line.strip()
        indent = place.column - 1 - (len(line) - len(line.lstrip()))
        return f"{head}{body}\n{' ' * (len(head) + max(indent, 0))}{_carets(line, place)}"
    printed = _printed_line(operation)
    where = f"  at {location}: " if location is not None else "  in the IR: "
    return f"{where}{printed}\n{' ' * len(where)}{'^' * max(1, len(printed))}"


def _printed_line(operation: Operation) -> str:
    from io import StringIO

    from xdsl.printer import Printer

    root = operation
    while (parent := root.parent_op()) is not None and root.name != "func.func":
        root = parent
    marked: list[str] = []

    class _Recorder(Printer):
        def print_op(self, op: Operation) -> None:
            stream = self.stream
            start = stream.tell() if stream is not None else 0
            super().print_op(op)
            if op is operation and isinstance(stream, StringIO):
                marked.append(stream.getvalue()[start:].splitlines()[0].strip())

    _Recorder(stream=StringIO()).print_op(root)
    shown = marked[0] if marked else operation.name
    return shown if len(shown) <= _WIDEST else f"{shown[:_WIDEST]} ..."
