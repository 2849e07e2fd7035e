"""The runtime of compiled code: threads for `parallel` loops, and memory for temporaries.

Code calls `void weft_parallel_for(ptr fn, ptr closure, i64 extent)`; `fn` is `void (i64 begin, i64 end, ptr closure)`.
Each thread gets a contiguous chunk; sizes differ by at most one. The calling thread runs the first chunk, and then
unclaimed ones, so a slow worker delays nothing.

The pool is LLVM IR, compiled on first use. Its workers are Python daemon threads inside one native call, from the first
parallel loop to the exit of the interpreter, and anew in a forked child: they spin on their own cache line for about
0.1 ms, then sleep on it (a futex). On Linux the caller sets the affinity of a worker before waking it
(docs/decisions/0026-places-of-threads.md). A loop that finds the pool busy (nested, or from a second Python thread)
runs serially. Systems other than Linux use a `ThreadPoolExecutor`.

`ptr weft_alloc(i64 bytes)` allocates temporaries, aligned to 64 bytes, and `void weft_free(ptr)` frees them. Freed
blocks of 4 KiB or more are kept for requests of a similar size (up to 32 blocks, 256 MiB in all by default), since new
memory costs a page fault per 4 KiB touched. Without memory, the process ends with a message, because generated code
cannot recover.
"""

from __future__ import annotations

import atexit
import ctypes
import os
import platform
import re
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from weft.backends.llvm.jit import JitModule, jit_forever, keep_forever
from weft.backends.llvm.resources import ir_text
from weft.backends.names import CALL_REGISTERED, RETURN_RESULT
from weft.runtime.registered_functions import call_registered_address
from weft.support.argument_types import checked
from weft.support.errors import CompileError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from weft.support.target import Target


PARALLEL_FOR: Final = "weft_parallel_for"
MEMORY: Final = ("weft_alloc", "weft_free")
DEFAULT_CACHE_BYTES: Final = 256 << 20
MAX_THREADS: Final = 256
FUTEX_SYSCALLS: Final = {"x86_64": 202, "aarch64": 98, "riscv64": 98}
"""Number of Linux's futex system call, by architecture."""
_PLACE_SYSCALLS: Final = {
    "x86_64": {"gettid": 186, "getcpu": 309, "getaffinity": 204, "setaffinity": 203},
    "aarch64": {"gettid": 178, "getcpu": 168, "getaffinity": 123, "setaffinity": 122},
    "riscv64": {"gettid": 178, "getcpu": 168, "getaffinity": 123, "setaffinity": 122},
}
_X86_PAUSE: Final = "call void @llvm.x86.sse2.pause()"
_ARM_PAUSE: Final = "call void @llvm.aarch64.hint(i32 1)"
_PAUSES: Final = {"x86_64": _X86_PAUSE, "AMD64": _X86_PAUSE, "aarch64": _ARM_PAUSE, "arm64": _ARM_PAUSE}
_SPINS: Final = 8192
"""Polls of the claim before sleeping: about 0.1 ms."""
_WORKER_BYTES: Final = 128
_POOL: Final = Path(__file__).with_name("thread_pool.ll")
_FUTEX: Final = Path(__file__).with_name("futex.ll")
_ENTRY: Final = Path(__file__).with_name("parallel_for.ll")
_RESULTS: Final = Path(__file__).with_name("results.ll")
_MEMORY: Final = Path(__file__).with_name("memory.ll")
_CHUNK_TYPE = ctypes.CFUNCTYPE(None, ctypes.c_int64, ctypes.c_int64, ctypes.c_void_p)

_requested: int | None = None
"""Given to `set_num_threads`."""


def needed_runtime(text: str) -> frozenset[str]:
    declared = re.findall(r"^\s*declare\b[^@\n]*@(weft_\w+)", text, re.MULTILINE)
    return frozenset(declared) & {PARALLEL_FOR, CALL_REGISTERED, RETURN_RESULT, *MEMORY}


def runtime_symbols(texts: Iterable[str], target: Target) -> dict[str, int]:
    needed = frozenset(name for text in texts for name in needed_runtime(text))
    found = symbol_addresses() if needed.intersection(MEMORY) else {}
    if PARALLEL_FOR in needed:
        found[PARALLEL_FOR] = parallel_for_address(target.num_threads)
    if CALL_REGISTERED in needed:
        found[CALL_REGISTERED] = call_registered_address()
    if RETURN_RESULT in needed:
        found[RETURN_RESULT] = _return_result_address()
    return found


@checked
def set_num_threads(count: int | None) -> None:
    """Set the threads of parallel loops; None restores the default. Raises `ValueError` unless 1 <= count <= 256."""
    global _requested
    if count is not None and not 1 <= count <= MAX_THREADS:
        raise ValueError(f"the number of threads must be from 1 to {MAX_THREADS}, got {count}")
    with _lock:
        _requested = count
        if _pool.cache_info().currsize:
            _pool().limit(requested_threads())


def get_num_threads(target_threads: int) -> int:
    """Returns the number of `set_num_threads`, else WEFT_NUM_THREADS, else the target's. Raises `CompileError` if the
    environment variable is not a valid number."""
    return requested_threads() or target_threads


def requested_threads() -> int:
    return _requested or _environment_threads()


@cache
def _environment_threads() -> int:
    text = os.environ.get("WEFT_NUM_THREADS", "").strip()
    if not text:
        return 0
    if not text.isdecimal() or not 1 <= int(text) <= MAX_THREADS:
        raise CompileError(f"WEFT_NUM_THREADS must be an integer from 1 to {MAX_THREADS}, got '{text}'")
    return int(text)


def parallel_for_address(target_threads: int) -> int:
    with _lock:
        return _entry(min(target_threads, MAX_THREADS))


_lock = threading.RLock()
"""At most one pool is created."""


@cache
def _entry(target_threads: int) -> int:
    return _pool().entry(target_threads)


@cache
def _pool() -> _FutexPool | _ExecutorPool:
    has_futex = sys.platform == "linux" and platform.machine() in FUTEX_SYSCALLS
    pool = _FutexPool() if has_futex else _ExecutorPool()
    pool.limit(requested_threads())
    return pool


def parallel_for_ir(target_threads: int) -> str:
    return ir_text(_ENTRY, threads=target_threads)


def pause_ir(architecture: str) -> str:
    return _PAUSES.get(architecture, "")


def pool_ir(architecture: str, sleeping: str, hook: str = "null") -> str:
    """`architecture` is the first part of a triple. `sleeping`: IR of `futex_wait`, `futex_wake`, `own_thread` and
    `keep_apart`; `hook` starts workers."""
    size, pause = MAX_THREADS * _WORKER_BYTES, pause_ir(architecture)
    return sleeping + ir_text(_POOL, most=MAX_THREADS, bytes=size, spins=_SPINS, pause=pause, hook=hook)


def linux_ir(architecture: str) -> str:
    return ir_text(_FUTEX, futex=FUTEX_SYSCALLS[architecture], **_PLACE_SYSCALLS[architecture])


class _FutexPool:
    def __init__(self) -> None:
        architecture = platform.machine()
        module = jit_forever(pool_ir(architecture, linux_ir(architecture)), 0)
        self._module = module
        self._threads: list[threading.Thread] = []
        self._worker = ctypes.CFUNCTYPE(None, ctypes.c_int64)(module.address("weft_pool_worker"))
        self._hook = ctypes.CFUNCTYPE(None, ctypes.c_int32)(self._start)
        keep_forever(self._hook)
        hook_address = ctypes.cast(self._hook, ctypes.c_void_p)
        ctypes.CFUNCTYPE(None, ctypes.c_void_p)(module.address("weft_pool_set_hook"))(hook_address)
        os.register_at_fork(after_in_child=self._after_fork)
        atexit.register(self._shut_down)

    def entry(self, target_threads: int) -> int:
        run = self._module.address("weft_pool_run")
        module = jit_forever(parallel_for_ir(target_threads), 1, {"weft_pool_run": run})
        return module.address("weft_parallel_for")

    def limit(self, count: int) -> None:
        self._call("weft_pool_set_limit", count)

    def _call(self, name: str, value: int) -> None:
        ctypes.CFUNCTYPE(None, ctypes.c_int32)(self._module.address(name))(value)

    def _start(self, threads: int) -> None:
        """Native code that holds the pool and lacks workers calls this."""
        try:
            while len(self._threads) < threads - 1:
                index = len(self._threads)
                thread = threading.Thread(target=self._worker, args=(index,), name=f"weft-{index}", daemon=True)
                thread.start()
                self._threads.append(thread)
        except RuntimeError:
            # A limit of the system, or the interpreter is exiting: continue with these.
            self.limit(max(len(self._threads), 0) + 1)
        self._call("weft_pool_set_started", len(self._threads))

    def _after_fork(self) -> None:
        self._threads = []
        ctypes.CFUNCTYPE(None)(self._module.address("weft_pool_reset"))()

    def _shut_down(self) -> None:
        self.limit(1)
        ctypes.CFUNCTYPE(None)(self._module.address("weft_pool_shutdown"))()
        for thread in self._threads:
            thread.join(timeout=1.0)


class _ExecutorPool:
    """The portable pool: about 50 us per loop."""

    def __init__(self) -> None:
        self._executor: ThreadPoolExecutor | None = None
        self._size = 0
        self._limit = 0
        self._busy = threading.Lock()
        self._entries: dict[int, Callable[..., Any]] = {}
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._after_fork)

    def limit(self, count: int) -> None:
        self._limit = count

    def entry(self, target_threads: int) -> int:
        def parallel_for(function: int, closure: int | None, extent: int) -> None:
            self._run(_CHUNK_TYPE(function), closure, extent, self._limit or target_threads)

        prototype = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64)
        callback = prototype(parallel_for)
        self._entries[target_threads] = callback
        return ctypes.cast(callback, ctypes.c_void_p).value or 0

    def _run(self, function: Callable[..., None], closure: int | None, extent: int, threads: int) -> None:
        chunks = min(threads, extent)
        if chunks < 2 or not self._busy.acquire(blocking=False):
            if extent > 0:
                function(0, extent, closure)
            return
        try:
            bounds = [extent // chunks * i + min(i, extent % chunks) for i in range(chunks + 1)]
            executor = self._workers(threads - 1)
            futures = [executor.submit(function, bounds[i], bounds[i + 1], closure) for i in range(1, chunks)]
            function(bounds[0], bounds[1], closure)
            for future in futures:
                future.result()
        finally:
            self._busy.release()

    def _workers(self, count: int) -> ThreadPoolExecutor:
        if self._executor is None or self._size < count:
            if self._executor is not None:
                self._executor.shutdown()
            self._executor, self._size = ThreadPoolExecutor(count, thread_name_prefix="weft"), count
        return self._executor

    def _after_fork(self) -> None:
        self._executor = None
        self._busy = threading.Lock()


def memory_ir(architecture: str) -> str:
    return ir_text(_MEMORY, limit=DEFAULT_CACHE_BYTES, pause=pause_ir(architecture))


def results_ir() -> str:
    return ir_text(_RESULTS)


@cache
def _return_result_address() -> int:
    return jit_forever(results_ir(), 0).address(RETURN_RESULT)


@cache
def _memory() -> JitModule:
    module = jit_forever(memory_ir(platform.machine()), 0)
    if hasattr(os, "register_at_fork"):
        # The holder of the lock at the fork does not exist in the child.
        os.register_at_fork(after_in_child=ctypes.CFUNCTYPE(None)(module.address("weft_memory_unlock")))
    return module


def symbol_addresses() -> dict[str, int]:
    return {name: _memory().address(name) for name in MEMORY}


def cached_bytes() -> int:
    """Returns the bytes of freed memory that are kept for reuse."""
    return int(ctypes.CFUNCTYPE(ctypes.c_int64)(_memory().address("weft_memory_held"))())


def release_cache() -> None:
    ctypes.CFUNCTYPE(None)(_memory().address("weft_memory_trim"))()


def set_cache_limit(count: int) -> None:
    """Keep at most `count` bytes for reuse. Raises `ValueError` when negative."""
    if count < 0:
        raise ValueError(f"the cache limit must not be negative, got {count}")
    ctypes.CFUNCTYPE(None, ctypes.c_int64)(_memory().address("weft_memory_set_limit"))(count)
    if cached_bytes() > count:
        release_cache()
