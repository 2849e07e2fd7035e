"""The base class of readers of Python source: names in scope, and tables from Python's constructs to handlers.

A construct without a handler is an error.
"""

from __future__ import annotations

import ast
import re
from collections import ChainMap
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final

from weft.frontends.script.source import Positioned, Source
from weft.support.errors import CompileError

_FAILURES: Final = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError)
Handler = Callable[[Any, Any], Any]
"""(reader, node) -> None for a statement, the value for an expression."""


class Scope:
    """Bindings of the program, innermost first, then names defined outside it."""

    def __init__(self, outside: Mapping[str, object]) -> None:
        self.outside = outside
        self.bound: ChainMap[str, object] = ChainMap({})

    def __setitem__(self, name: str, value: object) -> None:
        self.bound[name] = value

    def known(self, name: str) -> object | None:
        return self.bound.get(name)

    @contextmanager
    def nested(self, names: Mapping[str, object] | None = None) -> Generator[dict[str, object]]:
        added = dict(names or {})
        self.bound = self.bound.new_child(added)
        try:
            yield added
        finally:
            self.bound = self.bound.parents


class Reader:
    STATEMENTS: Mapping[type[ast.stmt], Handler] = {}
    MEANINGLESS = ""
    """The error for a statement, called `{word}`, without a handler or in a form that its handler rejects."""

    def __init__(self, source: Source, names: Mapping[str, object]) -> None:
        self.source = source
        self.scope = Scope(names)

    def error(self, node: Positioned, message: str) -> CompileError:
        return self.source.error(node, message)

    def apply(self, node: Positioned, function: Callable[..., Any], *args: object, **kwargs: object) -> Any:
        """Exceptions become errors at `node`."""
        try:
            return function(*args, **kwargs)
        except CompileError as failure:
            raise self.error(node, re.sub(r"\bte\.(?=\w)", "T.", failure.message)) from None
        except _FAILURES as failure:
            raise self.error(node, str(failure) or type(failure).__name__) from None

    def body(self, statements: Sequence[ast.stmt]) -> None:
        for statement in statements:
            with self.source.placing(statement):
                self.statement(statement)

    def statement(self, node: ast.stmt) -> None:
        handler = self.STATEMENTS.get(type(node))
        if handler is None:
            raise self.meaningless(node)
        handler(self, node)

    def nothing(self, node: ast.stmt) -> None:
        """The handler of statements without a meaning."""

    def meaningless(self, node: ast.stmt) -> CompileError:
        return self.error(node, self.MEANINGLESS.format(word=type(node).__name__.lower()))
