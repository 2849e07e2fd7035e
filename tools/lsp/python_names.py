"""Answers to an editor about a Python file: names of weft, and variables."""

from __future__ import annotations

import ast
import inspect
import re
import textwrap
from collections.abc import Iterator
from contextlib import suppress
from functools import cached_property
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, TypeAlias

from lsprotocol.types import (
    CompletionItem,
    DocumentSymbol,
    FoldingRange,
    Hover,
    Location,
    MarkupContent,
    MarkupKind,
    Position,
    Range,
    SymbolKind,
    TextEdit,
)
from pygls.uris import from_fs_path

from weft.support.errors import CompileError
from weft.tools.lsp.answers import Document

if TYPE_CHECKING:
    from xdsl.context import Context

_Function: TypeAlias = ast.FunctionDef | ast.AsyncFunctionDef
_Name: TypeAlias = ast.Name | ast.Attribute | ast.arg


class PythonDocument(Document):
    """Hover and definitions require that the text parses. Editors for Python format, complete and fold."""

    @cached_property
    def _tree(self) -> ast.Module:
        try:
            return ast.parse(self.text.content)
        except (SyntaxError, ValueError):
            return ast.Module([], [])

    def hover(self, position: Position) -> Hover | None:
        name = self._name_at(position)
        if name is None:
            return None
        found = self._object(name)
        if found is not None:
            shown = _described(found)
        else:
            binding = self._binding(name)
            if binding is None:
                return None
            shown = f"```python\n{self.text.line(binding.lineno - 1).strip()}\n```\n\nbound on line {binding.lineno}"
        return Hover(MarkupContent(MarkupKind.Markdown, shown), self._range(name))

    def definition(self, position: Position) -> list[Location]:
        name = self._name_at(position)
        if name is None:
            return []
        binding = self._binding(name)
        if binding is not None:
            return [Location(self.uri, self._range(binding))]
        found = self._object(name)
        return [] if found is None else list(_source_of(found))

    def references(self, position: Position) -> list[Location]:
        name = self._name_at(position)
        if name is None or isinstance(name, ast.Attribute) or self._binding(name) is None:
            return []
        inside, own = self._function(name), _identifier(name)
        same = (
            n for n in ast.walk(inside or self._tree) if isinstance(n, ast.Name | ast.arg) and _identifier(n) == own
        )
        return [Location(self.uri, self._range(n)) for n in same]

    def function_edit(self, line: int, text: str) -> TextEdit:
        """Replace the function of weft at a line by a script, under its name."""
        functions = (node for node in ast.walk(self._tree) if isinstance(node, _Function) and self._is_of_weft(node))
        around = [node for node in functions if node.lineno <= line + 1 <= (node.end_lineno or 0)]
        if not around:
            raise CompileError("there is no function of weft.script on this line")
        function = around[-1]
        first = min([function.lineno, *(decorator.lineno for decorator in function.decorator_list)])
        start = Position(first - 1, 0)
        end = self._column(function.end_lineno or function.lineno, function.end_col_offset or 0)
        named = re.sub(r"^def \w+", f"def {function.name}", text, count=1, flags=re.MULTILINE)
        return TextEdit(Range(start, end), textwrap.indent(named, " " * function.col_offset))

    def outline(self) -> list[DocumentSymbol]:
        found = (node for node in ast.walk(self._tree) if isinstance(node, _Function) and self._is_of_weft(node))
        return [DocumentSymbol(f.name, SymbolKind.Function, self._whole(f), self._first_line(f)) for f in found]

    def folding(self) -> list[FoldingRange]:
        return []

    def formatted(self) -> list[TextEdit]:
        return []

    def completions(self, position: Position, ctx: Context) -> list[CompletionItem]:
        return []

    # Places

    def _column(self, line: int, column: int) -> Position:
        """`line` counts from 1, `column` bytes of UTF-8."""
        before = self.text.line(line - 1).encode()[:column].decode(errors="ignore")
        return self.text.position(self.text.starts[line - 1] + len(before))

    def _range(self, name: _Name) -> Range:
        """Returns only the last part of an attribute."""
        end_line, end = name.end_lineno or name.lineno, name.end_col_offset or name.col_offset
        if isinstance(name, ast.Attribute):
            return Range(self._column(end_line, end - len(name.attr.encode())), self._column(end_line, end))
        start = self._column(name.lineno, name.col_offset)
        return Range(start, Position(start.line, start.character + len(_identifier(name))))

    def _whole(self, function: _Function) -> Range:
        end = self._column(function.end_lineno or function.lineno, function.end_col_offset or 0)
        return Range(Position(function.lineno - 1, function.col_offset), end)

    def _first_line(self, function: _Function) -> Range:
        start = Position(function.lineno - 1, function.col_offset)
        return Range(start, self._column(function.lineno, len(self.text.line(function.lineno - 1).encode())))

    def _name_at(self, position: Position) -> _Name | None:
        for node in ast.walk(self._tree):
            if isinstance(node, _Name):
                at = self._range(node)
                if at.start <= position <= at.end:
                    return node
        return None

    # Meanings of names

    @cached_property
    def _imports(self) -> dict[str, object]:
        found: dict[str, object] = {}
        for node in ast.walk(self._tree):
            if isinstance(node, ast.Import):
                for alias in node.names:
                    if alias.name.split(".")[0] == "weft":
                        module = _imported(alias.name if alias.asname else "weft")
                        found[alias.asname or "weft"] = module
            elif isinstance(node, ast.ImportFrom) and not node.level and (node.module or "").split(".")[0] == "weft":
                module = _imported(node.module or "")
                for alias in node.names:
                    found[alias.asname or alias.name] = _member(module, alias.name)
        return {name: value for name, value in found.items() if value is not None}

    def _object(self, expression: ast.AST) -> object | None:
        """Returns an object of weft; for a variable its class, if the file states it."""
        if isinstance(expression, ast.Attribute):
            return _member(self._object(expression.value), expression.attr)
        if not isinstance(expression, ast.Name):
            return None
        binding = self._binding(expression)
        if binding is None:
            return self._imports.get(expression.id)
        kind = binding.annotation if isinstance(binding, ast.arg) else self._assigned_class(binding)
        found = None if kind is None else self._object(kind)
        return found if inspect.isclass(found) else None

    def _assigned_class(self, binding: ast.Name) -> ast.AST | None:
        for node in ast.walk(self._function(binding) or self._tree):
            if isinstance(node, ast.Assign) and binding in node.targets and isinstance(node.value, ast.Call):
                return node.value.func
        return None

    def _binding(self, name: _Name) -> ast.Name | ast.arg | None:
        """Returns the parameter or the first assignment, in the function or in the file."""
        if isinstance(name, ast.Attribute):
            return None
        own = _identifier(name)
        for scope in (self._function(name), self._tree):
            bound = [
                node
                for node in ast.walk(scope or self._tree)
                if (isinstance(node, ast.arg) or (isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)))
                and _identifier(node) == own
                and (scope is not self._tree or self._function(node) is None)
            ]
            if bound:
                return min(bound, key=lambda node: (node.lineno, node.col_offset))
        return None

    def _function(self, node: ast.expr | ast.arg) -> _Function | None:
        around = [
            f
            for f in ast.walk(self._tree)
            if isinstance(f, _Function) and f.lineno <= node.lineno <= (f.end_lineno or f.lineno)
        ]
        return max(around, key=lambda f: f.lineno, default=None)

    def _is_of_weft(self, function: _Function) -> bool:
        calls = (d.func if isinstance(d, ast.Call) else d for d in function.decorator_list)
        return any(self._object(call) is not None for call in calls)


def _identifier(name: _Name) -> str:
    return name.id if isinstance(name, ast.Name) else name.arg if isinstance(name, ast.arg) else name.attr


def _imported(name: str) -> object | None:
    with suppress(ImportError):
        return import_module(name)
    return None


def _member(value: object | None, name: str) -> object | None:
    if value is None:
        return None
    with suppress(Exception):  # namespaces compute their members
        return getattr(value, name)
    return _imported(f"{value.__name__}.{name}") if isinstance(value, ModuleType) else None


def _described(found: object) -> str:
    if not (inspect.isclass(found) or inspect.isroutine(found) or inspect.ismodule(found)):
        return f"```python\n{found!r}\n```"
    title = getattr(found, "__qualname__", getattr(found, "__name__", ""))
    with suppress(ValueError, TypeError):
        title += str(inspect.signature(found)) if callable(found) else ""
    return f"```python\n{title}\n```\n\n{inspect.getdoc(found) or ''}".rstrip()


def _source_of(found: object) -> Iterator[Location]:
    target = found if inspect.isclass(found) or inspect.isroutine(found) or inspect.ismodule(found) else type(found)
    with suppress(TypeError, OSError):
        file = inspect.getsourcefile(inspect.unwrap(target) if callable(target) else target)
        line = 0 if inspect.ismodule(target) else inspect.getsourcelines(target)[1] - 1
        address = None if file is None else from_fs_path(str(Path(file)))
        if address is not None:
            yield Location(address, Range(Position(line, 0), Position(line, 0)))
