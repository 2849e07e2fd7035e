"""The thread pool, also under stress, and the memory of temporaries."""

import ctypes
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from weft.backends.llvm.jit import jit
from weft.runtime import native_runtime
from weft.runtime.native_runtime import (
    _ExecutorPool,  # pyright: ignore[reportPrivateUsage]
    parallel_for_address,
    set_num_threads,
)
from weft.support.errors import CompileError
from weft.support.target import Target

HOST = Target("llvm")

# Adds 1 to each number of the range; `nested` does so through a loop within each chunk.
TEXT = """
declare void @weft_parallel_for(ptr, ptr, i64)

define void @body(i64 %begin, i64 %end, ptr %x) {
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
define void @rows(i64 %begin, i64 %end, ptr %x) {
entry:
  br label %loop
loop:
  %i = phi i64 [ %begin, %entry ], [ %next, %loop ]
  %offset = mul i64 %i, 100
  %row = getelementptr i64, ptr %x, i64 %offset
  call void @weft_parallel_for(ptr @body, ptr %row, i64 100)
  %next = add i64 %i, 1
  %more = icmp slt i64 %next, %end
  br i1 %more, label %loop, label %done
done:
  ret void
}
define void @bounds(i64 %begin, i64 %end, ptr %x) {
  %p = getelementptr i64, ptr %x, i64 %begin
  store i64 %end, ptr %p
  ret void
}
define void @run(ptr %fn, ptr %x, i64 %extent, i64 %times) {
entry:
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %loop ]
  call void @weft_parallel_for(ptr %fn, ptr %x, i64 %extent)
  %next = add i64 %i, 1
  %more = icmp slt i64 %next, %times
  br i1 %more, label %loop, label %done
done:
  ret void
}
"""

Run = Callable[..., None]


def runner(address: int) -> Run:
    module = jit(TEXT, HOST, {"weft_parallel_for": address})
    prototype = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)
    native = prototype(module.address("run"))

    def run(name: str, data: np.ndarray[Any, Any], extent: int, times: int = 1) -> None:
        native(module.address(name), data.ctypes.data, extent, times)

    return run


@pytest.fixture(params=["native", "executor"])
def run(request: pytest.FixtureRequest) -> Iterator[Run]:
    """Both pools, with four threads whatever the machine has."""
    set_num_threads(4)
    if request.param == "native":
        yield runner(parallel_for_address(4))
    else:
        pool = _ExecutorPool()
        yield runner(pool.entry(4))
    set_num_threads(None)


@pytest.mark.parametrize("extent", [0, 1, 2, 3, 4, 5, 17, 1000])
def test_every_index_once(run: Run, extent: int) -> None:
    data = np.zeros(max(extent, 1), np.int64)
    run("body", data, extent)
    assert (data[:extent] == 1).all()
    assert extent or data[0] == 0


def test_negative_extent_does_nothing(run: Run) -> None:
    data = np.zeros(1, np.int64)
    run("body", data, -3)
    assert data[0] == 0


def test_chunks_are_balanced(run: Run) -> None:
    data = np.full(10, -1, np.int64)
    run("bounds", data, 10)
    begins = np.flatnonzero(data >= 0)
    assert list(zip(begins, data[begins], strict=True)) == [(0, 3), (3, 6), (6, 8), (8, 10)]


def test_stress(run: Run) -> None:
    data = np.zeros(1001, np.int64)
    run("body", data, 1001, 10_000)
    assert (data == 10_000).all()


def test_nested_loops(run: Run) -> None:
    data = np.zeros((20, 100), np.int64)
    run("rows", data, 20, 200)
    assert (data == 200).all()


def test_several_python_threads(run: Run) -> None:
    data = np.zeros((6, 500), np.int64)
    workers = [threading.Thread(target=run, args=("body", row, 500, 2000)) for row in data]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert (data == 2000).all()


def test_workers_wake_up_after_sleeping(run: Run) -> None:
    import time

    data = np.zeros(100_000, np.int64)
    for _ in range(20):
        time.sleep(0.003)
        run("body", data, data.size)
    assert (data == 20).all()


_PLACES = """
import os, sys, threading, time
import numpy as np
import weft
from weft import te

A = te.placeholder((64, 4096), "float32", name="A")
B = te.compute(A.shape, lambda i, j: A[i, j] + 1, name="B")
sch = weft.Schedule(te.create_func([A, B]))
sch.parallel(sch.get_loops("B")[0])
lib = weft.build(sch.mod, target="llvm -num-threads=2")
x = np.ones(A.shape, "float32")
may = os.sched_getaffinity(0)


def place():
    '''Where the worker may run after a call that had to wake it.'''
    for _ in range(200):
        time.sleep(0.02)
        assert (lib["main"](x) == 2).all()
        (worker,) = [t for t in threading.enumerate() if t.name == "weft-0"]
        found = os.sched_getaffinity(worker.native_id)
        if found != may:
            break
    return found


found = place()
assert found < may and len(found) == len(may) - 1, "the caller's is left out"
os.sched_setaffinity(0, found)
if len(found) > 1:
    assert place() < found, "what the caller may use is what the worker may use"
else:
    assert place() == found, "one processor is left to both"
print("apart")
"""


@pytest.mark.skipif(
    not hasattr(os, "sched_getaffinity") or len(os.sched_getaffinity(0)) < 2, reason="needs two processors, on Linux"
)
def test_workers_stay_off_the_processor_of_the_caller() -> None:
    done = subprocess.run([sys.executable, "-c", _PLACES], capture_output=True, text=True, timeout=120, check=False)
    assert done.stdout == "apart\n", done.stderr


def test_number_of_threads_may_change(run: Run) -> None:
    data = np.zeros(64, np.int64)
    for count in (1, 2, 8, 3, 1, 5):
        set_num_threads(count)
        run("body", data, 64, 50)
    assert (data == 300).all()


@pytest.mark.skipif(sys.platform != "linux", reason="needs the native pool")
def test_one_thread_means_one_chunk() -> None:
    run = runner(parallel_for_address(4))
    set_num_threads(1)
    data = np.full(8, -1, np.int64)
    run("bounds", data, 8)
    assert data.tolist() == [8] + [-1] * 7
    set_num_threads(None)
    run("bounds", data, 8)
    assert data.tolist() == [2, -1, 4, -1, 6, -1, 8, -1]


@pytest.mark.parametrize("count", [0, -1, 257])
def test_wrong_number_of_threads(count: int) -> None:
    with pytest.raises(ValueError, match=f"from 1 to 256, got {count}"):
        set_num_threads(count)


@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_forked_child_has_a_pool(run: Run) -> None:
    data = np.zeros(1000, np.int64)
    run("body", data, 1000, 10)
    child = os.fork()
    if child == 0:
        run("body", data, 1000, 10)
        os._exit(0 if (data == 20).all() else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    run("body", data, 1000, 10)
    assert (data == 20).all()


SCRIPT = f"""
import ctypes, sys
import numpy as np
from weft.backends.llvm.jit import jit
from weft.runtime.native_runtime import parallel_for_address, get_num_threads
from weft.support.target import Target
module = jit('''{TEXT}''', Target("llvm"), {{"weft_parallel_for": parallel_for_address(3)}})
run = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 2, ctypes.c_int64, ctypes.c_int64)(module.address("run"))
x = np.full(60, -1, np.int64)
run(module.address("bounds"), x.ctypes.data, 60, 1)
print((x >= 0).sum(), get_num_threads(3))
"""


@pytest.mark.parametrize(("setting", "chunks"), [("", 3), ("2", 2), ("5", 5)])
def test_environment_and_exit(setting: str, chunks: int) -> None:
    """The environment variable is honoured, and a process with live workers ends at once and quietly."""
    environment = {**os.environ, "WEFT_NUM_THREADS": setting}
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT], env=environment, capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.returncode, done.stdout.split(), done.stderr) == (0, [str(chunks), str(chunks)], "")


def test_wrong_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(native_runtime, "_requested", None)
    monkeypatch.setenv("WEFT_NUM_THREADS", "many")
    native_runtime._environment_threads.cache_clear()  # pyright: ignore[reportPrivateUsage]
    with pytest.raises(CompileError, match="WEFT_NUM_THREADS must be an integer from 1 to 256, got 'many'"):
        native_runtime.get_num_threads(2)
    native_runtime._environment_threads.cache_clear()  # pyright: ignore[reportPrivateUsage]


@pytest.fixture
def allocator() -> Iterator[tuple[Callable[[int], int], Callable[[int], None]]]:
    addresses = native_runtime.symbol_addresses()
    native_runtime.release_cache()
    yield (
        ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_int64)(addresses["weft_alloc"]),
        ctypes.CFUNCTYPE(None, ctypes.c_void_p)(addresses["weft_free"]),
    )
    native_runtime.set_cache_limit(native_runtime.DEFAULT_CACHE_BYTES)
    native_runtime.release_cache()


def test_blocks_are_aligned_and_apart(allocator: Any) -> None:
    allocate, free = allocator
    sizes = [0, 1, 63, 64, 65, 4096, 5000, 1 << 20]
    blocks = [allocate(size) for size in sizes]
    assert all(block % 64 == 0 for block in blocks)
    for block, size in zip(blocks, sizes, strict=True):
        ctypes.memset(block, 0xAB, size)
    ranges = sorted((block, block + size) for block, size in zip(blocks, sizes, strict=True))
    assert all(end <= start for (_, end), (start, _) in pairwise(ranges))
    for block in blocks:
        free(block)
    free(None)


def test_large_blocks_are_reused(allocator: Any) -> None:
    allocate, free = allocator
    block = allocate(1 << 20)
    free(block)
    assert native_runtime.cached_bytes() >= 1 << 20
    assert allocate((1 << 20) - 1000) == block
    assert native_runtime.cached_bytes() == 0
    free(block)
    # Not for a far smaller request.
    small = allocate(8192)
    assert small != block
    free(small)
    native_runtime.release_cache()
    assert native_runtime.cached_bytes() == 0


def test_cache_is_bounded(allocator: Any) -> None:
    allocate, free = allocator
    native_runtime.set_cache_limit(1 << 20)
    blocks = [allocate(300_000) for _ in range(10)]
    for block in blocks:
        free(block)
    assert 300_000 <= native_runtime.cached_bytes() <= 1 << 20
    native_runtime.set_cache_limit(0)
    assert native_runtime.cached_bytes() == 0
    with pytest.raises(ValueError, match="must not be negative, got -1"):
        native_runtime.set_cache_limit(-1)


def test_more_blocks_than_slots(allocator: Any) -> None:
    allocate, free = allocator
    for block in [allocate(8192) for _ in range(100)]:
        free(block)
    assert native_runtime.cached_bytes() <= 32 * 8192


def test_allocation_from_many_threads(allocator: Any) -> None:
    allocate, free = allocator
    wrong: list[int] = []

    def work(seed: int) -> None:
        random = np.random.default_rng(seed)
        held: list[tuple[int, int]] = []
        for step in range(2000):
            block = allocate(int(random.integers(1, 40_000)))
            ctypes.c_int64.from_address(block).value = seed * 10_000 + step
            held.append((block, seed * 10_000 + step))
            if len(held) > 5:
                block, value = held.pop(int(random.integers(0, 5)))
                if ctypes.c_int64.from_address(block).value != value:
                    wrong.append(block)
                free(block)
        for block, _ in held:
            free(block)

    workers = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert not wrong
