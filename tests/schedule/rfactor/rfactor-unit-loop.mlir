// RUN: weft-opt %s -p apply-schedule | filecheck %s
// rfactor of a loop of one iteration, which no iterator is bound to: one partial result for each element.

// CHECK-LABEL: @unit
// CHECK:       %C_rf = memref.alloc() : memref<1x8xf32>
// CHECK:       tir.for %[[I:\w+]] in 8 {
// CHECK-NEXT:    tir.for %[[K0:\w+]] in 12 {
// CHECK-NEXT:      tir.for %[[K1:\w+]] in 1 {
// CHECK-NEXT:        tir.block "C_rf" iters(%[[VI:\w+]]: spatial<8>, %[[VK1:\w+]]: spatial<1>, %[[VK0:\w+]]: reduce<12>) = [%[[I]], %[[K1]], %[[K0]]] {
// CHECK-NEXT:          tir.init {
// CHECK-NEXT:            memref.store %[[ZERO:\w+]], %C_rf[%[[VK1]], %[[VI]]] : memref<1x8xf32>
// CHECK:       tir.for %[[I:.*]] in 8 {
// CHECK-NEXT:    tir.for %[[K:.*]] in 1 {
// CHECK-NEXT:      tir.block "C" iters(%{{.*}}: spatial<8>, %{{.*}}: reduce<1>) = [%[[I]], %[[K]]] {
func.func @unit(%A: memref<8x12xf32>, %C: memref<8xf32>) {
  %zero = arith.constant 0.0 : f32
  tir.for %i in 8 {
    tir.for %k in 12 {
      tir.block "C" iters(%vi: spatial<8>, %vk: reduce<12>) = [%i, %k] {
        tir.init { memref.store %zero, %C[%vi] : memref<8xf32> }
        %a = memref.load %A[%vi, %vk] : memref<8x12xf32>
        %c = memref.load %C[%vi] : memref<8xf32>
        %s = arith.addf %c, %a : f32
        memref.store %s, %C[%vi] : memref<8xf32>
      } } }
  func.return
}
sched.func @unit_loop {
  %c = sched.get_block "C" : block
  %i, %k = sched.get_loops %c : loop, loop
  %k0, %k1 = sched.split %k {factors = [0, 1]} : loop, loop
  %rf = sched.rfactor %k1 {factor_axis = 0} : block
}
