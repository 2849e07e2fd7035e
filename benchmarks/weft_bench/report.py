"""A report: the environment, the machine's peaks, tables."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from textwrap import fill

from weft.driver.peaks import Peaks
from weft.support.columns import WIDTH
from weft.support.files import write_output
from weft_bench.machine import describe
from weft_bench.rounds import PROTOCOL
from weft_bench.table import Table


@dataclass
class Report:
    """Tables with their captions, and notes that follow them."""

    title: str
    interrupted: bool = False
    peaks: list[Peaks] = field(default_factory=list[Peaks])
    tables: list[tuple[str, Table]] = field(default_factory=list[tuple[str, Table]])
    notes: list[str] = field(default_factory=list[str])
    more: dict[str, str] = field(default_factory=dict[str, str])
    """Additional entries of the head."""

    def head(self) -> dict[str, str]:
        """Date, machine, versions, protocol."""
        head = {**describe(), "protocol": PROTOCOL, **self.more}
        return {**head, "interrupted": "yes: this is what was measured before"} if self.interrupted else head

    def text(self) -> str:
        """For the terminal."""
        parts = [self.title, "\n".join(_entry(name, value) for name, value in self.head().items())]
        parts += ["\n".join(peaks.lines()) for peaks in self.peaks]
        parts += ["\n".join(filter(None, (fill(caption, WIDTH), table.text()))) for caption, table in self.tables]
        return "\n\n".join([*parts, *filter(None, ["\n".join(self.notes)])])

    def save(self, file: str) -> None:
        """Write it as Markdown. Raises `CompileError`."""
        head = self.head()
        parts = [f"# {head['date']}: {self.title}", "\n".join(f"- {name}: {value}" for name, value in head.items())]
        parts += ["\n".join(f"- {line.strip()}" for peaks in self.peaks for line in peaks.lines())]
        parts += ["\n\n".join(filter(None, (caption, table.markdown()))) for caption, table in self.tables]
        parts += ["\n".join(f"- {note}" for note in self.notes)] if self.notes else []
        write_output(Path(file), "\n\n".join(parts) + "\n")


def _entry(name: str, value: str) -> str:
    return fill(value, WIDTH, initial_indent=f"{name:12}  ", subsequent_indent=" " * 14)
