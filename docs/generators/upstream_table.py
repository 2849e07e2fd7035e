"""The table of programs in upstream's dialects and how far the passes of others take them, in docs/embedding.md.

    PATH=$PATH:... python docs/generators/upstream_table.py --write

Runs `mlir-opt`, `mlir-translate` and `iree-opt`, where they are on the PATH, and xDSL's own passes; what cannot be run
is recorded as `?`. A test compares the rows with the list of programs, not what they say: the tools are not everywhere.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.transforms import get_all_passes

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "tests" / "helpers"))

from operator_cases import check  # noqa: E402
from scheduled_operators import CASES  # noqa: E402
from upstream_tools import (  # noqa: E402
    IREE_OPT,
    MLIR_OPT,
    IreeLibrary,
    UpstreamLibrary,
    accepted,
    accepted_by_iree,
    upstream_text,
)

import weft  # noqa: E402

PAGE = ROOT / "docs" / "embedding.md"
START, END = "<!-- programs: made by docs/generators/upstream_table.py -->", "<!-- end of programs -->"
HEAD = (
    "| operator | mlir-opt reads | by its passes, LLVM: equal | iree-opt reads | by its passes, LLVM: equal "
    "| xDSL's own passes |\n"
    "|---|---|---|---|---|---|"
)
XDSL_PASSES = ("convert-scf-to-cf", "convert-vector-to-ptr", "convert-memref-to-ptr", "convert-ptr-to-llvm")


def names() -> list[str]:
    """The programs of the table."""
    return [case.label for case in CASES]


def _says(run: Callable[[], object], available: object) -> str:
    if not available:
        return "?"
    try:
        run()
    except (AssertionError, RuntimeError):
        return "no"
    return "yes"


def _xdsl(text: str) -> str:
    """The last of xDSL's passes that the module goes through."""
    module, done = weft.parse(text), "none"
    passes = get_all_passes()
    for name in XDSL_PASSES:
        try:
            passes[name]()().apply(Context(), module)
            module.verify()
        except Exception:  # noqa: BLE001 (whatever ends it)
            return done
        done = f"`{name}`"
    return done


def row(label: str) -> str:
    """Returns the row of the table for an operator with its default schedule."""
    case = next(case for case in CASES if case.label == label)
    texts: list[str] = []

    def by(library: type[UpstreamLibrary]) -> Callable[[], None]:
        def compiled(module: ModuleOp, default_schedule: bool) -> Callable[..., Any]:
            texts.append(upstream_text(module, default_schedule))
            return library(texts[-1])["main"]

        return lambda: check([case], default_schedule=True, compiled=compiled)

    runs = [_says(by(library), tool) for library, tool in ((UpstreamLibrary, MLIR_OPT), (IreeLibrary, IREE_OPT))]
    if not texts:
        raise SystemExit("upstream_table.py needs mlir-opt or iree-opt")
    if IREE_OPT and re.search(r"memref\.alloc\b", texts[0]):
        runs[1] = "has no heap"
    reads = [
        _says(lambda: accepted(texts[0]), MLIR_OPT),
        _says(lambda: accepted_by_iree(texts[0]), IREE_OPT),
    ]
    return f"| {label} | {reads[0]} | {runs[0]} | {reads[1]} | {runs[1]} | {_xdsl(texts[0])} |"


def rows_of(page: str) -> list[str]:
    """The programs that a page has rows for."""
    table = page[page.index(START) : page.index(END)]
    return [found.group(1) for found in re.finditer(r"^\| ([^|]+?) \|", table, re.MULTILINE)][1:]


def main() -> None:
    """Print the table, or write it into the page."""
    table = "\n".join([HEAD, *map(row, names())])
    if sys.argv[1:] != ["--write"]:
        print(table)
        return
    page = PAGE.read_text()
    before, after = page[: page.index(START) + len(START)], page[page.index(END) :]
    PAGE.write_text(f"{before}\n{table}\n{after}")


if __name__ == "__main__":
    main()
