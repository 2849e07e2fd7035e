"""Functions of statements, expanded at their calls: `T.macro`, `T.inline`."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from weft.frontends.script.source import Source
from weft.support.errors import CompileError

WORDS = ("macro", "inline")


@dataclass(frozen=True)
class Macro:
    """A function under `@T.macro` or `@T.inline`. Without `names`, its free names are those at the call."""

    source: Source
    node: ast.FunctionDef
    names: Mapping[str, object] | None

    @staticmethod
    def read(source: Source, nodes: Sequence[ast.FunctionDef], names: Mapping[str, object]) -> Macro:
        calls = [decorator for decorator in nodes[0].decorator_list if isinstance(decorator, ast.Call)]
        options = {word.arg: word.value for call in calls for word in call.keywords}
        open_ = options.get("hygienic")
        sees_caller = isinstance(open_, ast.Constant) and open_.value is False
        return Macro(source, nodes[0], None if sees_caller else names)

    def __call__(self, *args: object, **options: object) -> None:
        raise CompileError(f"{self.node.name} is a macro: functions under @T.prim_func call it")

    def bound(self, args: Sequence[object], options: Mapping[str, object]) -> dict[str, object]:
        """The parameters by name. Raises TypeError."""
        given = self.node.args
        names = [argument.arg for argument in (*given.posonlyargs, *given.args)]
        found = dict(zip(names, args, strict=False))
        if len(args) > len(names):
            if given.vararg is None:
                raise TypeError(f"{self.node.name} takes {len(names)} arguments, got {len(args)}")
            found[given.vararg.arg] = tuple(args[len(names) :])
        elif given.vararg is not None:
            found[given.vararg.arg] = ()
        known = {*names, *(argument.arg for argument in given.kwonlyargs)}
        for name, value in options.items():
            if name in found or name not in known:
                raise TypeError(f"{self.node.name} has no other parameter '{name}'")
            found[name] = value
        missing = [name for name in (*names, *(a.arg for a in given.kwonlyargs)) if name not in found]
        if missing:
            raise TypeError(f"{self.node.name} needs {', '.join(missing)}")
        return found

    def __repr__(self) -> str:
        return f"macro {self.node.name}"


def is_macro(node: ast.stmt) -> bool:
    if not isinstance(node, ast.FunctionDef):
        return False
    words = [word.func if isinstance(word, ast.Call) else word for word in node.decorator_list]
    return any(isinstance(word, ast.Attribute) and word.attr in WORDS for word in words)
