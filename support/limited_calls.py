"""Calls in child processes with limits, because they may crash, hang or exhaust memory: a failed call is a result.

A child runs calls of one function, which may cache in its module, until it ends or has leaked much memory. A timer in
the child ends it after the time limit, even if its parent is gone.
"""

from __future__ import annotations

import atexit
import os
import pickle
import signal
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal, ParamSpec, TypeVar, cast

from weft.support.isolation import Worker

P = ParamSpec("P")
R = TypeVar("R")

_GRACE: Final = 60.0
"""Seconds beyond the time limit of a call for a child to start, import the function and answer."""
_STATM: Final = Path("/proc/self/statm")


@dataclass(frozen=True)
class Limits:
    """Limits of a call."""

    seconds: float = 30.0
    memory_bytes: int = 8 << 30
    """The address space that the call may use in addition to that at its start; 0 for no limit. Enforced on Linux
    only."""


@dataclass(frozen=True)
class Failure:
    """A failed call."""

    kind: Literal["error", "time", "memory", "crash"]
    reason: str

    def __str__(self) -> str:
        return self.reason


@dataclass(frozen=True)
class _Reply:
    value: object
    grown_bytes: int
    """Growth of the address space since before the first call, except by calls without a limit."""


def limited_call(limits: Limits, function: Callable[P, R], *arguments: P.args, **keywords: P.kwargs) -> R | Failure:
    """Returns `function(*arguments)` of a child process, which finds `function` by its name in its module, or the
    failure. Concurrent calls use separate children."""
    worker = _idle_worker(function) or Worker(own_session=True)
    timer = threading.Timer(limits.seconds + _GRACE, worker.kill)
    timer.daemon = True
    timer.start()
    try:
        failure, reply = worker.call(_run, (limits, function, arguments), keywords)
    except (EOFError, OSError, pickle.UnpicklingError):
        return _ended(worker, limits)
    except BaseException:
        worker.end()  # the pipes may still contain the rest of a message
        raise
    finally:
        timer.cancel()
    if failure is not None:
        worker.end()
        return Failure("error", str(reply))
    found = cast("_Reply", reply)
    if limits.memory_bytes and found.grown_bytes > limits.memory_bytes // 4:
        worker.end()
    else:
        with _lock:
            _idle.setdefault(function, []).append(worker)
    return cast("R | Failure", found.value)


def _ended(worker: Worker, limits: Limits) -> Failure:
    words = worker.last_words()
    status, was_killed = worker.status, worker.was_killed
    worker.end()
    if was_killed or (sys.platform != "win32" and status == -signal.SIGALRM):
        return Failure("time", f"it takes longer than {limits.seconds:g} s")
    if sys.platform != "win32" and status == -signal.SIGKILL:
        return Failure("memory", "its process was killed, as systems without memory do")
    if "out of memory" in words.lower() or "MemoryError" in words:
        return Failure("memory", f"it needs more than {limits.memory_bytes / 2**30:.3g} GiB: {words}")
    if status is not None and status < 0:
        return Failure("crash", f"its process was ended by {_signal_name(-status)}: {words}")
    return Failure("crash", f"its process ended: {words}")


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


_lock = threading.Lock()
_idle: dict[Callable[..., Any], list[Worker]] = {}
"""Maps a function to its idle children."""


def _idle_worker(function: Callable[..., Any]) -> Worker | None:
    """Exclude children of the process that was forked."""
    with _lock:
        idle = _idle.get(function, [])
        while idle:
            worker = idle.pop()
            if worker.owner == os.getpid():
                return worker
    return None


@atexit.register
def end_idle_children() -> None:
    for function in [*_idle]:
        while (worker := _idle_worker(function)) is not None:
            worker.end()


def _after_fork() -> None:
    """Another thread may have held the lock at the fork."""
    global _lock
    _lock = threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


# Functions that run in the child


_began_bytes: int | None = None


def _run(limits: Limits, function: Callable[..., object], arguments: tuple[Any, ...], **keywords: object) -> _Reply:
    global _began_bytes
    now = _address_space()
    if _began_bytes is None:
        _began_bytes = now
    _limit_memory(now + limits.memory_bytes if now and limits.memory_bytes else 0)
    _limit_time(limits.seconds)
    try:
        value = function(*arguments, **keywords)
    except MemoryError:
        value = Failure("memory", f"it needs more than {limits.memory_bytes / 2**30:.3g} GiB")
    except Exception as error:  # noqa: BLE001 (the outermost frame: whatever it is becomes a result)
        text = str(error).strip().removeprefix("error: ")
        value = Failure("error", text if getattr(error, "message", None) else f"{type(error).__name__}: {text}")
    finally:
        _limit_time(0.0)
        _limit_memory(0)
    grown = _address_space() - _began_bytes
    if not limits.memory_bytes:
        _began_bytes += grown
    return _Reply(value, grown)


def _limit_time(seconds: float) -> None:
    """Let the system end this process after `seconds`; 0 removes the limit."""
    if sys.platform != "win32":
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.setitimer(signal.ITIMER_REAL, seconds)


def _limit_memory(size: int) -> None:
    """0 removes the limit."""
    if sys.platform == "linux":
        import resource

        _, hard = resource.getrlimit(resource.RLIMIT_AS)
        resource.setrlimit(resource.RLIMIT_AS, (size or hard, hard))


def _address_space() -> int:
    """Returns 0 if the bytes are unknown."""
    try:
        return int(_STATM.read_text().split()[0]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError):
        return 0
