// RUN: weft-opt %s -p tir-check-bounds --split-input-file | filecheck %s

// A subscript from memory is guarded in the dimension that it picks; the other dimension is proved.
// CHECK-LABEL: @rows(%{{.*}}: memref<1x3xi64>, %A
// CHECK-SAME:  low.bounds_log = ["block \22B\22 reads A out of bounds at {{.*}}: index 0"]
// CHECK:         %[[P:.*]] = arith.index_cast
// CHECK:         %[[EXTENT:.*]] = arith.constant 16 : index
// CHECK:         %[[INSIDE:.*]] = arith.cmpi ult, %[[P]], %[[EXTENT]]
// CHECK:         %[[VALUE:.*]] = scf.if %[[INSIDE]] -> (f32)
// CHECK-NEXT:      %[[A:.*]] = memref.load %A[%[[P]], %{{.*}}]
// CHECK-NEXT:      scf.yield %[[A]]
// CHECK:         } else
// CHECK:           arith.maxui
// CHECK:           arith.maxui
// CHECK:           arith.maxui
// CHECK:           scf.yield %{{.*}} : f32
// CHECK:         memref.store %[[VALUE]], %B
func.func @rows(%A: memref<16x8xf32>, %I: memref<64xi32>, %B: memref<64x8xf32>) {
  tir.for %i in 64 {
    tir.for %j in 8 {
      tir.block "B" iters(%vi: spatial<64>, %vj: spatial<8>) = [%i, %j] {
        %x = memref.load %I[%vi] : memref<64xi32>
        %p = arith.index_cast %x : i32 to index
        %a = memref.load %A[%p, %vj] : memref<16x8xf32>
        memref.store %a, %B[%vi, %vj] : memref<64x8xf32>
      }
    }
  }
  func.return
}

// -----

// Clipped subscripts, guards of blocks and extents that calls check prove accesses: nothing is added.
// CHECK-LABEL: @proved(%A: memref<?xf32>, %B: memref<?xf32>, %I: memref<8xindex>, %C: memref<8xf32>) {
// CHECK-NOT:     arith.cmpi
func.func @proved(%A: memref<?xf32>, %B: memref<?xf32>, %I: memref<8xindex>, %C: memref<8xf32>) {
  %c0 = arith.constant 0 : index
  %c7 = arith.constant 7 : index
  %n = memref.dim %A, %c0 : memref<?xf32>
  tir.assume_shape %B[%n] : memref<?xf32>
  tir.for %i in %n {
    tir.block "B" iters(%v: spatial<%n>) = [%i] {
      %a = memref.load %A[%v] : memref<?xf32>
      memref.store %a, %B[%v] : memref<?xf32>
    }
  }
  tir.for %i in 8 {
    tir.block "C" iters(%v: spatial<8>) = [%i] {
      %p = memref.load %I[%v] : memref<8xindex>
      %low = arith.maxsi %p, %c0 : index
      %in = arith.minsi %low, %c7 : index
      %c = memref.load %C[%in] : memref<8xf32>
      memref.store %c, %C[%v] : memref<8xf32>
    }
  }
  func.return
}

// -----

// Two dimensions are two conditions and two rows; a dynamic extent is read; callers pass their log on.
// CHECK-LABEL: @scatter(%{{.*}}: memref<2x3xi64>, %P
// CHECK-SAME:  index 0", "{{.*}} writes B out of bounds at {{.*}}: index 1"]
// CHECK:         memref.dim %B
// CHECK:         scf.if
// CHECK:           arith.constant 4 : index
// CHECK:           scf.if
// CHECK-NEXT:        memref.store %{{.*}}, %B[%p, %q]
// CHECK:           } else
// CHECK:         } else
// CHECK-LABEL: @caller(%bounds_log: memref<2x3xi64>, %P
// CHECK:         func.call @scatter(%bounds_log, %P, %B)
func.func @scatter(%P: memref<8x2xindex>, %B: memref<?x4xf32>) {
  %one = arith.constant 1.0 : f32
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  tir.for %i in 8 {
    tir.block "B" iters(%v: spatial<8>) = [%i] {
      %p = memref.load %P[%v, %c0] : memref<8x2xindex>
      %q = memref.load %P[%v, %c1] : memref<8x2xindex>
      memref.store %one, %B[%p, %q] : memref<?x4xf32>
    }
  }
  func.return
}
func.func @caller(%P: memref<8x2xindex>, %B: memref<?x4xf32>) attributes {tir.function} {
  func.call @scatter(%P, %B) : (memref<8x2xindex>, memref<?x4xf32>) -> ()
  func.return
}

// -----

// A division by data has a row; one by a number has none.
// CHECK-LABEL: @divide(%{{.*}}: memref<1x3xi64>, %A
// CHECK-SAME:  low.bounds_log = ["block \22B\22 divides by zero at {{.*}}"]
// CHECK:         %[[ZERO:.*]] = arith.constant 0 : i32
// CHECK:         %[[BY_ZERO:.*]] = arith.cmpi eq, %b, %[[ZERO]] : i32
// CHECK-NEXT:    scf.if %[[BY_ZERO]] {
// CHECK:           arith.maxui
// CHECK:           memref.store
// CHECK:         }
// CHECK-NEXT:    %q = arith.divsi %a, %b : i32
// CHECK-NEXT:    %r = arith.remsi %q, %two : i32
func.func @divide(%A: memref<8xi32>, %B: memref<8xi32>) {
  %two = arith.constant 2 : i32
  tir.for %i in 8 {
    tir.block "B" iters(%v: spatial<8>) = [%i] {
      %a = memref.load %A[%v] : memref<8xi32>
      %b = memref.load %B[%v] : memref<8xi32>
      %q = arith.divsi %a, %b : i32
      %r = arith.remsi %q, %two : i32
      memref.store %r, %B[%v] : memref<8xi32>
    }
  }
  func.return
}
