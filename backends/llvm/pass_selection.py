"""Pass selection: the LLVM passes that a schedule leaves work for, which determine most of the compile time.

Most LLVM passes search for decisions that a complete schedule has made already: which loops are vectorized or unrolled,
which values stay in registers. A module whose metadata says so is compiled with fewer passes (`compile.py`). What is
left is found in the module at low level (`work_left.py`).
"""

from __future__ import annotations

import re
from enum import Enum
from typing import Final


class PassSelection(Enum):
    """The work that LLVM may find in a module, beyond what its operations state; from little to much."""

    NOTHING = "nothing"
    """Every loop holds vectors, and each access moves with the loop around it or becomes a register. `low.unroll` loops
    count as parts of the loop around them."""
    INVARIANTS = "invariants"
    """Accesses may leave loops, and scalar loops that fill or copy consecutive elements may become calls."""
    LOOPS = "loops"
    """Scalar loops may be vectorized."""


_PASS_SELECTION: Final = re.compile(r"^!weft\.pass_selection = !\{!(\d+)\}\n", re.MULTILINE)


def pass_selection_lines(selection: PassSelection, number: int) -> list[str]:
    """The metadata of a selection, in a module with `number` nodes; none for all passes."""
    if selection is PassSelection.LOOPS:
        return []
    return [f'!{number} = !{{!"{selection.value}"}}', f"!weft.pass_selection = !{{!{number}}}"]


def pass_selection_of(text: str) -> PassSelection:
    """The selection in the metadata of a module."""
    found = _PASS_SELECTION.search(text)
    node = found and re.search(rf'^!{found[1]} = !\{{!"(\w+)"\}}$', text, re.MULTILINE)
    return PassSelection(node[1]) if node else PassSelection.LOOPS


def without_pass_selection(text: str) -> str:
    """`text` without that metadata, for modules that code from elsewhere is linked to."""
    return _PASS_SELECTION.sub("", text)
