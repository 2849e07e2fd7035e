"""Commands that another thread can cancel."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from threading import Lock, get_ident
from time import sleep
from typing import TypeVar

from weft.support.errors import CompileError

T = TypeVar("T")


class Cancellable:
    """Runs one function at a time, which another thread cancels by an exception, raised after native code (LLVM, a
    running kernel) has returned. States of a session are replaced only when a command has ended."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._thread: int | None = None
        self._is_sent = False

    def run(self, body: Callable[[], T]) -> T:
        """Raises `CompileError` if `body` is cancelled."""
        self._is_sent = False
        try:
            self._thread = get_ident()
            try:
                found = body()
            finally:
                with self._lock:
                    self._thread = None
            while self._is_sent:  # sent when the body had ended, and raised here
                sleep(0.001)
        except KeyboardInterrupt:
            raise CompileError("cancelled") from None
        else:
            return found
        finally:
            self._thread = None

    def cancel(self) -> bool:
        """Returns whether a function was running."""
        with self._lock:
            if self._thread is None:
                return False
            self._is_sent = True
            thread, error = ctypes.c_ulong(self._thread), ctypes.py_object(KeyboardInterrupt)
            ctypes.pythonapi.PyThreadState_SetAsyncExc(thread, error)
            return True
