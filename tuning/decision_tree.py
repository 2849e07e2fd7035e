"""The decisions of a search so far as a tree that tracks which part of a space is untried.

A node is a sampling step reached after certain decisions, which determine the next steps; its children are its
decisions. A path that ended, in a schedule or in a refusal, is complete, and so is a node all of whose options are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Final

from weft.tuning.records import Decision

MOST_OPTIONS: Final = 4096
"""A node with more options is never complete: no search tries them all."""
_TRIES: Final = 8
"""Draws before the remaining options are listed."""


@dataclass
class _Node:
    options: tuple[Decision, ...] | None = None
    """Of a reached step; None if there are more than `MOST_OPTIONS`."""
    children: dict[Decision, _Node] = field(default_factory=dict[Decision, "_Node"])
    complete_children: int = 0
    is_complete: bool = False

    def child(self, decision: Decision) -> _Node:
        return self.children.setdefault(decision, _Node())

    def left(self) -> list[Decision]:
        return [o for o in self.options or () if o not in self.children or not self.children[o].is_complete]


class DecisionTree:
    def __init__(self) -> None:
        self._root = _Node()

    @property
    def is_complete(self) -> bool:
        return self._root.is_complete

    def path(self) -> DecisionPath:
        return DecisionPath(self._root)

    def has_tried(self, decisions: Sequence[Decision | None]) -> bool:
        """Whether these decisions, each legal when reached, end in a tried schedule."""
        return _has_tried(self._root, decisions)


class DecisionPath:
    def __init__(self, root: _Node) -> None:
        self._nodes = [root]
        self.decisions: list[Decision] = []

    def reach(self, options: Callable[[], Iterable[Decision]]) -> None:
        node = self._nodes[-1]
        if node.options is None and not node.children:
            found = tuple(islice(options(), MOST_OPTIONS + 1))
            node.options = found if len(found) <= MOST_OPTIONS else None

    def choose(self, draw: Callable[[], Decision], pick: Callable[[list[Decision]], Decision]) -> Decision:
        """An untried decision if possible: by `draw`, or by `pick` if draws find none."""
        node = self._nodes[-1]
        for _ in range(_TRIES):
            decision = draw()
            if decision not in node.children or not node.children[decision].is_complete:
                return decision
        left = node.left()
        return pick(left) if left else draw()

    def has_tried(self, decision: Decision, later: Sequence[Decision | None]) -> bool:
        return _has_tried(self._nodes[-1], [decision, *later])

    def take(self, decision: Decision) -> None:
        self.decisions.append(decision)
        self._nodes.append(self._nodes[-1].child(decision))

    @property
    def is_tried(self) -> bool:
        return self._nodes[-1].is_complete

    def end(self) -> bool:
        """Returns whether the path is new."""
        *above, leaf = self._nodes
        is_new = not leaf.is_complete
        leaf.is_complete = True
        for node in reversed(above) if is_new else ():
            node.complete_children += 1
            if node.options is None or node.complete_children < len(node.options):
                break
            node.is_complete = True
        return is_new


def _has_tried(node: _Node, decisions: Sequence[Decision | None]) -> bool:
    for decision in decisions:
        if node.is_complete:
            return True
        if decision is None or decision not in node.children:
            return False
        node = node.children[decision]
    return node.is_complete
