; Functions that compiled code calls by name, `void weft_call_registered(ptr name, ptr arrays, i32 inputs, i32 outputs)`:
; those that `weft_set_function` has set, the latest of a name first. One that is set without a name serves all names
; that have none. Where there is none, or when it fails, the results are zeros, and `weft_failure` tells the reason.
;
;   thread_local   `thread_local`, or nothing where a process has no such memory for this code

declare ptr @malloc(i64)
declare ptr @strdup(ptr)
declare i32 @strcmp(ptr, ptr)
declare ptr @memset(ptr, i32, i64)
declare i32 @snprintf(ptr, i64, ptr, ...)
declare i32 @dprintf(i32, ptr, ...)

; The next one, its name (null: any), the function, its context.
%entry = type { ptr, ptr, ptr, ptr }
; As C's weft_array: data, shape, rank, and what DLPack says of the elements: code, bits, lanes.
%array = type { ptr, ptr, i32, i8, i8, i16 }

@weft_registered = global ptr null
@weft_failure_text = $thread_local global [256 x i8] zeroinitializer
@weft_failure_told = $thread_local global i8 1
@unset = private constant [65 x i8] c"weft: no function is set under the name '%s' (weft_set_function)\00"
@failed = private constant [53 x i8] c"weft: the function set as '%s' failed with status %d\00"
@line = private constant [4 x i8] c"%s\0A\00"

; 0, or 1 when there is no memory.
define i32 @weft_set_function(ptr %name, ptr %function, ptr %context) {
begin:
  %new = call ptr @malloc(i64 32)
  %none = icmp eq ptr %new, null
  br i1 %none, label %refused, label %fill
fill:
  %unnamed = icmp eq ptr %name, null
  br i1 %unnamed, label %link, label %copy
copy:
  %own = call ptr @strdup(ptr %name)
  %nothing = icmp eq ptr %own, null
  br i1 %nothing, label %refused, label %link
link:
  %kept = phi ptr [ null, %fill ], [ %own, %copy ]
  %name.at = getelementptr %entry, ptr %new, i64 0, i32 1
  store ptr %kept, ptr %name.at
  %function.at = getelementptr %entry, ptr %new, i64 0, i32 2
  store ptr %function, ptr %function.at
  %context.at = getelementptr %entry, ptr %new, i64 0, i32 3
  store ptr %context, ptr %context.at
  br label %try
try:
  %head = load atomic ptr, ptr @weft_registered acquire, align 8
  store ptr %head, ptr %new
  %was = cmpxchg ptr @weft_registered, ptr %head, ptr %new release monotonic
  %done = extractvalue { ptr, i1 } %was, 1
  br i1 %done, label %set, label %try
set:
  ret i32 0
refused:
  ret i32 1
}

; The message of the first failure in this thread since the last call of this function; null when there was none.
define ptr @weft_failure() {
  %told = load i8, ptr @weft_failure_told
  store i8 1, ptr @weft_failure_told
  %none = icmp ne i8 %told, 0
  %text = select i1 %none, ptr null, ptr @weft_failure_text
  ret ptr %text
}

; The entry for a name; null when there is none.
define internal ptr @entry_of(ptr %name) {
begin:
  %head = load atomic ptr, ptr @weft_registered acquire, align 8
  br label %next
next:
  %entry = phi ptr [ %head, %begin ], [ %following, %advance ], [ %following, %advance.any ]
  %any = phi ptr [ null, %begin ], [ %any, %advance ], [ %any.1, %advance.any ]
  %last = icmp eq ptr %entry, null
  br i1 %last, label %unknown, label %look
unknown:
  ret ptr %any
look:
  %following = load ptr, ptr %entry
  %name.at = getelementptr %entry, ptr %entry, i64 0, i32 1
  %own = load ptr, ptr %name.at
  %unnamed = icmp eq ptr %own, null
  br i1 %unnamed, label %advance.any, label %compare
compare:
  %order = call i32 @strcmp(ptr %own, ptr %name)
  %same = icmp eq i32 %order, 0
  br i1 %same, label %found, label %advance
found:
  ret ptr %entry
advance:
  br label %next
advance.any:
  %first = icmp eq ptr %any, null
  %any.1 = select i1 %first, ptr %entry, ptr %any
  br label %next
}

define internal void @clear(ptr %array) {
begin:
  %data = load ptr, ptr %array
  %shape.at = getelementptr %array, ptr %array, i64 0, i32 1
  %shape = load ptr, ptr %shape.at
  %rank.at = getelementptr %array, ptr %array, i64 0, i32 2
  %rank = load i32, ptr %rank.at
  %bits.at = getelementptr %array, ptr %array, i64 0, i32 4
  %bits = load i8, ptr %bits.at
  %wide = zext i8 %bits to i64
  %rounded = add i64 %wide, 7
  %size = lshr i64 %rounded, 3
  br label %next
next:
  %axis = phi i32 [ 0, %begin ], [ %axis.1, %multiply ]
  %bytes = phi i64 [ %size, %begin ], [ %bytes.1, %multiply ]
  %more = icmp slt i32 %axis, %rank
  br i1 %more, label %multiply, label %done
multiply:
  %extent.at = getelementptr i64, ptr %shape, i32 %axis
  %extent = load i64, ptr %extent.at
  %bytes.1 = mul i64 %bytes, %extent
  %axis.1 = add i32 %axis, 1
  br label %next
done:
  %cleared = call ptr @memset(ptr %data, i32 0, i64 %bytes)
  ret void
}

define void @weft_call_registered(ptr %name, ptr %arrays, i32 %inputs, i32 %outputs) {
begin:
  %entry = call ptr @entry_of(ptr %name)
  %none = icmp eq ptr %entry, null
  br i1 %none, label %missing, label %found
found:
  %function.at = getelementptr %entry, ptr %entry, i64 0, i32 2
  %function = load ptr, ptr %function.at
  %context.at = getelementptr %entry, ptr %entry, i64 0, i32 3
  %context = load ptr, ptr %context.at
  %removed = icmp eq ptr %function, null
  br i1 %removed, label %missing, label %call
call:
  %status = call i32 %function(ptr %context, ptr %name, ptr %arrays, i32 %inputs, i32 %outputs)
  %good = icmp eq i32 %status, 0
  br i1 %good, label %return, label %fail
missing:
  %told.before = load i8, ptr @weft_failure_told
  %first.miss = icmp ne i8 %told.before, 0
  br i1 %first.miss, label %miss, label %clear
miss:
  store i8 0, ptr @weft_failure_told
  %m = call i32 (ptr, i64, ptr, ...) @snprintf(ptr @weft_failure_text, i64 256, ptr @unset, ptr %name)
  %p = call i32 (i32, ptr, ...) @dprintf(i32 2, ptr @line, ptr @weft_failure_text)
  br label %clear
fail:
  %told.now = load i8, ptr @weft_failure_told
  %first.fail = icmp ne i8 %told.now, 0
  br i1 %first.fail, label %tell, label %clear
tell:
  store i8 0, ptr @weft_failure_told
  %f = call i32 (ptr, i64, ptr, ...) @snprintf(ptr @weft_failure_text, i64 256, ptr @failed, ptr %name, i32 %status)
  br label %clear
clear:
  %end = add i32 %inputs, %outputs
  br label %next
next:
  %at = phi i32 [ %inputs, %clear ], [ %at.1, %one ]
  %more = icmp slt i32 %at, %end
  br i1 %more, label %one, label %return
one:
  %array = getelementptr %array, ptr %arrays, i32 %at
  call void @clear(ptr %array)
  %at.1 = add i32 %at, 1
  br label %next
return:
  ret void
}
