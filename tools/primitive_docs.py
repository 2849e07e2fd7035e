"""docs/primitives.md from the definitions of the schedule primitives.

    python -m weft.tools.primitive_docs > docs/primitives.md

A test compares the file with what this prints, so it cannot fall behind.
"""

from __future__ import annotations

import inspect

from weft.passes.schedule.primitive_passes import pass_name, primitive_pass
from weft.passes.schedule.registry import PRIMITIVES, primitive_class

_HEAD = """# Schedule primitives

Generated from the definitions in `passes/schedule/` by `python -m weft.tools.primitive_docs`.

Each primitive has one definition and four faces: a method of `weft.Schedule`, a step in a `sched.func`, a pass of
`weft-opt`, and what a tuner draws. A refusal names the number of the requirement that does not hold; the IR is then as
it was.

| method | step | pass |
|---|---|---|
"""


def primitives_markdown() -> str:
    """The page: a table of faces, then each primitive with its requirements and an example."""
    rows = [f"| `sch.{name}` | `sched.{name}` | `{_pass_text(name)}` |" for name in PRIMITIVES]
    sections = [f"## {name}\n\n{inspect.getdoc(primitive_class(name))}\n" for name in PRIMITIVES]
    return _HEAD + "\n".join(rows) + "\n\n" + "\n".join(sections)


def _pass_text(name: str) -> str:
    """`tir-split{block= loop= factors= [func=]}`."""
    from dataclasses import fields

    options = [f.name for f in fields(primitive_pass(name))]
    shown = [f"[{option}=]" if option == "func" else f"{option}=" for option in options]
    return f"{pass_name(name)}{{{' '.join(shown)}}}"


if __name__ == "__main__":
    print(primitives_markdown(), end="")
