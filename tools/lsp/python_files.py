"""Errors of Python files with weft.script, and primitives for their loops. A child process imports the file."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Final

from xdsl.dialects.builtin import ModuleOp

from weft.analysis.block_scopes import function_of
from weft.dialects.tir import BlockOp, ForOp
from weft.dialects.traversal import operations_in
from weft.frontends.script import tir
from weft.frontends.script.printer import print_function
from weft.support.errors import CompileError, ScheduleError
from weft.support.limited_calls import Failure, Limits, limited_call
from weft.support.locations import SourceLocation, source_location
from weft.tools.diagnostics import Diagnostic, diagnostics_of
from weft.tools.lsp.actions import function_after, primitives_for
from weft.tools.python_files import load_python_file

_LIMITS: Final = Limits(60.0, 0)
_WORDS: Final = "T"
"""The name of the module of script words, as printed. Files that import it under another name have no actions."""


def uses_script(content: str) -> bool:
    return re.search(r"\bweft\b", content) is not None and re.search(r"\bscript\b", content) is not None


@dataclass(frozen=True)
class ScriptAction:
    line: int
    """The line of the loop, from 1."""
    title: str
    passes: str


@dataclass(frozen=True)
class Examined:
    diagnostics: Sequence[Diagnostic] = ()
    actions: Sequence[ScriptAction] = ()


def examine(path: str, content: str, *, saved: bool) -> Examined:
    """Functions of weft.script are examined only if the file is saved."""
    try:
        ast.parse(content, path)
    except SyntaxError as error:
        return Examined([Diagnostic("error", error.msg, SourceLocation(path, error.lineno or 1, error.offset or 1, 1))])
    if not saved or not uses_script(content):
        return Examined()
    found = limited_call(_LIMITS, examined, path)
    return Examined([Diagnostic("error", str(found), None)]) if isinstance(found, Failure) else found


def examined(path: str) -> Examined:
    """Runs in the child process."""
    try:
        namespace = load_python_file(path)
    except CompileError as error:
        return Examined(_errors_of(path, error))
    found: list[ScriptAction] = []
    for line, op in _loops_and_blocks(namespace, path) if vars(namespace).get(_WORDS) is tir else ():
        found += [ScriptAction(line, title, passes) for title, passes in primitives_for(op)]
    return Examined((), found)


def _loops_and_blocks(namespace: ModuleType, path: str) -> Iterator[tuple[int, ForOp | BlockOp]]:
    modules = {id(value): value for value in vars(namespace).values() if isinstance(value, ModuleOp)}
    for module in modules.values():
        for op in operations_in(module):
            place = source_location(op.location) if isinstance(op, ForOp | BlockOp) else None
            if isinstance(op, ForOp | BlockOp) and place is not None and place.file == path:
                yield place.line, op


def scheduled_script(path: str, content: str, line: int, passes: str) -> str | list[Diagnostic]:
    """Returns the script of the function at a line (from 1), or the errors of the passes. Raises `CompileError` for an
    unsaved file."""
    if Path(path).read_text(encoding="utf-8").replace("\r\n", "\n") != content:
        raise CompileError("save the file first: its loops are known from the saved one")
    found = limited_call(_LIMITS, script_after, path, line, passes)
    return [Diagnostic("error", str(found), None)] if isinstance(found, Failure) else found


def script_after(path: str, line: int, passes: str) -> str | list[Diagnostic]:
    """Runs in the child process."""
    try:
        namespace = load_python_file(path)
        op = next((op for at, op in _loops_and_blocks(namespace, path) if at == line), None)
        if op is None:
            raise CompileError(f"line {line} makes no loop or block")
        function = function_of(op)
        module = function.parent_op()
        if not isinstance(module, ModuleOp):
            raise CompileError(f"@{function.sym_name.data} is in no module")
        return print_function(function_after(passes, module, function))
    except (CompileError, ScheduleError) as error:
        return diagnostics_of(error)


def _errors_of(path: str, error: CompileError) -> list[Diagnostic]:
    cause: BaseException = error.__cause__ or error
    if isinstance(cause, CompileError | ScheduleError):
        return diagnostics_of(cause)
    traceback = cause.__traceback__
    line = 0
    while traceback is not None:
        if traceback.tb_frame.f_code.co_filename == path:
            line = traceback.tb_lineno
        traceback = traceback.tb_next
    place = SourceLocation(path, line, 1) if line else None
    return [Diagnostic("error", f"{type(cause).__name__}: {cause}", place)]
