// RUN: weft-opt %s -p tir-lower-blocks,tir-flatten,tir-lower-vectorized,low-canonicalize | filecheck %s

// Lanes pass at most one multiple of 12 on their way, so that their rows and columns come of a comparison, not of a
// division in each lane.

func.func @rows(%A: memref<12x12xi64>, %B: memref<9x16xi64>) {
  tir.for %i in 9 {
    tir.for %l in 8 vectorized {
      %row = affine.apply affine_map<(d0, d1) -> ((d0 * 16 + d1) floordiv 12)> (%i, %l)
      %column = affine.apply affine_map<(d0, d1) -> ((d0 * 16 + d1) mod 12)> (%i, %l)
      %a = memref.load %A[%column, %row] : memref<12x12xi64>
      memref.store %a, %B[%i, %l] : memref<9x16xi64>
    }
  }
  func.return
}
// CHECK-LABEL: @rows
// CHECK-NOT:     divui
// CHECK-NOT:     remui
// CHECK:         %[[first:.*]] = affine.apply affine_map<(d0) -> ((((d0 * 4) mod 3) * 4))> (%[[I:\w+]])
// CHECK-NEXT:    %[[lanes:.*]] = vector.broadcast %[[first]]
// CHECK-NEXT:    %[[reached:.*]] = arith.addi %[[lanes]], %{{.*}} : vector<8xindex>
// CHECK-NEXT:    %[[past:.*]] = low.cmpi sge, %[[reached]], %{{.*}} : vector<8xindex>
// CHECK:         low.select %[[past]]
// CHECK:         arith.subi %[[reached]], %{{.*}} : vector<8xindex>
// CHECK-NEXT:    low.select %[[past]]
// CHECK:         low.gather %A



// Lanes wrap around at 64 bits, as sums and products of indices do.
// CHECK-LABEL: @lanes_wrap
// CHECK: arith.constant dense<[0, -9223372036854775808, 0, -9223372036854775808]> : vector<4xindex>
func.func @lanes_wrap(%C: memref<24xf32>) {
  %zero = arith.constant 0.0 : f32
  %n = arith.constant 18 : index
  tir.for %v in 4 vectorized {
    tir.for %i in 5 {
      %x = affine.apply affine_map<(d0, d1) -> (d0 * -9223372036854775808 + d1)> (%v, %i)
      %inside = arith.cmpi slt, %x, %n : index
      scf.if %inside {
        %0 = affine.apply affine_map<(d0, d1) -> (d0 * 5 + d1)> (%v, %i)
        memref.store %zero, %C[%0] : memref<24xf32>
      }
    }
  }
  func.return
}
