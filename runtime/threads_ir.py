"""The thread pool as LLVM IR; `threads.py` tells what it does.

A worker and the caller meet in the worker's `claim` word: the caller writes the number of a chunk there, and whoever
swaps it back to 0 runs that chunk. Only the caller that holds `busy` offers chunks, and it returns after all are done.

A thread that is woken may well come to run on the processor of the one that wakes it (some kernels pack threads on few
processors), and then gets no time until the caller has done all of the work. So on Linux the caller says, before it
wakes a worker, where that may run: on every processor but the caller's own, or, among several workers, on a part of
them each. It says so again when it has moved itself, or when another number of workers takes part.
"""

from __future__ import annotations

from typing import Final

MAX_THREADS: Final = 256
FUTEX_SYSCALLS: Final = {"x86_64": 202, "aarch64": 98, "riscv64": 98}
"""The number of Linux's system call to sleep on a word and to wake who sleeps there, by architecture."""
_PLACE_SYSCALLS: Final = {
    # gettid, getcpu, sched_getaffinity, sched_setaffinity
    "x86_64": (186, 309, 204, 203),
    "aarch64": (178, 168, 123, 122),
    "riscv64": (178, 168, 123, 122),
}
_PAUSES: Final = {
    "x86_64": ("declare void @llvm.x86.sse2.pause()", "call void @llvm.x86.sse2.pause()"),
    "AMD64": ("declare void @llvm.x86.sse2.pause()", "call void @llvm.x86.sse2.pause()"),
    "aarch64": ("declare void @llvm.aarch64.hint(i32)", "call void @llvm.aarch64.hint(i32 1)"),
    "arm64": ("declare void @llvm.aarch64.hint(i32)", "call void @llvm.aarch64.hint(i32 1)"),
}
_SPINS: Final = 8192
"""Looks at the claim before sleeping: about 0.1 ms."""


def with_pauses(text: str, architecture: str) -> str:
    """`text` with the hint that a thread waits in a loop, where the architecture has one."""
    declaration, pause = _PAUSES.get(architecture, ("", ""))
    return text.replace("PAUSE_DECLARATION", declaration).replace("PAUSE", pause)


def pool_ir(architecture: str, sleeping: str) -> str:
    """The pool for an architecture, as the first part of a triple. `sleeping`: IR of
    `futex_wait`, `futex_wake`, `own_thread` and `keep_apart`."""
    return sleeping + with_pauses(_POOL_IR, architecture).replace("SPINS", str(_SPINS))


def linux_ir(architecture: str) -> str:
    """How threads sleep, wake each other and stay apart on Linux."""
    text = _LINUX_IR.replace("FUTEX", str(FUTEX_SYSCALLS[architecture]))
    names = ("GETTID", "GETCPU", "GETAFFINITY", "SETAFFINITY")
    for name, number in zip(names, _PLACE_SYSCALLS[architecture], strict=True):
        text = text.replace(name, str(number))
    return text


_LINUX_IR: Final = """
declare i64 @syscall(i64, ...)
define internal void @futex_wait(ptr %word, i32 %value) noinline {
  call i64 (i64, ...) @syscall(i64 FUTEX, ptr %word, i32 128, i32 %value, ptr null)
  ret void
}
define internal void @futex_wake(ptr %word) noinline {
  call i64 (i64, ...) @syscall(i64 FUTEX, ptr %word, i32 129, i32 1, ptr null)
  ret void
}
define internal i32 @own_thread() noinline {
  %id = call i64 (i64, ...) @syscall(i64 GETTID)
  %id.word = trunc i64 %id to i32
  ret i32 %id.word
}
; Before a thread is woken: of the processors that the caller may use, without the one it is on, every `helpers`-th
; from the thread's own number on. `place` remembers for which processor and number that was said last.
define internal void @keep_apart(i32 %thread, ptr %place, i64 %index, i64 %helpers) noinline {
entry:
  %cpu.at = alloca i32
  %mask = alloca [128 x i8], align 8
  %g = call i64 (i64, ...) @syscall(i64 GETCPU, ptr %cpu.at, ptr null, ptr null)
  %got = icmp eq i64 %g, 0
  %known = icmp ne i32 %thread, 0
  %may = and i1 %got, %known
  br i1 %may, label %compare, label %return
compare:
  %cpu.word = load i32, ptr %cpu.at
  %helpers.word = trunc i64 %helpers to i32
  %team = shl i32 %helpers.word, 16
  %cpu.one = add i32 %cpu.word, 1
  %key = or i32 %team, %cpu.one
  %last = load i32, ptr %place
  %same = icmp eq i32 %last, %key
  br i1 %same, label %return, label %ask
ask:
  store i32 %key, ptr %place
  %bytes = call i64 (i64, ...) @syscall(i64 GETAFFINITY, i32 0, i64 128, ptr %mask)
  %answered = icmp sgt i64 %bytes, 0
  br i1 %answered, label %start, label %return
start:
  %bits = shl i64 %bytes, 3
  %cpu = zext i32 %cpu.word to i64
  br label %bit
bit:
  %b = phi i64 [ 0, %start ], [ %b.1, %next ]
  %usable = phi i64 [ 0, %start ], [ %usable.1, %next ]
  %more = icmp ult i64 %b, %bits
  br i1 %more, label %look, label %set
look:
  %byte.index = lshr i64 %b, 3
  %byte.at = getelementptr i8, ptr %mask, i64 %byte.index
  %byte = load i8, ptr %byte.at
  %b.low = and i64 %b, 7
  %shift = trunc i64 %b.low to i8
  %flag = shl i8 1, %shift
  %masked = and i8 %byte, %flag
  %present = icmp ne i8 %masked, 0
  %elsewhere = icmp ne i64 %b, %cpu
  %candidate = and i1 %present, %elsewhere
  %turn = urem i64 %usable, %helpers
  %mine = icmp eq i64 %turn, %index
  %keep = and i1 %candidate, %mine
  br i1 %keep, label %next, label %drop
drop:
  %others = xor i8 %flag, -1
  %cleared = and i8 %byte, %others
  store i8 %cleared, ptr %byte.at
  br label %next
next:
  %count = zext i1 %candidate to i64
  %usable.1 = add i64 %usable, %count
  %b.1 = add i64 %b, 1
  br label %bit
set:
  %enough = icmp uge i64 %usable, %helpers
  br i1 %enough, label %tell, label %return
tell:
  %s = call i64 (i64, ...) @syscall(i64 SETAFFINITY, i32 %thread, i64 %bytes, ptr %mask)
  br label %return
return:
  ret void
}
"""

_POOL_IR: Final = """
PAUSE_DECLARATION

; Each in cache lines of its own. `claim` is 0 or the number of a chunk that waits for this worker.
%worker = type { i32, i32, i32, i32, [112 x i8] }     ; claim, sleeping, thread, place
%job = type { ptr, ptr, i64, i64, [96 x i8] }         ; fn, closure, extent, chunks
%word = type { i32, [124 x i8] }
@weft_pool_workers = global [256 x %worker] zeroinitializer, align 128
@weft_pool_job = global %job zeroinitializer, align 128
@weft_pool_busy = global %word zeroinitializer, align 128
@weft_pool_pending = global %word zeroinitializer, align 128
@weft_pool_waiting = global %word zeroinitializer, align 128
@weft_pool_stop = global %word zeroinitializer, align 128
@weft_pool_started = global %word zeroinitializer, align 128
@weft_pool_limit = global %word zeroinitializer, align 128
@weft_pool_hook = global ptr null, align 128

define internal void @run_chunk(i64 %chunk) noinline {
  %fn = load ptr, ptr @weft_pool_job
  %closure.at = getelementptr %job, ptr @weft_pool_job, i64 0, i32 1
  %closure = load ptr, ptr %closure.at
  %extent.at = getelementptr %job, ptr @weft_pool_job, i64 0, i32 2
  %extent = load i64, ptr %extent.at
  %chunks.at = getelementptr %job, ptr @weft_pool_job, i64 0, i32 3
  %chunks = load i64, ptr %chunks.at
  %size = udiv i64 %extent, %chunks
  %rest = urem i64 %extent, %chunks
  %regular = mul i64 %chunk, %size
  %early = icmp ult i64 %chunk, %rest
  %before = select i1 %early, i64 %chunk, i64 %rest
  %begin = add i64 %regular, %before
  %one = zext i1 %early to i64
  %length = add i64 %size, %one
  %end = add i64 %begin, %length
  call void %fn(i64 %begin, i64 %end, ptr %closure)
  ret void
}

define void @weft_pool_run(ptr %fn, ptr %closure, i64 %extent, i32 %target.threads) {
entry:
  %limit = load atomic i32, ptr @weft_pool_limit monotonic, align 4
  %unlimited = icmp eq i32 %limit, 0
  %threads = select i1 %unlimited, i32 %target.threads, i32 %limit
  %few.threads = icmp ult i32 %threads, 2
  %few.work = icmp slt i64 %extent, 2
  %alone = or i1 %few.threads, %few.work
  br i1 %alone, label %serial, label %acquire
serial:
  %none = icmp slt i64 %extent, 1
  br i1 %none, label %return, label %serial.run
serial.run:
  call void %fn(i64 0, i64 %extent, ptr %closure)
  br label %return
return:
  ret void

acquire:
  %was = cmpxchg ptr @weft_pool_busy, i32 0, i32 1 acquire monotonic
  %mine = extractvalue { i32, i1 } %was, 1
  br i1 %mine, label %check.started, label %serial
check.started:
  %started = load atomic i32, ptr @weft_pool_started acquire, align 4
  %have = add i32 %started, 1
  %enough = icmp uge i32 %have, %threads
  br i1 %enough, label %distribute, label %start
start:
  %hook = load ptr, ptr @weft_pool_hook
  call void %hook(i32 %threads)
  %started.now = load atomic i32, ptr @weft_pool_started acquire, align 4
  %have.now = add i32 %started.now, 1
  br label %distribute
distribute:
  %ready = phi i32 [ %have, %check.started ], [ %have.now, %start ]
  %fewer = icmp ult i32 %ready, %threads
  %team = select i1 %fewer, i32 %ready, i32 %threads
  %team.wide = zext i32 %team to i64
  %short = icmp ult i64 %extent, %team.wide
  %chunks = select i1 %short, i64 %extent, i64 %team.wide
  store ptr %fn, ptr @weft_pool_job
  %closure.at = getelementptr %job, ptr @weft_pool_job, i64 0, i32 1
  store ptr %closure, ptr %closure.at
  %extent.at = getelementptr %job, ptr @weft_pool_job, i64 0, i32 2
  store i64 %extent, ptr %extent.at
  %chunks.at = getelementptr %job, ptr @weft_pool_job, i64 0, i32 3
  store i64 %chunks, ptr %chunks.at
  %helpers = sub i64 %chunks, 1
  %pending.0 = trunc i64 %helpers to i32
  store atomic i32 %pending.0, ptr @weft_pool_pending seq_cst, align 4
  br label %offer
offer:
  %w = phi i64 [ 1, %distribute ], [ %w.1, %offer.done ]
  %offered = icmp uge i64 %w, %chunks
  br i1 %offered, label %own, label %offer.one
offer.one:
  %w.index = sub i64 %w, 1
  %claim = getelementptr [256 x %worker], ptr @weft_pool_workers, i64 0, i64 %w.index, i32 0
  %sleeping.at = getelementptr [256 x %worker], ptr @weft_pool_workers, i64 0, i64 %w.index, i32 1
  %w.number = trunc i64 %w to i32
  ; Sequentially consistent on both sides: either the worker sees the claim, or we see that it sleeps.
  %old.claim = atomicrmw xchg ptr %claim, i32 %w.number seq_cst
  %sleeping = load atomic i32, ptr %sleeping.at seq_cst, align 4
  %asleep = icmp ne i32 %sleeping, 0
  br i1 %asleep, label %wake, label %offer.done
wake:
  %thread.at = getelementptr [256 x %worker], ptr @weft_pool_workers, i64 0, i64 %w.index, i32 2
  %place.at = getelementptr [256 x %worker], ptr @weft_pool_workers, i64 0, i64 %w.index, i32 3
  %thread = load atomic i32, ptr %thread.at monotonic, align 4
  call void @keep_apart(i32 %thread, ptr %place.at, i64 %w.index, i64 %helpers)
  call void @futex_wake(ptr %claim)
  br label %offer.done
offer.done:
  %w.1 = add i64 %w, 1
  br label %offer

own:
  call void @run_chunk(i64 0)
  br label %steal
steal:
  %s = phi i64 [ 1, %own ], [ %s.1, %steal.done ]
  %stolen = icmp uge i64 %s, %chunks
  br i1 %stolen, label %wait, label %steal.one
steal.one:
  %s.index = sub i64 %s, 1
  %s.claim = getelementptr [256 x %worker], ptr @weft_pool_workers, i64 0, i64 %s.index, i32 0
  %s.number = trunc i64 %s to i32
  %steal.was = cmpxchg ptr %s.claim, i32 %s.number, i32 0 seq_cst monotonic
  %steal.mine = extractvalue { i32, i1 } %steal.was, 1
  br i1 %steal.mine, label %steal.run, label %steal.done
steal.run:
  call void @run_chunk(i64 %s)
  %steal.before = atomicrmw sub ptr @weft_pool_pending, i32 1 seq_cst
  br label %steal.done
steal.done:
  %s.1 = add i64 %s, 1
  br label %steal

; Workers run the rest: watch for a while, then sleep until the last one wakes us.
wait:
  %spins = phi i64 [ 0, %steal ], [ %spins.1, %spin ]
  %pending = load atomic i32, ptr @weft_pool_pending acquire, align 4
  %finished = icmp eq i32 %pending, 0
  br i1 %finished, label %release, label %spin
spin:
  PAUSE
  %spins.1 = add i64 %spins, 1
  %patient = icmp ult i64 %spins.1, SPINS
  br i1 %patient, label %wait, label %sleep
sleep:
  store atomic i32 1, ptr @weft_pool_waiting seq_cst, align 4
  br label %sleep.check
sleep.check:
  %still = load atomic i32, ptr @weft_pool_pending seq_cst, align 4
  %awake = icmp eq i32 %still, 0
  br i1 %awake, label %sleep.end, label %sleep.on
sleep.on:
  call void @futex_wait(ptr @weft_pool_pending, i32 %still)
  br label %sleep.check
sleep.end:
  store atomic i32 0, ptr @weft_pool_waiting seq_cst, align 4
  br label %release
release:
  store atomic i32 0, ptr @weft_pool_busy release, align 4
  ret void
}

define void @weft_pool_worker(i64 %index) {
entry:
  %claim = getelementptr [256 x %worker], ptr @weft_pool_workers, i64 0, i64 %index, i32 0
  %sleeping = getelementptr [256 x %worker], ptr @weft_pool_workers, i64 0, i64 %index, i32 1
  %thread.at = getelementptr [256 x %worker], ptr @weft_pool_workers, i64 0, i64 %index, i32 2
  %thread = call i32 @own_thread()
  store atomic i32 %thread, ptr %thread.at monotonic, align 4
  br label %watch
watch:
  %spins = phi i64 [ 0, %entry ], [ %spins.1, %spin ], [ 0, %after.chunk ], [ 0, %woken ]
  %number = load atomic i32, ptr %claim monotonic, align 4
  %offered = icmp ne i32 %number, 0
  br i1 %offered, label %take, label %spin
spin:
  PAUSE
  %spins.1 = add i64 %spins, 1
  %patient = icmp ult i64 %spins.1, SPINS
  br i1 %patient, label %watch, label %sleep
sleep:
  %stop = load atomic i32, ptr @weft_pool_stop seq_cst, align 4
  %stopping = icmp ne i32 %stop, 0
  br i1 %stopping, label %leave, label %sleep.on
sleep.on:
  %was.awake = atomicrmw xchg ptr %sleeping, i32 1 seq_cst
  call void @futex_wait(ptr %claim, i32 0)
  br label %woken
woken:
  store atomic i32 0, ptr %sleeping seq_cst, align 4
  %stop.woken = load atomic i32, ptr @weft_pool_stop seq_cst, align 4
  %stopping.woken = icmp ne i32 %stop.woken, 0
  br i1 %stopping.woken, label %leave, label %watch
take:
  %taken = cmpxchg ptr %claim, i32 %number, i32 0 seq_cst monotonic
  %mine = extractvalue { i32, i1 } %taken, 1
  br i1 %mine, label %run, label %after.chunk
run:
  %chunk = zext i32 %number to i64
  call void @run_chunk(i64 %chunk)
  %before = atomicrmw sub ptr @weft_pool_pending, i32 1 seq_cst
  %last = icmp eq i32 %before, 1
  br i1 %last, label %finish, label %after.chunk
finish:
  %waiting = load atomic i32, ptr @weft_pool_waiting seq_cst, align 4
  %caller.sleeps = icmp ne i32 %waiting, 0
  br i1 %caller.sleeps, label %wake.caller, label %after.chunk
wake.caller:
  call void @futex_wake(ptr @weft_pool_pending)
  br label %after.chunk
after.chunk:
  br label %watch
leave:
  ret void
}

; Back to the state before the first loop, for a forked child, which has no workers.
define void @weft_pool_reset() {
  call void @llvm.memset.p0.i64(ptr @weft_pool_workers, i8 0, i64 32768, i1 false)
  store i32 0, ptr @weft_pool_busy
  store i32 0, ptr @weft_pool_pending
  store i32 0, ptr @weft_pool_waiting
  store i32 0, ptr @weft_pool_started
  ret void
}
declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)

define void @weft_pool_set_limit(i32 %limit) {
  store atomic i32 %limit, ptr @weft_pool_limit seq_cst, align 4
  ret void
}
define void @weft_pool_set_started(i32 %count) {
  store atomic i32 %count, ptr @weft_pool_started seq_cst, align 4
  ret void
}
define void @weft_pool_set_hook(ptr %hook) {
  store ptr %hook, ptr @weft_pool_hook
  ret void
}

; Ask the workers to leave.
define void @weft_pool_shutdown() {
entry:
  store atomic i32 1, ptr @weft_pool_stop seq_cst, align 4
  br label %next
next:
  %i = phi i64 [ 0, %entry ], [ %i.1, %next ]
  %claim = getelementptr [256 x %worker], ptr @weft_pool_workers, i64 0, i64 %i, i32 0
  call void @futex_wake(ptr %claim)
  %i.1 = add i64 %i, 1
  %more = icmp ult i64 %i.1, 256
  br i1 %more, label %next, label %done
done:
  ret void
}
"""
