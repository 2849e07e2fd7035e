// RUN: weft-opt %s --split-input-file -p apply-schedule | filecheck %s --strict-whitespace
// RUN: weft-opt %s --split-input-file -p 'tir-unannotate{func=f block=S loop=1 key=other}' | filecheck %s --strict-whitespace --check-prefix=PASS
// unannotate: notes go away.

// One of two.
// CHECK-LABEL: func.func @f(
// CHECK: {{^}}    tir.for %[[I:\w+]] in 12 {
// CHECK-NEXT: {{^}}      tir.for %[[K:\w+]] in 9 attributes {other = true} {
// CHECK-NEXT: {{^}}        tir.block "S" iters(%[[VI:\w+]]: spatial<12>, %[[VK:\w+]]: reduce<9>) = [%[[I]], %[[K]]] {
// CHECK-NEXT: {{^}}          tir.init {
// CHECK-NOT: tir.block
// CHECK: func.return
//
// PASS-LABEL: func.func @f(
// PASS: {{^}}    tir.for %[[I:\w+]] in 12 {
// PASS-NEXT: {{^}}      tir.for %[[K:\w+]] in 9 attributes {note = 7 : i64} {
// PASS-NEXT: {{^}}        tir.block "S" iters(%[[VI:\w+]]: spatial<12>, %[[VK:\w+]]: reduce<9>) = [%[[I]], %[[K]]] {
// PASS-NEXT: {{^}}          tir.init {
// PASS-NOT: tir.block
// PASS: func.return
func.func @f(%A: memref<12x9xf32>, %S: memref<12xf32>) {
  %zero = arith.constant 0.0 : f32
  tir.for %i in 12 {
    tir.for %k in 9 attributes {note = 7 : i64, other = true} {
      tir.block "S" iters(%vi: spatial<12>, %vk: reduce<9>) = [%i, %k] {
        tir.init {
          memref.store %zero, %S[%vi] : memref<12xf32>
        }
        %a = memref.load %A[%vi, %vk] : memref<12x9xf32>
        %s = memref.load %S[%vi] : memref<12xf32>
        %t = arith.addf %s, %a : f32
        memref.store %t, %S[%vi] : memref<12xf32>
      }
    }
  }
  func.return
}
sched.func @steps {
  %s = sched.get_block "S" : block
  %i, %k = sched.get_loops %s : loop, loop
  sched.unannotate %k {key = "note"}
}
