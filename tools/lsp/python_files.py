"""Errors of Python files with weft.script. The file runs in a child process, as an import would run it."""

from __future__ import annotations

import ast
import re
from typing import Final

from weft.support.errors import CompileError, ScheduleError
from weft.support.limited_calls import Failure, Limits, limited_call
from weft.support.locations import SourceLocation
from weft.tools.diagnostics import Diagnostic, diagnostics_of
from weft.tools.python_files import load_python_file

_LIMITS: Final = Limits(60.0, 0)


def uses_script(content: str) -> bool:
    return re.search(r"\bweft\b", content) is not None and re.search(r"\bscript\b", content) is not None


def diagnostics_of_python(path: str, content: str, *, saved: bool) -> list[Diagnostic]:
    """The errors of a file: of its syntax, and if it is saved, of its functions of weft.script."""
    try:
        ast.parse(content, path)
    except SyntaxError as error:
        return [Diagnostic("error", error.msg, SourceLocation(path, error.lineno or 1, error.offset or 1, 1))]
    if not saved or not uses_script(content):
        return []
    found = limited_call(_LIMITS, errors_of, path)
    return [Diagnostic("error", str(found), None)] if isinstance(found, Failure) else found


def errors_of(path: str) -> list[Diagnostic]:
    """The errors of importing a file (in the child)."""
    try:
        load_python_file(path)
    except CompileError as error:
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
    return []
