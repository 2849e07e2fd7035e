// RUN: weft-opt %s --split-input-file -p apply-schedule | filecheck %s --strict-whitespace
// RUN: weft-opt %s --split-input-file -p 'tir-reorder-block-iter-var{func=f block=S new_order=1,0}' | filecheck %s --strict-whitespace --check-prefix=PASS
// reorder_block_iter_var: iterators in another order.

// Also of all parts of a block.
// CHECK-LABEL: func.func @f(
// CHECK: {{^}}    tir.for %[[I0:\w+]] in 5 {
// CHECK-NEXT: {{^}}      tir.for %[[K:\w+]] in 9 {
// CHECK-NEXT: {{^}}        tir.block "S_i0" iters(%[[VK:\w+]]: reduce<9>, %[[VI:\w+]]: spatial<12>) = [%[[K]], %[[I0]]] attributes {tir.part_of = "S"} {
// CHECK-NEXT: {{^}}          tir.init {
// CHECK: {{^}}    tir.for %[[I1:\w+]] in 7 {
// CHECK-NEXT: {{^}}      tir.for %[[K]] in 9 {
// CHECK-NEXT: {{^}}        tir.block "S_i1" iters(%[[VK]]: reduce<9>, %[[VI]]: spatial<12>) = [%[[K]], %[[I1]] + 5] attributes {tir.part_of = "S"} {
// CHECK-NEXT: {{^}}          tir.init {
// CHECK-NOT: tir.block
// CHECK: func.return
//
// PASS-LABEL: func.func @f(
// PASS: {{^}}    tir.for %[[I:\w+]] in 12 {
// PASS-NEXT: {{^}}      tir.for %[[K:\w+]] in 9 {
// PASS-NEXT: {{^}}        tir.block "S" iters(%[[VK:\w+]]: reduce<9>, %[[VI:\w+]]: spatial<12>) = [%[[K]], %[[I]]] {
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
  %i0, %i1 = sched.loop_partition %i {factors = [5, 0]} : loop, loop
  %t = sched.get_block "S_i1" : block
  sched.reorder_block_iter_var %t {new_order = [1, 0]}
}
