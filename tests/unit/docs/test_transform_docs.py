"""Each operation of transform scripts has a row in `docs/transform.md` and a test."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from weft.dialects.upstream.transform import OPERATIONS
from weft.schedule.transform.interpreter import HANDLERS
from weft.schedule.transform.scripts import FAMILIES

ROOT = Path(__file__).parents[3]
STRUCTURE = {"transform.named_sequence", "transform.yield", "transform.match.structured.yield"}
"""Operations that the handlers of others read."""
REFUSED = {"transform.structured.specialize"}
NAMES = sorted(STRUCTURE | REFUSED | set(HANDLERS))


def scripts() -> str:
    files = [*(ROOT / "tests/data/transform").glob("*.mlir"), *(ROOT / "tests/filecheck/transform").glob("weft-*.mlir")]
    return "\n".join(re.sub("//.*", "", path.read_text()) for path in files)


def test_all_syntax_is_handled() -> None:
    assert {handler.__module__ for handler in HANDLERS.values()} == {family.__name__ for family in FAMILIES}
    known = {op.name for op in OPERATIONS if not op.name.startswith("transform.apply_patterns.")}
    assert known <= set(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_an_operation(name: str) -> None:
    page = (ROOT / "docs/transform.md").read_text().partition("## Operations")[2].partition("## ")[0]
    rows = [line.split("|")[1] for line in page.splitlines() if line.startswith("| `")]
    assert any(f"`{name.removeprefix('transform.')}`" in row for row in rows), "no row in docs/transform.md"
    assert re.search(rf"{re.escape(name)}(?![\w.])", scripts()), "no script has it"
