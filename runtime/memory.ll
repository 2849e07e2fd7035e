; The allocator of generated code: weft_alloc and weft_free, with a store of freed blocks.
;
;   limit     bytes that the store holds at most, unless weft_memory_set_limit says otherwise
;   pause     the instruction by which a thread says that it waits in a loop, or nothing

declare ptr @aligned_alloc(i64, i64)
declare void @free(ptr)
declare i32 @dprintf(i32, ptr, ...)
declare void @abort()

%slot = type { ptr, i64 }
@weft_memory_slots = global [32 x %slot] zeroinitializer, align 64
@weft_memory_lock = global i32 0, align 64
@weft_memory_cached = global i64 0, align 64
@weft_memory_limit = global i64 $limit
@weft_memory_hand = global i64 0
@message = private constant [44 x i8] c"weft: out of memory allocating %lld bytes\0A\00\00"

define internal void @acquire() noinline nounwind {
entry:
  br label %try
try:
  %was = cmpxchg ptr @weft_memory_lock, i32 0, i32 1 acquire monotonic
  %mine = extractvalue { i32, i1 } %was, 1
  br i1 %mine, label %done, label %pause
pause:
  $pause
  br label %try
done:
  ret void
}
define internal void @release() nounwind {
  store atomic i32 0, ptr @weft_memory_lock release, align 4
  ret void
}

define ptr @weft_alloc(i64 %bytes) nounwind {
entry:
  %positive = icmp sgt i64 %bytes, 1
  %least = select i1 %positive, i64 %bytes, i64 1
  %padded = add i64 %least, 63
  %wanted = and i64 %padded, -64
  %most = shl i64 %wanted, 1
  %large = icmp uge i64 %wanted, 4096
  br i1 %large, label %search, label %fresh
search:
  call void @acquire()
  br label %next
next:
  %i = phi i64 [ 0, %search ], [ %i.1, %next ]
  %best = phi ptr [ null, %search ], [ %best.1, %next ]
  %size = phi i64 [ -1, %search ], [ %size.1, %next ]
  %slot = getelementptr [32 x %slot], ptr @weft_memory_slots, i64 0, i64 %i
  %capacity.at = getelementptr %slot, ptr %slot, i64 0, i32 1
  %capacity = load i64, ptr %capacity.at
  %fits = icmp uge i64 %capacity, %wanted
  %not.huge = icmp ule i64 %capacity, %most
  %better = icmp ult i64 %capacity, %size
  %good.1 = and i1 %fits, %not.huge
  %good = and i1 %good.1, %better
  %best.1 = select i1 %good, ptr %slot, ptr %best
  %size.1 = select i1 %good, i64 %capacity, i64 %size
  %i.1 = add i64 %i, 1
  %more = icmp ult i64 %i.1, 32
  br i1 %more, label %next, label %found
found:
  %nothing = icmp eq ptr %best.1, null
  br i1 %nothing, label %miss, label %hit
hit:
  %block = load ptr, ptr %best.1
  %best.capacity = getelementptr %slot, ptr %best.1, i64 0, i32 1
  store i64 0, ptr %best.capacity
  %held = load i64, ptr @weft_memory_cached
  %held.1 = sub i64 %held, %size.1
  store i64 %held.1, ptr @weft_memory_cached
  call void @release()
  ret ptr %block
miss:
  call void @release()
  br label %fresh
fresh:
  %total = add i64 %wanted, 64
  %raw = call ptr @aligned_alloc(i64 64, i64 %total)
  %failed = icmp eq ptr %raw, null
  br i1 %failed, label %die, label %made
made:
  store i64 %wanted, ptr %raw
  %new = getelementptr i8, ptr %raw, i64 64
  ret ptr %new
die:
  %printed = call i32 (i32, ptr, ...) @dprintf(i32 2, ptr @message, i64 %bytes)
  call void @abort()
  unreachable
}

define internal void @give_back(ptr %block) nounwind {
  %raw = getelementptr i8, ptr %block, i64 -64
  call void @free(ptr %raw)
  ret void
}

; Frees the block in a slot, if there is one. The lock is held.
define internal void @evict(i64 %index) noinline nounwind {
  %slot = getelementptr [32 x %slot], ptr @weft_memory_slots, i64 0, i64 %index
  %capacity.at = getelementptr %slot, ptr %slot, i64 0, i32 1
  %capacity = load i64, ptr %capacity.at
  %empty = icmp eq i64 %capacity, 0
  br i1 %empty, label %done, label %full
full:
  %block = load ptr, ptr %slot
  store i64 0, ptr %capacity.at
  %held = load i64, ptr @weft_memory_cached
  %held.1 = sub i64 %held, %capacity
  store i64 %held.1, ptr @weft_memory_cached
  call void @give_back(ptr %block)
  br label %done
done:
  ret void
}

define void @weft_free(ptr %block) nounwind {
entry:
  %none = icmp eq ptr %block, null
  br i1 %none, label %return, label %measure
measure:
  %capacity.before = getelementptr i8, ptr %block, i64 -64
  %capacity = load i64, ptr %capacity.before
  %limit = load i64, ptr @weft_memory_limit
  %small = icmp ult i64 %capacity, 4096
  %huge = icmp ugt i64 %capacity, %limit
  %uncached = or i1 %small, %huge
  br i1 %uncached, label %direct, label %keep
direct:
  call void @give_back(ptr %block)
  br label %return
keep:
  call void @acquire()
  br label %next
; The first free slot, if all then fits.
next:
  %i = phi i64 [ 0, %keep ], [ %i.1, %occupied ]
  %slot = getelementptr [32 x %slot], ptr @weft_memory_slots, i64 0, i64 %i
  %slot.capacity.at = getelementptr %slot, ptr %slot, i64 0, i32 1
  %slot.capacity = load i64, ptr %slot.capacity.at
  %empty = icmp eq i64 %slot.capacity, 0
  br i1 %empty, label %fits, label %occupied
occupied:
  %i.1 = add i64 %i, 1
  %more = icmp ult i64 %i.1, 32
  br i1 %more, label %next, label %make.room
fits:
  %held = load i64, ptr @weft_memory_cached
  %held.1 = add i64 %held, %capacity
  %over = icmp ugt i64 %held.1, %limit
  br i1 %over, label %make.room, label %store
store:
  store ptr %block, ptr %slot
  store i64 %capacity, ptr %slot.capacity.at
  store i64 %held.1, ptr @weft_memory_cached
  call void @release()
  ret void
; Free a block, each slot in its turn, and look again.
make.room:
  %hand = load i64, ptr @weft_memory_hand
  %hand.next = add i64 %hand, 1
  %hand.1 = and i64 %hand.next, 31
  store i64 %hand.1, ptr @weft_memory_hand
  call void @evict(i64 %hand)
  br label %keep.again
keep.again:
  call void @release()
  br label %keep
return:
  ret void
}

define void @weft_memory_trim() nounwind {
entry:
  call void @acquire()
  br label %next
next:
  %i = phi i64 [ 0, %entry ], [ %i.1, %next ]
  call void @evict(i64 %i)
  %i.1 = add i64 %i, 1
  %more = icmp ult i64 %i.1, 32
  br i1 %more, label %next, label %done
done:
  call void @release()
  ret void
}
define i64 @weft_memory_held() nounwind {
  %held = load i64, ptr @weft_memory_cached
  ret i64 %held
}
define void @weft_memory_set_limit(i64 %bytes) nounwind {
  store i64 %bytes, ptr @weft_memory_limit
  ret void
}
define void @weft_memory_unlock() nounwind {
  store i32 0, ptr @weft_memory_lock
  ret void
}
