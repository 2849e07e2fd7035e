// RUN: weft-opt %s --split-input-file -p "tir-narrow-vectors{vector-bytes=16}" | filecheck %s

// A remainder of a symbolic number of lanes: one vector of the machine, or all four.

func.func @remainder(%A: memref<?xf32>) {
  %zero = arith.constant 0.000000e+00 : f32
  %c0 = arith.constant 0 : index
  %n = memref.dim %A, %c0 : memref<?xf32>
  tir.for %k in 2 {
    tir.for %j in 16 vectorized {
      %x = affine.apply affine_map<(d0, d1) -> (d0 * 16 + d1)> (%k, %j)
      %inside = arith.cmpi slt, %x, %n : index
      scf.if %inside {
        memref.store %zero, %A[%x] : memref<?xf32>
      }
    }
  }
  func.return
}
// CHECK-LABEL: @remainder
// CHECK:         tir.for %[[K:\w+]] in 2 {
// CHECK:           %[[LAST:.*]] = affine.apply affine_map<(d0, d1) -> {{.*}}> (
// CHECK:           %[[SHORT:.*]] = arith.cmpi slt, %[[LAST]], %{{.*}} : index
// CHECK:           scf.if %[[SHORT]] {
// CHECK-NEXT:        tir.for %{{\w+}} in 4 vectorized {
// CHECK:               memref.store
// CHECK:           } else {
// CHECK-NEXT:        tir.for %{{\w+}} in 16 vectorized {
// CHECK:               memref.store

// -----

// Known numbers of lanes, single vectors of the machine, and other work for all lanes stay.

func.func @others(%A: memref<18xf32>, %B: memref<?xf32>) {
  %zero = arith.constant 0.000000e+00 : f32
  %c0 = arith.constant 0 : index
  %c18 = arith.constant 18 : index
  %n = memref.dim %B, %c0 : memref<?xf32>
  tir.for %j in 32 vectorized {
    %inside = arith.cmpi slt, %j, %c18 : index
    scf.if %inside {
      memref.store %zero, %A[%j] : memref<18xf32>
    }
  }
  tir.for %j in 4 vectorized {
    %inside = arith.cmpi slt, %j, %n : index
    scf.if %inside {
      memref.store %zero, %B[%j] : memref<?xf32>
    }
  }
  tir.for %j in 16 vectorized {
    memref.store %zero, %A[%j] : memref<18xf32>
    %inside = arith.cmpi slt, %j, %n : index
    scf.if %inside {
      memref.store %zero, %B[%j] : memref<?xf32>
    }
  }
  func.return
}
// CHECK-LABEL: @others
// CHECK-NOT:     else
// CHECK:         func.return
