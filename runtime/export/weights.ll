; The constants of a program whose elements lie in a file of weights, and the function that reads them.
;
;   definitions   the constants: memory that is zero until it is read
;   table         their addresses and sizes, one after the other as in the file
;   count         how many there are
;   bytes         the bytes of all
;   checksum      their checksum (`weights.py`)
;   advise        a call of madvise that requests large pages, or nothing

declare ptr @fopen(ptr, ptr)
declare i64 @fread(ptr, i64, i64, ptr)
declare i32 @fclose(ptr)
declare i32 @snprintf(ptr, i64, ptr, ...)
declare i32 @dprintf(i32, ptr, ...)
declare i32 @memcmp(ptr, ptr, i64)
declare void @abort() noreturn
declare i32 @madvise(ptr, i64, i32)

$definitions
@weft_weights_table = constant [$count x { ptr, i64 }] [$table]
@weft_weights_loaded = global i32 0
@weft_weights_text = thread_local global [512 x i8] zeroinitializer
@magic = private constant [16 x i8] c"weft weights 1\0A\00"
@mode = private constant [3 x i8] c"rb\00"
@missing = private constant [39 x i8] c"weft: cannot open the weights '%.400s'\00"
@foreign = private constant [37 x i8] c"weft: '%.400s' is no file of weights\00"
@other = private constant [56 x i8] c"weft: the weights '%.400s' are those of another program\00"
@short = private constant [59 x i8] c"weft: the weights '%.400s' are cut off: %lld of %lld bytes\00"
@damaged = private constant [75 x i8] c"weft: the weights '%.400s' are damaged: they are not as they were exported\00"
@unloaded = private constant [80 x i8] c"weft: the weights of this program are not loaded: call weft_load_weights first\0A\00"

; Adds the words of a constant to a sum; each counts with its place, counted from `first`.
define internal i64 @sum(ptr %data, i64 %bytes, i64 %first) {
begin:
  %words = lshr i64 %bytes, 3
  br label %next
next:
  %i = phi i64 [ 0, %begin ], [ %i.1, %one ]
  %sum = phi i64 [ 0, %begin ], [ %sum.1, %one ]
  %more = icmp ult i64 %i, %words
  br i1 %more, label %one, label %done
one:
  %at = getelementptr i64, ptr %data, i64 %i
  %word = load i64, ptr %at
  %i.1 = add i64 %i, 1
  %place = add i64 %first, %i.1
  %salt = mul i64 %place, -7046029254386353131
  %a = add i64 %word, %salt
  %a.shift = lshr i64 %a, 30
  %b = xor i64 %a, %a.shift
  %c = mul i64 %b, -4658895280553007687
  %c.shift = lshr i64 %c, 27
  %d = xor i64 %c, %c.shift
  %e = mul i64 %d, -7723592293110705685
  %e.shift = lshr i64 %e, 31
  %f = xor i64 %e, %e.shift
  %sum.1 = add i64 %sum, %f
  br label %next
done:
  ret i64 %sum
}

; Requests large pages for the memory of all constants, before any of it is written.
define internal void @advise() {
begin:
  br label %next
next:
  %i = phi i64 [ 0, %begin ], [ %i.1, %one ]
  %more = icmp ult i64 %i, $count
  br i1 %more, label %one, label %done
one:
  %row = getelementptr [$count x { ptr, i64 }], ptr @weft_weights_table, i64 0, i64 %i
  %data = load ptr, ptr %row
  %size.at = getelementptr { ptr, i64 }, ptr %row, i64 0, i32 1
  %size = load i64, ptr %size.at
  %from = ptrtoint ptr %data to i64
  %page = and i64 %from, -4096
  %pages = inttoptr i64 %page to ptr
  %end = add i64 %from, %size
  %span = sub i64 %end, %page
  $advise
  %i.1 = add i64 %i, 1
  br label %next
done:
  ret void
}

; Null, or the reason why the weights could not be read, in words.
define ptr @weft_load_weights(ptr %path) {
begin:
  %head = alloca [64 x i8], align 8
  store atomic i32 0, ptr @weft_weights_loaded release, align 4
  %file = call ptr @fopen(ptr %path, ptr @mode)
  %none = icmp eq ptr %file, null
  br i1 %none, label %no.file, label %read.head
no.file:
  %m = call i32 (ptr, i64, ptr, ...) @snprintf(ptr @weft_weights_text, i64 512, ptr @missing, ptr %path)
  ret ptr @weft_weights_text
read.head:
  %head.size = call i64 @fread(ptr %head, i64 1, i64 64, ptr %file)
  %whole.head = icmp eq i64 %head.size, 64
  %order = call i32 @memcmp(ptr %head, ptr @magic, i64 16)
  %same = icmp eq i32 %order, 0
  %ours = and i1 %whole.head, %same
  br i1 %ours, label %compare, label %not.weights
not.weights:
  %n = call i32 (ptr, i64, ptr, ...) @snprintf(ptr @weft_weights_text, i64 512, ptr @foreign, ptr %path)
  br label %close
compare:
  %bytes.at = getelementptr i8, ptr %head, i64 16
  %bytes = load i64, ptr %bytes.at
  %checksum.at = getelementptr i8, ptr %head, i64 24
  %checksum = load i64, ptr %checksum.at
  %same.bytes = icmp eq i64 %bytes, $bytes
  %same.checksum = icmp eq i64 %checksum, $checksum
  %same.program = and i1 %same.bytes, %same.checksum
  br i1 %same.program, label %ready, label %another
ready:
  call void @advise()
  br label %next
another:
  %o = call i32 (ptr, i64, ptr, ...) @snprintf(ptr @weft_weights_text, i64 512, ptr @other, ptr %path)
  br label %close
next:
  %i = phi i64 [ 0, %ready ], [ %i.1, %whole ]
  %total = phi i64 [ 0, %ready ], [ %total.1, %whole ]
  %sum = phi i64 [ 0, %ready ], [ %sum.1, %whole ]
  %more = icmp ult i64 %i, $count
  br i1 %more, label %one, label %all
one:
  %row = getelementptr [$count x { ptr, i64 }], ptr @weft_weights_table, i64 0, i64 %i
  %data = load ptr, ptr %row
  %size.at = getelementptr { ptr, i64 }, ptr %row, i64 0, i32 1
  %size = load i64, ptr %size.at
  %got = call i64 @fread(ptr %data, i64 1, i64 %size, ptr %file)
  %total.1 = add i64 %total, %got
  %complete = icmp eq i64 %got, %size
  br i1 %complete, label %whole, label %cut
whole:
  %first = lshr i64 %total, 3
  %part = call i64 @sum(ptr %data, i64 %size, i64 %first)
  %sum.1 = add i64 %sum, %part
  %i.1 = add i64 %i, 1
  br label %next
cut:
  %s = call i32 (ptr, i64, ptr, ...) @snprintf(ptr @weft_weights_text, i64 512, ptr @short, ptr %path, i64 %total.1, i64 $bytes)
  br label %close
all:
  %right = icmp eq i64 %sum, $checksum
  br i1 %right, label %loaded, label %wrong
wrong:
  %w = call i32 (ptr, i64, ptr, ...) @snprintf(ptr @weft_weights_text, i64 512, ptr @damaged, ptr %path)
  br label %close
loaded:
  store atomic i32 1, ptr @weft_weights_loaded release, align 4
  br label %close
close:
  %answer = phi ptr [ @weft_weights_text, %not.weights ], [ @weft_weights_text, %another ], [ @weft_weights_text, %cut ], [ @weft_weights_text, %wrong ], [ null, %loaded ]
  %closed = call i32 @fclose(ptr %file)
  ret ptr %answer
}

; Called by functions that read constants, first.
define void @weft_check_weights() {
  %loaded = load atomic i32, ptr @weft_weights_loaded acquire, align 4
  %ready = icmp ne i32 %loaded, 0
  br i1 %ready, label %return, label %die
die:
  %printed = call i32 (i32, ptr, ...) @dprintf(i32 2, ptr @unloaded)
  call void @abort()
  unreachable
return:
  ret void
}
