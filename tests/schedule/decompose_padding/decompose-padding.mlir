// RUN: weft-opt %s -p 'tir-decompose-padding{block=P loop=0}' | filecheck %s
// RUN: weft-opt %s -p 'tir-decompose-padding{block=P loop=1}' | filecheck %s --check-prefix=INNER

func.func @pad(%X: memref<8x9xf32>, %P: memref<12x11xf32>) {
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c10 = arith.constant 10 : index
  %zero = arith.constant 0.0 : f32
  tir.for %i in 12 { tir.for %j in 11 {
    tir.block "P" iters(%vi: spatial<12>, %vj: spatial<11>) = [%i, %j] {
      %above = arith.cmpi sge, %vi, %c2 : index
      %below = arith.cmpi slt, %vi, %c10 : index
      %rows = arith.andi %above, %below : i1
      %left = arith.cmpi sge, %vj, %c1 : index
      %right = arith.cmpi slt, %vj, %c10 : index
      %columns = arith.andi %left, %right : i1
      %inside = arith.andi %rows, %columns : i1
      %p = scf.if %inside -> (f32) {
        %i2 = affine.apply affine_map<(d0) -> (d0 - 2)>(%vi)
        %j1 = affine.apply affine_map<(d0) -> (d0 - 1)>(%vj)
        %x = memref.load %X[%i2, %j1] : memref<8x9xf32>
        scf.yield %x : f32
      } else {
        scf.yield %zero : f32
      }
      memref.store %p, %P[%vi, %vj] : memref<12x11xf32>
    } } }
  func.return
}
// CHECK:      tir.for %i_pad in 12 {
// CHECK-NEXT:   tir.for %j_pad in 11 {
// CHECK-NEXT:     tir.block "P_pad_const" iters(%vi: spatial<12>, %vj: spatial<11>) = [%i_pad, %j_pad] {
// CHECK-NEXT:       memref.store %zero, %P[%vi, %vj] : memref<12x11xf32>
// CHECK-NEXT:     }
// CHECK-NEXT:   }
// CHECK-NEXT: }
// CHECK-NEXT: tir.for %i in 8 {
// CHECK-NEXT:   tir.for %j in 9 {
// CHECK-NEXT:     tir.block "P" iters([[I:%.*]]: spatial<8>, [[J:%.*]]: spatial<9>) = [%i, %j] {
// CHECK-NEXT:       %x = memref.load %X{{\[}}[[I]], [[J]]] : memref<8x9xf32>
// CHECK-NEXT:       [[I2:%.*]] = affine.apply affine_map<(d0) -> ((d0 + 2))> ([[I]])
// CHECK-NEXT:       [[J1:%.*]] = affine.apply affine_map<(d0) -> ((d0 + 1))> ([[J]])
// CHECK-NEXT:       memref.store %x, %P{{\[}}[[I2]], [[J1]]] : memref<12x11xf32>

// What the loop outside decides stays a condition; the loop inside has none.
// INNER:      tir.for %i in 12 {
// INNER-NEXT:   tir.for %j_pad in 11 {
// INNER-NEXT:     tir.block "P_pad_const" iters(%vi: spatial<12>, %vj: spatial<11>) = [%i, %j_pad] {
// INNER:        tir.for %j in 9 {
// INNER-NEXT:     tir.block "P" iters([[I:%.*]]: spatial<12>, [[J:%.*]]: spatial<9>) = [%i, %j] {
// INNER-NOT:        scf.if {{.*}} -> (f32)
// INNER:            scf.if %{{.*}} {
// INNER-NOT:        else
// INNER:              memref.store %x, %P{{\[}}[[I]],
