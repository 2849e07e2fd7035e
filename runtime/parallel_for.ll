; The entry of parallel loops in this process, for code of a target with so many threads.

declare void @weft_pool_run(ptr, ptr, i64, i32)
define void @weft_parallel_for(ptr %fn, ptr %closure, i64 %extent) {
  tail call void @weft_pool_run(ptr %fn, ptr %closure, i64 %extent, i32 $threads)
  ret void
}
