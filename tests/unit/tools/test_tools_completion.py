"""`weft completion` completes commands, flags, passes and targets; the other words that all commands know."""

from __future__ import annotations

import shutil
import subprocess

import pytest

from weft.tools.completion_command import SHELLS, completion
from weft.tools.weft_cli import COMMANDS, execute
from weft.tools.weft_opt import WeftOptMain


def completed(line: list[str]) -> list[str]:
    """What bash offers for the last word of a command line."""
    function = {"weft": "_weft", "weft-opt": "_weft_opt_flags", "weft-reduce": "_weft_reduce_flags"}[line[0]]
    words = " ".join(f"'{word}'" for word in line)
    script = f"COMP_WORDS=({words}); COMP_CWORD={len(line) - 1}; {function}; printf '%s\\n' \"${{COMPREPLY[@]}}\""
    done = subprocess.run(
        ["bash", "--norc", "-c", completion("bash") + script], capture_output=True, text=True, check=True
    )
    return done.stdout.split()


@pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")
@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (["weft", "pro"], ["profile"]),
        (["weft", "run", "--che"], ["--check", "--check-limit"]),
        (["weft-opt", "-p", "cse,tir-spl"], ["cse,tir-split", "cse,tir-split-constant-packing"]),
        (["weft-opt", "-p", "func.func(canonical"], ["func.func(canonicalize"]),
        (["weft-opt", "-t", "llvm-"], ["llvm-ir"]),
        (["weft-opt", "--bis"], ["--bisect"]),
        (["weft-reduce", "--diff"], ["--differs"]),
    ],
)
def test_bash(line: list[str], expected: list[str]) -> None:
    assert set(expected) <= set(completed(line))
    assert all(word.startswith(line[-1]) for word in completed(line))


@pytest.mark.parametrize("shell", SHELLS)
def test_every_shell_knows_all_commands(shell: str) -> None:
    text = completion(shell)
    assert [name for name in COMMANDS if name not in text] == []
    assert "tir-split" in text
    program = shutil.which(shell)
    if program is not None:
        subprocess.run([program, "-n"], input=text, text=True, check=True)


@pytest.mark.parametrize("words", [["-V"], ["-v"], ["--version"]])
def test_versions(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert execute(words) == 0
    first = capsys.readouterr().out
    assert first.startswith("weft ")
    assert WeftOptMain(args=words).execute() == 0
    assert capsys.readouterr().out == first


def test_help(capsys: pytest.CaptureFixture[str]) -> None:
    assert execute(["help"]) == 0
    assert "usage: weft COMMAND" in capsys.readouterr().out
    with pytest.raises(SystemExit):
        execute(["help", "run"])
    assert "usage: weft run" in capsys.readouterr().out
