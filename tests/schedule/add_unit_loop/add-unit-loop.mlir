// RUN: weft-opt %s --split-input-file -p apply-schedule | filecheck %s --strict-whitespace
// RUN: weft-opt %s --split-input-file -p 'tir-add-unit-loop{func=f block=S}' | filecheck %s --strict-whitespace --check-prefix=PASS
// add_unit_loop: a loop of one iteration around a loop or block.

// Around a block, and around a loop.
// CHECK-LABEL: func.func @f(
// CHECK: {{^}}    tir.for %[[I:\w+]] in 12 {
// CHECK-NEXT: {{^}}      tir.for %[[U:\w+]] in 1 thread_binding<"vthread.x"> {
// CHECK-NEXT: {{^}}        tir.for %[[K:\w+]] in 9 {
// CHECK-NEXT: {{^}}          tir.for %[[U_1:\w+]] in 1 {
// CHECK-NEXT: {{^}}            tir.block "S" iters(%[[VI:\w+]]: spatial<12>, %[[VK:\w+]]: reduce<9>) = [%[[I]], %[[K]]] {
// CHECK-NEXT: {{^}}              tir.init {
// CHECK-NOT: tir.block
// CHECK: func.return
//
// PASS-LABEL: func.func @f(
// PASS: {{^}}    tir.for %[[I:\w+]] in 12 {
// PASS-NEXT: {{^}}      tir.for %[[K:\w+]] in 9 {
// PASS-NEXT: {{^}}        tir.for %[[U:\w+]] in 1 {
// PASS-NEXT: {{^}}          tir.block "S" iters(%[[VI:\w+]]: spatial<12>, %[[VK:\w+]]: reduce<9>) = [%[[I]], %[[K]]] {
// PASS-NEXT: {{^}}            tir.init {
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
  %u = sched.add_unit_loop %s : loop
  %w = sched.add_unit_loop %k : loop
  sched.bind %w {thread_axis = "vthread.x"}
}
