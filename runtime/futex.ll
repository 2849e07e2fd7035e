; How threads of the pool sleep, wake each other and stay apart on Linux: system calls by their numbers, which are the
; parameters: futex, gettid, getcpu, getaffinity, setaffinity.

declare i64 @syscall(i64, ...)
define internal void @futex_wait(ptr %word, i32 %value) noinline {
  call i64 (i64, ...) @syscall(i64 $futex, ptr %word, i32 128, i32 %value, ptr null)
  ret void
}
define internal void @futex_wake(ptr %word) noinline {
  call i64 (i64, ...) @syscall(i64 $futex, ptr %word, i32 129, i32 1, ptr null)
  ret void
}
define internal i32 @own_thread() noinline {
  %id = call i64 (i64, ...) @syscall(i64 $gettid)
  %id.word = trunc i64 %id to i32
  ret i32 %id.word
}
; Before a thread is woken: of the processors that the caller may use, without the one it is on, every `helpers`-th
; from the thread's own number on. `place` remembers for which processor and number that was said last.
define internal void @keep_apart(i32 %thread, ptr %place, i64 %index, i64 %helpers) noinline {
entry:
  %cpu.at = alloca i32
  %mask = alloca [128 x i8], align 8
  %g = call i64 (i64, ...) @syscall(i64 $getcpu, ptr %cpu.at, ptr null, ptr null)
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
  %bytes = call i64 (i64, ...) @syscall(i64 $getaffinity, i32 0, i64 128, ptr %mask)
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
  %s = call i64 (i64, ...) @syscall(i64 $setaffinity, i32 %thread, i64 %bytes, ptr %mask)
  br label %return
return:
  ret void
}
