"""The part of the runtime that compiled code calls, put into a program that runs without Python.

Temporaries come from `weft_alloc`, parallel loops run on a pool of POSIX threads. Both are LLVM IR and become part of
the program's own, hidden from other libraries; several objects that are linked together share one pool and one store
of memory, for their symbols are weak.

The pool starts with the first parallel loop. It has as many threads as the program's target says, unless the
environment variable WEFT_NUM_THREADS, or a call of `weft_set_num_threads`, says another number.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Final

from weft.backends.llvm.link import Part, link_parts
from weft.backends.llvm.resources import ir_text
from weft.runtime import memory, threads
from weft.runtime.threads_ir import FUTEX_SYSCALLS, MAX_THREADS, linux_ir, pool_ir
from weft.support.errors import CompileError

if TYPE_CHECKING:
    from weft.support.target import Target

SET_THREADS: Final = "weft_set_num_threads"
"""What programs in C call to choose the number of threads."""
_POOL_START: Final = Path(__file__).with_name("pool_start.ll")
_CONDITION_VARIABLE: Final = Path(__file__).with_name("condition_variable.ll")


def needed_runtime(text: str) -> frozenset[str]:
    """The functions of the runtime that LLVM IR declares."""
    declared = re.findall(r"^\s*declare\b[^@\n]*@(weft_\w+)", text, re.MULTILINE)
    return frozenset(declared) & {*memory.SYMBOLS, threads.SYMBOL}


def with_runtime(text: str, target: Target) -> str:
    """LLVM IR together with what it needs of the runtime.

    Raises `CompileError` when parallel loops are for a system without POSIX threads.
    """
    needed = needed_runtime(text)
    parts: list[Part] = []
    if needed & set(memory.SYMBOLS):
        parts.append(Part(memory.memory_ir(target.architecture), internal=memory.SYMBOLS))
    if threads.SYMBOL in needed:
        parts.append(Part(threads_ir(target), internal=(threads.SYMBOL,), visible=(SET_THREADS,)))
    return link_parts(text, parts, target) if parts else text


def threads_ir(target: Target) -> str:
    """The pool for exported programs. Raises `CompileError` for a system without POSIX threads."""
    if "windows" in target.triple:
        raise CompileError(
            f"parallel loops of an exported program run on POSIX threads, which {target.triple} lacks: "
            "build for one thread (-num-threads=1)"
        )
    is_posix = not ("linux" in target.triple and target.architecture in FUTEX_SYSCALLS)
    sleeping = ir_text(_CONDITION_VARIABLE) if is_posix else linux_ir(target.architecture)
    prepare = "call void @weft_pool_prepare_sleep()" if is_posix else ""
    team = min(target.num_threads, MAX_THREADS)
    start = ir_text(_POOL_START, team=team, most=MAX_THREADS, prepare=prepare)
    return pool_ir(target.architecture, sleeping, "@weft_pool_start") + start
