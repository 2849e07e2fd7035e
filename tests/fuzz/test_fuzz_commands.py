"""Command lines with junk end with a message and status 1; `run_commands.py` makes more."""

from __future__ import annotations

from pathlib import Path

import pytest
from command_lines import Runner, write_files


@pytest.mark.parametrize("count", [40, pytest.param(600, marks=pytest.mark.slow)])
def test_junk_command_lines(count: int, tmp_path: Path) -> None:
    write_files(tmp_path)
    runner = Runner(2026 + count, tmp_path)
    runner.run(count)
    assert not runner.findings, "\n".join(f"{f.words}: {f.what}\n{f.report}" for f in runner.findings.values())
    assert runner.accepted > 3


@pytest.mark.parametrize(
    "words",
    [
        ["run", "sum.mlir", "--threads", "9" * 30],
        ["tune", "sum.mlir", "--window", "9" * 30, "--trials=-1"],
        ["show", "exits.py:f"],
        ["show", "script.py:exits"],
        ["tune", "sum.mlir", "--space", "exits.py:f"],
        ["build", "sum.mlir", "-o", "\udcff.h"],
    ],
    ids=lambda words: " ".join(words)[:30].encode("ascii", "replace").decode(),
)
def test_command_lines_that_ended_badly(words: list[str], tmp_path: Path) -> None:
    write_files(tmp_path)
    runner = Runner(0, tmp_path)
    with runner._inside():
        runner.call(words)
    assert not runner.findings, runner.findings
    assert runner.accepted == (words[0] == "build")
