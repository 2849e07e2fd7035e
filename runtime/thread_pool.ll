; The thread pool. How its threads sleep, wake each other and stay apart is given beside it: futex_wait, futex_wake,
; own_thread and keep_apart.
;
; A worker and the caller meet in the worker's claim word: the caller writes the number of a chunk there, and whoever
; swaps it back to 0 runs that chunk. Only the caller that holds weft_pool_busy offers chunks, and it returns after all
; are done.
;
;   most      workers at most
;   bytes     the size of all workers: 128 bytes each
;   spins     looks at a word before a thread sleeps on it
;   pause     the instruction by which a thread says that it waits in a loop, or nothing
;   hook      the function that starts workers, or null where weft_pool_set_hook will name it

; Each in cache lines of its own. `claim` is 0 or the number of a chunk that waits for this worker.
%worker = type { i32, i32, i32, i32, [112 x i8] }     ; claim, sleeping, thread, place
%job = type { ptr, ptr, i64, i64, [96 x i8] }         ; fn, closure, extent, chunks
%word = type { i32, [124 x i8] }
@weft_pool_workers = global [$most x %worker] zeroinitializer, align 128
@weft_pool_job = global %job zeroinitializer, align 128
@weft_pool_busy = global %word zeroinitializer, align 128
@weft_pool_pending = global %word zeroinitializer, align 128
@weft_pool_waiting = global %word zeroinitializer, align 128
@weft_pool_stop = global %word zeroinitializer, align 128
@weft_pool_started = global %word zeroinitializer, align 128
@weft_pool_limit = global %word zeroinitializer, align 128
@weft_pool_hook = global ptr $hook, align 128

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
  %claim = getelementptr [$most x %worker], ptr @weft_pool_workers, i64 0, i64 %w.index, i32 0
  %sleeping.at = getelementptr [$most x %worker], ptr @weft_pool_workers, i64 0, i64 %w.index, i32 1
  %w.number = trunc i64 %w to i32
  ; Sequentially consistent on both sides: either the worker sees the claim, or we see that it sleeps.
  %old.claim = atomicrmw xchg ptr %claim, i32 %w.number seq_cst
  %sleeping = load atomic i32, ptr %sleeping.at seq_cst, align 4
  %asleep = icmp ne i32 %sleeping, 0
  br i1 %asleep, label %wake, label %offer.done
wake:
  %thread.at = getelementptr [$most x %worker], ptr @weft_pool_workers, i64 0, i64 %w.index, i32 2
  %place.at = getelementptr [$most x %worker], ptr @weft_pool_workers, i64 0, i64 %w.index, i32 3
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
  %s.claim = getelementptr [$most x %worker], ptr @weft_pool_workers, i64 0, i64 %s.index, i32 0
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
  $pause
  %spins.1 = add i64 %spins, 1
  %patient = icmp ult i64 %spins.1, $spins
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
  %claim = getelementptr [$most x %worker], ptr @weft_pool_workers, i64 0, i64 %index, i32 0
  %sleeping = getelementptr [$most x %worker], ptr @weft_pool_workers, i64 0, i64 %index, i32 1
  %thread.at = getelementptr [$most x %worker], ptr @weft_pool_workers, i64 0, i64 %index, i32 2
  %thread = call i32 @own_thread()
  store atomic i32 %thread, ptr %thread.at monotonic, align 4
  br label %watch
watch:
  %spins = phi i64 [ 0, %entry ], [ %spins.1, %spin ], [ 0, %after.chunk ], [ 0, %woken ]
  %number = load atomic i32, ptr %claim monotonic, align 4
  %offered = icmp ne i32 %number, 0
  br i1 %offered, label %take, label %spin
spin:
  $pause
  %spins.1 = add i64 %spins, 1
  %patient = icmp ult i64 %spins.1, $spins
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
  call void @llvm.memset.p0.i64(ptr @weft_pool_workers, i8 0, i64 $bytes, i1 false)
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
  %claim = getelementptr [$most x %worker], ptr @weft_pool_workers, i64 0, i64 %i, i32 0
  call void @futex_wake(ptr %claim)
  %i.1 = add i64 %i, 1
  %more = icmp ult i64 %i.1, $most
  br i1 %more, label %next, label %done
done:
  ret void
}
