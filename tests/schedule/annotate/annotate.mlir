// RUN: weft-opt %s --split-input-file -p apply-schedule | filecheck %s --strict-whitespace
// RUN: weft-opt %s --split-input-file -p 'tir-annotate{func=f block=S loop=1 key=note value=1,2,3}' | filecheck %s --strict-whitespace --check-prefix=PASS
// annotate: notes on loops and blocks, which stay with them.

// Values of each kind; split keeps them outermost, fuse joins them.
// CHECK-LABEL: func.func @f(
// CHECK: {{^}}    tir.for %[[I0:\w+]] in 3 attributes {note = [1 : i64, true, "x", 2.500000e-01 : f64, [2 : i64]]} {
// CHECK-NEXT: {{^}}      tir.for %[[I1_K_FUSED:\w+]] in 36 attributes {note = 7 : i64, pragma.unroll = false} {
// CHECK-NEXT: {{^}}        tir.block "S" iters(%[[VI:\w+]]: spatial<12>, %[[VK:\w+]]: reduce<9>) = [%[[I0]] * 4 + %[[I1_K_FUSED]] floordiv 9, %[[I1_K_FUSED]] mod 9] attributes {"my key" = "text"} {
// CHECK-NEXT: {{^}}          tir.init {
// CHECK-NOT: tir.block
// CHECK: func.return
//
// PASS-LABEL: func.func @f(
// PASS: {{^}}    tir.for %[[I:\w+]] in 12 {
// PASS-NEXT: {{^}}      tir.for %[[K:\w+]] in 9 attributes {note = [1 : i64, 2 : i64, 3 : i64]} {
// PASS-NEXT: {{^}}        tir.block "S" iters(%[[VI:\w+]]: spatial<12>, %[[VK:\w+]]: reduce<9>) = [%[[I]], %[[K]]] {
// PASS-NEXT: {{^}}          tir.init {
// PASS-NOT: tir.block
// PASS: func.return
func.func @f(%A: memref<12x9xf32>, %S: memref<12xf32>) {
  %zero = arith.constant 0.0 : f32
  tir.for %i in 12 {
    tir.for %k in 9 {
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
  sched.annotate %i {key = "note", value = [1, true, "x", 0.25, [2]]}
  sched.annotate %k {key = "note", value = 7}
  sched.annotate %k {key = "pragma.unroll", value = false}
  sched.annotate %s {key = "my key", value = "text"}
  %i0, %i1 = sched.split %i {factors = [0, 4]} : loop, loop
  %f = sched.fuse %i1, %k : loop
}
