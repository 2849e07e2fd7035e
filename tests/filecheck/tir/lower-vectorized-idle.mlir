// RUN: weft-opt %s --split-input-file -p tir-lower-blocks,tir-flatten,tir-lower-vectorized,low-canonicalize | filecheck %s

// The end of a row is half a vector: one of half the lanes, and no mask.
func.func @half(%A: memref<56xf32>, %B: memref<56xf32>) {
  %end = arith.constant 56 : index
  tir.for %i in 16 vectorized {
    %x = affine.apply affine_map<(d0) -> (d0 + 48)> (%i)
    %inside = arith.cmpi slt, %x, %end : index
    scf.if %inside {
      %a = memref.load %A[%x] : memref<56xf32>
      memref.store %a, %B[%x] : memref<56xf32>
    }
  }
  func.return
}
// CHECK-LABEL: @half
// CHECK:         %[[A:\w+]] = vector.load %A[%{{.*}}] : memref<56xf32>, vector<8xf32>
// CHECK-NEXT:    vector.store %[[A]], %B[%{{.*}}] : memref<56xf32>, vector<8xf32>

// -----

// Three lanes of sixteen: a mask of four. What is behind the other condition needs fewer.
func.func @masked(%A: memref<51xf32>, %n: index) {
  %one = arith.constant 1.0 : f32
  %c51 = arith.constant 51 : index
  %c49 = arith.constant 49 : index
  tir.for %i in 16 vectorized {
    %x = affine.apply affine_map<(d0) -> (d0 + 48)> (%i)
    %in_buffer = arith.cmpi slt, %x, %c51 : index
    %in_size = arith.cmpi slt, %x, %n : index
    %inside = arith.andi %in_buffer, %in_size : i1
    scf.if %inside {
      memref.store %one, %A[%x] : memref<51xf32>
    }
    %first = arith.cmpi slt, %x, %c49 : index
    scf.if %first {
      memref.store %one, %A[%x] : memref<51xf32>
    }
  }
  func.return
}
// CHECK-LABEL: @masked
// CHECK:         arith.constant dense<[true, true, true, false]> : vector<4xi1>
// CHECK:         arith.constant dense<[true, false, false, false]> : vector<4xi1>
// CHECK-COUNT-2: vector.maskedstore {{.*}} : memref<51xf32>, vector<4xi1>, vector<4xf32>

// -----

// All lanes do something: beside the condition,
func.func @beside(%A: memref<64xf32>, %B: memref<56xf32>) {
  %one = arith.constant 1.0 : f32
  %end = arith.constant 56 : index
  tir.for %i in 16 vectorized {
    %x = affine.apply affine_map<(d0) -> (d0 + 48)> (%i)
    memref.store %one, %A[%x] : memref<64xf32>
    %inside = arith.cmpi slt, %x, %end : index
    scf.if %inside {
      memref.store %one, %B[%x] : memref<56xf32>
    }
  }
  func.return
}
// CHECK-LABEL: @beside
// CHECK:         vector.store %{{.*}}, %A[%{{.*}}] : memref<64xf32>, vector<16xf32>
// CHECK:         vector.maskedstore {{.*}}, vector<16xf32>

// -----

// where it does not hold,
func.func @otherwise(%A: memref<64xf32>) {
  %zero = arith.constant 0.0 : f32
  %one = arith.constant 1.0 : f32
  %end = arith.constant 56 : index
  tir.for %i in 16 vectorized {
    %x = affine.apply affine_map<(d0) -> (d0 + 48)> (%i)
    %inside = arith.cmpi slt, %x, %end : index
    scf.if %inside {
      memref.store %one, %A[%x] : memref<64xf32>
    } else {
      memref.store %zero, %A[%x] : memref<64xf32>
    }
  }
  func.return
}
// CHECK-LABEL: @otherwise
// CHECK-COUNT-2: vector.maskedstore {{.*}}, vector<16xf32>

// -----

// and where half of them are not enough.
func.func @most(%A: memref<60xf32>) {
  %one = arith.constant 1.0 : f32
  %end = arith.constant 60 : index
  tir.for %i in 16 vectorized {
    %x = affine.apply affine_map<(d0) -> (d0 + 48)> (%i)
    %inside = arith.cmpi slt, %x, %end : index
    scf.if %inside {
      memref.store %one, %A[%x] : memref<60xf32>
    }
  }
  func.return
}
// CHECK-LABEL: @most
// CHECK:         vector.maskedstore {{.*}}, vector<16xf32>
