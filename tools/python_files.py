"""Execution of Python files of users."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

from weft.support.errors import CompileError


def load_python_file(file: str) -> ModuleType:
    """Run a Python file as a module named after it, not as `__main__`. Raises `CompileError`, also for any exception of
    the file, including `SystemExit`."""
    if not Path(file).is_file():
        raise CompileError(f"there is no file '{file}'")
    spec = importlib.util.spec_from_file_location(Path(file).stem, file)
    if spec is None or spec.loader is None:
        raise CompileError(f"'{file}' is no Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # scripts are read from the source of their module
    try:
        spec.loader.exec_module(module)
    except (Exception, SystemExit) as error:
        raise CompileError(f"'{file}' failed: {type(error).__name__}: {error}") from error
    return module
