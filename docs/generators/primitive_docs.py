"""The page of schedule primitives, from their definitions.

    python docs/generators/primitive_docs.py > docs/primitives.md

A test compares the page with the output.
"""

from __future__ import annotations

import inspect
from dataclasses import fields

from weft.dialects.sched import PRIMITIVE_STEPS, QUERY_STEPS, SAMPLING_STEPS
from weft.passes.schedule.primitive import PRIMITIVES, primitive_class
from weft.passes.schedule.primitive_passes import primitive_pass
from weft.passes.schedule.sampling import SAMPLERS
from weft.schedule.schedule import Schedule

QUERIES = ("get_block", *QUERY_STEPS)

_HEAD = """# Schedule primitives

Generated from the definitions in `passes/schedule/` by `python docs/generators/primitive_docs.py`.

Each primitive `p` is a method of `weft.Schedule`, a step `sched.p` of a `sched.func`, and a pass of `weft-opt`.
A refusal names the requirement that does not hold, by its number, and leaves the IR as it was. Queries and sampling
steps have no pass, because they change nothing.

Terms of all requirements:

- A block is *complete* if all of its iterators are spatial, and it alone writes its outputs and does not read them.
  "Complete or a reduction" includes that instances with different spatial iterators store to different elements.
- Loops that "run in parallel" are parallel, vectorized or bound to threads.
- Readers and writers of a buffer are blocks of the same scope (the enclosing block).
- Buffers are given by position; accumulators of the block itself are not among those that it reads.
- A copy of a buffer, and the block that copies, are called `<buffer>_<scope>`; new loops ax0, ax1, ...

| method | effect | pass |
|---|---|---|
"""


def primitives_markdown() -> str:
    """The page: a table of all steps, then the queries, each primitive with its requirements and an example, the
    sampling steps."""
    documented = {
        **{name: getattr(Schedule, name) for name in QUERIES},
        **{name: primitive_class(name) for name in PRIMITIVES},
        **SAMPLERS,
    }
    rows = [f"| {_call(name)} | {_summary(of)} | {_pass_text(name)} |" for name, of in documented.items()]
    sections = [
        *(f"## {name}\n\n{_query_text(name)}\n" for name in QUERIES),
        *(f"## {name}\n\n{inspect.getdoc(primitive_class(name))}\n" for name in PRIMITIVES),
        *(f"## {name}\n\n{_sampler_text(name)}\n" for name in SAMPLERS),
    ]
    return _HEAD + "\n".join(rows) + "\n\n" + "\n".join(sections)


def _call(name: str) -> str:
    """`sch.split(loop, factors)`; optional parameters are omitted."""
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
    return f"`{PRIMITIVE_STEPS[name].pass_name}{{{' '.join(shown)}}}`"


def _query_text(name: str) -> str:
    return f"{inspect.getdoc(getattr(Schedule, name))}\n\nThe step: {_step_link(name)}."


def _sampler_text(name: str) -> str:
    return f"{inspect.getdoc(SAMPLERS[name])}\n\nThe step: {SAMPLING_STEPS[name].doc} {_step_link(name)}."


def _step_link(name: str) -> str:
    return f"[sched.{name}](dialects/sched.md#sched{name})"


if __name__ == "__main__":
    print(primitives_markdown(), end="")
