"""Tables and sizes as text."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Final


def aligned_columns(lines: Sequence[Sequence[str]], left: Collection[int] = ()) -> str:
    """Columns are two spaces apart; those in `left` are left-aligned, the others right-aligned."""
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return "\n".join(
        "  ".join(
            cell.ljust(width) if at in left else cell.rjust(width)
            for at, (cell, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in lines
    )


WIDTH: Final = 80
"""Columns of a terminal that tables fit into."""
_SHORTEST: Final = 12
"""Minimum number of characters of a shortened cell."""


def fitted_columns(lines: Sequence[Sequence[str]], left: Collection[int], width: int) -> str:
    """Shorten left-aligned columns, the last one first, so that lines have at most `width` characters."""
    rows = [list(line) for line in lines]
    for at in sorted(left, reverse=True):
        widest = max(len(row[at]) for row in rows)
        excess = max(map(len, aligned_columns(rows, left).splitlines())) - width
        most = max(widest - excess, _SHORTEST)
        if excess > 0 and most < widest:
            for row in rows:
                row[at] = shortened(row[at], most)
    return aligned_columns(rows, left)


def stacked_columns(lines: Sequence[Sequence[str]], names: int, width: int) -> str:
    """The `names` first columns are left-aligned. Columns beyond `width` follow below, after the first column again."""
    left, others, parts = list(range(names)), list(range(names, len(lines[0]))), list[str]()
    while left:
        taken = 0
        while taken < len(others) and _fits(lines, left, others[: taken + 1], width):
            taken += 1
        if not taken and len(left) == 1:
            taken = len(others)  # a single name leaves no room
        columns = [*left, *others[:taken]]
        parts.append(fitted_columns([[line[at] for at in columns] for line in lines], range(len(left)), width))
        others = others[taken:]
        left = left[:1] if others else []
    return "\n\n".join(parts)


def _fits(lines: Sequence[Sequence[str]], left: Sequence[int], others: Sequence[int], width: int) -> bool:
    widths = {at: max(len(line[at]) for line in lines) for at in (*left, *others)}
    least = sum(min(widths[at], _SHORTEST) for at in left) + sum(widths[at] for at in others)
    return least + 2 * (len(widths) - 1) <= width


def shortened(text: str, most: int) -> str:
    """Names of kernels differ at both ends."""
    if len(text) <= most:
        return text
    end = (most - 1) // 2
    return f"{text[: most - 1 - end]}…{text[len(text) - end :]}"


def bytes_text(number: int) -> str:
    """Returns text such as `1.5 MiB`."""
    for size, unit in ((1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")):
        if number >= size:
            return f"{number / size:.1f} {unit}"
    return f"{number} B"
