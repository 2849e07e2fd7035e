"""Identifiers: made from the names of the IR, distinct within the scopes that see each other."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

_ODD = re.compile(r"[^A-Za-z0-9_]")


def identifier(hint: str, reserved: Iterable[str] = ()) -> str:
    """`hint` as an identifier that is none of `reserved`, and none that the languages or weft keep for themselves."""
    name = _ODD.sub("_", hint)
    if (
        not name.strip("_")
        or name[0].isdigit()
        or name.startswith(("__", "weft_", "get_", "as_", "convert_"))
        or "__" in name
    ):
        name = f"v_{name.strip('_')}".replace("__", "_").rstrip("_")
        while "__" in name:
            name = name.replace("__", "_")
    return f"{name}_" if name in reserved else name


class Scopes:
    """The names in use, by scope from outside to inside. A name may serve again when its scope is left."""

    def __init__(self, reserved: Iterable[str]) -> None:
        self._reserved = frozenset(reserved)
        self._scopes: list[set[str]] = [set()]

    def enter(self) -> None:
        self._scopes.append(set())

    def leave(self) -> None:
        self._scopes.pop()

    def fresh(self, hint: str) -> str:
        """A name for a variable of the innermost scope: `hint`, else `hint_1`, `hint_2`, ..."""
        base = name = identifier(hint, self._reserved)
        number = 0
        while any(name in scope for scope in self._scopes) or name in self._reserved:
            number += 1
            name = f"{base}_{number}" if not base.endswith("_") else f"{base}{number}"
        self._scopes[-1].add(name)
        return name
