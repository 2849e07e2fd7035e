"""The progress of long work: a bar on terminals by rich, or a line without it."""

import re
import sys
from types import SimpleNamespace
from typing import Any

import pytest

from weft.driver.progress import Progress


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """What a bar is told; rich is a stand-in, and standard error a terminal."""
    told: list[Any] = []

    class Bar:
        def __init__(self, *columns: Any, **options: Any) -> None:
            told.append("made")

        def start(self) -> None:
            told.append("start")

        def add_task(self, description: str, total: int) -> int:
            told.append((description, total))
            return 7

        def update(self, task: int, advance: int, description: str) -> None:
            told.append((task, advance, description))

        def stop(self) -> None:
            told.append("stop")

    parts = {name: lambda *_: None for name in ("TextColumn", "BarColumn", "TimeElapsedColumn")}
    monkeypatch.setitem(sys.modules, "rich.progress", SimpleNamespace(Progress=Bar, **parts))  # pyright: ignore
    monkeypatch.setitem(sys.modules, "rich.console", SimpleNamespace(Console=lambda stderr: None))  # pyright: ignore
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    return told


def run(total: int) -> None:
    progress = Progress("work", total, ", 3 in cache")
    with progress:
        for _ in range(total):
            progress.advance()


def test_a_bar_on_a_terminal(told: list[Any]) -> None:
    run(2)
    texts = [f"work {done}/2, 3 in cache" for done in range(3)]
    assert told == ["made", "start", (texts[0], 2), (7, 1, texts[1]), (7, 1, texts[2]), "stop"]


def test_no_bar_for_one_piece_of_work(told: list[Any]) -> None:
    run(1)
    assert not told


def test_no_bar_elsewhere(told: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: False)
    run(3)
    assert not told


def test_a_line_without_rich(
    told: list[Any], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "rich.progress", None)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    run(2)
    assert not told
    lines = capsys.readouterr().err.split("\r")
    assert [re.sub(r"\d+ s", "N s", line) for line in lines[:4]] == [
        "",
        *(f"work {done}/2, 3 in cache, N s" for done in range(3)),
    ]
    assert not lines[4].strip()
    assert not lines[5]
