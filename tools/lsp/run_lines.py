"""`RUN:` and `CHECK:` lines of a test."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import unified_diff
from pathlib import Path
from typing import Final

from weft.support.errors import CompileError

_RUN = re.compile(r"^\s*//\s*RUN:\s*(.*?)\s*$", re.MULTILINE)
_PREFIX = re.compile(r"--check-prefix(?:es)?[= ]([\w,-]+)")
_CHECK = re.compile(r"^\s*//\s*([A-Z][A-Z0-9_-]*?)(?:-(?:NEXT|SAME|NOT|LABEL|DAG|COUNT-\d+|EMPTY))?:", re.MULTILINE)
_SUFFIXED = re.compile(r"-(?:NEXT|SAME|NOT|LABEL|DAG|COUNT-\d+|EMPTY):$")
_SECONDS: Final = 60


@dataclass(frozen=True)
class RunLine:
    """`line` counts from 0."""

    line: int
    command: str

    @property
    def words(self) -> list[str] | None:
        """The words of the first command if that is weft-opt."""
        first = re.split(r"\s(?:\||2?>|&&|;|<)", self.command)[0]
        try:
            words = shlex.split(first)
        except ValueError:
            return None
        while words and words[0] == "not":
            words = words[1:]
        return words[1:] if words and Path(words[0]).name == "weft-opt" else None

    @property
    def prefixes(self) -> list[str]:
        """The prefixes of its CHECK lines; empty without filecheck."""
        if "filecheck" not in self.command.lower():
            return []
        return [p for found in _PREFIX.findall(self.command) for p in found.split(",")] or ["CHECK"]


def run_lines(content: str) -> list[RunLine]:
    """A trailing backslash joins the next line."""
    found: list[RunLine] = []
    pending = ""
    begun = 0
    for match in _RUN.finditer(content):
        line = content.count("\n", 0, match.start(1))
        begun = begun if pending else line
        pending += match[1]
        if pending.endswith("\\"):
            pending = pending[:-1]
            continue
        found.append(RunLine(begun, pending))
        pending = ""
    return found


@dataclass(frozen=True)
class PrefixMistake:
    line: int
    message: str


def prefix_mistakes(content: str) -> Iterator[PrefixMistake]:
    """Yields CHECK lines without a RUN line, and RUN lines without CHECK lines."""
    runs = run_lines(content)
    checked = {prefix: run.line for run in runs for prefix in run.prefixes}
    if not checked:
        return
    written: dict[str, int] = {}
    for match in _CHECK.finditer(content):
        written.setdefault(match[1], content.count("\n", 0, match.start(1)))
    for prefix, line in written.items():
        looks_like_one = _SUFFIXED.search(_whole(content, prefix)) is not None
        if prefix not in checked and prefix != "RUN" and looks_like_one:
            yield PrefixMistake(line, f"no RUN line checks the prefix {prefix}")
    for prefix, line in checked.items():
        if prefix not in written:
            yield PrefixMistake(line, f"no line of this file has the prefix {prefix}")


def _whole(content: str, prefix: str) -> str:
    match = re.search(rf"//\s*({re.escape(prefix)}(?:-[A-Z]+)?:)", content)
    return "" if match is None else match[1]


def output_of(run: RunLine, content: str, file: Path) -> str:
    """The text of the file need not be saved. Raises `CompileError` if weft-opt fails."""
    words = run.words
    if words is None:
        raise CompileError("this RUN line runs no weft-opt")
    with tempfile.TemporaryDirectory() as folder:
        program = Path(folder, file.name)
        program.write_text(content, encoding="utf-8")
        known = {"%s": str(program), "%S": str(file.parent), "%t": str(Path(folder, "t"))}
        words = [re.sub(r"%[sSt]", lambda m: known[m[0]], word) for word in words]
        command = [sys.executable, "-m", "weft.tools.weft_opt", *words]
        try:
            done = subprocess.run(
                command, cwd=file.parent, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=_SECONDS,
                check=False,
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            raise CompileError(f"weft-opt takes longer than {_SECONDS} s") from None
    if done.returncode != 0 and "not " not in run.command:
        raise CompileError(done.stderr.strip().removeprefix("error: ") or f"weft-opt ended with {done.returncode}")
    return done.stdout


def difference(before: str, after: str) -> str:
    return "".join(unified_diff(before.splitlines(True), after.splitlines(True), "before", "after", n=3))


_VALUE = re.compile(r"%[\w$.-]+")


def check_lines(output: str, prefix: str) -> dict[str, list[str]]:
    """Returns lines by the symbol of a top-level operation; patterns replace names of values."""
    found: dict[str, list[str]] = {}
    names: dict[str, str] = {}
    lines: list[str] = []

    def pattern(match: re.Match[str]) -> str:
        name = match[0]
        if name in names:
            return f"%[[{names[name]}]]"
        base = re.sub(r"\W", "", name.removeprefix("%")).upper()
        base = base if base and not base[0].isdigit() else f"V{base}"
        variable, number = base, 1
        while variable in names.values():
            number += 1
            variable = f"{base}_{number}"
        names[name] = variable
        return rf"%[[{variable}:\w+]]"

    for line in output.splitlines():
        symbol = re.match(r"(?:  )?[a-z_]+\.[a-z_.]+ .*?@([\w$.-]+)", line)
        if symbol is not None:
            names.clear()
            lines = found.setdefault(symbol[1], [])
            lines.append(f"// {prefix}-LABEL: {_VALUE.sub(pattern, _escaped(line.strip()))}")
        elif lines and line.strip() not in ("", "}", "builtin.module {"):
            lines.append(f"// {prefix}-NEXT:  {_VALUE.sub(pattern, _escaped(line.rstrip()))}")
        elif lines and line.rstrip() in ("  }", "}"):
            lines = []
    return found


def _escaped(line: str) -> str:
    return line.replace("[[", "{{\\[\\[}}")


def with_checks(content: str, lines: dict[str, list[str]], prefix: str, starts: Sequence[tuple[str, int]]) -> str:
    """Replace the CHECK lines of `prefix`: those of a symbol before the line (from 0) in `starts`; the others at the
    end."""
    own = re.compile(rf"^\s*//\s*{re.escape(prefix)}(?:-(?:NEXT|SAME|NOT|LABEL|DAG|COUNT-\d+|EMPTY))?:")
    places = {line: symbol for symbol, line in starts if symbol in lines}
    written: list[str] = []
    for number, line in enumerate(content.split("\n")):
        if number in places:
            written += lines[places[number]]
        if not own.match(line):
            written.append(line)
    rest = [line for symbol, own_lines in lines.items() if symbol not in places.values() for line in own_lines]
    return "\n".join([*written, *([*rest, ""] if rest else [])])
