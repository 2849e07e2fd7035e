"""Names that are not in use, and printable texts."""

from __future__ import annotations

import unicodedata
from collections.abc import Collection


def free_name(wanted: str, taken: Collection[str], first: int = 1) -> str:
    """Returns the first unused of `wanted`, `wanted_1`, ... from `first` on."""
    name, number = wanted, first
    while name in taken:
        name, number = f"{wanted}_{number}", number + 1
    return name


def new_name(wanted: str, taken: set[str], first: int = 1) -> str:
    """Add the `free_name` to `taken`."""
    name = free_name(wanted, taken, first)
    taken.add(name)
    return name


def string_text(text: str) -> str:
    body = text.encode("unicode_escape").decode("ascii").replace('"', '\\"')
    return f'"{body}"'


def printable(text: str) -> str:
    """Escape control characters, surrogates and unassigned characters as `\\x07`."""

    if text.replace("\n", "").isprintable():  # the usual case, a hundred times as fast
        return text

    def spelled(character: str) -> str:
        if character == "\n" or unicodedata.category(character) not in ("Cc", "Cs", "Cn"):
            return character
        return character.encode("unicode_escape", "surrogatepass").decode("ascii")

    return "".join(map(spelled, text))


def one_line(text: str) -> str:
    return printable(text).replace("\n", "\\n")
