// RUN: weft-opt %s --split-input-file -p apply-schedule | filecheck %s --strict-whitespace
// RUN: weft-opt %s --split-input-file -p 'tir-compute-at{func=f block=B at=C loop=0 index=-2},tir-reverse-compute-at{func=f block=D at=C loop=0}' | filecheck %s --strict-whitespace --check-prefix=PASS
// index: the place in the body of the loop.

// Before the first block of the body, and behind the first of them that was there.
// CHECK-LABEL: func.func @f(
// CHECK: {{^}}    tir.for %[[I:\w+]] in 12 {
// CHECK-NEXT: {{^}}      tir.block "B"
// CHECK: {{^}}      tir.block "X"
// CHECK: {{^}}      tir.block "D"
// CHECK: {{^}}      tir.block "C"
// CHECK: func.return
//
// PASS-LABEL: func.func @f(
// PASS: {{^}}    tir.for %[[I:\w+]] in 12 {
// PASS-NEXT: {{^}}      tir.block "B"
// PASS: {{^}}      tir.block "X"
// PASS: {{^}}      tir.block "C"
// PASS: {{^}}      tir.block "D"
// PASS: func.return
func.func @f(%A: memref<12xf32>, %C: memref<12xf32>, %D: memref<12xf32>) {
  %B = memref.alloc() : memref<12xf32>
  %E = memref.alloc() : memref<12xf32>
  tir.for %i in 12 {
    tir.block "B" iters(%v: spatial<12>) = [%i] {
      %a = memref.load %A[%v] : memref<12xf32>
      memref.store %a, %B[%v] : memref<12xf32>
    } }
  tir.for %i in 12 {
    tir.block "X" iters(%v: spatial<12>) = [%i] {
      %a = memref.load %A[%v] : memref<12xf32>
      memref.store %a, %E[%v] : memref<12xf32>
    }
    tir.block "C" iters(%v: spatial<12>) = [%i] {
      %a = memref.load %B[%v] : memref<12xf32>
      memref.store %a, %C[%v] : memref<12xf32>
    } }
  tir.for %i in 12 {
    tir.block "D" iters(%v: spatial<12>) = [%i] {
      %a = memref.load %E[%v] : memref<12xf32>
      memref.store %a, %D[%v] : memref<12xf32>
    } }
  func.return
}
sched.func @schedule {
  %b = sched.get_block "B" in @f : block
  %c = sched.get_block "C" in @f : block
  %d = sched.get_block "D" in @f : block
  %i = sched.get_loops %c : loop
  sched.compute_at %b, %i {index = 0}
  sched.reverse_compute_at %d, %i {index = 2}
}
