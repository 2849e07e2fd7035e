"""Executors by name, and the replies of their workers.

Work is a function of picklable values, so any `concurrent.futures` executor works. `Fleet` hides how engines report
dead workers and lost connections.
"""

from __future__ import annotations

import importlib
import socket
import threading
from collections.abc import Callable, Generator
from concurrent.futures import CancelledError, Executor, Future, InvalidStateError, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache, partial
from time import monotonic
from typing import Any, Final, Generic, ParamSpec, Protocol, TypeVar

from weft.support.errors import CompileError
from weft.support.limited_calls import Failure
from weft.support.machine_lease import machine_lease
from weft.tuning.records import machine_kind, versions

P = ParamSpec("P")
T = TypeVar("T")

PATIENCE: Final = 60.0
"""Seconds without a connection, or without a first worker, after which a search ends."""
_PAUSE: Final = 0.2
_FORMS: Final = "a number of processes, dask:ADDRESS, ray or ray:ADDRESS"


@dataclass(frozen=True)
class WorkerFacts:
    host: str
    machine: str
    """The kind of the machine (`machine_kind`)."""
    versions: str


@dataclass(frozen=True)
class Reply(Generic[T]):
    facts: WorkerFacts
    value: T


@cache
def worker_facts() -> WorkerFacts:
    return WorkerFacts(socket.gethostname(), machine_kind(), versions())


def sharing(function: Callable[..., T], *arguments: object) -> Reply[T]:
    with machine_lease(exclusive=False):
        return Reply(worker_facts(), function(*arguments))


def alone(function: Callable[..., T], *arguments: object) -> Reply[T]:
    with machine_lease(exclusive=True):
        return Reply(worker_facts(), function(*arguments))


class Connection(Protocol):
    name: str

    def submit(self, function: Callable[..., Any], *arguments: object) -> Future[Any]:
        """How the future is cancelled or fails depends on the engine."""
        ...

    def generation(self) -> int:
        """The number of the current connection, or 0; reconnects if lost. Calls of an earlier generation may never
        end."""
        ...

    def is_end_of_worker(self, error: BaseException) -> bool:
        """Whether workers died while they ran a call."""
        ...

    def num_workers(self) -> int:
        """Calls that can run at once."""
        ...

    def close(self) -> None: ...


@dataclass(eq=False)
class _SubmittedCall:
    function: Callable[..., Any]
    arguments: tuple[object, ...]
    result: Future[Any]
    generation: int = 0
    """Of the connection that it was submitted to, or 0."""


class Fleet(Executor):
    """Each call has one result: calls of a lost connection are submitted again. A call that kills workers repeatedly is
    a failure; for other errors, and without a connection for `patience` seconds, the future raises `CompileError`."""

    def __init__(self, connection: Connection, patience: float = PATIENCE) -> None:
        self._connection, self._patience = connection, patience
        self._calls: set[_SubmittedCall] = set()
        self._lock = threading.Lock()
        self._ends = threading.Event()
        self._watcher = threading.Thread(target=self._watch, daemon=True, name="weft-connection")
        self._watcher.start()

    @property
    def num_workers(self) -> int:
        return self._connection.num_workers()

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        call = _SubmittedCall(partial(fn, **kwargs) if kwargs else fn, args, Future())
        with self._lock:
            self._calls.add(call)
        self._start(call)
        return call.result

    def first_worker(self) -> WorkerFacts:
        """Raises `CompileError` if no worker answers."""
        call = self.submit(worker_facts)
        try:
            return call.result(self._patience)
        except TimeoutError:
            call.cancel()
            raise CompileError(f"no worker of {self._connection.name} answered in {self._patience:g} s") from None

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        self._ends.set()
        for call in self._under_way():
            call.result.cancel()
        self._watcher.join()
        self._connection.close()

    def _under_way(self) -> list[_SubmittedCall]:
        with self._lock:
            return [*self._calls]

    def _start(self, call: _SubmittedCall) -> None:
        """Leave the call to the watcher if there is no connection."""
        call.generation = self._connection.generation()
        if not call.generation:
            return
        try:
            future = self._connection.submit(call.function, *call.arguments)
        except Exception as error:  # noqa: BLE001 (each engine has its own errors)
            if self._connection.generation() == call.generation:
                self._end(call, self._error(error))
            else:
                call.generation = 0
            return
        call.result.add_done_callback(lambda result: future.cancel() if result.cancelled() else None)
        future.add_done_callback(partial(self._ended, call, call.generation))

    def _ended(self, call: _SubmittedCall, generation: int, future: Future[Any]) -> None:
        try:
            value = future.result()
        except CancelledError:
            if call.generation == generation:  # the watcher submits it again
                call.generation = 0
        except Exception as error:  # noqa: BLE001
            if self._connection.is_end_of_worker(error):
                reason = " ".join(str(error).split())
                self._end(call, Failure("crash", f"workers of {self._connection.name} ended with it: {reason}"))
            else:
                self._end(call, self._error(error))
        else:
            self._end(call, value)

    def _end(self, call: _SubmittedCall, value: object) -> None:
        """Set the result once: a call taken for lost may end twice."""
        with self._lock:
            self._calls.discard(call)
        with suppress(InvalidStateError):
            if isinstance(value, CompileError):
                call.result.set_exception(value)
            else:
                call.result.set_result(value)

    def _error(self, error: Exception) -> CompileError:
        *_, last = ["", *str(error).strip().splitlines()]  # errors of Ray contain a traceback
        return CompileError(f"{self._connection.name}: {type(error).__name__}: {last}")

    def _watch(self) -> None:
        answered = monotonic()
        while not self._ends.wait(_PAUSE):
            generation = self._connection.generation()
            if generation:
                answered = monotonic()
            for call in self._under_way():
                if call.result.done():
                    with self._lock:
                        self._calls.discard(call)
                elif generation and call.generation != generation:
                    self._start(call)
                elif monotonic() - answered > self._patience:
                    reason = f"{self._connection.name} has not answered for {self._patience:g} s"
                    self._end(call, CompileError(f"{reason}: the same command continues where this search ended"))


class _Dask:
    """A scheduler of Dask (`distributed`), whose client reconnects."""

    def __init__(self, address: str) -> None:
        self.name = f"dask:{address}"
        self._address = address
        self._library = _library("distributed", self.name, "dask")
        self._client = self._connected()
        self._lock = threading.Lock()
        self._generation = 1
        self._witness: Any = self._client.submit(worker_facts, pure=False)

    def _connected(self) -> Any:
        try:
            return self._library.Client(self._address, timeout=_CONNECT, set_as_default=False)
        except (OSError, ValueError) as error:  # TimeoutError is an OSError
            raise CompileError(f"{self.name}: there is no scheduler: {error}") from None

    def submit(self, function: Callable[..., Any], *arguments: object) -> Future[Any]:
        return self._client.get_executor(pure=False).submit(function, *arguments)

    def generation(self) -> int:
        with self._lock:
            is_new = self._client.status == "closed"
            if is_new:
                with suppress(CompileError):
                    self._client = self._connected()
            if self._client.status != "running":
                return 0
            # A client that lost its scheduler cancels all futures, including finished ones.
            if is_new or self._witness.status == "cancelled":
                self._generation += 1
                self._witness = self._client.submit(worker_facts, pure=False)
            return self._generation

    def is_end_of_worker(self, error: BaseException) -> bool:
        return type(error).__name__ == "KilledWorker"

    def num_workers(self) -> int:
        return sum(self._client.nthreads().values())

    def close(self) -> None:
        self._client.close()


class _Ray:
    """A cluster of Ray, or one started here. A driver does not survive its end."""

    def __init__(self, address: str) -> None:
        self.name = f"ray:{address}" if address else "ray"
        self._library = _library("ray", self.name, "ray")
        self._is_owner = not self._library.is_initialized()
        if self._is_owner:
            try:
                self._library.init(address=address or None, log_to_driver=False, logging_level="error")
            except (OSError, ValueError, RuntimeError) as error:
                raise CompileError(f"{self.name}: there is no cluster: {error}") from None
        self._remote = self._library.remote(_called)

    def submit(self, function: Callable[..., Any], *arguments: object) -> Future[Any]:
        return self._remote.remote(function, arguments).future()

    def generation(self) -> int:
        return int(self._library.is_initialized())

    def is_end_of_worker(self, error: BaseException) -> bool:
        return type(error).__name__ in _ENDS_OF_RAY_WORKERS

    def num_workers(self) -> int:
        return int(self._library.cluster_resources().get("CPU", 1))

    def close(self) -> None:
        if self._is_owner:
            self._library.shutdown()


_CONNECT: Final = 30
"""Seconds to wait for a scheduler."""
_ENDS_OF_RAY_WORKERS: Final = ("WorkerCrashedError", "NodeDiedError", "OutOfMemoryError", "LocalRayletDiedError")


def _called(function: Callable[..., Any], arguments: tuple[object, ...]) -> Any:
    return function(*arguments)


def _library(module: str, name: str, extra: str) -> Any:
    try:
        return importlib.import_module(module)
    except ImportError:
        raise CompileError(f"{name}: '{module}' is not installed: pip install 'weft[{extra}]'") from None


@contextmanager
def opened_executor(given: Executor | str, argument: str) -> Generator[Executor]:
    """An executor, or one by name: a number of processes, `dask:ADDRESS`, `ray` or `ray:ADDRESS`. Raises `CompileError`
    that names the argument, also if nothing answers."""
    if isinstance(given, Executor):
        yield given
        return
    engine, _, address = given.partition(":")
    if engine.isdecimal() and int(engine) and not address:
        executor: Executor = ThreadPoolExecutor(int(engine), "weft-worker")  # threads wait for their children
    elif engine == "dask" and address:
        executor = Fleet(_Dask(address))
    elif engine == "ray":
        executor = Fleet(_Ray(address))
    else:
        raise CompileError(f"{argument} is {_FORMS}; got '{given}'")
    try:
        yield executor
    finally:
        executor.shutdown(cancel_futures=True)


def check_runner(runner: Executor, kind: str) -> str:
    """Raises `CompileError` if programs are built for another kind of machine than the runners'."""
    facts = runner.first_worker() if isinstance(runner, Fleet) else runner.submit(worker_facts).result()
    if facts.machine not in (kind, machine_kind()):
        raise CompileError(
            f"runner '{facts.host}' is a machine of kind {facts.machine}, the target is for {kind}: name the CPU of the"
            ' runners in the target, as in "llvm -mcpu=..."'
        )
    return facts.machine
