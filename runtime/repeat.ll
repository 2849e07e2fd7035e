; Runs a function a number of times through its thunk: what runtime/timing.py measures.

define void @weft_repeat(ptr %thunk, ptr %function, ptr %slots, i64 %number) {
entry:
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %i.1, %loop ]
  call void %thunk(ptr %function, ptr %slots)
  %i.1 = add i64 %i, 1
  %more = icmp slt i64 %i.1, %number
  br i1 %more, label %loop, label %done
done:
  ret void
}
