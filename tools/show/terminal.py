"""Reports on a terminal, by `rich` if it is installed."""

from __future__ import annotations

import importlib
import os
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from weft.analysis.loop_tree import BLOCK, BUFFER, CALL, CONDITION, FUNCTION, INIT, LOOP, OPERATOR
from weft.support.columns import WIDTH, stacked_columns
from weft.support.names import one_line, printable
from weft.support.trees import Tree
from weft.tools.show.report import ProgramReport, Report, ScheduleSteps, SearchReport
from weft.tools.show.tables import Table, buffer_table, kernel_table, memory_table, stage_table, task_table

if TYPE_CHECKING:
    from typing import TextIO

_STYLES: Final[Mapping[str, str]] = {
    FUNCTION: "bold",
    LOOP: "cyan",
    BLOCK: "bold green",
    INIT: "green",
    BUFFER: "yellow",
    CALL: "magenta",
    OPERATOR: "blue",
    CONDITION: "cyan",
}

Part: TypeAlias = "str | Tree | Table"
"""A heading (a line that begins with `#`), text, a tree or a table."""


def print_report(report: Report, file: TextIO, *, steps: bool = False) -> None:
    """With `steps`, print also the loops after each step."""
    parts = _program(report, steps) if isinstance(report, ProgramReport) else _search(report, steps)
    console = _console(file)
    for part in parts:
        if console is None:
            print(_plain(part), file=file)
        else:
            console.print(_rich(part))


def _program(report: ProgramReport, steps: bool) -> Iterator[Part]:
    yield f"# {report.name} for {report.target}"
    for pictures, when in ((report.before_fusion, "before fusion"), (report.after_fusion, "after fusion")):
        if pictures:
            yield f"# graph {when}"
            yield from (picture.tree for picture in pictures)
    for schedule in report.schedules:
        yield from _schedule(schedule, steps)
    in_schedules = {tree for schedule in report.schedules for tree in schedule.positions[-1].trees}
    if others := [tree for tree in report.trees if tree not in in_schedules]:
        yield "# functions"
        yield from others
    yield "# passes"
    yield stage_table(report.stages)
    if report.memory:
        yield "# memory"
        yield memory_table(report.memory)
    if report.roofline.rows:
        yield "# kernels"
        yield kernel_table(report.roofline)
        yield report.roofline.note


def _search(report: SearchReport, steps: bool) -> Iterator[Part]:
    yield f"# {report.name}"
    yield task_table(report)
    for task in report.tasks:
        yield f"# {task.name} for {task.target} on {task.machine}"
        yield from (f"{count} failed: {reason}" for reason, count in task.failures().items())
        if task.best is not None:
            yield from _schedule(task.best, steps)
            yield task.best.python
        if task.problem:
            yield task.problem
    if report.roofline.rows:
        yield "# kernels"
        yield kernel_table(report.roofline)
        yield report.roofline.note


def _schedule(schedule: ScheduleSteps, steps: bool) -> Iterator[Part]:
    positions = schedule.positions
    yield f"# schedule of {schedule.title}, {schedule.origin}: {len(positions) - 1} steps"
    shown = positions if steps or len(positions) == 1 else (positions[0], positions[-1])
    for position in shown:
        if position is positions[0]:
            yield "as written:"
        else:
            yield "\n".join(position.calls) if steps else "scheduled:"
        yield from position.trees
    yield buffer_table(shown[-1].buffers)
    if schedule.failure:
        yield schedule.failure


# Plain text


def _plain(part: Part) -> str:
    match part:
        case Tree():
            return f"{part}\n"
        case Table():
            return f"{table_text(part)}\n"
        case heading if heading.startswith("#"):
            return f"{printable(heading)}\n"
        case text:
            return printable(text)


def table_text(table: Table) -> str:
    """Lines have at most `WIDTH` characters."""
    lines = [tuple(map(one_line, line)) for line in (table.header, *table.rows)]
    return stacked_columns(lines, table.names, WIDTH)


# Rich


def _console(file: TextIO) -> Any:
    """Returns a console of rich for a terminal, or None."""
    if not file.isatty() or os.environ.get("TERM") == "dumb":
        return None
    try:
        return importlib.import_module("rich.console").Console(file=file, highlight=False)
    except ImportError:
        return None


def _rich(part: Part) -> Any:
    text: Any = importlib.import_module("rich.text").Text
    match part:
        case Tree():
            return _rich_tree(part, text)
        case Table():
            return _rich_table(part, text)
        case heading if heading.startswith("#"):
            return text(f"\n{printable(heading.removeprefix('# '))}", style="bold underline")
        case other:
            return text(printable(other))


def _rich_tree(node: Tree, text: Any) -> Any:
    label = text(one_line(node.label), style=_STYLES.get(node.kind, ""))
    if node.note:
        label.append(f"  {one_line(node.note)}", style="dim")
    tree: Any = importlib.import_module("rich.tree").Tree(label)
    for child in node.children:
        tree.add(_rich_tree(child, text))
    return tree


def _rich_table(table: Table, text: Any) -> Any:
    shown: Any = importlib.import_module("rich.table").Table(box=importlib.import_module("rich.box").SIMPLE_HEAD)
    for at, name in enumerate(table.header):
        shown.add_column(text(name), justify="left" if at < table.names else "right")
    for row in table.rows:
        shown.add_row(*(text(one_line(cell)) for cell in row))
    return shown
