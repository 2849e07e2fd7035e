"""The table of GPU programs says what the tests do."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from gpu_docs import (
    END,
    RECORDS,
    ROOT,
    START,
    Record,
    checks_summary,
    checks_table,
    read_ladder,
    read_records,
    with_table,
)

from weft.support.errors import CompileError

COMMAND = "run: python docs/generators/gpu_docs.py --write"


def test_the_page_is_up_to_date() -> None:
    text = (ROOT / "docs" / "gpu.md").read_text()
    assert text == with_table(text, checks_table(read_ladder(), read_records()), "docs/gpu.md"), COMMAND


def test_every_check_is_what_a_test_is_parametrized_by() -> None:
    for check, names in read_ladder().checks:
        assert names, f"{check.target}, {check.name}: no program"
        text = (ROOT / check.test).read_text()
        asked = f'LADDER.names("{check.target}", "{check.name}")', f'LADDER.programs("{check.target}", "{check.name}")'
        assert any(call in text for call in asked), f"{check.test} does not ask for {check.target}, {check.name}"


def test_every_program_is_checked_on_every_simulated_device() -> None:
    ladder = read_ladder()
    checked = {check.target: set[str]() for check, _ in ladder.checks}
    for check, names in ladder.checks:
        checked[check.target] |= set(names)
    assert checked["CUDA on a CPU"] == checked["NVRTC"] == set(ladder.programs)
    only_cuda = {name for check, names in ladder.checks if check.name == "tensor cores" for name in names}
    assert checked["PoCL"] == set(ladder.programs) - only_cuda


def test_records_are_of_known_checks_and_pages() -> None:
    for record in read_records():
        assert (RECORDS.parent / record.source).exists()
        assert record.device in (RECORDS.parent / record.source).read_text()
        assert re.fullmatch(r"\d{4}-\d{2}-\d{2}", record.date)
        assert set(record.changed) <= set(record.programs) and set(record.checks) <= {
            "results",
            "memcheck",
            "racecheck",
            "synccheck",
        }


def test_cells_and_counts() -> None:
    records = [Record("X1", "2026-01-02", "page.md", ["results"], ["dot", "transpose", "gone"], ["dot"])]
    table = checks_table(read_ladder(), records)
    rows = {line.split(" | ")[0].removeprefix("| "): line for line in table.splitlines() if line.startswith("| ")}
    assert rows["dot"].endswith("| X1: results * |") and rows["transpose"].endswith("| X1: results |")
    assert rows["softmax"].endswith("| not yet |")
    assert f"| X1, 2026-01-02 | results 2 of {len(rows) - 1}, 1 as now |" in checks_summary(read_ladder(), records)


def test_what_is_missing_is_said(tmp_path: Path) -> None:
    assert with_table(f"a\n{START}\nold\n{END}\nb", "new\n", "X") == f"a\n{START}\nnew\n{END}\nb"
    with pytest.raises(CompileError, match="X has no lines"):
        with_table(f"a\n{END}\n", "", "X")
    with pytest.raises(CompileError, match=r"has no ladder.py: run this in a checkout"):
        read_ladder(tmp_path)
