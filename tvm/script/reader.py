"""Modules and functions from Python source: functions of block loops, and functions of graphs, in one class."""

from __future__ import annotations

import ast
import sys
from collections.abc import Callable, Mapping
from types import FrameType
from typing import Any

from xdsl.dialects.builtin import ModuleOp

from weft.frontends.script import ir as _ir
from weft.frontends.script import tir as _words
from weft.frontends.script.parsing import parse, read_class, read_module
from weft.frontends.script.source import Source, source_of
from weft.support.errors import CompileError
from weft.support.locations import remember_text
from weft.tvm.ir.module import IRModule
from weft.tvm.tir.function import PrimFunc


def names_in(frame: FrameType) -> dict[str, Any]:
    """The names where a decorator stands; the namespace of `T` is that of weft's reader."""
    given = {**frame.f_globals, **frame.f_locals}
    own = sys.modules.get("weft.tvm.script.tir")
    return {name: _words if value is own and own is not None else value for name, value in given.items()}


def ir_module(mod: type) -> IRModule:
    """The module of the functions under `@T.prim_func` and `@R.function` in a class, read from its source.

    Raises CompileError, which points into the source, for what is no program.
    """
    if not isinstance(mod, type):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise CompileError(f"@ir_module stands above a class, got {mod!r}")
    frame = sys._getframe(1)  # pyright: ignore[reportPrivateUsage]
    source, node = source_of(frame.f_code.co_filename, frame.f_lineno, mod.__name__, ast.ClassDef)
    return _read_class(source, node, names_in(frame))


def _read_class(source: Source, node: ast.ClassDef, names: Mapping[str, Any]) -> IRModule:
    graphs = [part for part in node.body if is_graph(part)]
    rest = [part for part in node.body if part not in graphs]
    module = IRModule.of(read_class(source, _copy(node, rest), names))
    if graphs:
        from weft.tvm.script.graph_reader import read_graphs

        read_graphs(source, [part for part in graphs if isinstance(part, ast.FunctionDef)], names, module)
    return module


def is_graph(node: ast.stmt) -> bool:
    """Whether a definition stands under `@R.function`."""
    words = node.decorator_list if isinstance(node, ast.FunctionDef) else []
    calls = [word.func if isinstance(word, ast.Call) else word for word in words]
    return any(isinstance(word, ast.Attribute) and word.attr == "function" for word in calls)


def _copy(node: ast.ClassDef, body: list[ast.stmt]) -> ast.ClassDef:
    copy = ast.ClassDef(node.name, node.bases, node.keywords, body, node.decorator_list)
    return ast.copy_location(copy, node)


def read_prim_func(function: Callable[..., Any], frame: FrameType) -> Any:
    """The function of block loops of a definition; in a class, whose module is read as a whole, the definition."""
    if "__module__" in frame.f_locals and "__qualname__" in frame.f_locals:
        return function
    code = function.__code__
    source, node = source_of(code.co_filename, code.co_firstlineno, function.__name__, ast.FunctionDef)
    return PrimFunc.of(read_module(source, [node], names_in(frame)))


def from_source(program: str | ModuleOp, extra_vars: Mapping[str, Any] | None = None) -> IRModule | PrimFunc:
    """The module or function of a script's text."""
    if isinstance(program, ModuleOp):
        return IRModule.of(program)
    source = Source("<script>", program)
    remember_text("<script>", program)
    nodes = source.parse().body
    classes = [node for node in nodes if isinstance(node, ast.ClassDef)]
    if not any(is_graph(part) for node in classes for part in node.body):
        found = parse(program)
        return IRModule.of(found) if classes else PrimFunc.of(found)
    from weft.tvm.script import relax

    names = {"T": _words, "tir": _words, "I": _ir, "ir": _ir, "R": relax, "relax": relax, **(extra_vars or {})}
    return _read_class(source, classes[0], names)
