// RUN: weft-opt %s -p 'lower-tir-to-low' | filecheck %s

// Constants of indices wrap around at 64 bits, as sums and products do.
// CHECK-LABEL: @constants_wrap
// CHECK:         arith.constant dense<[-9223372036854775808, -9223372036854775807, -9223372036854775806, -9223372036854775805]> : vector<4xindex>
func.func @constants_wrap(%A: memref<4xindex>) {
  tir.for %i in 4 {
    tir.block "B" iters(%v: spatial<4>) = [%i] {
      %c3 = arith.constant 3 : index
      %x = affine.apply affine_map<(d0, d1) -> (d0 * -9223372036854775808 + d1)> (%c3, %v)
      memref.store %x, %A[%v] : memref<4xindex>
    }
  }
  func.return
}
