"""Tables and sizes as text."""

from __future__ import annotations

from collections.abc import Collection, Sequence


def aligned_columns(lines: Sequence[Sequence[str]], left: Collection[int] = ()) -> str:
    """Columns two spaces apart: those in `left` are left-aligned, the others right-aligned."""
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return "\n".join(
        "  ".join(
            cell.ljust(width) if at in left else cell.rjust(width)
            for at, (cell, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in lines
    )


def bytes_text(number: int) -> str:
    """`1.5 MiB`."""
    for size, unit in ((1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")):
        if number >= size:
            return f"{number / size:.1f} {unit}"
    return f"{number} B"
