"""`weft show`: trees and tables in the terminal, pages, and input that it refuses."""

from __future__ import annotations

import io
import re
import shlex
import sqlite3
import sys
from pathlib import Path

import pytest
from shown_programs import FUNCTION, GRAPH, SCHEDULE, TARGET, make_database, report_of

import weft
from weft.tools.show.tables import Table
from weft.tools.show.terminal import print_report, table_text
from weft.tools.weft_cli import execute

ROOT = Path(__file__).parents[3]


def show(*words: str | Path) -> int:
    return execute(["show", *map(str, words)])


@pytest.fixture
def program(tmp_path: Path) -> Path:
    (file := tmp_path / "program.mlir").write_text(FUNCTION + SCHEDULE)
    return file


def test_trees_before_and_after_the_schedule(program: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert show(program, "--target", TARGET) == 0
    out = capsys.readouterr().out
    before, _, after = out.partition("scheduled:")
    assert "# schedule of @add_relu, in the file: 3 steps" in before and "│  └─ loop j in 32\n" in before
    assert "      └─ loop j1 in 8  vectorized\n" in after
    assert "tir-flatten" in after and "registers or stack, in i > j0" in after and "FLOP/byte" in after
    assert "sch.split" not in out
    assert show(program, "--target", TARGET, "--steps") == 0
    assert "j0, j1 = sch.split(j, factors=[None, 8])\n" in capsys.readouterr().out
    assert show(program, "--target", TARGET, "--no-schedule") == 0
    out = capsys.readouterr().out
    assert "# schedule" not in out and "# functions\n\nfunction @add_relu" in out


def test_a_graph(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (file := tmp_path / "graph.mlir").write_text(GRAPH)
    assert show(file, "--target", TARGET) == 0
    out = capsys.readouterr().out
    assert "# graph before fusion\n\nfunction @main" in out and "└─ y = relu h  f32[2, 4]" in out
    assert "# graph after fusion" in out and "@fused_matmul_relu" in out


def test_a_database(tmp_path: Path, program: Path, capsys: pytest.CaptureFixture[str]) -> None:
    make_database(tmp_path / "tune.db")
    assert show(tmp_path / "tune.db") == 0
    out = capsys.readouterr().out
    assert "add_relu" in out and "3.00" in out and "1 failed: it <crashed>" in out
    assert "decision=[4, 8]" in out and "loop j1 in 8  vectorized" in out
    assert show(tmp_path / "tune.db", "--program", program, "--func", "add_relu") == 0
    assert "# add_relu for " in capsys.readouterr().out


def test_pages(tmp_path: Path, program: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page = tmp_path / "page.html"
    assert show(program, "--target", "c", "--html", page) == 0
    assert capsys.readouterr().out == f"saved     {page}\n"
    assert page.read_text().startswith("<!doctype html>")


def test_a_program_that_does_not_compile(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (file := tmp_path / "wrong.mlir").write_text(
        FUNCTION + SCHEDULE.replace("sched.vectorize %j1", "sched.reorder %j1, %i")
    )
    page = tmp_path / "page.html"
    assert show(file, "--html", page) == 1
    told = capsys.readouterr()
    assert "saved" in told.out and "requirement" in told.err
    assert 'id="failure"' in page.read_text()


def test_terminals_get_colours_by_rich(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("rich")

    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("COLUMNS", "150")
    monkeypatch.delenv("NO_COLOR", raising=False)
    report = report_of(FUNCTION + SCHEDULE)
    print_report(report, coloured := Terminal())
    assert "\x1b[36mloop i in 64\x1b[0m" in coloured.getvalue() and "tir-flatten" in coloured.getvalue()
    monkeypatch.setitem(sys.modules, "rich.console", None)  # as if it were not installed
    print_report(report, plain := Terminal())
    assert "\x1b" not in plain.getvalue() and "loop j1 in 8  vectorized" in plain.getvalue()


def test_no_text_controls_the_terminal() -> None:
    assert table_text(Table(("name", "n"), (("a\x1b[2J\nb", "1"), ("c", "12")))) == (
        "name          n\na\\x1b[2J\\nb   1\nc            12"
    )


@pytest.mark.parametrize(
    ("words", "error", "message"),
    [
        (["none.mlir"], OSError, "none.mlir"),
        (["none.py"], weft.CompileError, r"there is no file 'none.py'"),
        (["none.db"], weft.CompileError, r"there is no database 'none.db'"),
        (["notes.txt"], weft.CompileError, r"'notes.txt': weft runs .mlir and .onnx files, got '.txt'"),
        (["damaged.db"], weft.CompileError, r"database 'damaged.db': "),
        (["other.db"], weft.CompileError, r"'other.db' is a database of something else"),
        (["ok.mlir", "--html", "none/page.html"], weft.CompileError, r"there is no folder 'none'"),
        (["ok.mlir", "--html", "."], weft.CompileError, r"'.' is a folder, expected a file to write"),
        (["ok.mlir", "--program", "ok.mlir"], weft.CompileError, r"--program is for databases, and 'ok.mlir' is"),
        (["ok.mlir", "--target", "riscv"], weft.CompileError, r"riscv"),
        (["tune.db", "--time"], weft.CompileError, r"--time measures programs; a database holds the times"),
        (["tune.db", "--func", "none"], weft.CompileError, r"has no records of a task 'none'"),
    ],
)
def test_refused(
    words: list[str], error: type[Exception], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("notes.txt").write_text("notes")
    Path("ok.mlir").write_text(FUNCTION)
    Path("damaged.db").write_bytes(b"SQLite format 3\0" + b"\xff" * 200)
    with sqlite3.connect("other.db") as other:
        other.execute("CREATE TABLE t (x)")
    other.close()
    make_database(Path("tune.db"))
    with pytest.raises(error, match=message):
        show(*words)


def test_a_page_that_cannot_be_written(tmp_path: Path, program: Path) -> None:
    if not Path("/dev/full").exists():
        pytest.skip("this system has no /dev/full")
    with pytest.raises(weft.CompileError, match=r"'/dev/full' cannot be written: No space left on device"):
        show(program, "--target", "c", "--html", "/dev/full")


@pytest.mark.slow
def test_the_commands_of_the_page(tmp_path: Path, program: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page = (ROOT / "docs" / "show.md").read_text()
    make_database(tmp_path / "tune.db")
    named = {"report.html": tmp_path / "report.html", "tune.db": tmp_path / "tune.db", "matmul.mlir": program}
    (commands,) = re.findall(r"^```\n(weft .*?)^```$", page, re.MULTILINE | re.DOTALL)
    for line in commands.splitlines():
        _, *words = shlex.split(line, comments=True)
        words = [str(named.get(word, ROOT / word if word.startswith("examples/") else word)) for word in words]
        assert execute(words) == 0, line
        assert capsys.readouterr().out, line


def test_tables_fit_a_page() -> None:
    """Long names are shortened; columns without room follow below, after the first one again."""
    names, numbers = ("matmul_local", "float32[1, 128, 3]", "temporary, local"), [f"{n}.5 KiB" for n in range(100, 106)]
    header = ("buffer", "type", "place", *(f"column {at}" for at in range(6)))
    table = Table(header, ((*names, *numbers), ("x", "f32", "-", *numbers)), 3)
    lines = table_text(table).splitlines()
    assert max(map(len, lines)) <= 80
    first, second = lines[: lines.index("")], lines[lines.index("") + 1 :]
    assert first[1].split()[0] == second[1].split()[0] == "matmul_local"
    assert [*first[0].split("  "), *second[0].split("  ")][-1].strip() == "column 5"
    assert all(number in table_text(table) for number in numbers)


def test_narrow_tables_are_whole() -> None:
    assert table_text(Table(("a", "b"), (("x" * 70, "1"),), 1)).splitlines() == [f"a{' ' * 71}b", f"{'x' * 70}  1"]
    assert max(map(len, table_text(Table(("a",), (("x" * 100,),), 1)).splitlines())) == 80
