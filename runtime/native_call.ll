; The routine through which CPython calls compiled functions: runtime/call.py says what it accepts.
;
; weft_call(self, args, given, names) is a METH_FASTCALL | METH_KEYWORDS function whose `self` is a capsule with the
; description of the function and its arguments.
;
;   most_arguments     arguments at most, and symbols at most
;   most_slots         the sum of both
;   type_offset        where an object's header holds its type
;   format_classes     for each byte, the class of element types of which it is a format letter, or 0
;   long_iterations    calls of so many iterations go the slow way, where they can be interrupted
;   large_bytes        and so do calls on so many bytes of arrays, for whose temporaries there may be no memory

@format.class = private constant [256 x i8] $format_classes

declare ptr @PyCapsule_GetPointer(ptr, ptr)
declare i32 @PyObject_GetBuffer(ptr, ptr, i32)
declare void @PyBuffer_Release(ptr)
declare ptr @PyObject_Vectorcall(ptr, ptr, i64, ptr)
declare ptr @PyErr_Occurred()
declare void @PyErr_Clear()
declare double @PyFloat_AsDouble(ptr)
declare i64 @PyLong_AsLongLong(ptr)
declare ptr @PyEval_SaveThread()
declare void @PyEval_RestoreThread(ptr)
declare void @Py_IncRef(ptr)
@_Py_NoneStruct = external global i8
@_Py_TrueStruct = external global i8
@_Py_FalseStruct = external global i8
@weft_ndarray_type = external global i8
@PyLong_Type = external global i8

; function, thunk, slow, arguments, symbols, GIL bytes, table, a bit for each symbol that is an extent, iterations,
; a function that says whether the preconditions hold of the slots, or null; the number of elements that give symbols
; their values, and these
%call = type { ptr, ptr, ptr, i64, i64, i64, ptr, i64, double, ptr, i64, ptr }
; kind, rank, itemsize, class, shape, writes, least, most, strides; whether an integer of Python may be the array
%arg = type { i32, i32, i64, i64, ptr, i64, i64, i64, ptr, i64 }
; symbol, argument, offset in bytes, bytes
%element = type { i64, i64, i64, i64 }
; buf, obj, len, itemsize, readonly, ndim, format, shape, strides, suboffsets, internal
%view = type { ptr, ptr, i64, i64, i32, i32, ptr, ptr, ptr, ptr, ptr }

define ptr @weft_call(ptr %self, ptr %args, i64 %given, ptr %names) {
entry:
  %views = alloca [$most_arguments x %view], align 16
  %slots = alloca [$most_slots x i64], align 16
  ; Where the bytes of an array start, and how many there are up to its last one.
  %starts = alloca [$most_arguments x i64], align 16
  %spans = alloca [$most_arguments x i64], align 16
  ; Integers that are given for arrays of rank 0.
  %numbers = alloca [$most_arguments x i64], align 16
  %call = call ptr @PyCapsule_GetPointer(ptr %self, ptr null)
  %n.at = getelementptr %call, ptr %call, i64 0, i32 3
  %n = load i64, ptr %n.at
  %symbols.at = getelementptr %call, ptr %call, i64 0, i32 4
  %symbols = load i64, ptr %symbols.at
  %table.at = getelementptr %call, ptr %call, i64 0, i32 6
  %table = load ptr, ptr %table.at
  %symbol.slots = getelementptr i64, ptr %slots, i64 %n
  %symbol.bytes = shl i64 %symbols, 3
  ; A number that is no extent and no stride stands for a symbol without a value.
  call void @llvm.memset.p0.i64(ptr %symbol.slots, i8 128, i64 %symbol.bytes, i1 false)
  %all.given = icmp eq i64 %given, %n
  %no.names = icmp eq ptr %names, null
  %plain = and i1 %all.given, %no.names
  br i1 %plain, label %next, label %slow

; Each argument in turn. %i counts those that are done, so that a failure releases just their views.
next:
  %i = phi i64 [ 0, %entry ], [ %i.1, %done.argument ]
  %total = phi i64 [ 0, %entry ], [ %total.1, %done.argument ]
  %finished = icmp eq i64 %i, %n
  br i1 %finished, label %overlap, label %argument
argument:
  %object.at = getelementptr ptr, ptr %args, i64 %i
  %object = load ptr, ptr %object.at
  %arg = getelementptr %arg, ptr %table, i64 %i
  %kind = load i32, ptr %arg
  %slot = getelementptr i64, ptr %slots, i64 %i
  %view = getelementptr %view, ptr %views, i64 %i
  switch i32 %kind, label %fail [
    i32 0, label %array
    i32 1, label %float
    i32 2, label %float
    i32 3, label %integer
    i32 4, label %bool
  ]

float:
  %number = call double @PyFloat_AsDouble(ptr %object)
  %suspicious = fcmp oeq double %number, -1.0
  br i1 %suspicious, label %float.error, label %float.ok
float.error:
  %float.raised = call ptr @PyErr_Occurred()
  %float.failed = icmp ne ptr %float.raised, null
  br i1 %float.failed, label %fail, label %float.ok
float.ok:
  %is.double = icmp eq i32 %kind, 1
  br i1 %is.double, label %double, label %single
double:
  store double %number, ptr %slot
  br label %done.argument
single:
  %single.number = fptrunc double %number to float
  store float %single.number, ptr %slot
  br label %done.argument

integer:
  %integer.value = call i64 @PyLong_AsLongLong(ptr %object)
  %minus.one = icmp eq i64 %integer.value, -1
  br i1 %minus.one, label %integer.error, label %integer.ok
integer.error:
  %integer.raised = call ptr @PyErr_Occurred()
  %integer.failed = icmp ne ptr %integer.raised, null
  br i1 %integer.failed, label %fail, label %integer.ok
integer.ok:
  %least.at = getelementptr %arg, ptr %arg, i64 0, i32 6
  %least = load i64, ptr %least.at
  %most.at = getelementptr %arg, ptr %arg, i64 0, i32 7
  %most = load i64, ptr %most.at
  %enough = icmp sge i64 %integer.value, %least
  %few = icmp sle i64 %integer.value, %most
  %in.range = and i1 %enough, %few
  store i64 %integer.value, ptr %slot
  br i1 %in.range, label %done.argument, label %fail

bool:
  %is.true = icmp eq ptr %object, @_Py_TrueStruct
  %is.false = icmp eq ptr %object, @_Py_FalseStruct
  %is.bool = or i1 %is.true, %is.false
  %bool.value = zext i1 %is.true to i64
  store i64 %bool.value, ptr %slot
  br i1 %is.bool, label %done.argument, label %fail

array:
  ; The type of an object is the last field of its header.
  %type.at = getelementptr i8, ptr %object, i64 $type_offset
  %type = load ptr, ptr %type.at
  %is.ndarray = icmp eq ptr %type, @weft_ndarray_type
  br i1 %is.ndarray, label %ndarray, label %no.array
no.array:
  %takes.number.at = getelementptr %arg, ptr %arg, i64 0, i32 9
  %takes.number = load i64, ptr %takes.number.at
  %is.taken = icmp ne i64 %takes.number, 0
  %is.long = icmp eq ptr %type, @PyLong_Type
  %is.number = and i1 %is.taken, %is.long
  br i1 %is.number, label %number.array, label %fail
number.array:
  %array.number = call i64 @PyLong_AsLongLong(ptr %object)
  %array.minus.one = icmp eq i64 %array.number, -1
  br i1 %array.minus.one, label %number.error, label %number.ok
number.error:
  %number.raised = call ptr @PyErr_Occurred()
  %number.failed = icmp ne ptr %number.raised, null
  br i1 %number.failed, label %fail, label %number.ok
number.ok:
  %array.least.at = getelementptr %arg, ptr %arg, i64 0, i32 6
  %array.least = load i64, ptr %array.least.at
  %array.most.at = getelementptr %arg, ptr %arg, i64 0, i32 7
  %array.most = load i64, ptr %array.most.at
  %array.enough = icmp sge i64 %array.number, %array.least
  %array.few = icmp sle i64 %array.number, %array.most
  %array.in.range = and i1 %array.enough, %array.few
  br i1 %array.in.range, label %number.stored, label %fail
number.stored:
  ; The first bytes of the number are those of narrower integers. A view without an object needs no release.
  %number.at = getelementptr i64, ptr %numbers, i64 %i
  store i64 %array.number, ptr %number.at
  store ptr %number.at, ptr %slot
  %view.object.at = getelementptr %view, ptr %view, i64 0, i32 1
  store ptr null, ptr %view.object.at
  %number.start = ptrtoint ptr %number.at to i64
  %number.start.at = getelementptr i64, ptr %starts, i64 %i
  store i64 %number.start, ptr %number.start.at
  %number.span.at = getelementptr i64, ptr %spans, i64 %i
  store i64 8, ptr %number.span.at
  br label %done.argument
ndarray:
  ; 28 = PyBUF_STRIDES | PyBUF_FORMAT
  %refused = call i32 @PyObject_GetBuffer(ptr %object, ptr %view, i32 28)
  %is.refused = icmp ne i32 %refused, 0
  br i1 %is.refused, label %fail, label %buffer
buffer:
  %buf = load ptr, ptr %view
  store ptr %buf, ptr %slot
  %length.at = getelementptr %view, ptr %view, i64 0, i32 2
  %length = load i64, ptr %length.at
  %got.size.at = getelementptr %view, ptr %view, i64 0, i32 3
  %got.size = load i64, ptr %got.size.at
  %readonly.at = getelementptr %view, ptr %view, i64 0, i32 4
  %readonly = load i32, ptr %readonly.at
  %got.rank.at = getelementptr %view, ptr %view, i64 0, i32 5
  %got.rank = load i32, ptr %got.rank.at
  %format.at = getelementptr %view, ptr %view, i64 0, i32 6
  %format = load ptr, ptr %format.at
  %got.shape.at = getelementptr %view, ptr %view, i64 0, i32 7
  %got.shape = load ptr, ptr %got.shape.at
  %strides.at = getelementptr %view, ptr %view, i64 0, i32 8
  %strides = load ptr, ptr %strides.at
  %rank.at = getelementptr %arg, ptr %arg, i64 0, i32 1
  %rank = load i32, ptr %rank.at
  %size.at = getelementptr %arg, ptr %arg, i64 0, i32 2
  %size = load i64, ptr %size.at
  %class.at = getelementptr %arg, ptr %arg, i64 0, i32 3
  %class = load i64, ptr %class.at
  %shape.at = getelementptr %arg, ptr %arg, i64 0, i32 4
  %shape = load ptr, ptr %shape.at
  %writes.at = getelementptr %arg, ptr %arg, i64 0, i32 5
  %writes = load i64, ptr %writes.at
  %wanted.strides.at = getelementptr %arg, ptr %arg, i64 0, i32 8
  %wanted.strides = load ptr, ptr %wanted.strides.at
  %strided = icmp ne ptr %wanted.strides, null

  %rank.ok = icmp eq i32 %got.rank, %rank
  %size.ok = icmp eq i64 %got.size, %size
  %reads = icmp eq i64 %writes, 0
  %writable.asked = xor i1 %reads, true
  %writable = icmp eq i32 %readonly, 0
  %access.ok = or i1 %reads, %writable
  %address = ptrtoint ptr %buf to i64
  %size.mask = sub i64 %size, 1
  %misaligned.by = and i64 %address, %size.mask
  %aligned = icmp eq i64 %misaligned.by, 0
  %has.format = icmp ne ptr %format, null
  %scalar = icmp eq i32 %rank, 0
  %has.strides = icmp ne ptr %strides, null
  %layout.ok = or i1 %scalar, %has.strides
  %ok.1 = and i1 %rank.ok, %size.ok
  %ok.2 = and i1 %access.ok, %aligned
  %ok.3 = and i1 %has.format, %layout.ok
  %ok.4 = and i1 %ok.1, %ok.2
  %ok.5 = and i1 %ok.3, %ok.4
  br i1 %ok.5, label %format.check, label %fail.view
format.check:
  ; One letter, after a mark for native or little-endian order.
  %first = load i8, ptr %format
  %is.native = icmp eq i8 %first, 64
  %is.standard = icmp eq i8 %first, 61
  %is.little = icmp eq i8 %first, 60
  %mark.1 = or i1 %is.native, %is.standard
  %mark = or i1 %mark.1, %is.little
  %skip = zext i1 %mark to i64
  %letter.at = getelementptr i8, ptr %format, i64 %skip
  %letter = load i8, ptr %letter.at
  %letter.index = zext i8 %letter to i64
  %got.class.at = getelementptr i8, ptr @format.class, i64 %letter.index
  %got.class = load i8, ptr %got.class.at
  %got.class.wide = zext i8 %got.class to i64
  %class.ok = icmp eq i64 %got.class.wide, %class
  br i1 %class.ok, label %format.end, label %fail.view
format.end:
  %after.at = getelementptr i8, ptr %letter.at, i64 1
  %after = load i8, ptr %after.at
  %ends = icmp eq i8 %after, 0
  %rank.wide = zext i32 %rank to i64
  br i1 %ends, label %dimension, label %fail.view

; Dimensions from the last to the first; the stride must be the size of what lies within, unless the extent is
; 1, or what the table says. A stride that is less than the reach of what lies within may bring elements together.
dimension:
  %d = phi i64 [ %rank.wide, %format.end ], [ %d.1, %dimension.next ]
  %inner = phi i64 [ %size, %format.end ], [ %inner.1, %dimension.next ]
  %gap = phi i1 [ false, %format.end ], [ %gap.1, %dimension.next ]
  %below = phi i64 [ 0, %format.end ], [ %below.1, %dimension.next ]
  %reach = phi i64 [ %size, %format.end ], [ %reach.1, %dimension.next ]
  %meet = phi i1 [ false, %format.end ], [ %meet.1, %dimension.next ]
  %no.more = icmp eq i64 %d, 0
  br i1 %no.more, label %shape.done, label %extent
extent:
  %d.1 = sub i64 %d, 1
  %got.extent.at = getelementptr i64, ptr %got.shape, i64 %d.1
  %got.extent = load i64, ptr %got.extent.at
  %extent.at = getelementptr i64, ptr %shape, i64 %d.1
  %extent.value = load i64, ptr %extent.at
  %stride.at = getelementptr i64, ptr %strides, i64 %d.1
  %stride = load i64, ptr %stride.at
  %is.fixed = icmp sge i64 %extent.value, 0
  br i1 %is.fixed, label %fixed, label %symbol
fixed:
  %fixed.ok = icmp eq i64 %got.extent, %extent.value
  br i1 %fixed.ok, label %dimension.done, label %fail.view
symbol:
  %symbol.index = xor i64 %extent.value, -1
  %symbol.at = getelementptr i64, ptr %symbol.slots, i64 %symbol.index
  %known = load i64, ptr %symbol.at
  %is.new = icmp eq i64 %known, -9187201950435737472
  %agrees = icmp eq i64 %known, %got.extent
  %symbol.ok = or i1 %is.new, %agrees
  store i64 %got.extent, ptr %symbol.at
  br i1 %symbol.ok, label %dimension.done, label %fail.view
dimension.done:
  %is.dense = icmp eq i64 %stride, %inner
  %is.one = icmp eq i64 %got.extent, 1
  %stride.ok = or i1 %is.dense, %is.one
  %stride.bad = xor i1 %stride.ok, true
  %gap.1 = or i1 %gap, %stride.bad
  %inner.1 = mul i64 %inner, %got.extent
  %others = sub i64 %got.extent, 1
  %extends = mul i64 %stride, %others
  %is.back = icmp slt i64 %stride, 0
  %back = select i1 %is.back, i64 %extends, i64 0
  %below.1 = add i64 %below, %back
  %stride.minus = sub i64 0, %stride
  %stride.length = select i1 %is.back, i64 %stride.minus, i64 %stride
  %extends.length = mul i64 %stride.length, %others
  %reach.1 = add i64 %reach, %extends.length
  %is.beyond = icmp sge i64 %stride.length, %reach
  %is.apart = or i1 %is.beyond, %is.one
  %is.near = xor i1 %is.apart, true
  %meet.1 = or i1 %meet, %is.near
  %stride.free = xor i1 %strided, true
  %stride.unused = or i1 %stride.free, %is.one
  br i1 %stride.unused, label %dimension.next, label %stride.used
stride.used:
  %steps = sdiv i64 %stride, %size
  %rest = srem i64 %stride, %size
  %is.whole = icmp eq i64 %rest, 0
  %wanted.at = getelementptr i64, ptr %wanted.strides, i64 %d.1
  %wanted = load i64, ptr %wanted.at
  br i1 %is.whole, label %stride.kind, label %fail.view
stride.kind:
  %is.stride.symbol = icmp slt i64 %wanted, -4611686018427387904
  br i1 %is.stride.symbol, label %stride.symbol, label %stride.fixed
stride.fixed:
  %stride.agrees = icmp eq i64 %steps, %wanted
  br i1 %stride.agrees, label %dimension.next, label %fail.view
stride.symbol:
  %stride.index = and i64 %wanted, 4611686018427387903
  %stride.symbol.at = getelementptr i64, ptr %symbol.slots, i64 %stride.index
  %stride.known = load i64, ptr %stride.symbol.at
  %stride.is.new = icmp eq i64 %stride.known, -9187201950435737472
  %stride.is.known = icmp eq i64 %stride.known, %steps
  %stride.symbol.ok = or i1 %stride.is.new, %stride.is.known
  store i64 %steps, ptr %stride.symbol.at
  br i1 %stride.symbol.ok, label %dimension.next, label %fail.view
dimension.next:
  br label %dimension
shape.done:
  %is.empty = icmp eq i64 %length, 0
  %contiguous = xor i1 %gap, true
  %dense.ok = or i1 %is.empty, %contiguous
  %may.meet = and i1 %meet, %writable.asked
  %unclear = or i1 %is.empty, %may.meet
  %clear = xor i1 %unclear, true
  %strides.ok = select i1 %strided, i1 %clear, i1 %dense.ok
  %start = add i64 %address, %below
  %start.at = getelementptr i64, ptr %starts, i64 %i
  store i64 %start, ptr %start.at
  %span = select i1 %is.empty, i64 0, i64 %reach
  %span.at = getelementptr i64, ptr %spans, i64 %i
  store i64 %span, ptr %span.at
  br i1 %strides.ok, label %done.array, label %fail.view
done.array:
  %total.array = add i64 %total, %length
  br label %done.argument

done.argument:
  %total.1 = phi i64 [ %total, %double ], [ %total, %single ], [ %total, %integer.ok ], [ %total, %bool ],
                     [ %total, %number.stored ], [ %total.array, %done.array ]
  %i.1 = add i64 %i, 1
  br label %next

; No output may share bytes with another argument.
overlap:
  %o = phi i64 [ 0, %next ], [ %o.1, %overlap.done ]
  %o.finished = icmp eq i64 %o, %n
  br i1 %o.finished, label %overlap.passed, label %overlap.argument
overlap.passed:
  %extents.at = getelementptr %call, ptr %call, i64 0, i32 7
  %extents = load i64, ptr %extents.at
  %iterations.at = getelementptr %call, ptr %call, i64 0, i32 8
  %iterations = load double, ptr %iterations.at
  %elements.at = getelementptr %call, ptr %call, i64 0, i32 10
  %elements = load i64, ptr %elements.at
  %element.table.at = getelementptr %call, ptr %call, i64 0, i32 11
  %element.table = load ptr, ptr %element.table.at
  br label %element
overlap.argument:
  %o.arg = getelementptr %arg, ptr %table, i64 %o
  %o.writes.at = getelementptr %arg, ptr %o.arg, i64 0, i32 5
  %o.writes = load i64, ptr %o.writes.at
  %is.output = icmp ne i64 %o.writes, 0
  br i1 %is.output, label %overlap.output, label %overlap.done
overlap.output:
  %o.start.at = getelementptr i64, ptr %starts, i64 %o
  %o.start = load i64, ptr %o.start.at
  %o.length.at = getelementptr i64, ptr %spans, i64 %o
  %o.length = load i64, ptr %o.length.at
  %o.end = add i64 %o.start, %o.length
  br label %other
other:
  %p = phi i64 [ 0, %overlap.output ], [ %p.1, %other.done ]
  %p.finished = icmp eq i64 %p, %n
  br i1 %p.finished, label %overlap.done, label %other.argument
other.argument:
  %p.arg = getelementptr %arg, ptr %table, i64 %p
  %p.kind = load i32, ptr %p.arg
  %p.array = icmp eq i32 %p.kind, 0
  %p.other = icmp ne i64 %p, %o
  %p.matters = and i1 %p.array, %p.other
  br i1 %p.matters, label %other.range, label %other.done
other.range:
  %p.start.at = getelementptr i64, ptr %starts, i64 %p
  %p.start = load i64, ptr %p.start.at
  %p.length.at = getelementptr i64, ptr %spans, i64 %p
  %p.length = load i64, ptr %p.length.at
  %p.end = add i64 %p.start, %p.length
  %starts.before = icmp ult i64 %o.start, %p.end
  %ends.after = icmp ult i64 %p.start, %o.end
  %overlaps = and i1 %starts.before, %ends.after
  br i1 %overlaps, label %fail, label %other.done
other.done:
  %p.1 = add i64 %p, 1
  br label %other
overlap.done:
  %o.1 = add i64 %o, 1
  br label %overlap

; Elements of arrays of integers, of 4 or 8 bytes, that are the values of symbols.
element:
  %e = phi i64 [ 0, %overlap.passed ], [ %e.1, %element.done ]
  %e.finished = icmp eq i64 %e, %elements
  br i1 %e.finished, label %unset, label %element.read
element.read:
  %e.row = getelementptr %element, ptr %element.table, i64 %e
  %e.symbol = load i64, ptr %e.row
  %e.argument.at = getelementptr %element, ptr %e.row, i64 0, i32 1
  %e.argument = load i64, ptr %e.argument.at
  %e.offset.at = getelementptr %element, ptr %e.row, i64 0, i32 2
  %e.offset = load i64, ptr %e.offset.at
  %e.bytes.at = getelementptr %element, ptr %e.row, i64 0, i32 3
  %e.bytes = load i64, ptr %e.bytes.at
  %e.slot = getelementptr i64, ptr %slots, i64 %e.argument
  %e.array = load ptr, ptr %e.slot
  %e.at = getelementptr i8, ptr %e.array, i64 %e.offset
  %e.is.wide = icmp eq i64 %e.bytes, 8
  br i1 %e.is.wide, label %element.wide, label %element.narrow
element.wide:
  %e.wide = load i64, ptr %e.at
  br label %element.value
element.narrow:
  %e.narrow = load i32, ptr %e.at
  %e.extended = sext i32 %e.narrow to i64
  br label %element.value
element.value:
  %e.value = phi i64 [ %e.wide, %element.wide ], [ %e.extended, %element.narrow ]
  %e.symbol.at = getelementptr i64, ptr %symbol.slots, i64 %e.symbol
  %e.known = load i64, ptr %e.symbol.at
  %e.is.new = icmp eq i64 %e.known, -9187201950435737472
  %e.agrees = icmp eq i64 %e.known, %e.value
  %e.ok = or i1 %e.is.new, %e.agrees
  store i64 %e.value, ptr %e.symbol.at
  br i1 %e.ok, label %element.done, label %fail
element.done:
  %e.1 = add i64 %e, 1
  br label %element

; A stride that no array tells is left to Python, and so is a call that may take long.
unset:
  %u = phi i64 [ 0, %element ], [ %u.1, %unset.next ]
  %work = phi double [ %iterations, %element ], [ %work.1, %unset.next ]
  %u.finished = icmp eq i64 %u, %symbols
  br i1 %u.finished, label %duration, label %unset.symbol
unset.symbol:
  %u.at = getelementptr i64, ptr %symbol.slots, i64 %u
  %u.value = load i64, ptr %u.at
  %is.unset = icmp eq i64 %u.value, -9187201950435737472
  br i1 %is.unset, label %fail, label %unset.next
unset.next:
  %extents.shifted = lshr i64 %extents, %u
  %is.extent = trunc i64 %extents.shifted to i1
  %is.many = icmp sgt i64 %u.value, 1
  %counts = and i1 %is.extent, %is.many
  %factor = select i1 %counts, i64 %u.value, i64 1
  %factor.wide = sitofp i64 %factor to double
  %work.1 = fmul double %work, %factor.wide
  %u.1 = add i64 %u, 1
  br label %unset
duration:
  %much.work = fcmp oge double %work, $long_iterations
  %much.memory = icmp sge i64 %total, $large_bytes
  %may.take.long = or i1 %much.work, %much.memory
  %preconditions.at = getelementptr %call, ptr %call, i64 0, i32 9
  %preconditions = load ptr, ptr %preconditions.at
  %no.preconditions = icmp eq ptr %preconditions, null
  br i1 %may.take.long, label %fail, label %conditions
conditions:
  br i1 %no.preconditions, label %run, label %conditions.check
conditions.check:
  %hold = call i1 %preconditions(ptr %slots)
  br i1 %hold, label %run, label %fail

run:
  %function = load ptr, ptr %call
  %thunk.at = getelementptr %call, ptr %call, i64 0, i32 1
  %thunk = load ptr, ptr %thunk.at
  %threshold.at = getelementptr %call, ptr %call, i64 0, i32 5
  %threshold = load i64, ptr %threshold.at
  %long = icmp sge i64 %total, %threshold
  br i1 %long, label %run.unlocked, label %run.locked
run.locked:
  call void %thunk(ptr %function, ptr %slots)
  br label %release
run.unlocked:
  %state = call ptr @PyEval_SaveThread()
  call void %thunk(ptr %function, ptr %slots)
  call void @PyEval_RestoreThread(ptr %state)
  br label %release

fail.view:
  call void @PyBuffer_Release(ptr %view)
  br label %fail
fail:
  call void @PyErr_Clear()
  br label %release

; Release the views of the arguments that were done, then return or go the slow way.
release:
  %acquired = phi i64 [ %i, %fail ], [ %n, %run.locked ], [ %n, %run.unlocked ]
  %good = phi i1 [ false, %fail ], [ true, %run.locked ], [ true, %run.unlocked ]
  br label %release.next
release.next:
  %r = phi i64 [ 0, %release ], [ %r.1, %release.done ]
  %released = icmp eq i64 %r, %acquired
  br i1 %released, label %finish, label %release.argument
release.argument:
  %r.arg = getelementptr %arg, ptr %table, i64 %r
  %r.kind = load i32, ptr %r.arg
  %r.array = icmp eq i32 %r.kind, 0
  br i1 %r.array, label %release.view, label %release.done
release.view:
  %r.view = getelementptr %view, ptr %views, i64 %r
  call void @PyBuffer_Release(ptr %r.view)
  br label %release.done
release.done:
  %r.1 = add i64 %r, 1
  br label %release.next
finish:
  br i1 %good, label %return, label %slow
return:
  call void @Py_IncRef(ptr @_Py_NoneStruct)
  ret ptr @_Py_NoneStruct

slow:
  %slow.at = getelementptr %call, ptr %call, i64 0, i32 2
  %slow.function = load ptr, ptr %slow.at
  %result = call ptr @PyObject_Vectorcall(ptr %slow.function, ptr %args, i64 %given, ptr %names)
  ret ptr %result
}

declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)
