"""Modules of weft do not import each other in circles, whether at the top, inside functions, by name, or for type
checkers.

An import inside a function states the optional package that it needs, or the start-up time that it saves (the CPU time
of the import after those at the top of the file):

    from weft.frontends.torch.importing import import_graph  # needs torch
    from weft.driver.stages import lower  # start-up: 300 ms
"""

from __future__ import annotations

import ast
import re
import tomllib
from collections.abc import Collection, Iterator, Mapping
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
BODIES = ("body", "orelse", "handlers", "finalbody", "cases")
"""The fields of statements that contain statements."""
REASON = re.compile(r"# (start-up: \d+ ms|needs \w+)")


def modules() -> dict[str, Path]:
    """The modules of weft by name."""
    packages: list[str] = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]["packages"]
    found: dict[str, Path] = {}
    for package in packages:
        folder = ROOT / (package.removeprefix("weft.").replace(".", "/") if package != "weft" else "api")
        for file in sorted(folder.glob("*.py")):
            found[package if file.stem == "__init__" else f"{package}.{file.stem}"] = file
    del found["weft.frontends.script.decorators"]  # it reads definitions by the parsers, which need its words
    return found


def imports(source: str, known: Collection[str]) -> Iterator[tuple[str, int, bool]]:
    """The modules among `known` that a source imports: name, line, and whether a statement in a function imports it."""

    def visit(node: ast.AST, inside: bool) -> Iterator[tuple[str, int, bool]]:
        for child in (part for field in BODIES for part in getattr(node, field, ())):
            names: list[str] = []
            if isinstance(child, ast.Import):
                names = [alias.name for alias in child.names]
            elif isinstance(child, ast.ImportFrom) and child.module:
                submodules = [f"{child.module}.{alias.name}" for alias in child.names]
                names = [name if name in known else child.module for name in submodules]
            yield from ((name, child.lineno, inside) for name in dict.fromkeys(names) if name in known)
            yield from visit(child, inside or isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef))

    tree = ast.parse(source)
    yield from visit(tree, False)
    for call in ast.walk(tree):
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id == "import_module":
            literals = [part.value for part in call.args if isinstance(part, ast.Constant)]
            yield from ((name, call.lineno, False) for name in literals if name in known)


def circles(graph: Mapping[str, set[str]]) -> list[list[str]]:
    """The sets of modules that reach each other (Tarjan's strongly connected components of more than one)."""
    order: dict[str, int] = {}
    lowest: dict[str, int] = {}
    stack: list[str] = []
    found: list[list[str]] = []

    def visit(name: str) -> None:
        order[name] = lowest[name] = len(order)
        stack.append(name)
        for other in graph[name]:
            if other not in order:
                visit(other)
            if other in stack:
                lowest[name] = min(lowest[name], lowest[other])
        if lowest[name] == order[name]:
            members = stack[stack.index(name) :]
            del stack[stack.index(name) :]
            if len(members) > 1:
                found.append(sorted(members))

    for name in graph:
        if name not in order:
            visit(name)
    return found


@cache
def all_imports() -> dict[str, list[tuple[str, int, bool]]]:
    """The imports of each module."""
    known = modules()
    return {name: [*imports(file.read_text(), known)] for name, file in known.items()}


def test_no_circles() -> None:
    graph = {name: {other for other, _, _ in found} - {name} for name, found in all_imports().items()}
    assert circles(graph) == []


def test_imports_inside_functions_state_their_reason() -> None:
    files = modules()
    unexplained: list[str] = []
    for name, found in all_imports().items():
        lines = files[name].read_text().splitlines()
        inner = [(line, other) for other, line, inside in found if inside and not REASON.search(lines[line - 1])]
        unexplained += [f"{files[name].relative_to(ROOT)}:{line}: {other}" for line, other in inner]
    assert unexplained == []


@pytest.mark.parametrize(
    ("graph", "expected"),
    [
        ({"a": {"b"}, "b": {"c"}, "c": set[str]()}, []),
        ({"a": {"b"}, "b": {"a"}, "c": {"a"}}, [["a", "b"]]),
        ({"a": {"b"}, "b": {"c"}, "c": {"a", "d"}, "d": {"e"}, "e": {"d"}}, [["d", "e"], ["a", "b", "c"]]),
    ],
)
def test_circles_are_found(graph: Mapping[str, set[str]], expected: list[list[str]]) -> None:
    assert circles(graph) == expected


def test_imports_of_all_kinds_are_found() -> None:
    source = """
from typing import TYPE_CHECKING
from weft.a import one
if TYPE_CHECKING:
    from weft import b
def f():
    import weft.c
    return import_module("weft.d").x
"""
    known = ("weft.a", "weft.b", "weft.c", "weft.d", "weft.e")
    expected = [("weft.a", 3, False), ("weft.b", 5, False), ("weft.c", 7, True), ("weft.d", 8, False)]
    assert list(imports(source, known)) == expected
