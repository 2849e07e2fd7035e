"""The page of passes, from their definitions (`passes/pass_descriptions.py`) and an example of each.

    python docs/generators/pass_docs.py > docs/passes.md

A test compares the page with the output. The example of a pass is in its docstring, if it is complete, as

    ```mlir
    module before
    // becomes
    module after
    ```
or `pass_examples/<pass>.mlir` is the module before it, with the options in a comment before it, and the pass
computes the module after it. In both cases the pass runs, and its result is verified.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import chdir, contextmanager
from pathlib import Path

from xdsl.dialects.builtin import ModuleOp

from weft.dialects.sched import PRIMITIVE_STEPS
from weft.driver.parsing import parse_text
from weft.driver.programs import context
from weft.driver.universe import PASSES, load
from weft.driver.verify import verify_module
from weft.passes.pass_descriptions import PassDescription, describe_pass
from weft.passes.pass_sequence import run_pass
from weft.passes.pipeline_text import parse_pipeline_text
from weft.support.errors import CompileError
from weft.support.target import TargetKind, register_target_kind, unregister_target_kind
from weft.support.user_functions import register_intrinsic, register_lowering, unregister_intrinsic

EXAMPLES = Path(__file__).parent / "pass_examples"
_OPTIONS = "// options: "
_BECOMES = re.compile(r"^```mlir\n(.*?)^// becomes(?:, with (.+?))?\n(.*?)^```$", re.DOTALL | re.MULTILINE)
_ROOMS: Mapping[str, str] = {
    "weft.passes.convert": "To and from upstream MLIR",
    "weft.schedule.transform": "To and from upstream MLIR",
    "weft.frontends": "To and from upstream MLIR",
    "weft.passes.graph": "Graphs and tensor expressions",
    "weft.passes.te": "Graphs and tensor expressions",
    "weft.autoschedule": "Schedules",
    "weft.passes.schedule": "Schedules",
    "weft.passes.tir": "Block loops to the low level",
    "weft.passes.low": "The low level",
    "weft.passes": "Several levels",
}
"""Maps the package of a pass to its section. Sections are in this order."""

_HEAD = """# Passes

Generated from the docstrings and options of the passes by `python docs/generators/pass_docs.py`. The examples are
modules before and after a pass, as `weft-opt` prints them.

Each pass is a `ModulePass` of xDSL: `weft-opt -p name` and `xdsl-opt -p name` run it, and so does a pipeline of yours
that holds an instance. It rewrites the functions that hold operations of its level and leaves all others as they are
([embedding](embedding.md)). `lower-tir-to-low` runs those between block loops and the low level in the right order
([points](inserting-passes.md) between them); `passes/pipelines.py` and
`passes/gpu_pipeline.py` give the reason for each position.
"""


def passes_markdown() -> str:
    """Returns the page: a table of all passes, then each pass with its pre- and postconditions, options and example."""
    primitives = {step.pass_name: name for name, step in PRIMITIVE_STEPS.items()}
    sections: dict[str, list[PassDescription]] = {title: [] for title in _ROOMS.values()}
    for name, place in PASSES.items():
        if name not in primitives:
            sections[_section(place)].append(describe_pass(load(place)))
    lines = [_HEAD]
    for title, found in sections.items():
        lines += [f"## {title}", "", "| pass | effect |", "|---|---|"]
        lines += [f"| [{one.name}](#{one.name}) | {_cell(one.summary)} |" for one in found]
        lines += ["", *(_pass_text(one) for one in found)]
    lines += [
        "## Schedule primitives",
        "",
        "Each applies one step of a schedule. A block is given by its name, a loop by its position around the block;",
        "[the primitives](primitives.md) have requirements and examples.",
        "",
        "| pass | effect |",
        "|---|---|",
    ]
    for name, primitive in primitives.items():
        described = describe_pass(load(PASSES[name]))
        lines.append(f"| [`{described.usage}`](primitives.md#{primitive}) | {_cell(described.summary)} |")
    return "\n".join(lines) + "\n"


def _section(place: str) -> str:
    return next(title for room, title in _ROOMS.items() if place.startswith(room + "."))


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def _pass_text(described: PassDescription) -> str:
    lines = [f"### {described.name}", "", f"`{described.usage}`", "", described.text, ""]
    for title, text in (("Requires", described.requires), ("Leaves", described.leaves)):
        if text:
            lines += [f"**{title}:** {text}", ""]
    if described.options:
        lines += ["| option | type | default | meaning |", "|---|---|---|---|"]
        lines += [
            f"| `{option.name}` | {option.type} | {'(required)' if option.default is None else f'`{option.default}`'} "
            f"| {_cell(option.meaning)} |"
            for option in described.options
        ]
        lines.append("")
    return "\n".join([*lines, *_example_lines(described)])


def _example_lines(described: PassDescription) -> list[str]:
    """The example of a pass that a file gives; that of a docstring is checked."""
    name, path = described.name, EXAMPLES / f"{described.name}.mlir"
    if not path.exists():
        _check_docstring(described)
        return []
    options, before = example(path)
    shown = f"{name}{{{options}}}" if options else name
    after = after_pass(name, options, before)
    if after == _text(_parsed(name, before)):
        return [f"Before and after `{shown}`:", "", f"```mlir\n{before}```\n"]
    return [f"Before `{shown}`:", "", f"```mlir\n{before}```", "", "After:", "", f"```mlir\n{after}```", ""]


def _check_docstring(described: PassDescription) -> None:
    """Raises `CompileError` where the docstring of a pass has no example, or one that is not as it says."""
    name, found = described.name, _BECOMES.findall(described.text)
    if not found:
        raise CompileError(f"pass '{name}' has no example: write docs/generators/pass_examples/{name}.mlir")
    for before, options, after in found:
        made = after_pass(name, options, before)
        if not _parsed(name, made).is_structurally_equivalent(_parsed(name, after)):
            raise CompileError(f"the example of pass '{name}' becomes\n{made}")


def example(path: Path) -> tuple[str, str]:
    """The options and the module before a pass."""
    text = path.read_text()
    first, _, rest = text.partition("\n")
    return (first.removeprefix(_OPTIONS), rest) if first.startswith(_OPTIONS) else ("", text)


def after_pass(name: str, options: str, before: str) -> str:
    """Returns the module after a pass. Raises `CompileError` if the pass refuses it or its result does not verify."""
    module = _parsed(name, before)
    with _registrations(), chdir(EXAMPLES):  # there are the files that options name
        (found,) = parse_pipeline_text(f"{name}{{{options}}}", {name: lambda: load(PASSES[name])}, "pass")
        run_pass(found, context(), module)
    verify_module(module)
    return _text(module)


@contextmanager
def _registrations() -> Iterator[None]:
    """Registers the extensions that examples name: an intrinsic with a rule, and a target with a private memory."""
    register_intrinsic("fast_log")
    register_lowering("fast_log", target="opencl")(lambda call: "native_log")
    register_target_kind(TargetKind("dsp", lambda module, target: None, scopes={"spad": 1024}))
    try:
        yield
    finally:
        unregister_intrinsic("fast_log")
        unregister_target_kind("dsp")


def _parsed(name: str, text: str) -> ModuleOp:
    module = parse_text(context(), text, f"{name}.mlir")
    verify_module(module)
    return module


def _text(module: ModuleOp) -> str:
    """The operations of a module, without the module around them where it has no attributes."""
    text = str(module) + "\n"
    if not text.startswith("builtin.module {\n"):
        return text
    return "".join(line.removeprefix("  ") for line in text.splitlines(keepends=True)[1:-1])


if __name__ == "__main__":
    print(passes_markdown(), end="")
