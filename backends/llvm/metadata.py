"""Metadata: a loop names a node of its own, which refers to itself and to what LLVM should do; a module names what its
schedules leave to LLVM."""

from __future__ import annotations

import re
from enum import Enum
from typing import Final

UNROLL_FULL: Final = '!{!"llvm.loop.unroll.full"}'
"""The loop is repeated completely; without it LLVM would weigh, or, with unrolling switched off, never unroll."""
NO_UNROLL: Final = '!{!"llvm.loop.unroll.disable"}'
"""The loop holds vectors already: it runs as the schedule says, which leaves the registers to its body."""
NO_VECTORIZE: Final = '!{!"llvm.loop.vectorize.enable", i1 false}'
"""The loop holds vectors already: LLVM's vectoriser must leave it alone."""
NONTEMPORAL: Final = "!{i32 1}"


class Metadata:
    """The numbered nodes at the end of a module."""

    def __init__(self) -> None:
        self.nodes: list[str] = []
        self._numbers: dict[str, str] = {}

    def shared(self, text: str) -> str:
        """The name of the node `text`, which occurs once."""
        if text not in self._numbers:
            self._numbers[text] = f"!{len(self.nodes)}"
            self.nodes.append(text)
        return self._numbers[text]

    def loop(self, *hints: str) -> str:
        """What stands behind the backward branch of a loop with these hints; nothing when there are none."""
        if not hints:
            return ""
        parts = ", ".join(self.shared(hint) for hint in hints)
        name = f"!{len(self.nodes)}"
        self.nodes.append(f"distinct !{{{name}, {parts}}}")
        return f", !llvm.loop {name}"

    def lines(self) -> list[str]:
        return [f"!{number} = {node}" for number, node in enumerate(self.nodes)]


class PassSelection(Enum):
    """What LLVM may find to do in a module, beyond what the module says; from little to much."""

    NOTHING = "nothing"
    """Every loop holds vectors, and each access moves with the loop around it or goes to registers. `low.unroll` loops
    are parts of the loop around them."""
    INVARIANTS = "invariants"
    """Accesses may leave loops, and scalar loops that fill or copy consecutive elements may become calls."""
    LOOPS = "loops"
    """Scalar loops may become vectors."""


_PASS_SELECTION = re.compile(r"^!weft\.pass_selection = !\{!(\d+)\}\n", re.MULTILINE)


def pass_selection_lines(pass_selection: PassSelection, number: int) -> list[str]:
    """The lines that tell what is left to LLVM in a module with `number` nodes; none when that is everything."""
    if pass_selection is PassSelection.LOOPS:
        return []
    return [f'!{number} = !{{!"{pass_selection.value}"}}', f"!weft.pass_selection = !{{!{number}}}"]


def pass_selection_of(text: str) -> PassSelection:
    """What is left to LLVM in a module, as its text says."""
    found = _PASS_SELECTION.search(text)
    node = found and re.search(rf'^!{found[1]} = !\{{!"(\w+)"\}}$', text, re.MULTILINE)
    return PassSelection(node[1]) if node else PassSelection.LOOPS


def without_pass_selection(text: str) -> str:
    """`text` without saying what is left to LLVM, for modules that code from elsewhere is linked to."""
    return _PASS_SELECTION.sub("", text)
