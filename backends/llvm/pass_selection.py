"""Pass selection: the LLVM passes that a schedule leaves work for, which determine most of the compile time.

A complete schedule has already decided which loops to vectorise or unroll, and which values to keep in registers. The
remaining work is derived from the module at low level (`work_left.py`); a module with the corresponding metadata is
compiled with fewer passes (`compile.py`).
"""

from __future__ import annotations

import re
from enum import Enum
from typing import Final


class PassSelection(Enum):
    """Work for LLVM beyond a module's operations, in ascending order."""

    NOTHING = "nothing"
    """Every loop contains vectors, and each access varies with the surrounding loop or becomes a register. `low.unroll`
    loops are parts of the surrounding loop."""
    INVARIANTS = "invariants"
    """Accesses may be hoisted out of loops, and scalar loops that fill or copy consecutive elements may become
    calls."""
    LOOPS = "loops"
    """Scalar loops may be vectorised."""


_PASS_SELECTION: Final = re.compile(r"^!weft\.pass_selection = !\{!(\d+)\}\n", re.MULTILINE)


def pass_selection_lines(selection: PassSelection, number: int) -> list[str]:
    """`number` nodes precede the metadata; there is none for all passes."""
    if selection is PassSelection.LOOPS:
        return []
    return [f'!{number} = !{{!"{selection.value}"}}', f"!weft.pass_selection = !{{!{number}}}"]


def pass_selection_of(text: str) -> PassSelection:
    found = _PASS_SELECTION.search(text)
    node = found and re.search(rf'^!{found[1]} = !\{{!"(\w+)"\}}$', text, re.MULTILINE)
    return PassSelection(node[1]) if node else PassSelection.LOOPS


def without_pass_selection(text: str) -> str:
    """`text` without this metadata, before external code is linked in."""
    return _PASS_SELECTION.sub("", text)
