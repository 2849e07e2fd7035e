"""Executors of searches: calls that are lost with a connection, workers that end, names, leases of machines."""

from __future__ import annotations

import importlib
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from weft.support.errors import CompileError
from weft.support.limited_calls import Failure
from weft.support.machine_lease import machine_lease
from weft.tuning import executors
from weft.tuning.executors import Fleet, check_runner, opened_executor, sharing, worker_facts
from weft.tuning.task_scheduler import expected_gain


class DeadWorkerError(Exception):
    """What an engine raises when workers ended."""


class Engine:
    """Calls wait until they are run; connections are lost on request."""

    name = "engine:1"

    def __init__(self) -> None:
        self.number = 1
        self.waiting: list[tuple[Callable[..., Any], tuple[object, ...], Future[Any]]] = []
        self.submitted = threading.Semaphore(0)

    def submit(self, function: Callable[..., Any], *arguments: object) -> Future[Any]:
        future: Future[Any] = Future()
        self.waiting.append((function, arguments, future))
        self.submitted.release()
        return future

    def generation(self) -> int:
        return self.number

    def is_end_of_worker(self, error: BaseException) -> bool:
        return isinstance(error, DeadWorkerError)

    def num_workers(self) -> int:
        return 3

    def close(self) -> None:
        pass

    def run(self) -> None:
        """Run what is submitted next, when it is."""
        assert self.submitted.acquire(timeout=30)
        function, arguments, future = self.waiting.pop(0)
        if future.set_running_or_notify_cancel():
            try:
                future.set_result(function(*arguments))
            except Exception as error:  # noqa: BLE001
                future.set_exception(error)

    def drop(self) -> Future[Any]:
        """Forget what is submitted next."""
        assert self.submitted.acquire(timeout=30)
        return self.waiting.pop(0)[-1]


def test_each_call_has_one_result_though_its_connection_is_lost() -> None:
    engine, ran = Engine(), list[int]()
    fleet = Fleet(engine)
    first, second = fleet.submit(ran.append, 1), fleet.submit(ran.append, 2)
    silent, cancelled = engine.drop(), engine.drop()
    engine.number = 0
    cancelled.cancel()
    while_down = fleet.submit(ran.append, 3)
    assert not engine.waiting
    engine.number = 2
    for _ in range(3):
        engine.run()
    silent.set_result("late")  # it ran after all
    assert [first.result(9), second.result(9), while_down.result(9)] == [None] * 3
    assert sorted(ran) == [1, 2, 3] and not engine.waiting
    fleet.shutdown()


def test_a_connection_that_does_not_come_back_ends_calls() -> None:
    engine = Engine()
    fleet = Fleet(engine, patience=0.1)
    engine.number = 0
    lost = fleet.submit(divmod, 7, 2)
    with pytest.raises(CompileError, match=r"engine:1 has not answered for 0\.1 s: the same command continues where"):
        lost.result(30)
    with pytest.raises(CompileError, match=r"no worker of engine:1 answered in 0\.1 s|has not answered for 0\.1 s"):
        fleet.first_worker()
    fleet.shutdown()


def test_ends_of_workers_are_failures_and_errors_are_errors() -> None:
    def die() -> None:
        raise DeadWorkerError("4 workers\n  died")

    engine = Engine()
    fleet = Fleet(engine)
    died, wrong, right = fleet.submit(die), fleet.submit(divmod, 1, 0), fleet.submit(divmod, 7, 2)
    for _ in range(3):
        engine.run()
    assert died.result(9) == Failure("crash", "workers of engine:1 ended with it: 4 workers died")
    with pytest.raises(CompileError, match="engine:1: ZeroDivisionError: "):
        wrong.result(9)
    assert right.result(9) == (3, 1) and fleet.num_workers == 3
    given_up = fleet.submit(divmod, 7, 2)
    fleet.shutdown()
    assert given_up.cancelled() and engine.drop().cancelled()


def test_names_of_executors(monkeypatch: pytest.MonkeyPatch) -> None:
    with opened_executor("2", "executor") as processes:
        assert processes.submit(sharing, divmod, 7, 2).result(9).value == (3, 1)
    for name in ("0", "two", "dask", "2:3", "-1"):
        with pytest.raises(CompileError, match=f"runner is a number of processes, dask:ADDRESS.*; got '{name}'"):
            opened_executor(name, "runner").__enter__()

    def missing(name: str) -> None:
        raise ImportError(name)

    monkeypatch.setattr(importlib, "import_module", missing)
    for name, module, extra in (("dask:tcp://h:1", "distributed", "dask"), ("ray", "ray", "ray")):
        message = rf"{name}: '{module}' is not installed: pip install 'weft\[{extra}\]'"
        with pytest.raises(CompileError, match=message):
            opened_executor(name, "executor").__enter__()


def test_runners_are_of_the_kind_that_programs_are_built_for(monkeypatch: pytest.MonkeyPatch) -> None:
    facts = replace(worker_facts(), host="h", machine="x86_64 cray1")
    monkeypatch.setattr(executors, "worker_facts", lambda: facts)
    with ThreadPoolExecutor(1) as runner:
        assert check_runner(runner, "x86_64 cray1") == "x86_64 cray1"
        message = "runner 'h' is a machine of kind x86_64 cray1, the target is for x86_64 cray2: name the CPU"
        with pytest.raises(CompileError, match=message):
            check_runner(runner, "x86_64 cray2")


def test_what_measures_has_the_machine_alone_and_is_not_overtaken(tmp_path: Path) -> None:
    order: list[str] = []
    waits, builds = threading.Event(), threading.Event()

    def measure() -> None:
        waits.set()
        with machine_lease(exclusive=True, folder=tmp_path):
            order.append("measured")

    def build() -> None:
        builds.set()
        with machine_lease(exclusive=False, folder=tmp_path):
            order.append("built")

    with machine_lease(exclusive=False, folder=tmp_path):
        with machine_lease(exclusive=False, folder=tmp_path):
            order.append("both")
        measures, later = threading.Thread(target=measure), threading.Thread(target=build)
        measures.start()
        assert waits.wait(30)
        # It has the gate, or will have it: whoever comes when it has waits behind it.
        while not _is_locked(tmp_path):
            pass
        later.start()
        assert builds.wait(30) and order == ["both"]
        order.append("end")
    measures.join(30), later.join(30)
    assert order == ["both", "end", "measured", "built"]


def _is_locked(folder: Path) -> bool:
    import fcntl

    (gate,) = folder.glob("weft-gate-*")
    with gate.open("r+") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False


def test_batches_go_where_they_gain_most() -> None:
    # Each task has one batch first, the heaviest before others.
    assert expected_gain(1, [3.0], 0) > expected_gain(2, [1.0], 0) > expected_gain(9, [9.0, 9.0], 1)
    # w * (0.2 * (10 - 4) / 3 + 0.8 * 4 / 4), with the gains of three batches.
    assert expected_gain(2, [90.0, 10.0, 8.0, 5.0, 4.0], 4)[0] == pytest.approx(2 * (0.2 * 2 + 0.8 * 1))
    # Of two tasks of one time the one that still gains; of two that gain nothing the one that had fewer batches.
    assert expected_gain(1, [8.0, 6.0, 4.0], 2) > expected_gain(1, [4.0, 4.0, 4.0], 2)
    assert expected_gain(1, [4.0, 4.0], 2) > expected_gain(1, [4.0, 4.0], 3)
