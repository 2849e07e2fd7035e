"""Completions for `Session.apply`."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Final

from weft.analysis.block_scopes import buffers_read, buffers_written
from weft.dialects import sched_parameters as kinds
from weft.dialects.sched import BLOCK, DECLARATIONS, LOOP, PRIMITIVE_STEPS, QUERY_STEPS, SAMPLING_STEPS
from weft.dialects.tir import BlockOp, ForOp
from weft.dialects.traversal import operations_of
from weft.driver.universe import pass_factories
from weft.passes.pass_descriptions import PassDescription, describe_pass
from weft.support.names import string_text
from weft.support.packages import installed_universe
from weft.tools.explore.references import names_like

if TYPE_CHECKING:
    from collections.abc import Iterator

    from weft.dialects.sched_parameters import Parameter, Step
    from weft.tools.explore.pipeline import State

_SCOPES: Final = ("global", "shared", "local")
_AXES: Final = tuple(f"{part}Idx.{axis}" for part in ("thread", "block") for axis in "xyz")
_BUFFERS: Final = (kinds.READ_BUFFER, kinds.WRITTEN_BUFFER, kinds.READ_OR_WRITTEN_BUFFER, kinds.BUFFER)


@dataclass(frozen=True)
class Completion:
    start: int
    text: str
    detail: str = ""


def completions(line: str, state: State) -> list[Completion]:
    is_quoted = line.count('"') % 2 == 1
    word = re.search(r'"[^"]*$' if is_quoted else r"[\w.\[\]%-]*$", line)
    start = len(line) if word is None else word.start()
    prefix = line[start:].lstrip("%")
    found = dict.fromkeys(_candidates(line[:start], prefix, state))
    return [
        Completion(start, text, detail)
        for text, detail in found
        if text.startswith(prefix) or (not is_quoted and text.lstrip('"').startswith(prefix))
    ]


def _candidates(before: str, prefix: str, state: State) -> Iterator[tuple[str, str]]:
    options = re.search(r"([a-z][a-z0-9-]*)\{[^{}]*$", before)
    if options is not None:
        about = _described(options[1])
        for option in () if about is None else about.options:
            yield f"{option.name}=", option.meaning or option.type
        return
    opened = _open_call(before)
    if opened is None:
        for step in (*PRIMITIVE_STEPS.values(), *SAMPLING_STEPS.values(), *QUERY_STEPS.values()):
            yield f"{step.name}(", _first_sentence(step.doc)
        yield "get_block(", "Return the block of a name."
        if "=" not in before:
            yield from ((name, "pass") for name in sorted(_factories()))
        return
    name, arguments = opened
    if name in DECLARATIONS:
        yield from _argument(DECLARATIONS[name], arguments, prefix, state)


def _open_call(before: str) -> tuple[str, str] | None:
    opened: list[int] = []
    for at, letter in enumerate(before):
        if letter in "([":
            opened.append(at)
        elif letter in ")]" and opened:
            opened.pop()
    for at in reversed(opened):
        name = re.search(r"(\w+)\s*$", before[:at])
        if before[at] == "(" and name is not None:
            return name[1], before[at + 1 :]
    return None


def _argument(step: Step, arguments: str, prefix: str, state: State) -> Iterator[tuple[str, str]]:
    number = _commas(arguments)
    keyword = re.search(r"(\w+)\s*=\s*$", arguments)
    parameter = _parameter(step, number, keyword[1] if keyword else None)
    is_in_list = arguments.count("[") > arguments.count("]")
    if parameter is not None:
        yield from _values(parameter, prefix, state, is_in_list=is_in_list)
    if keyword is None and not is_in_list:
        given = re.findall(r"(\w+)\s*=", arguments)
        for other in step.parameters:
            if not other.kind.handles and other.argument not in given:
                yield f"{other.argument}=", other.meaning or other.kind.argument


def _parameter(step: Step, number: int, keyword: str | None) -> Parameter | None:
    if keyword is not None:
        return next((p for p in step.parameters if p.argument == keyword), None)
    for at, parameter in enumerate(step.parameters):
        if at == number or parameter.kind.several:
            return parameter
    return None


def _commas(arguments: str) -> int:
    """Exclude commas in brackets."""
    depth = count = 0
    for letter in arguments:
        depth += (letter in "([") - (letter in ")]")
        count += letter == "," and depth == 0
    return count


def _values(parameter: Parameter, prefix: str, state: State, *, is_in_list: bool) -> Iterator[tuple[str, str]]:
    kind = parameter.kind
    if LOOP in kind.handles:
        yield from ((name, "loop") for name in names_like(state.module, ForOp, prefix))
    if BLOCK in kind.handles or kind is kinds.BLOCKS:
        yield from ((name, "block") for name in names_like(state.module, BlockOp, prefix))
    if kind in (kinds.FACTORS, kinds.TILE_FACTORS) and not is_in_list:
        yield "[None, ", "the other factors; one is inferred"
    if kind in _BUFFERS:
        yield from ((string_text(name), "buffer") for name in _buffers(state))
    if parameter.argument == "storage_scope":
        yield from ((string_text(scope), "memory") for scope in _SCOPES)
    if parameter.argument == "thread_axis":
        yield from ((string_text(axis), "axis") for axis in _AXES)
    if kind is kinds.FLAG:
        yield from (("True", ""), ("False", ""))


def _buffers(state: State) -> list[str]:
    """Returns the buffers that blocks access."""
    blocks = operations_of(state.module, BlockOp)
    values = [value for block in blocks for value in (*buffers_read(block), *buffers_written(block))]
    return list(dict.fromkeys(value.name_hint for value in values if value.name_hint))


def _first_sentence(text: str) -> str:
    return " ".join(text.split()).partition(". ")[0].rstrip(".")


@cache
def _factories() -> list[str]:
    return list(pass_factories(installed_universe()))


def _described(name: str) -> PassDescription | None:
    found = pass_factories(installed_universe()).get(name)
    return None if found is None else describe_pass(found())
