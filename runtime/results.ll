; Results whose size depends on data: `void weft_return_result(ptr descriptor, ptr data, i64 bytes)` copies one into
; memory of the allocator that the program has set, which takes the place of the memory of an earlier result.

declare ptr @realloc(ptr, i64)
declare i32 @dprintf(i32, ptr, ...)
declare void @abort()

; The function, null for realloc, and its context.
@weft_allocator = global { ptr, ptr } zeroinitializer
@message = private constant [44 x i8] c"weft: out of memory allocating %lld bytes\0A\00\00"

define void @weft_set_allocator(ptr %function, ptr %context) {
  store ptr %function, ptr @weft_allocator
  %context.at = getelementptr { ptr, ptr }, ptr @weft_allocator, i64 0, i32 1
  store ptr %context, ptr %context.at
  ret void
}

define void @weft_return_result(ptr %descriptor, ptr %data, i64 %bytes) {
begin:
  %positive = icmp sgt i64 %bytes, 1
  %least = select i1 %positive, i64 %bytes, i64 1
  %old = load ptr, ptr %descriptor
  %function = load ptr, ptr @weft_allocator
  %is.default = icmp eq ptr %function, null
  br i1 %is.default, label %default, label %own
default:
  %grown = call ptr @realloc(ptr %old, i64 %least)
  br label %made
own:
  %context.at = getelementptr { ptr, ptr }, ptr @weft_allocator, i64 0, i32 1
  %context = load ptr, ptr %context.at
  %given = call ptr %function(ptr %context, ptr %old, i64 %least)
  br label %made
made:
  %new = phi ptr [ %grown, %default ], [ %given, %own ]
  %none = icmp eq ptr %new, null
  br i1 %none, label %die, label %fill
fill:
  store ptr %new, ptr %descriptor
  call void @llvm.memcpy.p0.p0.i64(ptr %new, ptr %data, i64 %bytes, i1 false)
  ret void
die:
  %printed = call i32 (i32, ptr, ...) @dprintf(i32 2, ptr @message, i64 %bytes)
  call void @abort()
  unreachable
}

declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)
