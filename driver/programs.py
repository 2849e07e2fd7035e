"""From a file to a library: what the commands of `weft` share."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, SymbolRefAttr
from xdsl.dialects.func import FuncOp

from weft.dialects import sched
from weft.driver.parsing import decode_text, parse_text
from weft.driver.verify import verify_module
from weft.support.errors import CompileError, did_you_mean
from weft.support.locations import remember_text

if TYPE_CHECKING:
    from collections.abc import Iterator

    from xdsl.ir import Attribute, Operation


def context() -> Context:
    """A context with xDSL's dialects and ours; each is imported when it is first used."""
    from xdsl.universe import XDSL_UNIVERSE

    from weft.driver.universe import WEFT_UNIVERSE

    ctx = Context()
    for universe in (XDSL_UNIVERSE, WEFT_UNIVERSE):
        for name, factory in universe.all_dialects.items():
            ctx.register_dialect(name, factory)
    return ctx


def read_program(file: str) -> ModuleOp:
    """The verified module in `file`. Raises `CompileError` and `OSError`."""
    path = Path(file)
    if path.suffix != ".mlir":
        raise CompileError(f"'{file}': weft runs .mlir files, got '{path.suffix or path.name}'")
    text = decode_text(path.read_bytes(), file)
    remember_text(file, text)
    module = parse_text(context(), text, file)
    verify_module(module)
    return module


def functions_of(module: ModuleOp) -> dict[str, FuncOp]:
    """The functions of a module that have a body, by name."""
    return {op.sym_name.data: op for op in module.ops if isinstance(op, FuncOp) and not op.is_declaration}


def schedules_of(module: ModuleOp) -> list[sched.FuncOp]:
    """The schedules that stand in a module."""
    return [op for op in module.ops if isinstance(op, sched.FuncOp)]


def choose_function(module: ModuleOp, name: str | None) -> FuncOp:
    """The function called `name`; without a name the only one that no other function calls. Raises `CompileError`."""
    functions = functions_of(module)
    if not functions:
        raise CompileError("the file holds no function with a body")
    if name is not None:
        if name not in functions:
            raise CompileError(f"the file has no function '{name}'{did_you_mean(name, functions)}")
        return functions[name]
    called = {symbol for function in functions.values() for symbol in _symbols_in(function)}
    entries = [function for known, function in functions.items() if known not in called]
    if len(entries) != 1:
        listed = ", ".join(f"'{known}'" for known in functions)
        raise CompileError(f"the file has several functions ({listed}): name one with --func")
    return entries[0]


def _symbols_in(function: FuncOp) -> Iterator[str]:
    """The names that operations inside `function` refer to."""
    for operation in function.body.walk():
        for attribute in _attributes(operation):
            if isinstance(attribute, SymbolRefAttr):
                yield attribute.root_reference.data


def _attributes(operation: Operation) -> Iterator[Attribute]:
    yield from operation.properties.values()
    yield from operation.attributes.values()


@dataclass(frozen=True)
class Entry:
    """A function that can be called: its name and how many arrays it returns (tensor results)."""

    name: str
    results: int

    @staticmethod
    def of(function: FuncOp) -> Entry:
        return Entry(function.sym_name.data, len(function.function_type.outputs))
