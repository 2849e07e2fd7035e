"""Text positions as editors count them, in lines and UTF-16 units; offsets in an older text."""

from __future__ import annotations

import re
from bisect import bisect_right
from dataclasses import dataclass
from functools import cached_property

from lsprotocol.types import Position, Range

_TOKEN = re.compile(
    r"""(?P<comment>//[^\n]*)|(?P<string>"(?:[^"\\\n]|\\.)*")|(?P<name>[%@^!#]?[A-Za-z0-9_$][\w$.-]*(?:\#\d+)?)|(?P<open>[{(\[])|(?P<close>[})\]])"""
)


@dataclass(frozen=True)
class Token:
    """A name with its sign (`%a`, `@f`, `^bb0`, `!sched.loop`, `tir.for`), a string, a comment or a bracket."""

    kind: str
    start: int
    end: int
    text: str


@dataclass(frozen=True)
class Text:
    content: str

    @cached_property
    def starts(self) -> list[int]:
        return [0, *(m.end() for m in re.finditer("\n", self.content))]

    def line(self, number: int) -> str:
        """Lines count from 0 and have no newline; empty beyond the end."""
        if not 0 <= number < len(self.starts):
            return ""
        end = self.starts[number + 1] - 1 if number + 1 < len(self.starts) else len(self.content)
        return self.content[self.starts[number] : end]

    def offset(self, position: Position) -> int:
        if position.line >= len(self.starts):
            return len(self.content)
        line = self.line(position.line)
        if line.isascii():
            return self.starts[position.line] + min(position.character, len(line))
        before = line.encode("utf-16-le")[: 2 * position.character].decode("utf-16-le", errors="ignore")
        return self.starts[position.line] + len(before)

    def position(self, offset: int) -> Position:
        line = bisect_right(self.starts, offset) - 1
        before = self.content[self.starts[line] : offset]
        return Position(line, len(before) if before.isascii() else len(before.encode("utf-16-le")) // 2)

    def range(self, start: int, end: int) -> Range:
        return Range(self.position(start), self.position(end))

    @cached_property
    def tokens(self) -> list[Token]:
        return [Token(m.lastgroup or "", m.start(), m.end(), m[0]) for m in _TOKEN.finditer(self.content)]

    @cached_property
    def _token_starts(self) -> list[int]:
        return [token.start for token in self.tokens]

    def token_at(self, offset: int) -> Token | None:
        """Returns the token that contains an offset, or ends there."""
        for at in (bisect_right(self._token_starts, offset) - 1, bisect_right(self._token_starts, offset - 1) - 1):
            if at >= 0 and self.tokens[at].start <= offset <= self.tokens[at].end:
                return self.tokens[at]
        return None


@dataclass(frozen=True)
class Change:
    """Maps offsets between two texts that differ in one range."""

    old: str
    new: str

    @cached_property
    def _ends(self) -> tuple[int, int]:
        prefix = _common(self.old, self.new)
        shorter = min(len(self.old), len(self.new)) - prefix
        return prefix, min(_common(self.old[::-1], self.new[::-1]), shorter)

    def to_old(self, offset: int) -> int | None:
        """Returns None within the changed range."""
        return _moved(offset, len(self.new), len(self.old), *self._ends)

    def to_new(self, offset: int) -> int | None:
        """Returns None within the changed range."""
        return _moved(offset, len(self.old), len(self.new), *self._ends)


def _common(first: str, second: str) -> int:
    if first == second:
        return len(first)
    # Halves are compared as a whole: texts may have hundreds of thousands of characters.
    low, high = 0, min(len(first), len(second))
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if first[low:middle] == second[low:middle] else (low, middle - 1)
    return low


def _moved(offset: int, length: int, other: int, prefix: int, suffix: int) -> int | None:
    if offset <= prefix:
        return offset
    return offset + other - length if offset >= length - suffix else None
