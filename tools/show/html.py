"""Reports as one self-contained HTML page.

Graphs, schedules and the IR are JSON in the page, which `page.js` renders on demand. All texts are untrusted: HTML is
escaped, and in JSON every `<` is `\\u003c`, so that no text can end its element; the script creates only text nodes.
The content security policy allows only its own script.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from html import escape
from importlib.resources import files
from typing import Any

from weft.support.names import printable
from weft.support.trees import Tree
from weft.tools.show.charts import convergence_chart, roofline_chart, weight_chart
from weft.tools.show.report import (
    GraphPicture,
    ProgramReport,
    Report,
    Roofline,
    ScheduleSteps,
    SearchReport,
    TaskReport,
)
from weft.tools.show.tables import (
    BUFFER_COLUMNS,
    Table,
    buffer_cells,
    kernel_table,
    memory_table,
    stage_table,
    task_table,
)


@dataclass(frozen=True)
class _Section:
    name: str
    title: str
    body: str


def html_page(report: Report) -> str:
    if isinstance(report, ProgramReport):
        sections, facts, data = list(_program(report)), report.target, _program_data(report)
    else:
        sections, facts, data = list(_search(report)), f"{len(report.tasks)} tasks", _search_data(report)
    style, script = (files(__package__ or "").joinpath(name).read_text("utf-8") for name in ("page.css", "page.js"))
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode("ascii")
    policy = f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{digest}'"
    links = "".join(f'<li><a href="#{part.name}">{part.title}</a></li>' for part in sections)
    bodies = "\n".join(
        f'<section id="{part.name}" aria-labelledby="{part.name}-title">'
        f'<h2 id="{part.name}-title">{part.title}</h2>\n{part.body}</section>'
        for part in sections
    )
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{_text(report.name)} - weft</title>
<style>
{style}</style>
</head>
<body>
<a class="skip" href="#content">Skip to the content</a>
<header><h1>{_text(report.name)}</h1><p>{_text(facts)}</p></header>
<nav aria-label="Sections"><ul>{links}</ul></nav>
<main id="content">
<noscript><p>Graphs, schedules and the IR need JavaScript; tables and charts do not.</p></noscript>
{bodies}
</main>
<footer>{_text(report.versions)}</footer>
<script type="application/json" id="data">{_json(data)}</script>
<script>{script}</script>
</body>
</html>
"""


def _text(text: str) -> str:
    return escape(printable(text))


def _json(data: object) -> str:
    """ASCII for a script element, which no text in it can end."""
    return json.dumps(data, separators=(",", ":")).replace("<", "\\u003c")


# Sections


def _program(report: ProgramReport) -> Iterator[_Section]:
    if report.failure:
        yield _Section("failure", "Error", f"<pre>{_text(report.failure)}</pre>")
    if report.before_fusion or report.after_fusion:
        yield _Section("graph", "Graph", '<div id="graph-view"></div>')
    if _kernel_data(report):
        yield _Section("kernel", "Kernels", '<div id="kernel-view"></div>')
    if report.schedules:
        yield _Section("schedules", "Schedules", '<div id="schedule-view"></div>')
    table = f"<details><summary>Table of passes</summary>{_table(stage_table(report.stages))}</details>"
    yield _Section("passes", "Passes", f'<div id="pass-view"></div>{table}')
    if report.memory:
        about = "What the lowered program allocates, and its constants."
        yield _Section("memory", "Memory", f"<p>{about}</p>{_table(memory_table(report.memory))}")
    if report.roofline.rows:
        yield _kernels(report.roofline, report.name)


def _search(report: SearchReport) -> Iterator[_Section]:
    counted = any(task.calls is not None for task in report.tasks)
    about = "time of the fastest schedule times calls" if counted else "time of one call with the fastest schedule"
    body = f"<p>Weight: {about}, as a share of all tasks.</p>{weight_chart(report)}{_table(task_table(report))}"
    yield _Section("tasks", "Tasks", body)
    if report.tasks:
        charts = "".join(map(_convergence, report.tasks))
        yield _Section("convergence", "Convergence", f'<div class="columns">{charts}</div>')
    if any(task.best is not None for task in report.tasks):
        yield _Section("schedules", "Fastest schedules", '<div id="schedule-view"></div>')
    if report.roofline.rows:
        yield _kernels(report.roofline, report.name)


def _convergence(task: TaskReport) -> str:
    failures = "".join(f"<li>{count} failed: {_text(reason)}</li>" for reason, count in task.failures().items())
    problem = f"<p>{_text(task.problem)}</p>" if task.problem else ""
    header = f"{_text(task.name)} <small>{_text(task.target)} on {_text(task.machine)}</small>"
    listed = f"<ul>{failures}</ul>" if failures else ""
    return f"<div><h3>{header}</h3>{convergence_chart(task)}{listed}{problem}</div>"


def _kernels(roofline: Roofline, name: str) -> _Section:
    chart = roofline_chart(roofline, name)
    key = "<p>Filled points were measured, others are the limits; numbers are those of the table.</p>" if chart else ""
    table = _table(kernel_table(roofline), numbered=True)
    return _Section("kernels", "Roofline", f"{chart}{key}{table}<p>{_text(roofline.note)}</p>")


def _table(table: Table, *, numbered: bool = False) -> str:
    header = '<th scope="col">#</th>' if numbered else ""
    header += "".join(
        f'<th scope="col"{_number(at >= table.names)}>{_text(name)}</th>' for at, name in enumerate(table.header)
    )
    rows = "".join(
        f"<tr>{f'<td>{number}</td>' if numbered else ''}{_cells(row, table.names)}</tr>"
        for number, row in enumerate(table.rows, 1)
    )
    return (
        f'<div class="scroll" tabindex="0"><table><thead><tr>{header}</tr></thead><tbody>{rows}</tbody></table></div>'
    )


def _cells(row: Sequence[str], names: int) -> str:
    first, *others = row
    cells = [f'<th scope="row">{_text(first)}</th>']
    cells += (f"<td{_number(at >= names)}>{_text(cell)}</td>" for at, cell in enumerate(others, 1))
    return "".join(cells)


def _number(is_number: bool) -> str:
    return ' class="number"' if is_number else ""


# Data of the script


@dataclass
class _Interned:
    """Values that are stored once and referred to by index."""

    values: list[Any] = field(default_factory=list[Any])
    _places: dict[Hashable, int] = field(default_factory=dict[Hashable, int])

    def place(self, value: Hashable) -> int:
        if value not in self._places:
            self._places[value] = len(self.values)
            self.values.append(value)
        return self._places[value]


def _program_data(report: ProgramReport) -> dict[str, Any]:
    texts, nodes, rows = _Interned(), _Interned(), _Interned()
    stages = [
        {
            "name": stage.name,
            "summary": stage.summary,
            "parts": [[printable(name), texts.place(printable(text))] for name, text in stage.parts],
        }
        for stage in report.stages
    ]
    return {
        "graphs": [_graphs(pictures, nodes) for pictures in (report.before_fusion, report.after_fusion)],
        "schedules": [_schedule(steps, nodes, rows) for steps in report.schedules],
        "kernels": _kernel_data(report),
        "stages": stages,
        "texts": texts.values,
        "nodes": nodes.values,
        "rows": rows.values,
        "columns": BUFFER_COLUMNS,
    }


def _kernel_data(report: ProgramReport) -> list[dict[str, Any]]:
    functions = [[name.removeprefix("@") for name in steps.title.split(", ")] for steps in report.schedules]
    found: list[dict[str, Any]] = []
    for number, row in enumerate(report.roofline.rows, 1):
        scheduled = [at for at, names in enumerate(functions) if set(names) & set(row.names)]
        facts = f"row {number} of the roofline, {row.calls} call{'s' * (row.calls != 1)}"
        facts += "" if row.flops is None else f", {row.flops / 1e6:.4g} MFLOP"
        facts += "" if row.seconds is None else f", {row.seconds * 1e3:.4g} ms"
        entry = {"title": row.title, "names": row.names, "holds": ", ".join(row.holds), "facts": facts}
        found.append({**{key: _printable(value) for key, value in entry.items()}, "schedules": scheduled})
    return found


def _printable(value: str | Sequence[str]) -> str | list[str]:
    return printable(value) if isinstance(value, str) else list(map(printable, value))


def _search_data(report: SearchReport) -> dict[str, Any]:
    nodes, rows = _Interned(), _Interned()
    schedules: list[dict[str, Any]] = []
    for task in report.tasks:
        if task.best is not None:
            title = f"{task.name}, {task.target} on {task.machine}"
            schedules.append({**_schedule(task.best, nodes, rows), "title": printable(title)})
    return {"schedules": schedules, "nodes": nodes.values, "rows": rows.values, "columns": BUFFER_COLUMNS}


def _graphs(pictures: Iterable[GraphPicture], nodes: _Interned) -> list[dict[str, Any]]:
    return [
        {
            "name": printable(picture.name),
            "svg": picture.svg,
            "tree": _tree([picture.tree], nodes),
            "kernels": list(map(printable, picture.kernels)),
        }
        for picture in pictures
    ]


def _schedule(steps: ScheduleSteps, nodes: _Interned, rows: _Interned) -> dict[str, Any]:
    positions = [
        {
            "name": position.name,
            "calls": [printable(call) for call in position.calls],
            "tree": _tree(position.trees, nodes),
            "buffers": [rows.place(tuple(map(printable, buffer_cells(row)))) for row in position.buffers],
        }
        for position in steps.positions
    ]
    return {
        "title": printable(f"{steps.title}, {steps.origin}"),
        "positions": positions,
        "python": printable(steps.python),
        "ir": printable(steps.ir),
        "failure": printable(steps.failure),
    }


def _tree(trees: Sequence[Tree], nodes: _Interned) -> list[int]:
    """Returns depths and indices of nodes in turns, parents before children."""
    flat: list[int] = []
    for tree in trees:
        for depth, node in tree.nodes():
            flat += (depth, nodes.place((node.kind, printable(node.label), printable(node.note))))
    return flat
