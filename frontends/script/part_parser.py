"""What the parsers of the parts of a function share: blocks, loops, conditions, calls."""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence

from weft.frontends.script.function import FunctionParser
from weft.frontends.script.source import Positioned
from weft.support.errors import CompileError


class PartParser:
    """Reads one kind of construct in a function."""

    def __init__(self, function: FunctionParser) -> None:
        self._function = function
        self._evaluator = function.evaluator
        self._emitter = function.emitter

    def _error(self, node: Positioned, message: str) -> CompileError:
        return self._function.source.error(node, message)


class StatementPartParser(PartParser):
    """Reads statements that hold others; `read_body` reads those."""

    def __init__(self, function: FunctionParser, read_body: Callable[[Sequence[ast.stmt]], None]) -> None:
        super().__init__(function)
        self._read_body = read_body

    def _place(self, node: ast.expr | ast.stmt) -> None:
        """What is emitted next comes from `node`."""
        self._emitter.place = self._function.source.place(node)
