"""The decorators that turn Python definitions into IR by reading their source."""

from __future__ import annotations

import ast
import inspect
import sys
from collections.abc import Callable, Mapping, Sequence
from types import FrameType, FunctionType
from typing import TYPE_CHECKING, TypeVar, cast, overload

from weft.frontends.script.parsing import read_class, read_module
from weft.frontends.script.source import Source, source_of
from weft.support.errors import CompileError

if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp

R = TypeVar("R")


@overload
def prim_func(function: Callable[..., object]) -> ModuleOp: ...


@overload
def prim_func(
    *, private: bool = False, check_well_formed: bool = True, s_tir: bool = False
) -> Callable[[Callable[..., object]], ModuleOp]: ...


def prim_func(
    function: Callable[..., object] | None = None,
    *,
    private: bool = False,
    check_well_formed: bool = True,
    s_tir: bool = False,
) -> ModuleOp | Callable[[Callable[..., object]], ModuleOp]:
    """Read a function of block loops from the source of the decorated function.

    In a class under `@ir_module` it belongs to the module of the class, otherwise it becomes a module. Free names are
    those in scope at the definition: numbers, tuples and strings become constants. `private` hides the function from
    callers of the compiled module; the other options are TVM's and have no effect. Raises CompileError, with the place
    in the source, for invalid programs.
    """
    if function is None:
        return lambda decorated: read_definition(decorated, sys._getframe(1), read_module)  # pyright: ignore[reportPrivateUsage]
    return read_definition(function, sys._getframe(1), read_module)  # pyright: ignore[reportPrivateUsage]


def ir_module(cls: type) -> ModuleOp:
    """Read the functions under `@T.prim_func` in a class, which may call each other.

    Raises CompileError, with the place in the source, for invalid programs.
    """
    return read_definition_of_class(cls, sys._getframe(1), read_class)  # pyright: ignore[reportPrivateUsage]


def read_definition_of_class(
    cls: object, frame: FrameType, read: Callable[[Source, ast.ClassDef, Mapping[str, object]], R]
) -> R:
    if not isinstance(cls, type):
        raise CompileError(f"@ir_module decorates a class, got {cls!r}")
    source, node = source_of(frame.f_code.co_filename, frame.f_lineno, cls.__name__, ast.ClassDef)
    return read(source, node, {**frame.f_globals, **frame.f_locals})


def read_definition(
    function: object, frame: FrameType, read: Callable[[Source, Sequence[ast.FunctionDef], Mapping[str, object]], R]
) -> R:
    """The result of `read`; in a class body, which `ir_module` reads as a whole, the function itself."""
    if not isinstance(function, FunctionType):
        raise CompileError(f"@T.prim_func decorates a function, got {function!r}")
    if "__module__" in frame.f_locals and "__qualname__" in frame.f_locals:
        return cast("R", function)
    code = function.__code__
    source, node = source_of(code.co_filename, code.co_firstlineno, function.__name__, ast.FunctionDef)
    names = {**frame.f_globals, **frame.f_locals, **inspect.getclosurevars(function).nonlocals}
    return read(source, [node], names)
