"""The base of readers of Python source: the names in scope, and tables from the constructs of Python to handlers.

Block loops (`parsing`, `function`, `statements`, `evaluate`) and functions of graphs (`weft.tvm.script`) are read by
subclasses of `Reader`. A statement or expression without a handler has no meaning there.
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
"""The exceptions by which Python's operators and functions reject values."""
Handler = Callable[[Any, Any], Any]
"""(reader, node) -> None for a statement, the value of an expression."""


class Scope:
    """The names that are visible at a place: bindings of the program, innermost first, then those outside of it."""

    def __init__(self, outside: Mapping[str, object]) -> None:
        self.outside = outside
        self.bound: ChainMap[str, object] = ChainMap({})

    def __setitem__(self, name: str, value: object) -> None:
        self.bound[name] = value

    def known(self, name: str) -> object | None:
        """The binding of `name` in the program, None if it has none."""
        return self.bound.get(name)

    @contextmanager
    def nested(self, names: Mapping[str, object] | None = None) -> Generator[dict[str, object]]:
        """A scope with `names`, in which the bindings made inside end."""
        added = dict(names or {})
        self.bound = self.bound.new_child(added)
        try:
            yield added
        finally:
            self.bound = self.bound.parents


class Reader:
    """Reads the statements of a Python text by a table."""

    STATEMENTS: Mapping[type[ast.stmt], Handler] = {}
    MEANINGLESS = ""
    """The error for a statement, called `{word}`, without a handler or in a form that its handler does not take."""

    def __init__(self, source: Source, names: Mapping[str, object]) -> None:
        self.source = source
        self.scope = Scope(names)

    def error(self, node: Positioned, message: str) -> CompileError:
        return self.source.error(node, message)

    def apply(self, node: Positioned, function: Callable[..., Any], *args: object, **kwargs: object) -> Any:
        """The result of a function call, whose exceptions become errors at `node`."""
        try:
            return function(*args, **kwargs)
        except CompileError as failure:
            raise self.error(node, re.sub(r"\bte\.(?=\w)", "T.", failure.message)) from None
        except _FAILURES as failure:
            raise self.error(node, str(failure) or type(failure).__name__) from None

    def body(self, statements: Sequence[ast.stmt]) -> None:
        """Read statements in order."""
        for statement in statements:
            with self.source.placing(statement):
                self.statement(statement)

    def statement(self, node: ast.stmt) -> None:
        """Read a statement by its handler."""
        handler = self.STATEMENTS.get(type(node))
        if handler is None:
            raise self.meaningless(node)
        handler(self, node)

    def nothing(self, node: ast.stmt) -> None:
        """The handler of statements that do nothing."""

    def meaningless(self, node: ast.stmt) -> CompileError:
        return self.error(node, self.MEANINGLESS.format(word=type(node).__name__.lower()))
