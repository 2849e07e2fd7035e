"""Source text: locations of syntax-tree nodes, and trees of decorated definitions."""

from __future__ import annotations

import ast
import linecache
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from typing import TypeAlias, TypeVar

from weft.support.errors import CompileError
from weft.support.locations import SourceLocation, remember_text

Definition = TypeVar("Definition", ast.FunctionDef, ast.ClassDef)
Positioned: TypeAlias = ast.expr | ast.stmt | ast.arg | ast.keyword


@dataclass(frozen=True)
class Source:
    file: str
    text: str

    @cached_property
    def _lines(self) -> list[str]:
        return self.text.split("\n")

    def place(self, node: Positioned) -> SourceLocation:
        start = self._column(node.lineno, node.col_offset)
        end = 0
        if node.end_lineno == node.lineno and node.end_col_offset is not None:
            end = self._column(node.lineno, node.end_col_offset)
        return SourceLocation(self.file, node.lineno, start + 1, max(0, end - start))

    def _column(self, line: int, offset: int) -> int:
        """A column in characters; the syntax tree counts bytes."""
        text = self._lines[line - 1] if 0 < line <= len(self._lines) else ""
        return len(text.encode()[:offset].decode(errors="replace"))

    def error(self, node: Positioned, message: str) -> CompileError:
        return CompileError(message, location=self.place(node))

    @contextmanager
    def placing(self, node: Positioned) -> Generator[None]:
        """Exceptions get the place of `node`, unless they have one in this text."""
        try:
            yield
        except CompileError as failure:
            if failure.location is not None and failure.location.file == self.file:
                raise
            raise self.error(node, failure.message) from None

    def quoted(self, node: ast.expr, text: str) -> ast.expr | None:
        try:
            inner = ast.parse(text.strip(), mode="eval").body
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            return None
        for part in ast.walk(inner):
            ast.copy_location(part, node)
        return inner

    def parse(self) -> ast.Module:
        """Raises CompileError for invalid Python."""
        try:
            return _parse(self.text)
        except SyntaxError as failure:
            place = SourceLocation(self.file, failure.lineno or 1, max(1, failure.offset or 1))
            raise CompileError(f"this is no Python: {failure.msg}", location=place) from None
        except (ValueError, RecursionError, MemoryError) as failure:  # null bytes, depth
            raise CompileError(f"this is no Python: {failure}", location=SourceLocation(self.file, 1, 1)) from None


@lru_cache(maxsize=16)
def _parse(text: str) -> ast.Module:
    return ast.parse(text)


def source_of(file: str, line: int, name: str, kind: type[Definition]) -> tuple[Source, Definition]:
    """The text, and the definition of `name` at `line`. Raises CompileError if the text is not available, for example
    at Python's prompt."""
    lines = linecache.getlines(file)
    if not lines:
        raise CompileError(
            f"the source of '{name}' is not available ({file}): write it in a file or a notebook, or give its text to "
            "weft.script.parse"
        )
    text = "".join(lines)
    source = Source(file, text)
    if not Path(file).is_file():
        remember_text(file, text)
    for node in ast.walk(source.parse()):
        if isinstance(node, kind) and node.name == name:
            first = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
            if first <= line <= node.lineno:
                return source, node
    raise CompileError(f"'{name}' was not found at {file}:{line}: has the file changed since it was imported?")


def free_names(node: ast.expr) -> list[str]:
    """Names that are neither called nor followed by an attribute."""
    words = {
        id(part.func if isinstance(part, ast.Call) else part.value)
        for part in ast.walk(node)
        if isinstance(part, ast.Call | ast.Attribute)
    }
    return [part.id for part in ast.walk(node) if isinstance(part, ast.Name) and id(part) not in words]
