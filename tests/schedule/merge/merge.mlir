// RUN: weft-opt %s --split-input-file -p apply-schedule | filecheck %s --strict-whitespace
// RUN: weft-opt %s --split-input-file -p 'tir-merge{func=f blocks=B,C loops=0,0}' | filecheck %s --strict-whitespace --check-prefix=PASS
// merge: loops that follow each other become one.

// A producer and its consumer.
// CHECK-LABEL: func.func @f(
// CHECK: {{^}}    %B = memref.alloc() : memref<12xf32>
// CHECK-NEXT: {{^}}    tir.for %[[I_M0:\w+]] in 3 {
// CHECK-NEXT: {{^}}      tir.for %[[I_M1:\w+]] in 4 {
// CHECK-NEXT: {{^}}        tir.block "B" iters(%[[V:\w+]]: spatial<12>) = [%[[I_M0]] * 4 + %[[I_M1]]] {
// CHECK: {{^}}        tir.block "C" iters(%[[V]]: spatial<12>) = [%[[I_M0]] * 4 + %[[I_M1]]] {
// CHECK-NOT: tir.block
// CHECK: func.return
//
// PASS-LABEL: func.func @f(
// PASS: {{^}}    %B = memref.alloc() : memref<12xf32>
// PASS-NEXT: {{^}}    tir.for %[[I_M:\w+]] in 12 {
// PASS-NEXT: {{^}}      tir.block "B" iters(%[[V:\w+]]: spatial<12>) = [%[[I_M]]] {
// PASS: {{^}}      tir.block "C" iters(%[[V]]: spatial<12>) = [%[[I_M]]] {
// PASS-NOT: tir.block
// PASS: func.return
func.func @f(%A: memref<12xf32>, %C: memref<12xf32>) {
  %B = memref.alloc() : memref<12xf32>
  tir.for %i in 12 {
    tir.block "B" iters(%v: spatial<12>) = [%i] {
      %a = memref.load %A[%v] : memref<12xf32>
      %b = arith.mulf %a, %a : f32
      memref.store %b, %B[%v] : memref<12xf32>
    }
  }
  tir.for %j in 12 {
    tir.block "C" iters(%v: spatial<12>) = [%j] {
      %b = memref.load %B[%v] : memref<12xf32>
      %c = arith.addf %b, %b : f32
      memref.store %c, %C[%v] : memref<12xf32>
    }
  }
  func.return
}
sched.func @steps {
  %b = sched.get_block "B" : block
  %c = sched.get_block "C" : block
  %i = sched.get_loops %b : loop
  %j = sched.get_loops %c : loop
  %m = sched.merge %i, %j : loop
  %m0, %m1 = sched.split %m {factors = [0, 4]} : loop, loop
}
