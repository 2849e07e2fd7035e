// RUN: weft-opt %s --split-input-file -t 'llvm-ir{triple="x86_64-unknown-linux-gnu" cpu=haswell}' | filecheck %s

// The target's triple, a comment as callers see the function, and what is known of each parameter.
// CHECK:      target triple = "x86_64-unknown-linux-gnu"
// CHECK:      ; @scale(A: memref<?x16xf32> [m] read, s: f32, B: memref<?x16xf32> [m] write, E: memref<4xi1> readwrite) for m
// CHECK-NEXT: define void @scale(ptr noalias captures(none) readonly align 4 %A, float %s, ptr noalias captures(none) writeonly align 4 %B, ptr noalias captures(none) align 1 dereferenceable(4) %E, i64 %m) nounwind {
// CHECK-NEXT: entry:
// CHECK-NEXT:   %extent = mul i64 %m, 16
// CHECK-NEXT:   %i.some = icmp slt i64 0, %extent
// CHECK-NEXT:   br i1 %i.some, label %i.body, label %i.exit
// CHECK-NEXT: i.body:
// CHECK-NEXT:   %i = phi i64 [ 0, %entry ], [ %i.next, %i.body ]
// CHECK-NEXT:   %at = getelementptr inbounds nuw float, ptr %A, i64 %i
// CHECK-NEXT:   %a = load float, ptr %at, align 4
// CHECK-NEXT:   %b = fmul contract float %a, %s
// CHECK-NEXT:   %at.1 = getelementptr inbounds nuw float, ptr %B, i64 %i
// CHECK-NEXT:   store float %b, ptr %at.1, align 4
// CHECK-NEXT:   %i.next = add nsw i64 %i, 1
// CHECK-NEXT:   %i.more = icmp slt i64 %i.next, %extent
// CHECK-NEXT:   br i1 %i.more, label %i.body, label %i.exit
// CHECK-NEXT: i.exit:
// CHECK-NEXT:   %byte = load i8, ptr %E, align 1
// CHECK-NEXT:   %e = icmp ne i8 %byte, 0
// CHECK-NEXT:   %at.2 = getelementptr inbounds nuw i8, ptr %E, i64 1
// CHECK-NEXT:   %byte.1 = zext i1 %e to i8
// CHECK-NEXT:   store i8 %byte.1, ptr %at.2, align 1
// CHECK-NEXT:   ret void
// CHECK-NEXT: }
func.func @scale(%A: memref<?xf32>, %s: f32, %B: memref<?xf32>, %E: memref<4xi1>, %m: index) attributes {
  low.params = [
    #low.param<"A", memref<?x16xf32>, read, ["m"]>, #low.param<"s", f32, read, []>,
    #low.param<"B", memref<?x16xf32>, write, ["m"]>, #low.param<"E", memref<4xi1>, readwrite, []>
  ],
  low.symbols = ["m"]
} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c16 = arith.constant 16 : index
  %extent = arith.muli %m, %c16 : index
  scf.for %i = %c0 to %extent step %c1 {
    %a = memref.load %A[%i] : memref<?xf32>
    %b = arith.mulf %a, %s : f32
    memref.store %b, %B[%i] : memref<?xf32>
  }
  %e = memref.load %E[%c0] : memref<4xi1>
  memref.store %e, %E[%c1] : memref<4xi1>
  func.return
}

// -----

// Loops: a constant trip count needs no guard; `low.unroll` and vectors leave marks.
// CHECK-LABEL: define void @loops(
// CHECK:       entry:
// CHECK-NEXT:    %acc = alloca [16 x float], align 64
// CHECK-NEXT:    br label %i.body
// CHECK-NEXT:  i.body:
// CHECK-NEXT:    %i = phi i64 [ 0, %entry ], [ %i.next, %i.body ]
// CHECK:         store <8 x float> splat (float 0.0), ptr %{{.*}}, align 4
// CHECK:         br i1 %i.more, label %i.body, label %i.exit, !llvm.loop ![[unrolled:[0-9]+]]
// CHECK:       j.body:
// CHECK-NEXT:    %j = phi i64 [ 0, %i.exit ], [ %j.next, %j.body ]
// CHECK-NEXT:    %x = phi <8 x float> [ splat (float 0.0), %i.exit ], [ %y, %j.body ]
// CHECK:         br i1 %j.more, label %j.body, label %j.exit, !llvm.loop ![[plain:[0-9]+]]
// CHECK:       j.exit:
// CHECK-NEXT:    store <8 x float> %y, ptr %A, align 4
// CHECK:       !0 = !{!"llvm.loop.unroll.full"}
// CHECK-NEXT:  !1 = !{!"llvm.loop.vectorize.enable", i1 false}
// CHECK-NEXT:  ![[unrolled]] = distinct !{![[unrolled]], !0, !1}
// CHECK-NEXT:  !3 = !{!"llvm.loop.unroll.disable"}
// CHECK-NEXT:  ![[plain]] = distinct !{![[plain]], !3, !1}
func.func @loops(%A: memref<64xf32>) {
  %c0 = arith.constant 0 : index
  %c8 = arith.constant 8 : index
  %c16 = arith.constant 16 : index
  %zeros = arith.constant dense<0.0> : vector<8xf32>
  %acc = memref.alloca() : memref<16xf32, "local">
  scf.for %i = %c0 to %c16 step %c8 {
    vector.store %zeros, %acc[%i] : memref<16xf32, "local">, vector<8xf32>
  } {low.unroll}
  %sum = scf.for %j = %c0 to %c16 step %c8 iter_args(%x = %zeros) -> (vector<8xf32>) {
    %a = vector.load %acc[%j] : memref<16xf32, "local">, vector<8xf32>
    %y = arith.addf %x, %a : vector<8xf32>
    scf.yield %y : vector<8xf32>
  }
  vector.store %sum, %A[%c0] : memref<64xf32>, vector<8xf32>
  func.return
}

// -----

// A loop without iterations leaves nothing but the initial values; a condition joins what its branches yield.
// CHECK-LABEL: define void @conditions(
// CHECK-NOT:     phi i64
// CHECK:         br i1 %c, label %then, label %else
// CHECK-NEXT:  then:
// CHECK-NEXT:    %a = load float, ptr %A, align 4
// CHECK-NEXT:    br label %end
// CHECK-NEXT:  else:
// CHECK-NEXT:    br label %end
// CHECK-NEXT:  end:
// CHECK-NEXT:    %r = phi float [ %a, %then ], [ 1.5, %else ]
// CHECK-NEXT:    store float %r, ptr %A, align 4
// CHECK-NEXT:    ret void
func.func @conditions(%A: memref<1xf32>, %c: i1) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %init = arith.constant 1.5 : f32
  %none = scf.for %i = %c1 to %c0 step %c1 iter_args(%x = %init) -> (f32) {
    %y = arith.addf %x, %x : f32
    scf.yield %y : f32
  }
  %r = scf.if %c -> (f32) {
    %a = memref.load %A[%c0] : memref<1xf32>
    scf.yield %a : f32
  } else {
    scf.yield %none : f32
  }
  memref.store %r, %A[%c0] : memref<1xf32>
  func.return
}

// -----

// A parallel loop becomes a function; captured values travel in a struct, literals do not.
// CHECK:       ; Iterations begin to end of a parallel loop in @parallel.
// CHECK-NEXT:  define internal void @parallel.parallel.body(i64 %begin, i64 %end, ptr noalias captures(none) readonly align 4 %A, float %s, ptr noalias captures(none) writeonly align 4 %B) noinline nounwind {
// CHECK:         %i.some = icmp slt i64 %begin, %end
// CHECK:         %i = phi i64 [ %begin, %entry ], [ %i.next, %i.body ]
// CHECK:         %c = fmul contract float %b, 2.0
// CHECK:         %i.more = icmp slt i64 %i.next, %end
// CHECK:       ; Called by each thread of the runtime.
// CHECK-NEXT:  define internal void @parallel.parallel(i64 %begin, i64 %end, ptr %closure) nounwind {
// CHECK-NEXT:    %at.0 = getelementptr inbounds { ptr, float, ptr }, ptr %closure, i64 0, i32 0
// CHECK-NEXT:    %value.0 = load ptr, ptr %at.0
// CHECK:         call void @parallel.parallel.body(i64 %begin, i64 %end, ptr %value.0, float %value.1, ptr %value.2)
// CHECK:       define void @parallel(
// CHECK:         %closure = alloca { ptr, float, ptr }, align 64
// CHECK:         store float %s, ptr %slot.1
// CHECK:         call void @weft_parallel_for(ptr @parallel.parallel, ptr %closure, i64 %n)
// CHECK:       declare void @weft_parallel_for(ptr, ptr captures(none), i64) nounwind
func.func @parallel(%A: memref<?xf32>, %s: f32, %B: memref<?xf32>, %n: index) {
  %two = arith.constant 2.0 : f32
  low.parallel_for %i in %n {
    %a = memref.load %A[%i] : memref<?xf32>
    %b = arith.addf %a, %s : f32
    %c = arith.mulf %b, %two : f32
    memref.store %c, %B[%i] : memref<?xf32>
  }
  func.return
}

// -----

// A loop whose condition does not hold runs on the calling thread.
// CHECK-LABEL: define void @perhaps_parallel(
// CHECK:         br i1 %pays, label %on.threads, label %alone
// CHECK:       on.threads:
// CHECK-NEXT:    call void @weft_parallel_for(ptr @perhaps_parallel.parallel, ptr %closure, i64 %n)
// CHECK:       alone:
// CHECK-NEXT:    call void @perhaps_parallel.parallel(i64 0, i64 %n, ptr %closure)
func.func @perhaps_parallel(%A: memref<?xf32>, %s: f32, %n: index, %pays: i1) {
  low.parallel_for %i in %n if %pays {
    memref.store %s, %A[%i] : memref<?xf32>
  }
  func.return
}

// -----

// Temporaries come from the runtime, except small ones of symbolic size, which are on the stack.
// CHECK-LABEL: define void @temporaries(
// CHECK-NEXT:  entry:
// CHECK-NEXT:    %small = alloca [4096 x i8], align 64
// CHECK-NEXT:    %T = call ptr @weft_alloc(i64 256)
// CHECK-NEXT:    %bytes = mul nuw nsw i64 %n, 8
// CHECK-NEXT:    %is.small = icmp ule i64 %bytes, 4096
// CHECK-NEXT:    br i1 %is.small, label %allocated, label %large
// CHECK-NEXT:  large:
// CHECK-NEXT:    %large.buffer = call ptr @weft_alloc(i64 %bytes)
// CHECK-NEXT:    br label %allocated
// CHECK-NEXT:  allocated:
// CHECK-NEXT:    %U = phi ptr [ %small, %entry ], [ %large.buffer, %large ]
// CHECK-NEXT:    %[[SMALL:.*]] = icmp eq ptr %U, %small
// CHECK-NEXT:    br i1 %[[SMALL]], label %freed, label %free
// CHECK-NEXT:  free:
// CHECK-NEXT:    call void @weft_free(ptr %U)
// CHECK-NEXT:    br label %freed
// CHECK-NEXT:  freed:
// CHECK-NEXT:    call void @weft_free(ptr %T)
// CHECK:       declare noalias nonnull align 64 ptr @weft_alloc(i64) nounwind allocsize(0)
// CHECK-NEXT:  declare void @weft_free(ptr captures(none)) nounwind
func.func @temporaries(%n: index) {
  %T = memref.alloc() : memref<64xf32>
  %U = memref.alloc(%n) : memref<?xf64>
  memref.dealloc %U : memref<?xf64>
  memref.dealloc %T : memref<64xf32>
  func.return
}

// -----

// An op's own fast-math and overflow flags are kept, and additions may always be contracted.
// CHECK-LABEL: define void @flags(
// CHECK:         %b = fadd contract nnan nsz float %a, %a
// CHECK-NEXT:    %c = fdiv float %b, %a
// CHECK-NEXT:    %d = fdiv arcp float %c, %a
// CHECK-NEXT:    %e = call afn contract float @llvm.exp.f32(float %d)
// CHECK:         %f = add nsw i32 %k, %k
func.func @flags(%A: memref<1xf32>, %K: memref<1xi32>, %k: i32) {
  %c0 = arith.constant 0 : index
  %a = memref.load %A[%c0] : memref<1xf32>
  %b = arith.addf %a, %a fastmath<nnan,nsz> : f32
  %c = arith.divf %b, %a : f32
  %d = arith.divf %c, %a fastmath<arcp> : f32
  %e = math.exp %d fastmath<afn,contract> : f32
  memref.store %e, %A[%c0] : memref<1xf32>
  %f = arith.addi %k, %k overflow<nsw> : i32
  memref.store %f, %K[%c0] : memref<1xi32>
  func.return
}
