"""The comparison of generated code between two trees (`tests/equality`)."""

import subprocess
import sys
from pathlib import Path

import pytest

TOOLS = Path(__file__).parents[2] / "equality"
PROGRAM = """\
import weft
from weft import te
from weft.support.target import Target

A = te.placeholder(({extent},), "float32")
module = te.create_func([A, te.compute(({extent},), lambda i: A[i] + {added})])
weft.build(module, Target("llvm"))
print(weft.build(module, Target("c")) and "built")
"""


def recorded(folder: Path, program: str) -> None:
    """Record the code of a program."""
    script = folder.parent / "program.py"
    script.write_text(program)
    command = [sys.executable, TOOLS / "record.py", folder, sys.executable, script]
    run = subprocess.run(command, capture_output=True, text=True)
    assert run.returncode == 0 and "built" in run.stdout, run.stderr


def compared(base: Path, head: Path, *options: str) -> subprocess.CompletedProcess[str]:
    """What `compare.py` says of two recordings."""
    return subprocess.run([sys.executable, TOOLS / "compare.py", base, head, *options], capture_output=True, text=True)


@pytest.mark.slow
def test_equal_and_changed_code(tmp_path: Path) -> None:
    recorded(tmp_path / "base", PROGRAM.format(extent=8, added=1.0))
    recorded(tmp_path / "head", PROGRAM.format(extent=8, added=2.0))
    same = compared(tmp_path / "base", tmp_path / "base")
    assert same.returncode == 0 and "1 labels, " in same.stdout and ": 0 labels differ" in same.stdout
    changed = compared(tmp_path / "base", tmp_path / "head")
    assert changed.returncode == 1 and ": code\n" in changed.stdout, changed.stdout
    assert "1 labels differ, 1 in code;" in changed.stdout
    shown = compared(tmp_path / "base", tmp_path / "head", "--lines", "20")
    assert any(line.strip().startswith("+") for line in shown.stdout.splitlines())
    recorded(tmp_path / "larger", PROGRAM.format(extent=4096, added=1.0))
    assert ": trace, code\n" in compared(tmp_path / "base", tmp_path / "larger").stdout


def test_refuses_other_folders(tmp_path: Path) -> None:
    run = compared(tmp_path, tmp_path)
    assert run.returncode == 1 and "is no recording" in run.stderr


@pytest.mark.slow
def test_code_is_the_same_in_every_run(tmp_path: Path) -> None:
    for name in ("base", "head"):
        rows = [sys.executable, TOOLS / "rows.py", "softmax"]
        subprocess.run([sys.executable, TOOLS / "record.py", tmp_path / name, *rows], check=True)
    assert compared(tmp_path / "base", tmp_path / "head").returncode == 0


@pytest.mark.slow
def test_trees_of_two_revisions(tmp_path: Path) -> None:
    """The base revision runs its own code: a package that its tree lacks is not found."""
    program = tmp_path / "program.py"
    program.write_text("import weft.api_of_this_test")
    run = subprocess.run(
        [sys.executable, TOOLS / "against.py", "HEAD", "--", sys.executable, program], capture_output=True, text=True
    )
    assert "status 1 in " in run.stderr and "weft-equality-" in run.stderr, run.stderr
    program.write_text(PROGRAM.format(extent=8, added=1.0) + "print(weft.__path__)")
    run = subprocess.run(
        [sys.executable, TOOLS / "against.py", "HEAD", "--", sys.executable, program], capture_output=True, text=True
    )
    assert run.returncode == 0 and "weft-equality-" in run.stdout and "0 labels differ" in run.stdout, run.stdout
