// RUN: weft-opt %s -p tir-hoist-prefetches --split-input-file | filecheck %s

// All rows ask for the same columns, which follow each other: they are asked for once.
func.func @panel(%B: memref<4096xf32>, %C: memref<384xf32>) {
  tir.for %k in 32 { tir.for %u in 2 unrolled { tir.for %i in 6 unrolled { tir.for %j in 4 unrolled {
    %p = affine.apply affine_map<(d0, d1, d2) -> (d0 * 128 + d1 * 64 + d2 * 16 + 256)> (%k, %u, %j)
    low.prefetch %B[%p] {lanes = 16} : memref<4096xf32>
    %q = affine.apply affine_map<(d0, d1, d2) -> (d0 * 128 + d1 * 64 + d2 * 16)> (%k, %u, %j)
    %b = vector.load %B[%q] : memref<4096xf32>, vector<16xf32>
    %c = affine.apply affine_map<(d0, d1) -> (d0 * 64 + d1 * 16)> (%i, %j)
    vector.store %b, %C[%c] : memref<384xf32>, vector<16xf32>
  } } } }
  func.return
}
// CHECK-LABEL: @panel
// CHECK:         tir.for %[[U:\w+]] in 2 unrolled {
// CHECK-NEXT:      %{{.*}} = affine.apply affine_map<(d0, d1) -> {{.*}}> (%[[K:\w+]], %[[U]])
// CHECK-NEXT:      low.prefetch %B[%{{.*}}] {lanes = 64 : i64} : memref<4096xf32>
// CHECK-NEXT:      tir.for %[[I:\w+]] in 6 unrolled {
// CHECK-NEXT:        tir.for %[[J:\w+]] in 4 unrolled {
// CHECK-NOT:           low.prefetch
// CHECK:       func.return

// -----

// Each iteration asks for something else: nothing is repeated.
func.func @tile(%C: memref<4096xf32>, %v: vector<16xf32>) {
  tir.for %i in 6 unrolled { tir.for %j in 4 unrolled {
    %p = affine.apply affine_map<(d0, d1) -> (d0 * 64 + d1 * 16 + 384)> (%i, %j)
    low.prefetch %C[%p] {lanes = 16, for_write} : memref<4096xf32>
    %q = affine.apply affine_map<(d0, d1) -> (d0 * 64 + d1 * 16)> (%i, %j)
    vector.store %v, %C[%q] : memref<4096xf32>, vector<16xf32>
  } }
  func.return
}
// CHECK-LABEL: @tile
// CHECK:         tir.for %[[J:\w+]] in 4 unrolled {
// CHECK-NEXT:      %[[P:\w+]] = affine.apply
// CHECK-NEXT:      low.prefetch %C[%[[P]]] {lanes = 16 : i64, for_write}

// -----

// Serial loops are left alone, and what stands under a condition, or what is apart in memory in a loop on the way.
func.func @stay(%A: memref<4096xf32>, %C: memref<64xf32>, %x: f32, %n: index) {
  tir.for %i in 8 {
    low.prefetch %A[%n] {lanes = 1} : memref<4096xf32>
    memref.store %x, %C[%i] : memref<64xf32>
  }
  tir.for %i in 8 unrolled { tir.for %j in 4 unrolled {
    %p = affine.apply affine_map<(d0) -> (d0 * 64)> (%j)
    low.prefetch %A[%p] {lanes = 16} : memref<4096xf32>
    memref.store %x, %C[%i] : memref<64xf32>
  } }
  tir.for %i in 8 unrolled {
    %few = arith.cmpi slt, %i, %n : index
    scf.if %few {
      low.prefetch %A[%n] {lanes = 1} : memref<4096xf32>
      memref.store %x, %C[%i] : memref<64xf32>
    }
  }
  tir.for %i in 8 unrolled {
    %rest = arith.remui %i, %n : index
    low.prefetch %A[%rest] {lanes = 1} : memref<4096xf32>
    memref.store %x, %C[%i] : memref<64xf32>
  }
  func.return
}
// CHECK-LABEL: @stay
// CHECK:         tir.for %[[I:\w+]] in 8 {
// CHECK-NEXT:      low.prefetch %A[%n]
// CHECK:           tir.for %[[J:\w+]] in 4 unrolled {
// CHECK-NEXT:        %[[P:\w+]] = affine.apply
// CHECK-NEXT:        low.prefetch %A[%[[P]]] {lanes = 16 : i64}
// CHECK:           scf.if %[[FEW:\w+]] {
// CHECK-NEXT:        low.prefetch %A[%n]
// CHECK:           %[[REST:\w+]] = arith.remui
// CHECK-NEXT:      low.prefetch %A[%[[REST]]]

// -----

// What only the outermost of the loops repeats.
func.func @scalar(%A: memref<4096xf32>, %C: memref<4096xf32>, %n: index) {
  tir.assume [0] <= [%n]
  tir.assume [%n] < [4096]
  tir.for %i in 8 unrolled {
    %p = affine.apply affine_map<(d0) -> (d0 * 16)> (%n)
    low.prefetch %A[%p] {lanes = 1} : memref<4096xf32>
    %a = memref.load %A[%n] : memref<4096xf32>
    memref.store %a, %C[%i] : memref<4096xf32>
  }
  func.return
}
// CHECK-LABEL: @scalar
// CHECK:         low.prefetch %A[%{{.*}}] {lanes = 1 : i64} : memref<4096xf32>
// CHECK-NEXT:    tir.for %[[I:\w+]] in 8 unrolled {
// CHECK-NEXT:      memref.load
