"""Function calls in a worker process.

LLVM aborts the process when a back end cannot select an instruction, for contradictory features, and for mistakes in
inline assembly; the worker turns this into an error. It starts with the first call and ends with this process. Requests
and replies are pickled: a function with its arguments; the class of an error (or None) with its message or the result.
"""

from __future__ import annotations

import atexit
import os
import pickle
import re
import signal
import subprocess
import sys
import tempfile
import threading
from contextlib import suppress
from typing import TYPE_CHECKING, Any, BinaryIO, Final, ParamSpec

from weft.support.errors import CompileError, InternalError
from weft.support.garbage import fewer_collections

if TYPE_CHECKING:
    from collections.abc import Callable

_START: Final = "from weft.support.isolation import serve; serve()"
_FATAL: Final = re.compile(r"LLVM ERROR: |UNREACHABLE executed|(?:^|: )error: ")

P = ParamSpec("P")


def isolated(subject: str, function: Callable[P, bytes], *arguments: P.args, **keywords: P.kwargs) -> bytes:
    """Returns `function(*arguments)`; the worker finds `function` by its name in its module.

    Raises its errors, and `CompileError` with the worker's last line if the call ends it; `subject` names what is
    compiled.
    """
    with _lock:
        worker = _worker()
        try:
            failure, result = worker.call(function, arguments, keywords)
        except (EOFError, BrokenPipeError, pickle.UnpicklingError) as error:
            reason = worker.last_words()
            _end_worker()
            raise CompileError(f"LLVM cannot make {subject}: {reason}") from error
        except BaseException:
            _end_worker()  # the pipes may still contain the rest of a message
            raise
    if failure is not None:
        raise failure(result)
    return result


class Worker:
    """`multiprocessing` would run the main module again, which breaks scripts without `if __name__ == "__main__"`."""

    def __init__(self, *, own_session: bool = False) -> None:
        """A worker with `own_session` receives no keyboard interrupts, and its children end with it."""
        if not sys.executable:
            raise CompileError("weft runs work in separate processes: sys.executable must be Python")
        self.owner = os.getpid()
        self._has_session = own_session and os.name == "posix"
        self.was_killed = False
        self._log = tempfile.TemporaryFile()  # noqa: SIM115
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-c", _START],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
            start_new_session=self._has_session,
        )

    def call(self, *request: object) -> tuple[type[Exception] | None, Any]:
        """Call a function with arguments and keywords; returns the class and message of the error, or None and the
        result. Raises `EOFError`, `BrokenPipeError` and `pickle.UnpicklingError` if the worker ends."""
        self.send(*request)
        return self.receive()

    def send(self, *request: object) -> None:
        if self._process.stdin is None:
            raise EOFError
        pickle.dump(request, self._process.stdin)
        self._process.stdin.flush()

    def receive(self) -> tuple[type[Exception] | None, Any]:
        """Returns the oldest reply."""
        if self._process.stdout is None:
            raise EOFError
        return pickle.load(self._process.stdout)

    def last_words(self) -> str:
        status = self._process.wait()
        self._log.seek(0)
        lines = [line.strip() for line in self._log.read().decode(errors="replace").splitlines() if line.strip()]
        fatal = [line for line in lines if _FATAL.search(line)]
        return (fatal or lines or [f"its process ended with status {status}"])[-1]

    @property
    def status(self) -> int | None:
        """Negative for a signal; None while the process runs."""
        return self._process.poll()

    def kill(self) -> None:
        """A waiting `call` then raises `EOFError`."""
        self.was_killed = True
        if self._has_session:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self._process.pid, signal.SIGKILL)
        self._process.kill()

    def end(self) -> None:
        self.kill()
        self._process.wait()
        for stream in (self._process.stdin, self._process.stdout, self._log):
            if stream is not None:
                with suppress(BrokenPipeError):  # unsent data
                    stream.close()


_lock = threading.Lock()
_current: Worker | None = None


def _worker() -> Worker:
    global _current
    if _current is None or _current.owner != os.getpid():
        _current = Worker()
    return _current


@atexit.register
def _end_worker() -> None:
    global _current
    if _current is not None and _current.owner == os.getpid():
        _current.end()
    _current = None


def _after_fork() -> None:
    """Another thread may have held the lock at the fork."""
    global _lock
    _lock = threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


def serve() -> None:
    requests, replies = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # text that libraries print must not mix with replies
    with fewer_collections():
        _answer(requests, replies)


def _answer(requests: BinaryIO, replies: BinaryIO) -> None:
    while True:
        try:
            function, arguments, keywords = pickle.load(requests)
        except (EOFError, KeyboardInterrupt):
            return
        try:
            reply = None, function(*arguments, **keywords)
        except CompileError as error:
            reply = CompileError, str(error).removeprefix("error: ")
        except InternalError as error:
            reply = InternalError, str(error.args[0])
        pickle.dump(reply, replies)
        replies.flush()
