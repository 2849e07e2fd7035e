"""Times of the kernels that compiled code calls.

The object of the calling function is linked again with its kernels replaced by functions that call the kernel and log
its start and end. The library itself is unchanged, so profiling costs nothing unless used.
"""

from __future__ import annotations

import ctypes
import re
import statistics
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
    from collections.abc import Mapping, Sequence

    from weft.backends.llvm.compile import CodegenOptions
    from weft.runtime.compile_cache import CompiledKernel
    from weft.support.call_signature import Signature
    from weft.support.target import Target

_CALLED: Final = re.compile(r"^declare void @(kernel_\w+)\(([^()]*)\)$", re.MULTILINE)
_FIRST_ROOM: Final = 1 << 12
"""The initial capacity of the log, in calls of kernels; it grows if one call of the function makes more."""
_HEAD: Final = """\
declare i32 @clock_gettime(i32, ptr)

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
  %count = load i64, ptr %head
  %next = add i64 %count, 1
  store i64 %next, ptr %head
  %fits = icmp ult i64 %count, $room
  br i1 %fits, label %keep, label %done
keep:
  %row = mul i64 %count, 2
  %at = add i64 %row, 1
  %first = getelementptr i64, ptr %head, i64 %at
  store i64 %kernel, ptr %first
  %second = getelementptr i64, ptr %first, i64 1
  %took = sub i64 %end, %start
  store i64 %took, ptr %second
  br label %done
done:
  ret void
}
"""


@dataclass(frozen=True)
class KernelTimes:
    """Seconds and calls of each kernel in one call of a function, by symbol, and seconds of the call."""

    seconds: Mapping[str, float]
    calls: Mapping[str, int]
    total: float


def kernel_times(
    signature: Signature,
    text: str,
    kernels: Sequence[CompiledKernel],
    target: Target,
    symbols: Mapping[str, int],
    options: CodegenOptions,
    call: tuple[Sequence[object], Mapping[str, object]],
    runs: int,
) -> KernelTimes:
    """Run a function of the LLVM IR `text` on the arguments `call`, positional and by name, and measure its kernels.

    Returns the medians of `runs` runs, after one warm-up run. Raises `CompileError` if the system has no POSIX clock,
    and as a call of the function does.
    """
    clock = getattr(time, "CLOCK_MONOTONIC", None)
    if clock is None:
        raise CompileError("kernels are measured by clock_gettime, which this system lacks")
    room = _FIRST_ROOM
    while True:
        profiled = _Profiled(signature, text, kernels, target, symbols, options, int(clock), room)
        found = profiled.run(call, runs)
        if found is not None:
            return found
        room = profiled.wanted


class _Profiled:
    """The function, linked so that calls of its kernels are logged: `count, (kernel, nanoseconds), ...`."""

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
    ) -> None:
        called = _CALLED.findall(text)
        self._names = [name for name, _ in called]
        self._room = room
        self._log = (ctypes.c_int64 * (1 + 2 * room))()
        self.wanted = room
        runtime = runtime_symbols([text, *(kernel.ir for kernel in kernels)], target)
        head = _HEAD.replace("$clock", str(clock)).replace("$room", str(room))
        logging = [head.replace("$log", str(ctypes.addressof(self._log)))]
        logging += [_logging_function(at, name, types) for at, (name, types) in enumerate(called)]
        objects = [kernel.code for kernel in kernels]
        self._kernels = jit("\n".join(logging), target, {**symbols, **runtime}, options, objects=objects)
        inner = {name: self._kernels.address(f"{name}.logged") for name in self._names}
        module = jit(text, target, {**symbols, **runtime, **inner}, options)
        self._caller = Caller(
            signature,
            module.address(symbol_name(signature.name)),
            (module, self._kernels, self._log),
            always_release_gil=PARALLEL_FOR in runtime,
            calls_registered=CALL_REGISTERED in runtime,
        )

    def run(self, call: tuple[Sequence[object], Mapping[str, object]], runs: int) -> KernelTimes | None:
        """The times; None if the log is too short, then `wanted` is the required capacity."""
        seconds_of = native_runs(self._caller, *call)
        seconds_of(1)
        totals = array("d")
        each: dict[str, list[float]] = {name: [] for name in self._names}
        calls: Counter[str] = Counter()
        for _ in range(runs):
            self._log[0] = 0
            totals.append(seconds_of(1))
            count = self._log[0]
            if count > self._room:
                self.wanted = count
                return None
            found: Counter[int] = Counter()
            calls.clear()
            for at in range(1, 2 * count, 2):
                found[self._log[at]] += self._log[at + 1]
                calls[self._names[self._log[at]]] += 1
            for at, name in enumerate(self._names):
                each[name].append(found[at] * 1e-9)
        seconds = {name: statistics.median(times) for name, times in each.items()}
        return KernelTimes(seconds, dict(calls), statistics.median(totals))


def _logging_function(number: int, name: str, types: str) -> str:
    """A function that calls a kernel with these parameter types and logs the call under its number."""
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
