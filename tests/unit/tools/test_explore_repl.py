"""`weft explore --repl` with commands from a pipe."""

from __future__ import annotations

import io
import os
import subprocess
import sys
from pathlib import Path

import pytest

from weft.support.errors import CompileError
from weft.tools.explore.commands import completions_of_line, run_line
from weft.tools.explore.operations import OPERATIONS, Workbench
from weft.tools.explore.repl import run_repl
from weft.tools.weft_cli import execute

ROOT = Path(__file__).parents[3]
MM_RELU = str(ROOT / "examples/mm_relu.mlir")


@pytest.fixture(name="workbench")
def _workbench() -> Workbench:
    workbench = Workbench()
    OPERATIONS["load"].call(workbench, {"file": MM_RELU})
    return workbench


def shell(workbench: Workbench, *lines: str) -> tuple[int, str]:
    output = io.StringIO()
    status = run_repl(workbench, io.StringIO("".join(f"{line}\n" for line in lines)), output)
    return status, output.getvalue()


def test_a_session(workbench: Workbench) -> None:
    status, text = shell(
        workbench,
        "# a comment",
        "",
        "status",
        "s 2",
        "d",
        "split(k, [None, 8])",
        "l",
        "buffers",
        "u",
        "r",
        "status",
        "quit",
        "bad",
    )
    assert status == 0
    assert text.startswith("[0] > # a comment\n[0] > \n[0] > status\n> [0] input\n      convert-from-upstream")
    assert "[0] > s 2\n[2] i0, i1 = split(i, factors=[None, 4])" in text
    assert "+  tir.for %i0 in 32 {" in text
    assert "loop k0 in 16" in text
    assert "from memory" in text
    assert "> [3] split(k, [None, 8])" in text
    assert "\x1b" not in text
    assert "bad" not in text


def test_failures_are_messages_and_the_status(workbench: Workbench) -> None:
    status, text = shell(workbench, "parallel(k)", "stpe", "goto x", "goto 1 2", "step", "help nothing", 'ir "')
    assert status == 1
    assert "requirement 2, the iterations are independent [parallel.2]" in text
    assert 'writes Y[0, 0]; iteration (i=0, j=0, k=1) of block "Y" writes Y[0, 0] at the same time' in text
    assert "unknown command 'stpe', did you mean 'step'" in text
    assert "goto: 'position' must be an integer, got 'x'" in text
    assert "goto takes at most 1 words, got 2: goto POSITION" in text
    assert "[1] schedules" in text
    assert "unknown command 'nothing'" in text
    assert "No closing quotation" in text


def test_saving_asks_before_it_overwrites(workbench: Workbench, tmp_path: Path) -> None:
    file = tmp_path / "p.mlir"
    file.write_text("mine")
    _, text = shell(workbench, f"save program {file}", "n")
    assert "exists: overwrite? [y/N] not saved" in text
    assert file.read_text() == "mine"
    _, text = shell(workbench, f"save program {file}")  # the end of the input is no consent
    assert file.read_text() == "mine"
    _, text = shell(workbench, f"save program {file}", "y")
    assert f"saved {file}" in text
    assert "func.func" in file.read_text()


def test_help_lists_all_operations(workbench: Workbench) -> None:
    text = run_line(workbench, "help").text
    assert all(f"\n{name}" in f"\n{text}" for name in OPERATIONS)
    assert "FORMAT FILE" in run_line(workbench, "help save").text
    assert all(operation.summary for operation in OPERATIONS.values())


def test_completions_of_lines(workbench: Workbench) -> None:
    assert [one.text for one in completions_of_line(workbench, "st")][:2] == ["status", "step"]
    (one,) = completions_of_line(workbench, "apply unr")
    assert (one.start, one.text) == (6, "unroll(")
    assert completions_of_line(workbench, "goto ") == []
    assert [one.text for one in completions_of_line(Workbench(), "lo")] == ["load", "loops"]
    with pytest.raises(CompileError, match="no program is loaded: load FILE"):
        run_line(Workbench(), "step")


def test_the_command(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "weft.tools.weft_cli", "explore", MM_RELU, "--repl", "-p", "cse"],
        input="step\nupcoming\n",
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
        env={**os.environ, "PYTHONUTF8": "1"},
    )
    assert done.returncode == 1
    assert "[1] cse" in done.stdout
    assert "unknown command 'upcoming'" in done.stdout
    for words, message in (
        ([], "name a file to explore"),
        ([MM_RELU, "--repl", "--mcp"], "--repl and --mcp exclude each other"),
        ([MM_RELU, "--repl", "--target", "llvn"], "unknown target"),
    ):
        with pytest.raises(CompileError, match=message):
            execute(["explore", *words])


def test_without_textual(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "textual", None)
    monkeypatch.setitem(sys.modules, "textual.app", None)
    monkeypatch.delitem(sys.modules, "weft.tools.explore.app", raising=False)
    with pytest.raises(CompileError, match=r"pip install 'weft\[tui\]', or --repl"):
        execute(["explore", MM_RELU])
