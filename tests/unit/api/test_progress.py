"""The bar of long work: on terminals, where rich is installed."""

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
        def __init__(self, **options: Any) -> None:
            told.append("made")

        def start(self) -> None:
            told.append("start")

        def add_task(self, subject: str, total: int) -> int:
            told.append((subject, total))
            return 7

        def advance(self, task: int) -> None:
            told.append(task)

        def stop(self) -> None:
            told.append("stop")

    monkeypatch.setitem(sys.modules, "rich.progress", SimpleNamespace(Progress=Bar))  # pyright: ignore
    monkeypatch.setitem(sys.modules, "rich.console", SimpleNamespace(Console=lambda stderr: None))  # pyright: ignore
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    return told


def run(total: int) -> None:
    progress = Progress("work", total)
    with progress:
        for _ in range(total):
            progress.advance()


def test_a_bar_on_a_terminal(told: list[Any]) -> None:
    run(2)
    assert told == ["made", "start", ("work", 2), 7, 7, "stop"]


def test_no_bar_for_one_piece_of_work(told: list[Any]) -> None:
    run(1)
    assert not told


def test_no_bar_elsewhere(told: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: False)
    run(3)
    assert not told


def test_no_bar_without_rich(told: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "rich.progress", None)
    run(3)
    assert not told
