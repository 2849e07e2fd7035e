"""The table of the checks that each of the GPU programs passed, from the lists that the tests use.

    python docs/generators/gpu_docs.py                    # the table, with a legend
    python docs/generators/gpu_docs.py --summary          # a line for each kind of check
    python docs/generators/gpu_docs.py --write            # the table, in docs/gpu.md between marks

The programs and checks are those of `examples/gpu/ladder.py`, by which tests are parametrized; what ran on devices is
recorded in `benchmarks/results/gpu_checks.json`. A test compares the page with what this prints.
"""

from __future__ import annotations

import importlib
import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, cast

from weft.support.errors import CompileError

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples" / "gpu"
RECORDS = ROOT / "benchmarks" / "results" / "gpu_checks.json"
START, END = "<!-- checks: made by docs/generators/gpu_docs.py -->", "<!-- end of checks -->"
DEVICE = "CUDA device"


class Check(Protocol):
    """One kind of check, as `examples/gpu/ladder.py` has it."""

    target: str
    name: str
    how: str
    test: str


@dataclass(frozen=True)
class Ladder:
    """The programs, in order, and each check with the programs that it is done with."""

    programs: Sequence[str]
    checks: Sequence[tuple[Check, Sequence[str]]]


@dataclass(frozen=True)
class Record:
    """A run of checks on a device. `changed` are the programs whose schedules have changed since."""

    device: str
    date: str
    source: str
    checks: Sequence[str]
    programs: Sequence[str]
    changed: Sequence[str]


def read_ladder(folder: Path = EXAMPLES) -> Ladder:
    """The checks of the programs in a checkout. Raises `CompileError` where there is none."""
    if not (folder / "ladder.py").exists():
        raise CompileError(f"{folder} has no ladder.py: run this in a checkout of weft")
    sys.path.insert(0, str(folder))
    try:
        module = importlib.import_module("ladder")
    finally:
        sys.path.remove(str(folder))
    checks = cast("Sequence[Check]", module.CHECKS)
    found = [(check, cast("list[str]", module.names(check.target, check.name))) for check in checks]
    return Ladder([case.name for case in module.PROGRAMS], found)


def read_records(path: Path = RECORDS) -> list[Record]:
    """Returns the runs on devices, the latest last."""
    return [Record(**entry) for entry in json.loads(path.read_text())]


def checks_table(ladder: Ladder, records: Sequence[Record]) -> str:
    """Returns a table with a row for each program and a column for each kind of target, followed by a legend."""
    targets = list(dict.fromkeys(check.target for check, _ in ladder.checks))
    lines = [f"| program | {' | '.join(targets)} | {DEVICE} |", "|---" * (len(targets) + 2) + "|"]
    for program in ladder.programs:
        cells = [
            ", ".join(check.name for check, names in ladder.checks if check.target == target and program in names)
            for target in targets
        ]
        lines.append(f"| {program} | {' | '.join(cells)} | {_device_cell(program, records)} |")
    lines.append("")
    lines.extend(
        f"- {check.target}, *{check.name}*: {check.how} (`{check.test}`)" for check, names in ladder.checks if names
    )
    for record in records:
        changed = f"; * other schedules since: {', '.join(record.changed)}" if record.changed else ""
        lines.append(
            f"- {DEVICE}, {record.device} on {record.date}: {', '.join(record.checks)} "
            f"([what ran](../benchmarks/results/{record.source})){changed}"
        )
    return "\n".join(lines) + "\n"


def _device_cell(program: str, records: Sequence[Record]) -> str:
    found = [
        f"{record.device}: {', '.join(record.checks)}{' *' if program in record.changed else ''}"
        for record in records
        if program in record.programs
    ]
    return "; ".join(found) or "not yet"


def checks_summary(ladder: Ladder, records: Sequence[Record]) -> str:
    """Returns a table of the number of programs that pass each check, with a row for each kind of target."""
    total = len(ladder.programs)
    lines = ["| target | programs checked |", "|---|---|"]
    for target in dict.fromkeys(check.target for check, _ in ladder.checks):
        counts = [f"{check.name} {len(names)}" for check, names in ladder.checks if check.target == target]
        lines.append(f"| {target} | {', '.join(counts)} of {total} |")
    for record in records:
        known = [name for name in record.programs if name in ladder.programs]
        unchanged = [name for name in known if name not in record.changed]
        checks = ", ".join(record.checks)
        lines.append(f"| {record.device}, {record.date} | {checks} {len(known)} of {total}, {len(unchanged)} as now |")
    return "\n".join(lines) + "\n"


def with_table(text: str, table: str, name: str) -> str:
    """A text with the table between its marks. Raises `CompileError` when it has none."""
    before, start, rest = text.partition(START)
    _, end, after = rest.partition(END)
    if not start or not end:
        raise CompileError(f"{name} has no lines '{START}' and '{END}' for the table of checks")
    return f"{before}{start}\n{table}{end}{after}"


def main(arguments: list[str]) -> None:
    """Print the table or the summary, or write the table where it belongs."""
    ladder, records = read_ladder(), read_records()
    if arguments == ["--write"]:
        page = ROOT / "docs" / "gpu.md"
        page.write_text(with_table(page.read_text(), checks_table(ladder, records), "docs/gpu.md"))
    elif arguments == ["--summary"]:
        print(checks_summary(ladder, records), end="")
    elif not arguments:
        print(checks_table(ladder, records), end="")
    else:
        sys.exit(__doc__)


if __name__ == "__main__":
    main(sys.argv[1:])
