"""Names for what a printed script defines: those of the IR where they are free and Python takes them."""

from __future__ import annotations

import keyword
import re
from collections.abc import Generator
from contextlib import contextmanager

_RESERVED = frozenset({"T", "I", "cls", "self", *keyword.kwlist, *keyword.softkwlist})
_TAKEN_BY_PYTHON = frozenset(
    {"abs", "bool", "divmod", "float", "int", "len", "list", "max", "min", "pow", "range", "round", "sum", "tuple"}
)


def identifier(name: str | None, default: str) -> str:
    """`name` as a Python identifier."""
    word = re.sub(r"\W", "_", name or "", flags=re.ASCII)
    if not word or word[0].isdigit():
        word = f"{default}{word}"
    return f"{word}_" if word in _RESERVED or word in _TAKEN_BY_PYTHON else word


class Names:
    """The names that are taken in a function."""

    def __init__(self, taken: set[str]) -> None:
        self._scopes = [set(taken)]

    def new(self, name: str | None, default: str) -> str:
        """A free name like `name`, taken until its scope ends.

        Numbers are appended bare: after an underscore they mean nothing in IR and would get lost.
        """
        word = candidate = identifier(name, default)
        number = 0
        while any(candidate in scope for scope in self._scopes):
            number += 1
            candidate = word.rstrip("_") + str(number)
        self._scopes[-1].add(candidate)
        return candidate

    def keep(self, name: str | None, default: str) -> str:
        """A free name like `name`, taken to the end of the function."""
        word = self.new(name, default)
        self._scopes[0].add(word)
        return word

    def release(self, name: str) -> None:
        """Make a name free again that was taken for what could not be printed so."""
        for scope in self._scopes:
            scope.discard(name)

    @contextmanager
    def scope(self) -> Generator[None]:
        """Names taken inside are free again after it."""
        self._scopes.append(set())
        try:
            yield
        finally:
            self._scopes.pop()
