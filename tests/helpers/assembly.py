"""What tests read in assembly."""

from __future__ import annotations

import re


def innermost_loops(assembly: str) -> list[list[str]]:
    """The loops that hold no label: lines from a label to the last branch back to it."""
    lines = [line for line in assembly.splitlines() if not re.match(r"\s*(\.|#|//|;)(?!L\w+:)", line)]
    loops: list[list[str]] = []
    start = None
    for at, line in enumerate(lines):
        if label := re.match(r"(\.?L\w+):", line):
            start = (label[1], at)
        elif start and re.search(rf"\b(j\w+|b(\.\w+)?|cbn?z|tbn?z)\s.*{re.escape(start[0])}\b", line):
            loops.append(lines[start[1] : at + 1])
    return loops
