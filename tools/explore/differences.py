"""Differences of two texts of IR. Lines match regardless of their indentation, because loops indent."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Final, Literal, TypeAlias

Kind: TypeAlias = Literal["same", "indented", "changed", "removed", "added"]
_WORDS: Final = re.compile(r"[%@\w.]+|\s+|.")


@dataclass(frozen=True)
class Row:
    kind: Kind
    left: int | None
    """The line before, from 0; None if there is none."""
    right: int | None
    """The line after."""


def side_by_side(before: Sequence[str], after: Sequence[str]) -> list[Row]:
    first, last = _common_ends(before, after)
    rows = [Row("same", at, at) for at in range(first)]
    old = [line.strip() for line in before[first : len(before) - last]]
    new = [line.strip() for line in after[first : len(after) - last]]
    for tag, a, b, c, d in SequenceMatcher(None, old, new).get_opcodes():
        left, right = range(first + a, first + b), range(first + c, first + d)
        if tag == "equal":
            for x, y in zip(left, right, strict=True):
                rows.append(Row("same" if before[x] == after[y] else "indented", x, y))
            continue
        paired = min(len(left), len(right))
        rows += [Row("changed", x, y) for x, y in zip(left, right, strict=False)]
        rows += [Row("removed", x, None) for x in left[paired:]]
        rows += [Row("added", None, y) for y in right[paired:]]
    rows += [Row("same", len(before) - last + at, len(after) - last + at) for at in range(last)]
    return rows


def _common_ends(before: Sequence[str], after: Sequence[str]) -> tuple[int, int]:
    least = min(len(before), len(after))
    first = next((at for at in range(least) if before[at] != after[at]), least)
    last = next((at for at in range(least - first) if before[-1 - at] != after[-1 - at]), least - first)
    return first, last


def changes(rows: Sequence[Row]) -> list[int]:
    """Returns the starts of runs of changed rows."""
    is_changed = [row.kind not in ("same", "indented") for row in rows]
    return [at for at, changed in enumerate(is_changed) if changed and (at == 0 or not is_changed[at - 1])]


def changed_words(before: str, after: str) -> tuple[list[tuple[int, int]], list[tuple[int, int]]]:
    """Returns the ranges of differing words."""
    old, new = _WORDS.findall(before), _WORDS.findall(after)
    found: tuple[list[tuple[int, int]], list[tuple[int, int]]] = ([], [])
    for tag, a, b, c, d in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if tag != "equal":
            for ranges, words, start, end in ((found[0], old, a, b), (found[1], new, c, d)):
                ranges += _ranges(words, start, end)
    return found


def _ranges(words: Sequence[str], start: int, end: int) -> Iterator[tuple[int, int]]:
    first = sum(map(len, words[:start]))
    length = sum(map(len, words[start:end]))
    if length and "".join(words[start:end]).strip():
        yield first, first + length
