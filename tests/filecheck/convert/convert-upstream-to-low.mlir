// RUN: weft-opt %s -p convert-upstream-to-low --split-input-file | filecheck %s

// Buffers become flat; loops in parallel; comparisons and selections of vectors, gathers, scatters, prefetches.
// CHECK-LABEL: func.func @body(%A: memref<32xf32>, %B: memref<?xf32>, %at: index, %n: index)
// CHECK-SAME:    low.params = [#low.param<"A", memref<4x8xf32>, read, []>, #low.param<"B", memref<?x8xf32>, write, ["n"]>, #low.param<"at", index, read, []>], low.symbols = ["n"], tir.promises = []
// CHECK:         low.parallel_for %i in %n {
// CHECK-NEXT:      %[[ROW:.*]] = arith.muli %i, %c8 : index
// CHECK:           %v = vector.load %A[%[[ROW]]] : memref<32xf32>, vector<8xf32>
// CHECK-NEXT:      %m = low.cmpf olt, %v, %zero : vector<8xf32>
// CHECK-NEXT:      %s = low.select %m, %zero, %v : vector<8xf32>
// CHECK:           %[[START:.*]] = vector.broadcast %{{.*}} : index to vector<8xindex>
// CHECK-NEXT:      %[[PLACES:.*]] = arith.addi %[[START]], %{{.*}} : vector<8xindex>
// CHECK-NEXT:      %[[GATHERED:.*]] = low.gather %A[%[[PLACES]]] mask %m : memref<32xf32>, vector<8xindex> -> vector<8xf32>
// CHECK-NEXT:      %g = low.select %m, %[[GATHERED]], %v : vector<8xf32>
// CHECK-NEXT:      %sum = arith.addf %s, %g fastmath<contract> : vector<8xf32>
// CHECK-NEXT:      low.prefetch %B[%{{.*}}] {lanes = 1 : i64, for_write} : memref<?xf32>
// CHECK-NEXT:      vector.store %sum, %B[%{{.*}}] : memref<?xf32>, vector<8xf32>
// CHECK-NEXT:    }
#map = affine_map<(d0) -> (d0 * 2)>
module {
  func.func @body(%A: memref<4x8xf32>, %B: memref<?x8xf32>, %at: index) {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %zero = arith.constant dense<0.000000e+00> : vector<8xf32>
    %lanes = arith.constant dense<[7, 6, 5, 4, 3, 2, 1, 0]> : vector<8xi32>
    %n = memref.dim %B, %c0 : memref<?x8xf32>
    scf.parallel (%i) = (%c0) to (%n) step (%c1) {
      %v = vector.load %A[%i, %c0] : memref<4x8xf32>, vector<8xf32>
      %m = arith.cmpf olt, %v, %zero : vector<8xf32>
      %s = arith.select %m, %zero, %v : vector<8xi1>, vector<8xf32>
      %twice = affine.apply #map(%at)
      %g = vector.gather %A[%twice, %i] [%lanes], %m, %v : memref<4x8xf32>, vector<8xi32>, vector<8xi1>, vector<8xf32> into vector<8xf32>
      %sum = arith.addf %s, %g fastmath<contract> : vector<8xf32>
      memref.prefetch %B[%i, %c0], write, locality<3>, data : memref<?x8xf32>
      vector.store %sum, %B[%i, %c0] : memref<?x8xf32>, vector<8xf32>
      scf.reduce
    }
    return
  }
}

// -----

// Views are index arithmetic: the offset of a parameter counts from its first element.
// CHECK-LABEL: func.func @views(%A: memref<?xf32>, %k: index, %A_d0: index, %A_s0: index)
// CHECK-SAME:    #low.param<"A", memref<?x8xf32, strided<[?, 1], offset: ?>>, readwrite, ["A_d0", "A_s0"]>
// CHECK:         %[[ROW:.*]] = arith.muli %k, %A_s0 : index
// CHECK-NEXT:    %[[AT:.*]] = arith.addi %[[ROW]], %c3 : index
// CHECK-NEXT:    %x = memref.load %A[%[[AT]]] : memref<?xf32>
// CHECK-NEXT:    memref.store %x, %A[%k] : memref<?xf32>
// CHECK-NEXT:    func.return
func.func @views(%A: memref<?x8xf32, strided<[?, 1], offset: ?>>, %k: index) {
  %c1 = arith.constant 1 : index
  %sub = memref.subview %A[%k, 2] [1, 4] [1, 1]
    : memref<?x8xf32, strided<[?, 1], offset: ?>> to memref<4xf32, strided<[1], offset: ?>>
  %x = memref.load %sub[%c1] : memref<4xf32, strided<[1], offset: ?>>
  %base, %offset, %sizes:2, %strides:2 = memref.extract_strided_metadata %A
    : memref<?x8xf32, strided<[?, 1], offset: ?>> -> memref<f32>, index, index, index, index, index
  %again = memref.reinterpret_cast %A to offset: [%offset], sizes: [8], strides: [1]
    : memref<?x8xf32, strided<[?, 1], offset: ?>> to memref<8xf32, strided<[1], offset: ?>>
  memref.store %x, %again[%k] : memref<8xf32, strided<[1], offset: ?>>
  return
}

// -----

// Reductions run in order; a loop in a parallel one does too; steps are counted.
// CHECK-LABEL: func.func @loops(
// CHECK:         %{{.*}} = scf.for %i = %c0 to %n step %c1 iter_args(%[[ACC:.*]] = %z) -> (f32) {
// CHECK:           %[[INNER:.*]] = scf.for %j = %c0 to %n step %c2 iter_args(%l = %[[ACC]]) -> (f32) {
// CHECK:             %sum = arith.addf %l, %x : f32
// CHECK-NEXT:        scf.yield %sum : f32
// CHECK:           scf.yield %[[INNER]] : f32
// CHECK:         low.parallel_for %i in %{{.*}} {
// CHECK-NEXT:      %{{.*}} = arith.muli %i, %c2 : index
// CHECK:           scf.for %j = %c0 to %n step %c1 {
// CHECK-NOT:   scf.reduce
func.func @loops(%A: memref<?x?xf32>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %z = arith.constant 0.000000e+00 : f32
  %s = scf.parallel (%i, %j) = (%c0, %c0) to (%n, %n) step (%c1, %c2) init (%z) -> f32 {
    %x = memref.load %A[%i, %j] : memref<?x?xf32>
    scf.reduce(%x : f32) {
    ^bb0(%l: f32, %r: f32):
      %sum = arith.addf %l, %r : f32
      scf.reduce.return %sum : f32
    }
  }
  scf.parallel (%i, %j) = (%c0, %c0) to (%n, %n) step (%c2, %c1) {
    memref.store %s, %A[%i, %j] : memref<?x?xf32>
  }
  return
}

// -----

// Functions call each other by flat signatures; constants of the module are flat; larger stack buffers are on the heap.
// CHECK-LABEL: "memref.global"
// CHECK-SAME:    type = memref<4xf32>, initial_value = dense<[1.000000e+00, 2.000000e+00, 3.000000e+00, 4.000000e+00]> : tensor<4xf32>
// CHECK:       func.func private @callee(%A: memref<?xf32>, %A_d0: index)
// CHECK:       func.func @caller(%A: memref<8xf32>)
// CHECK:         memref.get_global @weights : memref<4xf32>
// CHECK:         memref.alloca() : memref<6xf32, "local">
// CHECK:         memref.alloc() : memref<131072xf32>
// CHECK:         %[[CAST:.*]] = "memref.cast"(%A) : (memref<8xf32>) -> memref<?xf32>
// CHECK:         func.call @callee(%[[CAST]], %{{.*}}) : (memref<?xf32>, index) -> ()
// CHECK:         memref.dealloc
memref.global "private" constant @weights : memref<2x2xf32> = dense<[[1.0, 2.0], [3.0, 4.0]]>
func.func private @callee(%A: memref<?xf32>) {
  %c0 = arith.constant 0 : index
  %x = memref.load %A[%c0] : memref<?xf32>
  memref.store %x, %A[%c0] : memref<?xf32>
  return
}
func.func @caller(%A: memref<8xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %w = memref.get_global @weights : memref<2x2xf32>
  %x = memref.load %w[%c1, %c0] : memref<2x2xf32>
  %t = memref.alloca() : memref<2x3xf32>
  memref.store %x, %t[%c1, %c1] : memref<2x3xf32>
  %y = memref.load %t[%c1, %c0] : memref<2x3xf32>
  %large = memref.alloca() : memref<2x65536xf32>
  memref.store %y, %large[%c1, %c1] : memref<2x65536xf32>
  %z = memref.load %large[%c1, %c1] : memref<2x65536xf32>
  memref.store %z, %A[%c1] : memref<8xf32>
  %B = memref.cast %A : memref<8xf32> to memref<?xf32>
  call @callee(%B) : (memref<?xf32>) -> ()
  return
}
