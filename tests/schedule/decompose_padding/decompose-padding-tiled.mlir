// RUN: weft-opt %s -p apply-schedule | filecheck %s
// decompose_padding after a split: the fill runs right before the inner loop, the inside stays a condition of the copy.

// CHECK-LABEL: @tiled
// CHECK:       tir.for %[[I0:\w+]] in 3 {
// CHECK-NEXT:    tir.for %[[I1_PAD:\w+]] in 4 {
// CHECK-NEXT:      tir.block "P_pad_const" iters(%[[V:\w+]]: spatial<12>) = [%[[I0]] * 4 + %[[I1_PAD]]] {
// CHECK-NEXT:        memref.store %[[ZERO:\w+]], %P[%[[V]]] : memref<12xf32>
// CHECK:         tir.for %[[I1:\w+]] in 4 {
// CHECK-NEXT:      tir.block "P" iters(%[[V:.*]]: spatial<12>) = [%[[I0]] * 4 + %[[I1]]] {
// CHECK:             scf.if %{{.*}} {
// CHECK:               %[[X:\w+]] = memref.load %X[%{{.*}}] : memref<8xf32>
// CHECK-NEXT:          memref.store %[[X]], %P[%[[V]]] : memref<12xf32>
func.func @tiled(%X: memref<8xf32>, %P: memref<12xf32>) {
  %zero = arith.constant 0.0 : f32
  %c2 = arith.constant 2 : index
  %c10 = arith.constant 10 : index
  tir.for %i in 12 {
    tir.block "P" iters(%v: spatial<12>) = [%i] {
      %above = arith.cmpi sge, %v, %c2 : index
      %below = arith.cmpi slt, %v, %c10 : index
      %inside = arith.andi %above, %below : i1
      %p = scf.if %inside -> (f32) {
        %at = affine.apply affine_map<(d0) -> (d0 - 2)>(%v)
        %x = memref.load %X[%at] : memref<8xf32>
        scf.yield %x : f32
      } else {
        scf.yield %zero : f32
      }
      memref.store %p, %P[%v] : memref<12xf32>
    } }
  func.return
}
sched.func @inner {
  %p = sched.get_block "P" : block
  %i = sched.get_loops %p : loop
  %i0, %i1 = sched.split %i {factors = [0, 4]} : loop, loop
  %fill = sched.decompose_padding %p, %i1 : block
}
