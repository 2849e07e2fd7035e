; Workers of the pool as POSIX threads, and the number of threads that an exported program uses.
;
;   team      threads, where neither WEFT_NUM_THREADS nor weft_set_num_threads says a number
;   most      threads at most: three digits
;   prepare   the call that makes ready what workers sleep on, or nothing

declare i32 @pthread_create(ptr, ptr, ptr, ptr)
declare i32 @pthread_detach(i64)
declare i32 @pthread_atfork(ptr, ptr, ptr)
declare ptr @getenv(ptr)
declare i64 @strtol(ptr, ptr, i32)
declare i32 @dprintf(i32, ptr, ...)

@weft_pool_configured = global i32 0
@weft_pool_forks = global i32 0
@variable = private constant [17 x i8] c"WEFT_NUM_THREADS\00"
@warning = private constant [73 x i8]
  c"weft: WEFT_NUM_THREADS is no number from 1 to $most, and is ignored: '%s'\0A\00"

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
  $prepare
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
  %few = icmp sle i64 %number, $most
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
  %few = icmp sle i32 %least, $most
  %limit = select i1 %few, i32 %least, i32 $most
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
  tail call void @weft_pool_run(ptr %fn, ptr %closure, i64 %extent, i32 $team)
  ret void
}
