"""Tracebacks end at the line of the user."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

HEADER = "import weft\nfrom weft import te\nA = te.placeholder((4, 4), name='A')\n"


def run(tmp_path: Path, text: str, **environment: str) -> str:
    """Standard error of a script that fails."""
    file = tmp_path / "user.py"
    file.write_text(text)
    own = {name: value for name, value in os.environ.items() if name != "WEFT_FULL_TRACEBACK"}
    done = subprocess.run([sys.executable, file], capture_output=True, text=True, env={**own, **environment})
    assert done.returncode == 1
    return done.stderr


def files_of(traceback: str) -> list[str]:
    return [Path(line.split('"')[1]).name for line in traceback.splitlines() if line.startswith('  File "')]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("te.create_func([A, 3])", "parameters are tensors and variables, got 3 of type int"),
        ("weft.compile(3)", "got 3 of type int"),
        ("weft.nothing", "has no attribute 'nothing'"),
    ],
)
def test_errors_end_at_the_line_of_the_user(tmp_path: Path, line: str, message: str) -> None:
    traceback = run(tmp_path, HEADER + line)
    assert set(files_of(traceback)) == {"user.py"}
    assert message in traceback
    assert "WEFT_FULL_TRACEBACK=1" in traceback


def test_callbacks_of_the_user_stay(tmp_path: Path) -> None:
    text = HEADER + "def body(i, j):\n    return A[i, j] + te.create_func([3])\nte.compute((4, 4), body, name='B')\n"
    traceback = run(tmp_path, text)
    assert files_of(traceback)[-1] == "user.py"
    assert "in body" in traceback


def test_all_frames_if_asked(tmp_path: Path) -> None:
    traceback = run(tmp_path, HEADER + "te.create_func([A, 3])", WEFT_FULL_TRACEBACK="1")
    assert len(set(files_of(traceback))) > 1
    assert "shows them" not in traceback


def test_other_errors_keep_their_frames(tmp_path: Path) -> None:
    traceback = run(tmp_path, HEADER + "import json\njson.loads('{')\n")
    assert "decoder.py" in files_of(traceback)
    assert "shows them" not in traceback


def test_internal_errors_keep_their_frames(tmp_path: Path) -> None:
    text = HEADER + (
        "from weft.support import errors\n"
        "def fail():\n    raise errors.InternalError('broken')\n"
        "te.compute((4, 4), lambda i, j: fail(), name='B')\n"
    )
    traceback = run(tmp_path, text)
    assert len(set(files_of(traceback))) > 1
    assert "shows them" not in traceback


def test_hooks_of_others_stay(tmp_path: Path) -> None:
    text = "import sys\nsys.excepthook = lambda *_: print('mine', file=sys.stderr)\n" + HEADER + "te.create_func([3])"
    assert run(tmp_path, text).strip() == "mine"
