"""Loop metadata: a loop names a node of its own, which refers to itself and to what LLVM should do."""

from __future__ import annotations

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
