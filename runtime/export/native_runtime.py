"""The part of the runtime that compiled code calls, put into a program that runs without Python.

Temporaries come from `weft_alloc`, parallel loops run on a pool of POSIX threads. Both are LLVM IR and become part of
the program's own, hidden from other libraries; several objects that are linked together share one pool and one store
of memory, for their symbols are weak.

The pool starts with the first parallel loop. It has as many threads as the program's target says, unless the
environment variable WEFT_NUM_THREADS, or a call of `weft_set_num_threads`, says another number.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from weft.backends.llvm.link import Part, link_parts
from weft.runtime import memory, threads
from weft.runtime.threads_ir import FUTEX_SYSCALLS, MAX_THREADS, linux_ir, pool_ir
from weft.support.errors import CompileError

if TYPE_CHECKING:
    from weft.support.target import Target

SET_THREADS: Final = "weft_set_num_threads"
"""What programs in C call to choose the number of threads."""


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
        parts.append(Part(_threads_ir(target), internal=(threads.SYMBOL,), visible=(SET_THREADS,)))
    return link_parts(text, parts, target) if parts else text


def _threads_ir(target: Target) -> str:
    if "windows" in target.triple:
        raise CompileError(
            f"parallel loops of an exported program run on POSIX threads, which {target.triple} lacks: "
            "build for one thread (-num-threads=1)"
        )
    is_linux = "linux" in target.triple and target.architecture in FUTEX_SYSCALLS
    sleeping = linux_ir(target.architecture) if is_linux else _CONDITION_IR
    prepare = "" if is_linux else "call void @weft_pool_prepare_sleep()"
    pool = pool_ir(target.architecture, sleeping).replace(
        "@weft_pool_hook = global ptr null", "@weft_pool_hook = global ptr @weft_pool_start"
    )
    team = min(target.num_threads, MAX_THREADS)
    return pool + _START_IR.replace("PREPARE", prepare).replace("MOST", str(MAX_THREADS)).replace("TEAM", str(team))


_CONDITION_IR: Final = """
declare i32 @pthread_mutex_init(ptr, ptr)
declare i32 @pthread_mutex_lock(ptr)
declare i32 @pthread_mutex_unlock(ptr)
declare i32 @pthread_cond_init(ptr, ptr)
declare i32 @pthread_cond_wait(ptr, ptr)
declare i32 @pthread_cond_broadcast(ptr)

; At least as large as pthread_mutex_t and pthread_cond_t are anywhere.
@weft_pool_mutex = global [128 x i8] zeroinitializer, align 16
@weft_pool_condition = global [128 x i8] zeroinitializer, align 16

define void @weft_pool_prepare_sleep() {
  %m = call i32 @pthread_mutex_init(ptr @weft_pool_mutex, ptr null)
  %c = call i32 @pthread_cond_init(ptr @weft_pool_condition, ptr null)
  ret void
}
define internal void @futex_wait(ptr %word, i32 %value) noinline {
entry:
  %l = call i32 @pthread_mutex_lock(ptr @weft_pool_mutex)
  br label %check
check:
  %now = load atomic i32, ptr %word seq_cst, align 4
  %same = icmp eq i32 %now, %value
  %stop = load atomic i32, ptr @weft_pool_stop seq_cst, align 4
  %running = icmp eq i32 %stop, 0
  %sleeps = and i1 %same, %running
  br i1 %sleeps, label %sleep, label %done
sleep:
  %w = call i32 @pthread_cond_wait(ptr @weft_pool_condition, ptr @weft_pool_mutex)
  br label %check
done:
  %u = call i32 @pthread_mutex_unlock(ptr @weft_pool_mutex)
  ret void
}
define internal void @futex_wake(ptr %word) noinline {
  %l = call i32 @pthread_mutex_lock(ptr @weft_pool_mutex)
  %b = call i32 @pthread_cond_broadcast(ptr @weft_pool_condition)
  %u = call i32 @pthread_mutex_unlock(ptr @weft_pool_mutex)
  ret void
}
define internal i32 @own_thread() {
  ret i32 0
}
define internal void @keep_apart(i32 %thread, ptr %place, i64 %index, i64 %helpers) {
  ret void
}
"""

_START_IR: Final = """
declare i32 @pthread_create(ptr, ptr, ptr, ptr)
declare i32 @pthread_detach(i64)
declare i32 @pthread_atfork(ptr, ptr, ptr)
declare ptr @getenv(ptr)
declare i64 @strtol(ptr, ptr, i32)
declare i32 @dprintf(i32, ptr, ...)

@weft_pool_configured = global i32 0
@weft_pool_forks = global i32 0
@variable = private constant [17 x i8] c"WEFT_NUM_THREADS\\00"
@warning = private constant [73 x i8]
  c"weft: WEFT_NUM_THREADS is no number from 1 to MOST, and is ignored: '%s'\\0A\\00"

define internal ptr @pool_thread(ptr %index) {
  %number = ptrtoint ptr %index to i64
  call void @weft_pool_worker(i64 %number)
  ret ptr null
}

; Called by the thread that holds the pool, when it has fewer than `threads - 1` workers.
define void @weft_pool_start(i32 %threads) noinline {
entry:
  %handle = alloca i64
  %forks = load i32, ptr @weft_pool_forks
  %registered = icmp ne i32 %forks, 0
  br i1 %registered, label %begin, label %register
register:
  store i32 1, ptr @weft_pool_forks
  %r = call i32 @pthread_atfork(ptr null, ptr null, ptr @weft_pool_reset)
  br label %begin
begin:
  %started = load atomic i32, ptr @weft_pool_started acquire, align 4
  %first = icmp eq i32 %started, 0
  br i1 %first, label %prepare, label %next
prepare:
  PREPARE
  br label %next
next:
  %count = phi i32 [ %started, %begin ], [ 0, %prepare ], [ %count.1, %created ]
  store atomic i32 %count, ptr @weft_pool_started release, align 4
  %count.1 = add i32 %count, 1
  %missing = icmp ult i32 %count.1, %threads
  br i1 %missing, label %create, label %done
create:
  %wide = zext i32 %count to i64
  %index = inttoptr i64 %wide to ptr
  %error = call i32 @pthread_create(ptr %handle, ptr null, ptr @pool_thread, ptr %index)
  %ok = icmp eq i32 %error, 0
  br i1 %ok, label %created, label %refused
created:
  %id = load i64, ptr %handle
  %d = call i32 @pthread_detach(i64 %id)
  br label %next
refused:
  ; The system has no more threads: do with these.
  store atomic i32 %count.1, ptr @weft_pool_limit seq_cst, align 4
  br label %done
done:
  ret void
}

define void @weft_pool_configure() noinline {
entry:
  %end = alloca ptr
  %text = call ptr @getenv(ptr @variable)
  %unset = icmp eq ptr %text, null
  br i1 %unset, label %done, label %read
read:
  %number = call i64 @strtol(ptr %text, ptr %end, i32 10)
  %rest = load ptr, ptr %end
  %left = load i8, ptr %rest
  %whole = icmp eq i8 %left, 0
  %enough = icmp sge i64 %number, 1
  %few = icmp sle i64 %number, MOST
  %range = and i1 %enough, %few
  %good = and i1 %range, %whole
  br i1 %good, label %set, label %warn
set:
  %limit = trunc i64 %number to i32
  store atomic i32 %limit, ptr @weft_pool_limit seq_cst, align 4
  br label %done
warn:
  %printed = call i32 (i32, ptr, ...) @dprintf(i32 2, ptr @warning, ptr %text)
  br label %done
done:
  store atomic i32 1, ptr @weft_pool_configured release, align 4
  ret void
}

define void @weft_set_num_threads(i32 %count) {
  %enough = icmp sge i32 %count, 1
  %least = select i1 %enough, i32 %count, i32 0
  %few = icmp sle i32 %least, MOST
  %limit = select i1 %few, i32 %least, i32 MOST
  store atomic i32 %limit, ptr @weft_pool_limit seq_cst, align 4
  store atomic i32 1, ptr @weft_pool_configured release, align 4
  ret void
}

define void @weft_parallel_for(ptr %fn, ptr %closure, i64 %extent) {
entry:
  %configured = load atomic i32, ptr @weft_pool_configured acquire, align 4
  %ready = icmp ne i32 %configured, 0
  br i1 %ready, label %run, label %configure
configure:
  call void @weft_pool_configure()
  br label %run
run:
  tail call void @weft_pool_run(ptr %fn, ptr %closure, i64 %extent, i32 TEAM)
  ret void
}
"""
