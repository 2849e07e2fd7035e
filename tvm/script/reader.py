"""Read modules and functions from Python source."""

import ast
import sys
from collections.abc import Mapping, Sequence
from copy import copy
from functools import partial
from typing import Any

from xdsl.dialects.builtin import ModuleOp

from weft.frontends.script import ir, words
from weft.frontends.script.decorators import read_definition_of_class
from weft.frontends.script.parsing import parse as parse_script
from weft.frontends.script.parsing import read_class, read_module
from weft.frontends.script.source import Source
from weft.support.locations import remember_text
from weft.tvm.ir.module import IRModule
from weft.tvm.relax.function import Function
from weft.tvm.script import relax
from weft.tvm.script.graph_reader import read_function, read_graphs
from weft.tvm.tir.function import PrimFunc


def ir_module(mod: type | None = None, check_well_formed: bool = True, s_tir: bool = False) -> Any:
    """Read a class's functions as a verified module.

    Raises CompileError, with the place in the source.
    """
    read = partial(read_definition_of_class, frame=sys._getframe(1), read=_read_class)  # pyright: ignore[reportPrivateUsage]
    return read if mod is None else read(mod)


def _read_class(source: Source, node: ast.ClassDef, names: Mapping[str, Any]) -> IRModule:
    graphs = [part for part in node.body if isinstance(part, ast.FunctionDef) and _is_graph(part)]
    rest = copy(node)
    rest.body = [part for part in node.body if part not in graphs and not _is_global_info(part)]
    module = IRModule.of(read_class(source, rest, names))
    if graphs:
        read_graphs(source, graphs, names, module, node.name)
    return module


def _is_global_info(node: ast.stmt) -> bool:
    """`I.module_global_infos({...})` declares devices; weft has one."""
    return isinstance(node, ast.Expr) and ast.unparse(node).partition("(")[0].endswith("module_global_infos")


def _is_graph(node: ast.stmt) -> bool:
    words = node.decorator_list if isinstance(node, ast.FunctionDef) else []
    calls = [word.func if isinstance(word, ast.Call) else word for word in words]
    return any(isinstance(word, ast.Attribute) and word.attr == "function" for word in calls)


def read_prim_func(source: Source, nodes: Sequence[ast.FunctionDef], names: Mapping[str, Any]) -> PrimFunc:
    return PrimFunc.of(read_module(source, nodes, names))


def from_source(program: str | ModuleOp, extra_vars: Mapping[str, Any] | None = None) -> IRModule | PrimFunc | Function:
    if isinstance(program, ModuleOp):
        return IRModule.of(program)
    source = Source("<script>", program)
    remember_text("<script>", program)
    nodes = source.parse().body
    classes = [node for node in nodes if isinstance(node, ast.ClassDef)]
    functions = [node for node in nodes if isinstance(node, ast.FunctionDef)]
    names = {"T": words, "tir": words, "I": ir, "ir": ir, "R": relax, "relax": relax, **(extra_vars or {})}
    if not classes and any(map(_is_graph, functions)):
        return read_function(source, functions, names)
    if not any(_is_graph(part) for node in classes for part in node.body):
        found = parse_script(program)
        return IRModule.of(found) if classes else PrimFunc.of(found)
    return _read_class(source, classes[0], names)


parse = from_source
