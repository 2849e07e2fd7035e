"""Progress bars of long work on a terminal, by `rich` if it is installed (extra `progress`)."""

from __future__ import annotations

import importlib
import sys
from types import TracebackType
from typing import Any


class Progress:
    """A bar on standard error during a `with` block; does nothing without a terminal or rich."""

    def __init__(self, subject: str, total: int) -> None:
        self._subject, self._total = subject, total
        self._bar: Any = None
        self._task: Any = None

    def __enter__(self) -> None:
        if self._total < 2 or not sys.stderr.isatty():
            return
        try:
            rich: Any = importlib.import_module("rich.progress")
            console: Any = importlib.import_module("rich.console")
        except ImportError:
            return
        self._bar = rich.Progress(console=console.Console(stderr=True), transient=True)
        self._bar.start()
        self._task = self._bar.add_task(self._subject, total=self._total)

    def advance(self) -> None:
        """Advance by one; thread-safe."""
        if self._bar is not None:
            self._bar.advance(self._task)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._bar is not None:
            self._bar.stop()
