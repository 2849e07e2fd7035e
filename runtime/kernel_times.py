"""Times of the kernels that compiled code calls.

The object of the calling function is linked again with functions that call the kernels and log start and end, or for a
trace the chunks of threads.
"""

from __future__ import annotations

import ctypes
import re
import statistics
import threading
import time
from array import array
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from weft.backends.llvm.jit import jit
from weft.backends.names import CALL_REGISTERED, symbol_name
from weft.runtime.call import Caller
from weft.runtime.native_runtime import PARALLEL_FOR, runtime_symbols
from weft.runtime.timing import native_runs
from weft.support.errors import CompileError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from weft.backends.llvm.compile import CodegenOptions
    from weft.backends.llvm.jit import JitModule
    from weft.runtime.compile_cache import CompiledKernel
    from weft.support.call_signature import Signature
    from weft.support.target import Target

_CALLED: Final = re.compile(r"^declare void @(kernel_\w+)\(([^()]*)\)$", re.MULTILINE)
_ROW: Final = 4
"""Words of a row of the log: kernel, start, end, thread."""
_FIRST_ROOM: Final = 1 << 12
"""Initial capacity of the log in calls of kernels; it grows."""
_HEAD: Final = """\
declare i32 @clock_gettime(i32, ptr)
declare ptr @pthread_self()

define internal i64 @now() {
  %time = alloca [2 x i64], align 8
  %done = call i32 @clock_gettime(i32 $clock, ptr %time)
  %seconds = load i64, ptr %time
  %place = getelementptr i64, ptr %time, i64 1
  %rest = load i64, ptr %place
  %scaled = mul i64 %seconds, 1000000000
  %sum = add i64 %scaled, %rest
  ret i64 %sum
}

define internal void @log(i64 %kernel, i64 %start, i64 %end) {
  %head = inttoptr i64 $log to ptr
  %count = atomicrmw add ptr %head, i64 1 monotonic
  %fits = icmp ult i64 %count, $room
  br i1 %fits, label %keep, label %done
keep:
  %row = mul i64 %count, 4
  %at = add i64 %row, 1
  %first = getelementptr i64, ptr %head, i64 %at
  store i64 %kernel, ptr %first
  %second = getelementptr i64, ptr %first, i64 1
  store i64 %start, ptr %second
  %third = getelementptr i64, ptr %first, i64 2
  store i64 %end, ptr %third
  %thread = call ptr @pthread_self()
  %number = ptrtoint ptr %thread to i64
  %fourth = getelementptr i64, ptr %first, i64 3
  store i64 %number, ptr %fourth
  br label %done
done:
  ret void
}
"""
_CHUNK: Final = -1
"""Number of chunks of parallel loops in the log."""
_LOOPS: Final = f"""
declare void @{PARALLEL_FOR}(ptr, ptr, i64)

define internal void @chunk(i64 %begin, i64 %end, ptr %task) {{
  %fn = load ptr, ptr %task
  %place = getelementptr ptr, ptr %task, i64 1
  %closure = load ptr, ptr %place
  %start = call i64 @now()
  call void %fn(i64 %begin, i64 %end, ptr %closure)
  %finish = call i64 @now()
  call void @log(i64 {_CHUNK}, i64 %start, i64 %finish)
  ret void
}}

define void @parallel_for.logged(ptr %fn, ptr %closure, i64 %extent) {{
  %task = alloca [2 x ptr], align 8
  store ptr %fn, ptr %task
  %place = getelementptr ptr, ptr %task, i64 1
  store ptr %closure, ptr %place
  call void @{PARALLEL_FOR}(ptr @chunk, ptr %task, i64 %extent)
  ret void
}}
"""


@dataclass(frozen=True)
class Event:
    """Work of a thread."""

    kernel: str
    """The symbol of the kernel, `@` and the name for the function itself, or empty for a chunk."""
    start: float
    """Seconds of `time.perf_counter`."""
    end: float
    thread: int
    """In order of first events; 0 is the caller."""


@dataclass(frozen=True)
class KernelTimes:
    """Seconds and calls by symbol."""

    seconds: Mapping[str, float]
    calls: Mapping[str, int]
    total: float
    runs: Sequence[Sequence[Event]] = ()
    """Events of each traced run, in order of their starts."""


def kernel_times(
    signature: Signature,
    text: str,
    kernels: Sequence[CompiledKernel],
    target: Target,
    symbols: Mapping[str, int],
    options: CodegenOptions,
    call: tuple[Sequence[object], Mapping[str, object]],
    runs: int,
    traced: bool = False,
) -> KernelTimes:
    """Measure the kernels of a function of `text`, LLVM IR; with `traced`, also chunks of parallel loops, for about 0.1
    us each.

    Returns medians of `runs` runs, after one warm-up run. Raises `CompileError` if the system has no POSIX clock, and
    as the call does.
    """
    clock = getattr(time, "CLOCK_MONOTONIC", None)
    if clock is None:
        raise CompileError("kernels are measured by clock_gettime, which this system lacks")
    room = _FIRST_ROOM
    while True:
        profiled = _Profiled(signature, text, kernels, target, symbols, options, int(clock), room, traced)
        found = profiled.run(call, runs)
        if found is not None:
            return found
        room = profiled.wanted


def timed_calls(
    name: str, function: Callable[..., object], call: tuple[Sequence[object], Mapping[str, object]], runs: int
) -> list[list[Event]]:
    """Returns an event per call, after one warm-up run."""
    positional, keywords = call
    function(*positional, **keywords)
    events: list[list[Event]] = []
    for _ in range(runs):
        start = time.perf_counter()
        function(*positional, **keywords)
        events.append([Event(f"@{name}", start, time.perf_counter(), 0)])
    return events


class _Profiled:
    """The log is `count, (kernel, nanoseconds), ...`."""

    def __init__(
        self,
        signature: Signature,
        text: str,
        kernels: Sequence[CompiledKernel],
        target: Target,
        symbols: Mapping[str, int],
        options: CodegenOptions,
        clock: int,
        room: int,
        traced: bool,
    ) -> None:
        self._function = f"@{signature.name}"
        self._clock, self._traced = clock, traced
        called = _CALLED.findall(text)
        self._names = [name for name, _ in called]
        self._room = room
        self._log = (ctypes.c_int64 * (1 + _ROW * room))()
        self.wanted = room
        runtime = runtime_symbols([text, *(kernel.ir for kernel in kernels)], target)
        head = _HEAD.replace("$clock", str(clock)).replace("$room", str(room))
        logging = [head.replace("$log", str(ctypes.addressof(self._log)))]
        loops: list[JitModule] = []
        if traced and PARALLEL_FOR in runtime:
            loops.append(jit("\n".join([*logging, _LOOPS]), target, runtime, options))
            runtime = {**runtime, PARALLEL_FOR: loops[0].address("parallel_for.logged")}
        logging += [_logging_function(at, name, types) for at, (name, types) in enumerate(called)]
        objects = [kernel.code for kernel in kernels]
        self._kernels = jit("\n".join(logging), target, {**symbols, **runtime}, options, objects=objects)
        inner = {name: self._kernels.address(f"{name}.logged") for name in self._names}
        module = jit(text, target, {**symbols, **runtime, **inner}, options)
        self._caller = Caller(
            signature,
            module.address(symbol_name(signature.name)),
            (module, self._kernels, self._log, loops),
            always_release_gil=PARALLEL_FOR in runtime,
            calls_registered=CALL_REGISTERED in runtime,
        )

    def run(self, call: tuple[Sequence[object], Mapping[str, object]], runs: int) -> KernelTimes | None:
        """Returns None if the log is shorter than `wanted`."""
        seconds_of = native_runs(self._caller, *call)
        seconds_of(1)
        totals = array("d")
        each: dict[str, list[float]] = {name: [] for name in self._names}
        calls: Counter[str] = Counter()
        traces: list[Sequence[Event]] = []
        for _ in range(runs):
            self._log[0] = 0
            start = time.perf_counter()
            totals.append(seconds_of(1))
            end = time.perf_counter()
            count = self._log[0]
            if count > self._room:
                self.wanted = count
                return None
            found: Counter[int] = Counter()
            calls.clear()
            for at in range(1, _ROW * count, _ROW):
                kernel, begin, finish = self._log[at : at + 3]
                if kernel != _CHUNK:
                    found[kernel] += finish - begin
                    calls[self._names[kernel]] += 1
            for at, name in enumerate(self._names):
                each[name].append(found[at] * 1e-9)
            if self._traced:
                traces.append(self._events(count, start, end))
        seconds = {name: statistics.median(times) for name, times in each.items()}
        return KernelTimes(seconds, dict(calls), statistics.median(totals), traces)

    def _events(self, count: int, start: float, end: float) -> list[Event]:
        # On Linux it is the same clock.
        shift = time.perf_counter() - time.clock_gettime(self._clock)
        threads = {threading.get_ident(): 0}
        events = [Event(self._function, start, end, 0)]
        rows = [self._log[at : at + _ROW] for at in range(1, _ROW * count, _ROW)]
        for kernel, begin, finish, thread in sorted(rows, key=lambda row: row[1]):
            name = "" if kernel == _CHUNK else self._names[kernel]
            number = threads.setdefault(thread % (1 << 64), len(threads))
            events.append(Event(name, begin * 1e-9 + shift, finish * 1e-9 + shift, number))
        return events


def _logging_function(number: int, name: str, types: str) -> str:
    parameters = [f"{type_.strip()} %p{at}" for at, type_ in enumerate(types.split(",") if types.strip() else ())]
    arguments = ", ".join(parameters)
    return f"""
declare void @{name}({types})

define void @{name}.logged({arguments}) {{
  %start = call i64 @now()
  call void @{name}({arguments})
  %end = call i64 @now()
  call void @log(i64 {number}, i64 %start, i64 %end)
  ret void
}}"""
