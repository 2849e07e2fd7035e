; How threads of the pool sleep and wake each other on systems with POSIX threads that are not Linux: one mutex and one
; condition variable for all. Threads stay where the system puts them.

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
