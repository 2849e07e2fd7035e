"""The thread pool as LLVM IR; `threads.py` tells what it does, `thread_pool.ll` how.

A thread that is woken may well come to run on the processor of the one that wakes it (some kernels pack threads on few
processors), and then gets no time until the caller has done all of the work. So on Linux the caller says, before it
wakes a worker, where that may run: on every processor but the caller's own, or, among several workers, on a part of
them each. It says so again when it has moved itself, or when another number of workers takes part.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from weft.backends.llvm.resources import ir_text

MAX_THREADS: Final = 256
FUTEX_SYSCALLS: Final = {"x86_64": 202, "aarch64": 98, "riscv64": 98}
"""The number of Linux's system call to sleep on a word and to wake who sleeps there, by architecture."""
_PLACE_SYSCALLS: Final = {
    "x86_64": {"gettid": 186, "getcpu": 309, "getaffinity": 204, "setaffinity": 203},
    "aarch64": {"gettid": 178, "getcpu": 168, "getaffinity": 123, "setaffinity": 122},
    "riscv64": {"gettid": 178, "getcpu": 168, "getaffinity": 123, "setaffinity": 122},
}
_X86_PAUSE: Final = "call void @llvm.x86.sse2.pause()"
_ARM_PAUSE: Final = "call void @llvm.aarch64.hint(i32 1)"
_PAUSES: Final = {"x86_64": _X86_PAUSE, "AMD64": _X86_PAUSE, "aarch64": _ARM_PAUSE, "arm64": _ARM_PAUSE}
_SPINS: Final = 8192
"""Looks at the claim before sleeping: about 0.1 ms."""
_WORKER_BYTES: Final = 128

_POOL: Final = Path(__file__).with_name("thread_pool.ll")
_FUTEX: Final = Path(__file__).with_name("futex.ll")


def pause_ir(architecture: str) -> str:
    """The hint that a thread waits in a loop; empty where an architecture has none."""
    return _PAUSES.get(architecture, "")


def pool_ir(architecture: str, sleeping: str, hook: str = "null") -> str:
    """The pool for an architecture, as the first part of a triple. `sleeping`: IR of
    `futex_wait`, `futex_wake`, `own_thread` and `keep_apart`; `hook` is the function that starts workers."""
    size, pause = MAX_THREADS * _WORKER_BYTES, pause_ir(architecture)
    return sleeping + ir_text(_POOL, most=MAX_THREADS, bytes=size, spins=_SPINS, pause=pause, hook=hook)


def linux_ir(architecture: str) -> str:
    """How threads sleep, wake each other and stay apart on Linux."""
    return ir_text(_FUTEX, futex=FUTEX_SYSCALLS[architecture], **_PLACE_SYSCALLS[architecture])
