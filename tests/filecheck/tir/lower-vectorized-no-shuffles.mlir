// RUN: weft-opt %s -p 'tir-lower-vectorized{shuffles=false}' | filecheck %s

// For targets without shuffles each lane is read by itself.

func.func @every_second(%A: memref<64xf32>, %B: memref<8xf32>) {
  tir.for %i in 8 vectorized {
    %x = affine.apply affine_map<(d0) -> (d0 * 2)> (%i)
    %a = memref.load %A[%x] : memref<64xf32>
    memref.store %a, %B[%i] : memref<8xf32>
  }
  func.return
}
// CHECK-LABEL: @every_second
// CHECK:         low.gather %A
// CHECK-NOT:     vector.shuffle
