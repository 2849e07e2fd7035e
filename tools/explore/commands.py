"""Command lines: the name of an operation with its arguments, or an argument of `apply`."""

from __future__ import annotations

import re
import shlex

from weft.support.errors import CompileError, did_you_mean
from weft.tools.explore.completion import Completion, completions
from weft.tools.explore.operations import OPERATIONS, Operation, Reply, Workbench

_SHORT = {"s": "step", "n": "step", "b": "back", "u": "undo", "r": "redo", "d": "diff", "l": "loops", "t": "time"}


def run_line(workbench: Workbench, line: str, *, overwrite: bool = False) -> Reply:
    """Raises the errors of the operation, and `CompileError` for an unknown one."""
    name, _, rest = line.strip().partition(" ")
    name = _SHORT.get(name, name)
    if name in ("help", "?"):
        return Reply(help_text(rest.strip()))
    if name not in OPERATIONS:
        if re.fullmatch(r"[a-z]+", name) and not rest:
            raise CompileError(f"unknown command '{name}'{did_you_mean(name, OPERATIONS)} (help lists them)")
        return OPERATIONS["apply"].call(workbench, {"call": line})
    operation = OPERATIONS[name]
    arguments = _arguments(operation, rest.strip())
    if overwrite and name == "save":
        arguments["overwrite"] = True
    return operation.call(workbench, arguments)


def _arguments(operation: Operation, text: str) -> dict[str, object]:
    names = list(operation.parameters)
    if operation.rest:
        return {names[0]: text} if text else {}
    try:
        words = shlex.split(text)
    except ValueError as error:
        raise CompileError(f"{operation.name}: {error}") from None
    if len(words) > len(names):
        raise CompileError(f"{operation.name} takes at most {len(names)} words, got {len(words)}: {operation.usage}")
    return {name: _value(operation, name, word) for name, word in zip(names, words, strict=False)}


def _value(operation: Operation, name: str, word: str) -> object:
    wanted = operation.parameters[name][0]
    if wanted is int and re.fullmatch(r"-?\d+", word):
        return int(word)
    return word in ("overwrite", "true", "yes") if wanted is bool else word


def help_text(name: str = "") -> str:
    if name:
        if name not in OPERATIONS:
            raise CompileError(f"unknown command '{name}'{did_you_mean(name, OPERATIONS)}")
        return f"{OPERATIONS[name].usage}\n{OPERATIONS[name].summary}"
    width = max(len(operation.usage) for operation in OPERATIONS.values())
    lines = [f"{op.usage:{width}}  {op.summary.partition('. ')[0].rstrip('.')}" for op in OPERATIONS.values()]
    lines.append(f"{'split(i, [None, 4])':{width}}  the same as apply split(i, [None, 4])")
    return "\n".join([*lines, "help NAME describes a command; quit ends."])


def completions_of_line(workbench: Workbench, line: str) -> list[Completion]:
    name, space, rest = line.partition(" ")
    if space and name in OPERATIONS:
        offset = len(name) + 1
        if name not in ("apply", "complete") or workbench.opened is None:
            return []
        found = completions(rest, workbench.opened.state)
        return [Completion(one.start + offset, one.text, one.detail) for one in found]
    names = [name for name in OPERATIONS if name.startswith(line)]
    commands = [Completion(0, name, OPERATIONS[name].summary.partition(". ")[0].rstrip(".")) for name in names]
    return [*commands, *(completions(line, workbench.opened.state) if workbench.opened is not None else [])]
