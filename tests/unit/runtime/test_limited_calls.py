"""Calls in child processes that crash, hang, fill the memory or leak are results, and the next call works."""

import ctypes
import operator
import os
import pickle
import signal
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from weft.support import limited_calls
from weft.support.limited_calls import Failure, Limits, limited_call
from weft.support.target import Target

PROCESS = "__import__('os').getpid()"
SHORT = Limits(seconds=0.2)
LITTLE = Limits(memory_bytes=64 << 20)


def test_a_call_has_its_result() -> None:
    limits = Limits()
    assert limited_call(limits, operator.add, 2, 3) == 5
    process = limited_call(limits, os.getpid)
    assert process != os.getpid() and process == limited_call(limits, os.getpid)
    assert limited_call(limits, int, "77", base=8) == 63


@pytest.mark.parametrize(
    ("limits", "function", "arguments", "failure"),
    [
        (
            Limits(),
            Target.parse,
            ("llwm",),
            Failure("error", "unknown target kind 'llwm', did you mean 'llvm'? [target.unknown-kind]"),
        ),
        (Limits(), operator.truediv, (1, 0), Failure("error", "ZeroDivisionError: division by zero")),
        (SHORT, time.sleep, (100,), Failure("time", "it takes longer than 0.2 s")),
        (LITTLE, bytearray, (1 << 30,), Failure("memory", "it needs more than 0.0625 GiB")),
        (Limits(), os.abort, (), "its process was ended by SIGABRT"),
        (Limits(), ctypes.string_at, (8,), "its process was ended by SIGSEGV"),
        (Limits(), os._exit, (3,), "its process ended: its process ended with status 3"),
        (Limits(), os.kill, (0, signal.SIGKILL), "its process was killed, as systems without memory do"),
    ],
    ids=["error of weft", "error", "time", "memory", "abort", "segmentation fault", "exit", "killed"],
)
@pytest.mark.skipif(sys.platform != "linux", reason="limits of memory, signals")
def test_a_failure_is_a_result_and_the_next_call_works(
    limits: Limits, function: object, arguments: tuple[object, ...], failure: Failure | str
) -> None:
    found = limited_call(limits, function, *arguments)  # pyright: ignore[reportArgumentType, reportCallIssue]
    assert isinstance(found, Failure)
    assert found == failure if isinstance(failure, Failure) else str(found).startswith(failure)
    assert limited_call(Limits(), operator.add, 2, 3) == 5


def test_a_hanging_child_of_a_child_ends_too() -> None:
    found = limited_call(SHORT, os.system, "sleep 100")
    assert isinstance(found, Failure) and found.kind == "time"


def test_a_child_that_has_grown_is_replaced() -> None:
    first = limited_call(LITTLE, eval, PROCESS)
    assert limited_call(LITTLE, eval, PROCESS) == first
    # 32 MiB stay behind.
    assert limited_call(LITTLE, eval, "setattr(__import__('os'), 'left', bytes(32 << 20))") is None
    assert limited_call(LITTLE, eval, PROCESS) != first


def test_a_child_runs_calls_of_one_function() -> None:
    first = limited_call(Limits(), eval, PROCESS)
    assert limited_call(Limits(), os.getpid) != first == limited_call(Limits(), eval, PROCESS)


def test_what_calls_without_a_limit_leave_is_no_growth() -> None:
    free = Limits(memory_bytes=0)
    first = limited_call(LITTLE, eval, PROCESS)
    assert limited_call(free, eval, "setattr(__import__('os'), 'left', bytes(128 << 20))") is None
    assert limited_call(free, eval, PROCESS) == limited_call(LITTLE, eval, PROCESS) == first
    assert isinstance(limited_call(LITTLE, bytearray, 1 << 30), Failure)


def test_threads_have_children_of_their_own() -> None:
    sleep_and_tell = "import os, time; time.sleep(0.2)"
    with ThreadPoolExecutor(2) as pool:
        assert [*pool.map(lambda _: limited_call(Limits(), exec, sleep_and_tell), range(2))] == [None, None]
    assert len(limited_calls._idle[exec]) >= 2


def test_an_interrupted_call_leaves_no_child(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    limited_calls.end_idle_children()
    monkeypatch.setattr(limited_calls.Worker, "call", interrupted)
    with pytest.raises(KeyboardInterrupt):
        limited_call(Limits(), os.getpid)
    assert not any(limited_calls._idle.values())


def test_what_cannot_be_sent_is_the_callers_error() -> None:
    with pytest.raises((AttributeError, pickle.PicklingError), match="pickle"):
        limited_call(Limits(), lambda: 1)
