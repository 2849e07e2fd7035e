"""Rewrite `while`, `break` and `continue`: loops with early exits become loops that test a flag.

for i in range(n):            stop = T.alloc_buffer((1,), "int32", scope="local")
    if A[i] < 0.0:            stop[0] = 0
        break                 for i in range(n):
    B[i] = A[i]                   if stop[0] != 2:
                                      stop[0] = 0
                                      if A[i] < 0.0:
                                          stop[0] = 2
                                      if stop[0] == 0:
                                          B[i] = A[i]
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from copy import copy
from typing import TypeVar

N = TypeVar("N", bound=ast.AST)
_GO, _CONTINUE, _BREAK = 0, 1, 2


def exits(statements: Sequence[ast.stmt]) -> bool:
    return any(isinstance(node, ast.Break | ast.Continue) for node in _own(statements))


def _own(statements: Sequence[ast.stmt]) -> Iterator[ast.stmt]:
    for statement in statements:
        yield statement
        if isinstance(statement, ast.If):
            yield from _own(statement.body)
            yield from _own(statement.orelse)
        elif isinstance(statement, ast.With):
            yield from _own(statement.body)


def flag_is(flag: str, operator: str, place: ast.stmt, state: int = _BREAK) -> ast.expr:
    return _placed(ast.parse(f"{flag}[0] {operator} {state}", mode="eval").body, place)


def set_flag(flag: str, place: ast.stmt, state: int = _GO) -> ast.stmt:
    return _placed(ast.parse(f"{flag}[0] = {state}").body[0], place)


def with_flag(statements: Sequence[ast.stmt], flag: str) -> list[ast.stmt]:
    """Exits set a flag, which the statements after them test."""
    found: list[ast.stmt] = []
    for at, statement in enumerate(statements):
        if isinstance(statement, ast.Break | ast.Continue):
            state = _BREAK if isinstance(statement, ast.Break) else _CONTINUE
            return [*found, set_flag(flag, statement, state)]
        if not exits([statement]):
            found.append(statement)
            continue
        changed = copy(statement)
        if isinstance(changed, ast.If):
            changed.body, changed.orelse = with_flag(changed.body, flag), with_flag(changed.orelse, flag)
        elif isinstance(changed, ast.With):
            changed.body = with_flag(changed.body, flag)
        found.append(changed)
        rest = with_flag(statements[at + 1 :], flag)
        if rest:
            found.append(_placed(ast.If(flag_is(flag, "==", statement, _GO), rest, []), statement, deep=False))
        return found
    return found


def _placed(node: N, place: ast.stmt, *, deep: bool = True) -> N:
    for part in ast.walk(node) if deep else [node]:
        ast.copy_location(part, place)
    return node
