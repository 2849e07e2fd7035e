"""Trees of labelled nodes."""

from __future__ import annotations

import html
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from weft.support.names import one_line


@dataclass(frozen=True)
class Tree:
    """A node with its children."""

    kind: str
    """The kind of the node, such as `loop`, by which renderers choose a style."""
    label: str
    note: str = ""
    """Secondary text, which follows the label."""
    children: tuple[Tree, ...] = ()

    def nodes(self) -> Iterator[tuple[int, Tree]]:
        """Yield nodes with their depths, in preorder."""
        pending: list[tuple[int, Tree]] = [(0, self)]
        while pending:
            depth, node = pending.pop()
            yield depth, node
            pending.extend((depth + 1, child) for child in reversed(node.children))

    def __str__(self) -> str:
        return "\n".join(f"{branch}{node.text}" for branch, node in branches(self))

    @property
    def text(self) -> str:
        """Characters that control a terminal are escaped."""
        return one_line(f"{self.label}  {self.note}" if self.note else self.label)

    def _repr_html_(self) -> str:
        return html_of([self])


def branches(tree: Tree) -> Iterator[tuple[str, Tree]]:
    """Each line starts with the connection to the parent: `│  └─ `."""
    pending: list[tuple[str, str, Tree]] = [("", "", tree)]
    while pending:
        branch, indent, node = pending.pop()
        yield branch, node
        last = len(node.children) - 1
        below = [
            (f"{indent}{'└─ ' if at == last else '├─ '}", f"{indent}{'   ' if at == last else '│  '}", child)
            for at, child in enumerate(node.children)
        ]
        pending.extend(reversed(below))


def html_of(trees: Sequence[Tree]) -> str:
    """Nested lists, which screen readers announce with their depth; inner nodes can be folded."""
    body = "".join(f"<li>{_item(tree)}</li>" for tree in trees)
    return f'<ul style="font-family:ui-monospace,Menlo,Consolas,monospace;line-height:1.45">{body}</ul>'


def _item(node: Tree) -> str:
    note = f' <span style="opacity:.7">{html.escape(one_line(node.note))}</span>' if node.note else ""
    line = f"{html.escape(one_line(node.label))}{note}"
    if not node.children:
        return line
    inner = "".join(f"<li>{_item(child)}</li>" for child in node.children)
    return f'<details open><summary>{line}</summary><ul style="margin:0">{inner}</ul></details>'
