"""The decisions of a search so far as a tree: what was tried, what is left, and whether anything is.

A node is a sampling step as it is reached after certain decisions; its children are its decisions. A path that ended,
in a schedule or in a refusal, is complete, and so is a node all of whose options are. A space may take other steps
after other decisions: the tree needs not know.
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
"""Draws before the options that are left are listed."""


@dataclass
class _Node:
    options: tuple[Decision, ...] | None = None
    """Of a step that was reached; None where there are too many."""
    children: dict[Decision, _Node] = field(default_factory=dict[Decision, "_Node"])
    complete_children: int = 0
    is_complete: bool = False

    def child(self, decision: Decision) -> _Node:
        return self.children.setdefault(decision, _Node())

    def left(self) -> list[Decision]:
        """The options that lead to something new."""
        return [o for o in self.options or () if o not in self.children or not self.children[o].is_complete]


class DecisionTree:
    """What a search has tried."""

    def __init__(self) -> None:
        self._root = _Node()

    @property
    def is_complete(self) -> bool:
        """Whether all schedules of the space were tried."""
        return self._root.is_complete

    def path(self) -> DecisionPath:
        """A new way through the tree."""
        return DecisionPath(self._root)

    def has_tried(self, decisions: Sequence[Decision | None]) -> bool:
        """Whether these decisions, each legal where it is reached, end in a schedule that was tried."""
        return _has_tried(self._root, decisions)


class DecisionPath:
    """The decisions of one run of a space, from the root of a tree."""

    def __init__(self, root: _Node) -> None:
        self._nodes = [root]
        self.decisions: list[Decision] = []

    def reach(self, options: Callable[[], Iterable[Decision]]) -> None:
        """A sampling step, which has these options, is next."""
        node = self._nodes[-1]
        if node.options is None and not node.children:
            found = tuple(islice(options(), MOST_OPTIONS + 1))
            node.options = found if len(found) <= MOST_OPTIONS else None

    def choose(self, draw: Callable[[], Decision], pick: Callable[[list[Decision]], Decision]) -> Decision:
        """A decision of the step that was reached, one that leads to something new where there is any: what is drawn;
        or what `pick` picks, where draws find nothing new."""
        node = self._nodes[-1]
        for _ in range(_TRIES):
            decision = draw()
            if decision not in node.children or not node.children[decision].is_complete:
                return decision
        left = node.left()
        return pick(left) if left else draw()

    def has_tried(self, decision: Decision, later: Sequence[Decision | None]) -> bool:
        """Whether a decision of the step that was reached leads to a schedule that was tried, with `later` ones."""
        return _has_tried(self._nodes[-1], [decision, *later])

    def take(self, decision: Decision) -> None:
        """Go on with a decision of the step that was reached."""
        self.decisions.append(decision)
        self._nodes.append(self._nodes[-1].child(decision))

    @property
    def is_tried(self) -> bool:
        """Whether all that follows was tried."""
        return self._nodes[-1].is_complete

    def end(self) -> bool:
        """The run is over; returns whether it was one that no run before took."""
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
