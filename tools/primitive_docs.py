"""The tables and the page of schedule primitives, from their definitions.

    python -m weft.tools.primitive_docs > docs/primitives.md      # the page
    python -m weft.tools.primitive_docs --table                   # the short table
    python -m weft.tools.primitive_docs --write                   # both: docs/primitives.md, README.md between marks

Tests compare the files with what this prints, so they cannot fall behind.
"""

from __future__ import annotations

import inspect
import sys
from dataclasses import fields
from pathlib import Path

from weft.dialects import sched
from weft.passes.schedule.primitive_passes import pass_name, primitive_pass
from weft.passes.schedule.registry import PRIMITIVES, primitive_class
from weft.passes.schedule.sampling import SampleCategorical, SampleComputeLocation, SamplePerfectTile
from weft.schedule.schedule import Schedule
from weft.support.errors import CompileError

START, END = "<!-- primitives: made by weft.tools.primitive_docs -->", "<!-- end of primitives -->"

SAMPLERS = {cls.NAME: cls for cls in (SamplePerfectTile, SampleCategorical, SampleComputeLocation)}
QUERIES = {
    step.name.removeprefix("sched."): step
    for step in (
        sched.GetBlockOp,
        sched.GetLoopsOp,
        sched.GetProducersOp,
        sched.GetConsumersOp,
        sched.GetChildBlocksOp,
    )
}

_HEAD = """# Schedule primitives

Generated from the definitions in `passes/schedule/` by `python -m weft.tools.primitive_docs`.

Each primitive has one definition and four faces: a method of `weft.Schedule`, a step in a `sched.func`, a pass of
`weft-opt`, and what a tuner draws. A refusal names the number of the requirement that does not hold; the IR is then as
it was. Steps that look or draw have no pass: they change nothing.

| method | step | pass |
|---|---|---|
"""


def primitives_markdown() -> str:
    """The page: a table of faces, then what looks, each primitive with its requirements and an example, what draws."""
    rows = [f"| `sch.{name}` | `sched.{name}` | {_pass_text(name)} |" for name in (*QUERIES, *PRIMITIVES, *SAMPLERS)]
    sections = [
        *(f"## {name}\n\n{_query_text(name)}\n" for name in QUERIES),
        *(f"## {name}\n\n{inspect.getdoc(primitive_class(name))}\n" for name in PRIMITIVES),
        *(f"## {name}\n\n{_sampler_text(name)}\n" for name in SAMPLERS),
    ]
    return _HEAD + "\n".join(rows) + "\n\n" + "\n".join(sections)


def primitives_table() -> str:
    """The short table: how each method is called, and what it does."""
    lines = ["| method | what it does |", "|---|---|"]
    for name in QUERIES:
        lines.append(f"| {_call(name)} | {_summary(getattr(Schedule, name))} |")
    for name in PRIMITIVES:
        lines.append(f"| {_call(name)} | {_summary(primitive_class(name))} |")
    for name, sampler in SAMPLERS.items():
        lines.append(f"| {_call(name)} | {_summary(sampler)} |")
    return "\n".join(lines) + "\n"


def with_table(text: str, name: str) -> str:
    """A text with the table between its marks. Raises `CompileError` when it has none."""
    before, start, rest = text.partition(START)
    _, end, after = rest.partition(END)
    if not start or not end:
        raise CompileError(f"{name} has no lines '{START}' and '{END}' for the table of primitives")
    return f"{before}{start}\n{primitives_table()}{end}{after}"


def _call(name: str) -> str:
    """`sch.split(loop, factors)`; what is optional is left out."""
    found = list(inspect.signature(getattr(Schedule, name)).parameters.values())[1:]
    needed = [p for p in found if p.default is p.empty]
    return f"`sch.{name}({', '.join(str(p.replace(annotation=p.empty)) for p in needed)})`"


def _summary(documented: object) -> str:
    """The first sentence of a docstring, as a cell of a table."""
    text = " ".join((inspect.getdoc(documented) or "").split("\n\n")[0].split())
    sentence = text.partition(". ")[0].removesuffix(".")
    return sentence.replace("|", "\\|")


def _pass_text(name: str) -> str:
    """`tir-split{block= loop= factors= [func=]}`."""
    if name not in PRIMITIVES:
        return ""
    options = [f.name for f in fields(primitive_pass(name))]
    shown = [f"[{option}=]" if option == "func" else f"{option}=" for option in options]
    return f"`{pass_name(name)}{{{' '.join(shown)}}}`"


def _query_text(name: str) -> str:
    return f"{inspect.getdoc(getattr(Schedule, name))}\n\nThe step: {inspect.getdoc(QUERIES[name])}"


def _sampler_text(name: str) -> str:
    step = next(step for step in sched.SAMPLING_STEPS if step.name == f"sched.{name}")
    return f"{inspect.getdoc(SAMPLERS[name])}\n\nThe step: {inspect.getdoc(step)}"


def main(arguments: list[str]) -> None:
    """Print the page or the table, or write both where they belong."""
    if arguments == ["--write"]:
        root = Path(__file__).parent.parent
        (root / "docs" / "primitives.md").write_text(primitives_markdown())
        readme = root / "README.md"
        readme.write_text(with_table(readme.read_text(), "README.md"))
    elif arguments in ([], ["--table"]):
        print(primitives_table() if arguments else primitives_markdown(), end="")
    else:
        sys.exit("usage: python -m weft.tools.primitive_docs [--table | --write]")


if __name__ == "__main__":
    main(sys.argv[1:])
