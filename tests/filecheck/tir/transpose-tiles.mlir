// RUN: weft-opt %s --split-input-file -p 'tir-transpose-tiles' | filecheck %s

// Four rows: pairs of elements of two rows in turn, then pairs of pairs. Their loop is unrolled.
func.func @four(%A: memref<400xf32>, %B: memref<16xf32>) {
  tir.for %r in 4 {
    tir.for %c in 4 vectorized {
      %p = affine.apply affine_map<(d0, d1) -> (d0 + d1 * 100 + 7)> (%r, %c)
      %q = affine.apply affine_map<(d0, d1) -> (d0 * 4 + d1)> (%r, %c)
      %a = memref.load %A[%p] : memref<400xf32>
      memref.store %a, %B[%q] : memref<16xf32>
    }
  }
  func.return
}
// CHECK-LABEL: @four
// CHECK-COUNT-4: vector.load %A[%{{.*}}] : memref<400xf32>, vector<4xf32>
// CHECK:         %[[TILE:\w+]] = memref.alloca() {alignment = 64 : i64} : memref<16xf32, "local">
// CHECK:         %[[A:\w+]] = vector.shuffle %{{.*}}, %{{.*}} [0, 4, 1, 5] : vector<4xf32>, vector<4xf32>
// CHECK-NEXT:    %[[B:\w+]] = vector.shuffle %{{.*}}, %{{.*}} [2, 6, 3, 7]
// CHECK-NEXT:    %[[C:\w+]] = vector.shuffle %{{.*}}, %{{.*}} [0, 4, 1, 5]
// CHECK-NEXT:    %[[D:\w+]] = vector.shuffle %{{.*}}, %{{.*}} [2, 6, 3, 7]
// CHECK-NEXT:    vector.shuffle %[[A]], %[[C]] [0, 1, 4, 5]
// CHECK-NEXT:    vector.shuffle %[[A]], %[[C]] [2, 3, 6, 7]
// CHECK-NEXT:    vector.shuffle %[[B]], %[[D]] [0, 1, 4, 5]
// CHECK-NEXT:    vector.shuffle %[[B]], %[[D]] [2, 3, 6, 7]
// CHECK-COUNT-4: vector.store %{{.*}}, %[[TILE]][%{{.*}}] : memref<16xf32, "local">, vector<4xf32>
// CHECK:         tir.for %[[R:\w+]] in 4 unrolled {
// CHECK-NEXT:      tir.for %[[L:\w+]] in 4 vectorized {
// CHECK:             memref.load %[[TILE]][%{{.*}}] : memref<16xf32, "local">

// -----

// Eight rows take 24 shuffles, the last of whole parts of 16 bytes.
func.func @eight(%A: memref<800xf32>, %B: memref<64xf32>) {
  tir.for %r in 8 {
    tir.for %c in 8 vectorized {
      %p = affine.apply affine_map<(d0, d1) -> (d0 + d1 * 100)> (%r, %c)
      %q = affine.apply affine_map<(d0, d1) -> (d0 * 8 + d1)> (%r, %c)
      %a = memref.load %A[%p] : memref<800xf32>
      memref.store %a, %B[%q] : memref<64xf32>
    }
  }
  func.return
}
// CHECK-LABEL:    @eight
// CHECK-COUNT-16: vector.shuffle
// CHECK-NEXT:     vector.shuffle %{{.*}}, %{{.*}} [0, 1, 2, 3, 8, 9, 10, 11]
// CHECK-NEXT:     vector.shuffle %{{.*}}, %{{.*}} [4, 5, 6, 7, 12, 13, 14, 15]
// CHECK-COUNT-6:  vector.shuffle
// CHECK-NOT:      vector.shuffle

// -----

// Under a condition not all of the tile is there.
func.func @edge(%A: memref<400xf32>, %B: memref<16xf32>, %n: index) {
  tir.for %r in 4 {
    tir.for %c in 4 vectorized {
      %inside = arith.cmpi slt, %c, %n : index
      scf.if %inside {
        %p = affine.apply affine_map<(d0, d1) -> (d0 + d1 * 100)> (%r, %c)
        %q = affine.apply affine_map<(d0, d1) -> (d0 * 4 + d1)> (%r, %c)
        %a = memref.load %A[%p] : memref<400xf32>
        memref.store %a, %B[%q] : memref<16xf32>
      }
    }
  }
  func.return
}
// CHECK-LABEL: @edge
// CHECK-NOT:     vector.load

// -----

// A transposition in place: what is read may just have been stored.
func.func @in_place(%A: memref<400xf32>) {
  tir.for %r in 4 {
    tir.for %c in 4 vectorized {
      %p = affine.apply affine_map<(d0, d1) -> (d0 + d1 * 100)> (%r, %c)
      %q = affine.apply affine_map<(d0, d1) -> (d0 * 100 + d1)> (%r, %c)
      %a = memref.load %A[%p] : memref<400xf32>
      memref.store %a, %A[%q] : memref<400xf32>
    }
  }
  func.return
}
// CHECK-LABEL: @in_place
// CHECK-NOT:     vector.load

// -----

// Neither more rows than lanes, nor rows that are not consecutive.
func.func @other(%A: memref<800xf32>, %B: memref<64xf32>) {
  tir.for %r in 8 {
    tir.for %c in 4 vectorized {
      %p = affine.apply affine_map<(d0, d1) -> (d0 + d1 * 100)> (%r, %c)
      %q = affine.apply affine_map<(d0, d1) -> (d0 * 4 + d1)> (%r, %c)
      %a = memref.load %A[%p] : memref<800xf32>
      memref.store %a, %B[%q] : memref<64xf32>
    }
  }
  tir.for %r in 4 {
    tir.for %c in 4 vectorized {
      %p = affine.apply affine_map<(d0, d1) -> (d0 * 2 + d1 * 100)> (%r, %c)
      %q = affine.apply affine_map<(d0, d1) -> (d0 * 4 + d1)> (%r, %c)
      %a = memref.load %A[%p] : memref<800xf32>
      memref.store %a, %B[%q] : memref<64xf32>
    }
  }
  func.return
}
// CHECK-LABEL: @other
// CHECK-NOT:     vector.load

// -----

// Something else in the loop over rows, which stores to what is read.
func.func @more(%A: memref<400xf32>, %B: memref<16xf32>, %x: f32) {
  tir.for %r in 4 {
    memref.store %x, %A[%r] : memref<400xf32>
    tir.for %c in 4 vectorized {
      %p = affine.apply affine_map<(d0, d1) -> (d0 + d1 * 100)> (%r, %c)
      %q = affine.apply affine_map<(d0, d1) -> (d0 * 4 + d1)> (%r, %c)
      %a = memref.load %A[%p] : memref<400xf32>
      memref.store %a, %B[%q] : memref<16xf32>
    }
  }
  func.return
}
// CHECK-LABEL: @more
// CHECK-NOT:     vector.load
