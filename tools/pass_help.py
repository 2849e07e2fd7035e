"""`--list-passes`, `--help-pass`, `--list-targets`, `--help-target`."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields
from typing import Any, Literal, get_args, get_origin, get_type_hints

from xdsl.utils.arg_spec import ArgSpecConvertible

from weft.passes.pass_descriptions import PassDescription, PassOption, describe_pass, summary_of
from weft.passes.pipeline_text import alternatives, load
from weft.support.errors import CompileError
from weft.support.statistics import statistics_of

Factories = Mapping[str, Callable[[], type[ArgSpecConvertible]]]


def pass_listing(available: Factories, dialects: Iterable[str]) -> str:
    """Passes are in groups by dialect or by a first word of several."""
    prefixes = sorted({name.replace("_", "-") for name in dialects}, key=len, reverse=True)
    groups: dict[str, list[str]] = {}
    for name in available:
        prefix = next((p for p in prefixes if name.startswith(f"{p}-")), name.partition("-")[0])
        groups.setdefault(prefix, []).append(name)
    alone = [name for names in groups.values() if len(names) == 1 for name in names]
    shown = {prefix: names for prefix, names in sorted(groups.items()) if len(names) > 1}
    shown["other passes"] = alone
    width = max(map(len, available), default=0)
    return "\n\n".join(f"{head}:\n{_lines(names, available, 'pass', width)}" for head, names in shown.items() if names)


def target_listing(available: Factories) -> str:
    return _lines(available, available, "target", max(map(len, available), default=0))


def _lines(names: Iterable[str], available: Factories, what: str, width: int) -> str:
    lines: list[str] = []
    for name in sorted(names):
        try:
            text = summary_of(load(name, available, what))
        except CompileError as error:
            text = f"({error.message})"
        lines.append(f"  {name:{width}}  {text}".rstrip())
    return "\n".join(lines)


def full_help(name: str, available: Factories, what: str) -> str:
    """Returns description, options, statistics and an example. Raises `CompileError` for an unknown name."""
    kind = load(name, available, what)
    about = describe_pass(kind)
    parts = [f"{what} '{name}' of {kind.__module__.partition('.')[0]}", textwrap.indent(about.text, "  ")]
    parts.extend(
        textwrap.fill(f"{head}: {text}", 118, initial_indent="  ", subsequent_indent="  ")
        for head, text in (("Requires", about.requires), ("Leaves", about.leaves))
        if text
    )
    if about.options:
        wanted = sorted(about.options, key=lambda option: option.default is not None)
        parts.append("options:\n" + "\n".join(map(_option_text, wanted)))
    else:
        parts.append("It has no options.")
    if counted := statistics_of(name):
        parts.append("statistics:\n" + "\n".join(f"  {s.name}: {s.description}" for s in counted))
    parts.append(f"example:\n  {example(kind, about, what)}")
    return "\n\n".join(part for part in parts if part)


def _option_text(option: PassOption) -> str:
    default = "required" if option.default is None else f"default: {option.default}"
    head = f"  {option.name}: {option.type} ({default})"
    meaning = textwrap.fill(option.meaning, 110, initial_indent=" " * 6, subsequent_indent=" " * 6)
    return f"{head}\n{meaning}" if meaning else head


def example(kind: type[ArgSpecConvertible], about: PassDescription, what: str) -> str:
    """Returns the first use in the description, or one with a value for each required option."""
    flag = "-p" if what == "pass" else "-t"
    written = re.search(rf"`({re.escape(kind.name)}\{{[^`]*\}})`", " ".join(about.text.split()))
    if written is not None:
        return f"weft-opt program.mlir {flag} '{written[1]}'"
    hints = get_type_hints(kind)
    examples = {field.name.replace("_", "-"): field.metadata.get("example") for field in fields(kind)}
    given = " ".join(
        f"{option.name}={examples[option.name] or _sample(hints[option.name.replace('-', '_')])}"
        for option in about.options
        if option.default is None
    )
    return f"weft-opt program.mlir {flag} " + (f"'{kind.name}{{{given}}}'" if given else kind.name)


def _sample(type_: Any) -> str:
    first = alternatives(type_)[0]
    if get_origin(first) is Literal:
        return str(get_args(first)[0])
    element = get_args(first)[0] if get_origin(first) is tuple else first
    one = {int: "1", float: "0.5", bool: "true"}.get(alternatives(element)[0], "name")
    return f"{one},{one}" if get_origin(first) is tuple else one
