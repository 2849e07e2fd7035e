"""Tables: aligned for the terminal, and as Markdown."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field


@dataclass
class Table:
    """Rows of text under a header. The first column and those in `left` are left-aligned."""

    header: Sequence[str]
    rows: list[Sequence[str]] = field(default_factory=list[Sequence[str]])
    left: frozenset[int] = frozenset({0})

    def add(self, *cells: str) -> None:
        self.rows.append(cells)

    def text(self) -> str:
        """One line per row, two spaces between columns."""
        widths = [max(len(row[at]) for row in [self.header, *self.rows]) for at in range(len(self.header))]
        lines = [self._line(row, widths) for row in [self.header, *self.rows]]
        lines.insert(1, "  ".join("-" * width for width in widths))
        return "\n".join(lines)

    def _line(self, row: Sequence[str], widths: Sequence[int]) -> str:
        cells = (
            cell.ljust(width) if at in self.left else cell.rjust(width)
            for at, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        return "  ".join(cells).rstrip()

    def markdown(self) -> str:
        rule = ["---" if at in self.left else "---:" for at in range(len(self.header))]
        return "\n".join(f"| {' | '.join(row)} |" for row in [self.header, rule, *self.rows])


def duration(seconds: float) -> str:
    """A time with four digits in a suitable unit."""
    for unit, name in ((1.0, "s"), (1e-3, "ms")):
        if seconds >= unit:
            return f"{seconds / unit:.4g} {name}"
    return f"{seconds / 1e-6:.4g} us"
