"""Explain an error by its code, which is at the end of the message, or by the message.

weft explain vectorize.2
weft explain tir.out-of-bounds
weft explain "block \"B\": the loops do not cover the domain: instance v=4 never runs"
weft explain                                  # all codes
"""

from __future__ import annotations

import argparse
import inspect
import re
import textwrap
from dataclasses import dataclass

from weft.dialects.sched import PRIMITIVE_STEPS
from weft.passes.schedule.primitive import PRIMITIVES, REGISTERED, primitive_class
from weft.support.error_codes import CLASSES, ErrorClass, class_of
from weft.support.errors import CompileError, did_you_mean

_CODE = re.compile(r"\[([a-z_]+\.[a-z0-9-]+)\]\s*$", re.MULTILINE)
_ITEM = re.compile(r"^( *)(\d+)\. (.+(?:\n\1 {3}.+)*)", re.MULTILINE)
_FENCE = re.compile(r"^```.*?^```$", re.DOTALL | re.MULTILINE)


@dataclass(frozen=True)
class Explanation:
    """`example` is Markdown."""

    code: str
    title: str
    meaning: str
    example: str
    fix: str


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "code", nargs="*", help="a code, such as vectorize.2, or an error message (default: list all codes)"
    )


def run(arguments: argparse.Namespace) -> int:
    """Raises `CompileError` for an unknown code."""
    text = " ".join(arguments.code).strip()
    if not text:
        width = max(map(len, explanations()))
        print("\n".join(f"{code:{width}}  {one.title}" for code, one in explanations().items()))
        return 0
    print(shown(explained(text)))
    return 0


def explanations() -> dict[str, Explanation]:
    """Classes of errors precede the requirements of primitives."""
    found = [_of_class(kind) for kind in CLASSES]
    for name in (*PRIMITIVES, *REGISTERED):
        found += _of_primitive(name)
    return {one.code: one for one in found}


def explained(text: str) -> Explanation:
    """Raises `CompileError` for a text that is neither a code nor a known message."""
    known = explanations()
    if text in known:
        return known[text]
    codes = [code for code in _CODE.findall(text) if code in known]
    if codes:
        return known[codes[0]]
    message = re.sub(r"^(?:[^\n]*?\berror: )?", "", text, count=1)
    kind = class_of(message)
    if kind is not None:
        return known[kind.code]
    raise CompileError(f"there is no error '{text}'{did_you_mean(text, known)}; weft explain lists all codes")


def shown(one: Explanation) -> str:

    def wrapped(text: str) -> str:
        return textwrap.fill(text, 80, initial_indent="  ", subsequent_indent="  ")

    parts = [f"{one.code}: {one.title}", wrapped(one.meaning)]
    if one.example:
        parts.append(
            "example:\n" + textwrap.indent(re.sub(r"^```.*\n?", "", one.example, flags=re.MULTILINE).strip(), "  ")
        )
    return "\n\n".join([*parts, "fix:\n" + wrapped(one.fix)])


def _of_class(kind: ErrorClass) -> Explanation:
    title = kind.code.partition(".")[2].replace("-", " ")
    return Explanation(kind.code, title, kind.meaning, f"```python\n{kind.example}\n```", kind.fix)


def _of_primitive(name: str) -> list[Explanation]:
    kind = primitive_class(name)
    doc = inspect.getdoc(kind) or ""
    fence = _FENCE.search(doc)
    example = "" if fence is None else f"What {name} does when it is accepted:\n\n{fence[0]}"
    deed = PRIMITIVE_STEPS[name].doc.partition("\n")[0].rstrip(".")
    own = f"the docstring of {kind.__module__}.{kind.__name__}"
    place = f"docs/primitives.md#{name}" if name in PRIMITIVES else own
    found: list[Explanation] = []
    texts = {int(number): " ".join(text.split()) for _, number, text in _ITEM.findall(doc or inspect.getsource(kind))}
    for number, title in enumerate(kind.requirements(), start=1):
        details = texts.get(number, title)
        meaning = f"A requirement of {name} ({deed}): {details}"
        fix = (
            "The refusal shows where it does not hold, with the iterations or the index that prove it, and after "
            f"`legal:` what is accepted, if that is known. All requirements are in {place}."
        )
        found.append(Explanation(f"{name}.{number}", title, meaning, example, fix))
    return found
