; Takes the lines of some memory, of 64 bytes each, out of all caches: what is read next comes from memory. x86-64.

declare void @llvm.x86.sse2.clflush(ptr)

define void @weft_evict(ptr %start, i64 %bytes) {
entry:
  %end = getelementptr i8, ptr %start, i64 %bytes
  br label %next
next:
  %at = phi ptr [ %start, %entry ], [ %at.1, %next ]
  call void @llvm.x86.sse2.clflush(ptr %at)
  %at.1 = getelementptr i8, ptr %at, i64 64
  %more = icmp ult ptr %at.1, %end
  br i1 %more, label %next, label %done
done:
  fence seq_cst
  ret void
}
