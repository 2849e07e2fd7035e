"""Axes of inputs as text: numbers, names or inclusive ranges, separated by `x`.

    1x128                    numbers
    b x s, bxs               names, or expressions over them: `b x 2 * s`
    b:1..8 x s:1..512        names with a stated range
    1..8 x 1..512            ranges of extents that keep the names that the program has for them

If any `x` is between spaces, only such an `x` separates, so that names may contain one: `max x 3`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from weft.support.errors import CompileError

_RANGE: Final = re.compile(r"(-?\d+)\s*\.\.\s*(-?\d+)\Z")
_SEPARATOR: Final = re.compile(r"\s+x\s+")
_SYNTAX: Final = "axes are numbers, names or inclusive ranges, as 1x128, bxs or b:1..8 x s:1..512"


@dataclass(frozen=True)
class Axis:
    """An axis of an input."""

    extent: int | str | None = None
    """A number or the text of an expression; None for the extent of the program."""
    bounds: tuple[int, int] | None = None
    """The least and the greatest extent."""

    def __str__(self) -> str:
        name = "" if self.extent is None else str(self.extent)
        numbers = "" if self.bounds is None else f"{self.bounds[0]}..{self.bounds[1]}"
        return f"{name}{':' * bool(name and numbers)}{numbers}"


def parse_axes(text: str, what: str) -> tuple[Axis, ...]:
    """Raises `CompileError`; `what` names `text`."""
    separator = _SEPARATOR if _SEPARATOR.search(text) else "x"
    return tuple(parse_axis(part, what) for part in re.split(separator, text))


def parse_axis(text: str, what: str) -> Axis:
    name, colon, rest = text.partition(":")
    if not colon:
        name, rest = ("", text) if ".." in text else (text, "")
    name, rest = name.strip(), rest.strip()
    if (colon or not rest) and not name:
        raise CompileError(f"{what}: an axis is empty: {_SYNTAX}")
    if name and re.fullmatch(r"\d+", name) and name.isascii():
        if colon:
            raise CompileError(f"{what}: '{text.strip()}' states a range of a number: {_SYNTAX}")
        return Axis(int(name))
    if re.match(r"-\s*\d+\Z", name):
        raise CompileError(f"{what}: an extent is not negative, got {name}")
    if not colon and not rest:
        return Axis(name)
    found = _RANGE.match(rest)
    if found is None:
        raise CompileError(f"{what}: '{rest}' is no range: {_SYNTAX}")
    least, most = int(found[1]), int(found[2])
    if least < 0:
        raise CompileError(f"{what}: an extent is not negative, got the range {least}..{most}")
    if most < least:
        raise CompileError(f"{what}: the range {least}..{most} has no number: the first is the least one")
    if least == most and not name:
        return Axis(least)
    return Axis(name or None, (least, most))


def axes_of(value: str | Sequence[int | str], what: str) -> tuple[Axis, ...]:
    """A sequence has an axis each. Raises `CompileError`."""
    if isinstance(value, str):
        return parse_axes(value, what)
    axes: list[Axis] = []
    for entry in value:
        if isinstance(entry, int) and entry < 0:
            raise CompileError(f"{what}: an extent is not negative, got {entry}")
        axes.append(Axis(int(entry)) if isinstance(entry, int) else parse_axis(entry, what))
    return tuple(axes)


def show_axes(axes: Sequence[Axis]) -> str:
    texts = [str(axis) for axis in axes]
    is_short = all(re.fullmatch(r"[^x\s:.]+", text) for text in texts)
    return ("x" if is_short else " x ").join(texts)
