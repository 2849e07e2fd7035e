"""Costs of a call and of a parallel loop, compared with NumPy and ctypes.

    python benchmarks/call_overhead.py

An empty function is called with three float32 arrays of 16 elements, so that only the call is timed. All contenders
take turns in one process; each number is the minimum over the rounds. Only ratios are comparable between machines. The
cost of a parallel loop is the time of two threads minus half of the time of one.
"""

from __future__ import annotations

import ctypes
import time
from collections.abc import Callable

import numpy as np

from weft.backends.llvm.jit import jit
from weft.runtime.call import Caller
from weft.runtime.library import Function, Library
from weft.runtime.native_runtime import set_num_threads, symbol_addresses
from weft.support.call_signature import ArraySpec, ScalarSpec, Signature
from weft.support.target import Target

ROUNDS = 15
CALLS = 20_000

EMPTY = "define void @f(ptr %a, ptr %b, ptr %c) {\n  ret void\n}"

LOOPS = """
declare void @weft_parallel_for(ptr, ptr, i64)
define internal void @body(i64 %begin, i64 %end, ptr %x) {
entry:
  br label %loop
loop:
  %i = phi i64 [ %begin, %entry ], [ %next, %loop ]
  %p = getelementptr i64, ptr %x, i64 %i
  %v = load i64, ptr %p
  %w = add i64 %v, 1
  store i64 %w, ptr %p
  %next = add i64 %i, 1
  %more = icmp slt i64 %next, %end
  br i1 %more, label %loop, label %done
done:
  ret void
}
define void @loops(ptr %x, i64 %times, i64 %extent) {
entry:
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %loop ]
  call void @weft_parallel_for(ptr @body, ptr %x, i64 %extent)
  %next = add i64 %i, 1
  %more = icmp slt i64 %next, %times
  br i1 %more, label %loop, label %done
done:
  ret void
}
"""

ALLOCATIONS = """
declare ptr @weft_alloc(i64)
declare void @weft_free(ptr)
define void @allocations(i64 %bytes, i64 %times) {
entry:
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %loop ]
  %p = call ptr @weft_alloc(i64 %bytes)
  call void @weft_free(ptr %p)
  %next = add i64 %i, 1
  %more = icmp slt i64 %next, %times
  br i1 %more, label %loop, label %done
done:
  ret void
}
"""


def best(contenders: dict[str, tuple[Callable[[], object], int]]) -> dict[str, float]:
    """Seconds per call: the minimum over rounds in which the contenders take turns."""
    least = dict.fromkeys(contenders, float("inf"))
    for _ in range(ROUNDS):
        for name, (call, count) in contenders.items():
            start = time.perf_counter()
            for _ in range(count):
                call()
            least[name] = min(least[name], (time.perf_counter() - start) / count)
    return least


def calls() -> None:
    module = jit(EMPTY, Target(), {})
    inputs = [ArraySpec(name, "float32", (4, 4)) for name in "AB"]
    symbolic = [ArraySpec(name, "float32", ("n", "m")) for name in "AB"]
    address = module.address("f")
    plain = Caller(Signature("f", (*inputs, ArraySpec("C", "float32", (4, 4), "write")), (), 1), address, module)
    symbols = Caller(
        Signature("f", (*symbolic, ArraySpec("C", "float32", ("n", "m"), "write")), ("n", "m")), address, module
    )
    a, b, c = (np.ones((4, 4), np.float32) for _ in range(3))
    function, symbolic_function = Function.make(plain), Function.make(symbols)
    native = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p)(address)
    pointers = [x.ctypes.data for x in (a, b, c)]
    contenders: dict[str, tuple[Callable[[], object], int]] = {
        "np.add(a, b, out=c)": (lambda: np.add(a, b, out=c), CALLS),
        "weft f(a, b, c)": (lambda: function(a, b, c), CALLS),
        "weft f(a, b, c), symbolic shapes": (lambda: symbolic_function(a, b, c), CALLS),
        "weft f(a, b) -> c": (lambda: function(a, b), CALLS),
        "weft f(A=a, B=b, C=c)": (lambda: function(A=a, B=b, C=c), CALLS),
        "weft checked in Python": (lambda: plain.call_in_python(a, b, c), CALLS // 20),
        "ctypes, prepared pointers": (lambda: native(*pointers), CALLS),
        "ctypes, .ctypes.data": (lambda: native(a.ctypes.data, b.ctypes.data, c.ctypes.data), CALLS // 4),
        "an empty lambda": (lambda: None, CALLS),
    }
    times = best(contenders)
    numpy_time = times["np.add(a, b, out=c)"]
    print(f"{'call with three arrays':36} {'us':>8} {'of np.add':>10}")
    for name, seconds in times.items():
        print(f"{name:36} {seconds * 1e6:8.3f} {seconds / numpy_time:10.2f}")


def dispatch() -> None:
    arguments = (ArraySpec("X", "int64", (1 << 16,), "readwrite"), ScalarSpec("times", "int64"))
    library = Library({"ll": LOOPS}, [Signature("loops", (*arguments, ScalarSpec("extent", "int64")))], Target())
    x = np.zeros(1 << 16, np.int64)
    loops = library["loops"]
    print(f"\n{'parallel loop, hot':>20} {'1 thread us':>12} {'2 threads us':>13} {'speed-up':>9} {'cost us':>8}")
    for extent in (2, 1 << 10, 1 << 12, 1 << 14, 1 << 16):
        least = {1: float("inf"), 2: float("inf")}
        times = max(10, (1 << 20) // max(extent, 512))
        for _ in range(ROUNDS):
            for threads in least:
                set_num_threads(threads)
                loops(x, times, extent)
                least[threads] = min(least[threads], _time(lambda t=times, e=extent: loops(x, t, e)) / times * 1e6)
        one, two = least[1], least[2]
        print(f"{extent:>11} elements {one:12.3f} {two:13.3f} {one / two:9.2f} {two - one / 2:8.3f}")
    print(f"\n{'parallel loop after a pause':36} {'us':>8}")
    for threads in (2, 1):
        set_num_threads(threads)
        for idle in (0.0005, 0.05):
            samples: list[float] = []
            for _ in range(30):
                time.sleep(idle)
                samples.append(_time(lambda: loops(x, 1, 2)))
            name = f"{idle * 1e3:g} ms idle, {threads} threads (median)"
            print(f"{name:36} {float(np.median(samples)) * 1e6:8.3f}")
    set_num_threads(None)


def allocation() -> None:
    module = jit(ALLOCATIONS, Target(), symbol_addresses())
    prototype = ctypes.CFUNCTYPE(None, ctypes.c_int64, ctypes.c_int64)
    run = prototype(module.address("allocations"))
    print(f"\n{'weft_alloc and weft_free':36} {'us':>8}")
    for size in (256, 1 << 14, 1 << 22):
        seconds = min(_time(lambda size=size: run(size, 1000)) for _ in range(50)) / 1000
        print(f"{size:>30} bytes {seconds * 1e6:8.3f}")


def _time(call: Callable[[], object]) -> float:
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


if __name__ == "__main__":
    calls()
    dispatch()
    allocation()
