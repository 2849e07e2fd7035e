"""Execution of Python files of users."""

from __future__ import annotations

import sys
from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import CodeType, ModuleType

from weft.support.errors import CompileError


class _SourceLoader(SourceFileLoader):
    """Python would take cached bytecode for a file that was edited within a second without a change of its size."""

    def get_code(self, fullname: str) -> CodeType:
        path = self.get_filename(fullname)
        return self.source_to_code(self.get_data(path), path)


def load_python_file(file: str) -> ModuleType:
    """Run a file as a module named after it, not as `__main__`. Raises `CompileError`, also for any exception of the
    file, including `SystemExit`."""
    if not Path(file).is_file():
        raise CompileError(f"there is no file '{file}'")
    name = Path(file).stem
    spec = spec_from_file_location(name, file, loader=_SourceLoader(name, file))
    if Path(file).suffix != ".py" or spec is None or spec.loader is None:
        raise CompileError(f"'{file}' is no Python file")
    module = module_from_spec(spec)
    sys.modules[spec.name] = module  # because scripts are read from the source of their module
    try:
        spec.loader.exec_module(module)
    except (Exception, SystemExit) as error:
        raise CompileError(f"'{file}' failed: {type(error).__name__}: {error}") from error
    return module
