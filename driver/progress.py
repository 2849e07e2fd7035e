"""Progress of long work on a terminal: a bar by `rich` (extra `progress`), else one plain line."""

from __future__ import annotations

import importlib
import sys
from threading import Lock
from time import perf_counter
from types import TracebackType
from typing import Any


class Progress:
    """Shows `compiling kernels 12/48, 3 in cache, 9 s` on standard error while a `with` block runs; nothing if that is
    no terminal, or for fewer than two items."""

    def __init__(self, subject: str, total: int, note: str = "") -> None:
        self._subject, self._total, self._note = subject, total, note
        self._done, self._start, self._width = 0, 0.0, 0
        self._lock = Lock()
        self._is_shown = False
        self._bar: Any = None
        self._task: Any = None

    def __enter__(self) -> None:
        if self._total < 2 or not sys.stderr.isatty():
            return
        self._is_shown, self._start = True, perf_counter()
        try:
            rich: Any = importlib.import_module("rich.progress")
            console: Any = importlib.import_module("rich.console")
        except ImportError:
            self._write()
            return
        columns = (rich.TextColumn("{task.description}"), rich.BarColumn(), rich.TimeElapsedColumn())
        self._bar = rich.Progress(*columns, console=console.Console(stderr=True), transient=True)
        self._bar.start()
        self._task = self._bar.add_task(self._count(), total=self._total)

    def advance(self) -> None:
        with self._lock:
            self._done += 1
            if self._bar is not None:
                self._bar.update(self._task, advance=1, description=self._count())
            elif self._is_shown:
                self._write()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._bar is not None:
            self._bar.stop()
        elif self._is_shown:
            sys.stderr.write(f"\r{' ' * self._width}\r")
            sys.stderr.flush()

    def _count(self) -> str:
        return f"{self._subject} {self._done}/{self._total}{self._note}"

    def _write(self) -> None:
        line = f"{self._count()}, {perf_counter() - self._start:.0f} s"
        sys.stderr.write(f"\r{line.ljust(self._width)}")
        sys.stderr.flush()
        self._width = len(line)
