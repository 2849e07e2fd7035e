"""The inputs of `weft show`."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from xdsl.dialects.builtin import ModuleOp, StringAttr

from weft.dialects.traversal import copy_of
from weft.driver.programs import parse_file, specialize
from weft.schedule.recording import Recorder
from weft.support.errors import CompileError, did_you_mean
from weft.tools.python_files import load_python_file

_SQLITE: Final = b"SQLite format 3\0"


def is_database(name: str) -> bool:
    """A database has the suffix `.db` or the content of one. Raises `OSError`."""
    path = Path(name)
    if path.suffix == ".db":
        return True
    if not path.is_file():
        return False
    with path.open("rb") as file:
        return file.read(len(_SQLITE)) == _SQLITE


def read_program(name: str, shapes: Mapping[str, str] | None = None) -> ModuleOp:
    """Returns a module specialised to stated `shapes` of inputs. `FILE.py:NAME` is a module or a schedule, whose steps
    are added to its module, or a function without parameters that returns one. Raises `CompileError` and `OSError`."""
    file, _, attribute = name.rpartition(":")
    if name.endswith(".py"):
        return specialize(_python_program(name, None), shapes or {})
    if file.endswith(".py"):
        return specialize(_python_program(file, attribute), shapes or {})
    return parse_file(name, shapes)


def _python_program(file: str, attribute: str | None) -> ModuleOp:
    namespace = vars(load_python_file(file))
    if attribute is None:
        found = {name: value for name, value in namespace.items() if isinstance(value, ModuleOp | Recorder)}
        kept = {id(value): name for name, value in reversed(found.items())}  # one name per value
        if len(kept) != 1:
            listed = ", ".join(name for name in found if name in kept.values())
            what = f"several programs ({listed})" if kept else "no module and no schedule among its names"
            raise CompileError(f"'{file}' has {what}: name one, or a function that returns one, as {file}:NAME")
        (attribute,) = kept.values()
    if attribute not in namespace:
        names = [name for name in namespace if not name.startswith("_")]
        raise CompileError(f"'{file}' has no name '{attribute}'{did_you_mean(attribute, names)}")
    value: object = namespace[attribute]
    if not isinstance(value, ModuleOp | Recorder) and callable(value):
        try:
            value = value()
        except (Exception, SystemExit) as error:  # whatever the user's function raises
            raise CompileError(f"{file}:{attribute}() failed: {type(error).__name__}: {error}") from error
    match value:
        case ModuleOp():
            return value
        case Recorder():
            return with_schedule(value)
        case _:
            raise CompileError(f"{file}:{attribute} is a module or a schedule, got {type(value).__name__}")


def with_schedule(schedule: Recorder) -> ModuleOp:
    """Add the steps to the original module as a `sched.func`."""
    module = copy_of(schedule.original)
    trace = schedule.trace.clone()
    trace.sym_name = StringAttr("schedule")
    module.body.block.add_op(trace)
    return module
