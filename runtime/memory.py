"""Memory for the temporaries of generated code.

Generated code calls `ptr weft_alloc(i64 bytes)`, whose result is 64-byte aligned, and `void weft_free(ptr)`.
A freed block of 4 KiB or more is kept for the next request of a similar size (up to 32 blocks, 256 MiB in all
unless `set_cache_limit` says otherwise), since new memory from the system costs a page fault for every 4 KiB
that is touched. When the system has no more memory the process ends with a message: generated code has no way
to go on.
"""

from __future__ import annotations

import ctypes
import os
import platform
from functools import cache
from pathlib import Path
from typing import Final

from weft.backends.llvm.jit import JitModule, jit_forever
from weft.backends.llvm.resources import ir_text
from weft.runtime.threads import pause_ir

DEFAULT_CACHE_BYTES: Final = 256 << 20
SYMBOLS: Final = ("weft_alloc", "weft_free")

_FILE: Final = Path(__file__).with_name("memory.ll")


def memory_ir(architecture: str) -> str:
    """`weft_alloc` and `weft_free` as LLVM IR for an architecture, as the first part of a triple."""
    return ir_text(_FILE, limit=DEFAULT_CACHE_BYTES, pause=pause_ir(architecture))


@cache
def _module() -> JitModule:
    module = jit_forever(memory_ir(platform.machine()), 0)
    if hasattr(os, "register_at_fork"):
        # Another thread may hold the lock at the fork; it does not exist in the child.
        os.register_at_fork(after_in_child=ctypes.CFUNCTYPE(None)(module.address("weft_memory_unlock")))
    return module


def symbol_addresses() -> dict[str, int]:
    """The addresses of `weft_alloc` and `weft_free`."""
    return {name: _module().address(name) for name in SYMBOLS}


def cached_bytes() -> int:
    """How much freed memory is kept for reuse."""
    return int(ctypes.CFUNCTYPE(ctypes.c_int64)(_module().address("weft_memory_held"))())


def release_cache() -> None:
    """Give all memory that is kept for reuse back to the system."""
    ctypes.CFUNCTYPE(None)(_module().address("weft_memory_trim"))()


def set_cache_limit(count: int) -> None:
    """Keep at most `count` bytes for reuse; 0 keeps nothing. Raises `ValueError` when negative."""
    if count < 0:
        raise ValueError(f"the cache limit must not be negative, got {count}")
    ctypes.CFUNCTYPE(None, ctypes.c_int64)(_module().address("weft_memory_set_limit"))(count)
    if cached_bytes() > count:
        release_cache()
