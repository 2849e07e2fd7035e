// RUN: weft-opt %s -p apply-schedule | filecheck %s
// RUN: weft-opt %s -p 'apply-schedule{schedule=second}' | filecheck %s --check-prefix=SECOND
// RUN: weft-opt %s -p 'apply-schedule{schedule=first},apply-schedule{schedule=second}' | filecheck %s
// RUN: not weft-opt %s -p 'apply-schedule{schedule=third}' 2>&1 | filecheck %s --check-prefix=UNKNOWN
// RUN: not weft-opt %s -p 'apply-schedule{schedule=second},tir-split{block=C loop=1 factors=2,2}' 2>&1 | filecheck %s --check-prefix=REFUSED
// RUN: xdsl-opt %s -p apply-schedule | filecheck %s
// All schedules of a module run in order, or the named one; what ran is gone. A refused step ends with its reason.

// CHECK-NOT: sched.func
// CHECK: %B = memref.alloc() : memref<10x12xf32, "shared">
// CHECK-NEXT: tir.for %[[I0:\w+]] in 3 parallel {
// CHECK-NEXT: tir.for %[[I1:\w+]] in 4 {
// CHECK-NEXT: tir.for %[[AX0:\w+]] in 12 {
// CHECK-NEXT: tir.block "B" iters(%[[VI:\w+]]: spatial<10>, %[[VJ:\w+]]: spatial<12>) = [%[[I0]] * 4 + %[[I1]], %[[AX0]]] where [%[[I0]] * 4 + %[[I1]]] < [10] {
// CHECK: tir.for %[[J:\w+]]{{.*}} in 12 {
// CHECK-NEXT: tir.block "C" iters({{.*}}) = [%[[I0]] * 4 + %[[I1]], %[[J]]{{.*}}] where [%[[I0]] * 4 + %[[I1]]] < [10] {
// CHECK-NOT: sched.func

// SECOND: %B = memref.alloc() : memref<10x12xf32, "shared">
// SECOND-NEXT: tir.for %[[I:\w+]] in 10 {
// SECOND: sched.func @first
// SECOND-NOT: sched.func

// UNKNOWN: error: unknown schedule 'third' (known: 'first', 'second')

// REFUSED: error: split(%[[J:\w+]], [2, 2]): requirement 3, the factors cover the extent
// REFUSED-NEXT: factors [2, 2] have product 4, but the loop runs 12 times: iteration 4 would be lost
// REFUSED-NEXT: at {{.*}}apply-schedule.mlir:[[# @LINE + 15]]:5: tir.for %[[J]] in 12 {
// REFUSED-NEXT: ^^^^^^^
// REFUSED-NEXT: legal: factors whose product is at least 12, or one of them inferred (None; 0 in IR)
func.func @f(%A: memref<10x12xf32>, %D: memref<10x12xf32>) {
  %B = memref.alloc() : memref<10x12xf32>
  tir.for %i in 10 {
    tir.for %j in 12 {
      tir.block "B" iters(%vi: spatial<10>, %vj: spatial<12>) = [%i, %j] {
        %a = memref.load %A[%vi, %vj] : memref<10x12xf32>
        %b = arith.mulf %a, %a : f32
        memref.store %b, %B[%vi, %vj] : memref<10x12xf32>
      }
    }
  }
  tir.for %i in 10 {
    tir.for %j in 12 {
      tir.block "C" iters(%vi: spatial<10>, %vj: spatial<12>) = [%i, %j] {
        %b = memref.load %B[%vi, %vj] : memref<10x12xf32>
        %d = arith.negf %b : f32
        memref.store %d, %D[%vi, %vj] : memref<10x12xf32>
      }
    }
  }
  func.return
}
sched.func @first {
  %b = sched.get_block "B" in @f : block
  %c = sched.get_block "C" : block
  %i, %j = sched.get_loops %c : loop, loop
  %i0, %i1 = sched.split %i {factors = [0, 4]} : loop, loop
  sched.parallel %i0
  sched.compute_at %b, %i1
}
sched.func @second {
  %c = sched.get_block "C" : block
  %b = sched.get_producers %c : block
  %again = sched.get_consumers %b : block
  sched.get_loops %b
  sched.set_scope %b {index = 0, scope = "shared"}
}
