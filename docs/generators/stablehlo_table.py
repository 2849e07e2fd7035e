"""The table of the ops of stablehlo and chlo by element types in docs/embedding.md.

    python docs/generators/stablehlo_table.py --write

Converts the examples of `tests/helpers/stablehlo_examples.py`, one for each op, form and element type.
"""

from __future__ import annotations

import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "tests" / "helpers"))

from stablehlo_examples import (  # noqa: E402
    COMPLEX,
    EXAMPLES,
    FLOATS,
    INTEGERS,
    NARROW_FLOATS,
    NARROW_INTEGERS,
)

import weft  # noqa: E402
from weft.driver.stablehlo_loops import import_stablehlo_loops  # noqa: E402
from weft.passes.convert.convert_stablehlo_to_te import convert_stablehlo  # noqa: E402
from weft.support.errors import CompileError  # noqa: E402

PAGE = ROOT / "docs" / "embedding.md"
START, END = "<!-- ops: made by docs/generators/stablehlo_table.py -->", "<!-- end of ops -->"
GROUPS = {
    "i1": ("i1",),
    "i8 to i64, ui8 to ui64": INTEGERS,
    "i2, i4, ui2, ui4": NARROW_INTEGERS,
    "f16, bf16, f32, f64": FLOATS,
    "f8, f6, f4": NARROW_FLOATS,
    "complex": COMPLEX,
}
"""Columns and their element types."""


def is_converted(name: str, element: str) -> bool:
    """Whether the passes take an example."""
    module = weft.parse(EXAMPLES[name].module(element))
    try:
        import_stablehlo_loops(module)
        if any(op.name.startswith(("stablehlo.", "chlo.")) for op in module.walk()):
            convert_stablehlo(module, strict=True)
    except CompileError:
        return False
    return True


def row(name: str) -> str:
    """The row of an op: for each group of types `yes`, `no`, the types that are taken, or nothing if the op has none of
    them."""
    cells: list[str] = []
    for elements in GROUPS.values():
        meant = [element for element in elements if element in EXAMPLES[name].elements]
        taken = [element for element in meant if is_converted(name, element)]
        if not meant:
            cells.append("")
        elif len(taken) == len(elements):
            cells.append("yes")
        else:
            cells.append(", ".join(f"`{element}`" for element in taken) or "no")
    head, _, form = name.partition(", ")
    return f"| `{head}`{f', {form}' if form else ''} | {' | '.join(cells)} |"


def table() -> str:
    head = f"| op | {' | '.join(GROUPS)} |\n|{'---|' * (len(GROUPS) + 1)}"
    return "\n".join([head, *map(row, EXAMPLES)])


def rows_of(page: str) -> list[str]:
    """The first cells of the table of a page."""
    lines = page.partition(START)[2].partition(END)[0].strip().splitlines()[2:]
    return [line.split("|")[1].strip() for line in lines]


def names() -> list[str]:
    """The first cells of the rows that there are examples of."""
    found: list[str] = []
    for name in EXAMPLES:
        head, _, form = name.partition(", ")
        found.append(f"`{head}`{f', {form}' if form else ''}")
    return found


def with_table(page: str) -> str:
    before, _, rest = page.partition(START)
    return f"{before}{START}\n{table()}\n{END}{rest.partition(END)[2]}"


if __name__ == "__main__":
    text = with_table(PAGE.read_text())
    if "--write" in sys.argv:
        PAGE.write_text(text)
    else:
        print(text)
