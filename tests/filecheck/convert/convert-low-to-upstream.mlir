// RUN: weft-opt %s -p convert-low-to-upstream -t upstream --split-input-file | filecheck %s

// Loops over threads, lanes, gathers, prefetches; the parameters are those of callers; allocations stand in the parallel loop.
// CHECK-LABEL: func.func @body(%A: memref<4x8xf32>, %B: memref<32xf32>)
// CHECK-NEXT:    %[[FLAT:.*]] = memref.collapse_shape %A {{\[\[}}0 : i64, 1 : i64]] : memref<4x8xf32> into memref<32xf32>
// CHECK:         "scf.parallel"(%{{.*}}, %c4, %{{.*}}) <{operandSegmentSizes = array<i32: 1, 1, 1, 0>}> ({
// CHECK-NEXT:    ^bb0(%i: index):
// CHECK-NEXT:      %t = memref.alloca() : memref<8xf32>
// CHECK:           scf.for %j
// CHECK:             %[[MASK:.*]] = arith.constant dense<true> : vector<8xi1>
// CHECK:             %g = vector.gather %[[FLAT]][%{{.*}}] [%at], %[[MASK]], %{{.*}} : memref<32xf32>, vector<8xindex>, vector<8xi1>, vector<8xf32> into vector<8xf32>
// CHECK-NEXT:        %m = "arith.cmpf"(%g, %a) <{predicate = 2 : i64, fastmath = #arith.fastmath<none>}> : (vector<8xf32>, vector<8xf32>) -> vector<8xi1>
// CHECK-NEXT:        %s = "arith.select"(%m, %g, %a) : (vector<8xi1>, vector<8xf32>, vector<8xf32>) -> vector<8xf32>
// CHECK:             vector.scatter %B[%{{.*}}] [%at], %m, %s : memref<32xf32>, vector<8xindex>, vector<8xi1>, vector<8xf32>
// CHECK-NEXT:        memref.prefetch %[[FLAT]][%j], read, locality<3>, data : memref<32xf32>
// CHECK:             memref.prefetch %[[FLAT]][%{{.*}}], read
// CHECK-NEXT:      }
// CHECK-NEXT:      scf.reduce
// CHECK-NOT:   low.
func.func @body(%A: memref<32xf32>, %B: memref<32xf32>) attributes {low.params = [
    #low.param<"A", memref<4x8xf32>, read, []>, #low.param<"B", memref<32xf32>, write, []>], low.symbols = []} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %at = arith.constant dense<[7, 6, 5, 4, 3, 2, 1, 0]> : vector<8xindex>
  low.parallel_for %i in %c4 {
    scf.for %j = %c0 to %c4 step %c1 {
      %t = memref.alloca() {alignment = 64 : i64} : memref<8xf32, "local">
      %a = vector.load %t[%c0] : memref<8xf32, "local">, vector<8xf32>
      %g = low.gather %A[%at] : memref<32xf32>, vector<8xindex> -> vector<8xf32>
      %m = low.cmpf ogt, %g, %a : vector<8xf32>
      %s = low.select %m, %g, %a : vector<8xf32>
      low.scatter %s, %B[%at] mask %m : vector<8xf32>, memref<32xf32>, vector<8xindex>
      low.prefetch %A[%j] {lanes = 32} : memref<32xf32>
    } {low.unroll}
  }
  func.return
}

// -----

// Extents and strides are read from the parameters; a buffer with an offset is counted from there; divisions are defined.
// CHECK-LABEL: func.func @strided(%A: memref<?x8xf32, strided<[?, 1], offset: ?>>, %s: memref<f32>, %k: index)
// CHECK:         %n = memref.dim %A, %{{.*}}
// CHECK-NEXT:    %{{.*}}, %[[OFFSET:.*]], %[[ROWS:.*]], %{{.*}}, %[[STRIDE:.*]], %{{.*}} = memref.extract_strided_metadata %A
// CHECK:         %[[FLAT:.*]] = memref.reinterpret_cast %A to offset: [%[[OFFSET]]], sizes: [%{{.*}}], strides: [1] : {{.*}} to memref<?xf32, strided<[1], offset: ?>>
// CHECK-NEXT:    %[[S:.*]] = memref.reinterpret_cast %s to offset: [0], sizes: [1], strides: [1] : memref<f32> to memref<1xf32>
// CHECK:         arith.cmpi eq
// CHECK:         arith.divui
// CHECK:         memref.load %[[FLAT]][%{{.*}}] : memref<?xf32, strided<[1], offset: ?>>
func.func @strided(%A: memref<?xf32>, %s: memref<1xf32>, %k: index, %n: index, %A_s0: index) attributes {low.params = [
    #low.param<"A", memref<?x8xf32, strided<[?, 1], offset: ?>>, read, ["n", "A_s0"]>,
    #low.param<"s", memref<f32>, write, []>, #low.param<"k", index, read, []>], low.symbols = ["n", "A_s0"]} {
  %c0 = arith.constant 0 : index
  %q = arith.divui %A_s0, %k : index
  %x = memref.load %A[%q] : memref<?xf32>
  memref.store %x, %s[%c0] : memref<1xf32>
  func.return
}

// -----

// A function that the module calls keeps its flat form beside the one that others call.
// CHECK-LABEL: func.func @scale(%A: memref<2x2xf32>)
// CHECK-NEXT:    %[[FLAT:.*]] = memref.collapse_shape %A
// CHECK-NEXT:    func.call @scale_flat_(%[[FLAT]]) : (memref<4xf32>) -> ()
// CHECK:       func.func private @scale_flat_(%A: memref<4xf32>)
// CHECK:       func.func @twice(%A: memref<2x2xf32>)
// CHECK:         func.call @scale_flat_(%{{.*}}) : (memref<4xf32>) -> ()
// CHECK:       func.func @theirs(%A: memref<4xf32>)
// CHECK-NEXT:    func.call @scale_flat_(%A) : (memref<4xf32>) -> ()
func.func @scale(%A: memref<4xf32>) attributes {low.params = [#low.param<"A", memref<2x2xf32>, readwrite, []>],
    low.symbols = []} {
  %c0 = arith.constant 0 : index
  %x = memref.load %A[%c0] : memref<4xf32>
  memref.store %x, %A[%c0] : memref<4xf32>
  func.return
}
func.func @twice(%A: memref<4xf32>) attributes {low.params = [#low.param<"A", memref<2x2xf32>, readwrite, []>],
    low.symbols = []} {
  func.call @scale(%A) : (memref<4xf32>) -> ()
  func.return
}
func.func @theirs(%A: memref<4xf32>) {
  func.call @scale(%A) : (memref<4xf32>) -> ()
  func.return
}
func.func @scale_flat() {
  func.return
}

// -----

// Labels that are no names of values, as callers from Python may give them.
// CHECK-LABEL: func.func @labels(%{{[^:]*}}: memref<4xf32>)
func.func @labels(%A: memref<4xf32>) attributes {low.params = [#low.param<"B, C", memref<4xf32>, readwrite, []>],
    low.symbols = []} {
  func.return
}

// -----

// `arith.fptosi` of MLIR is poison for what is out of range: it gets what is in range only.
// CHECK-LABEL: func.func @to_integer
// CHECK:         %[[X:.*]] = memref.load
// CHECK-NEXT:    arith.cmpf oge, %[[X]]
// CHECK-NEXT:    arith.select
// CHECK-NEXT:    arith.cmpf olt
// CHECK-NEXT:    %[[IN:.*]] = arith.select
// CHECK-NEXT:    arith.fptosi %[[IN]] : f32 to i32
func.func @to_integer(%A: memref<4xf32>, %B: memref<4xi32>) attributes {
    low.params = [#low.param<"A", memref<4xf32>, read, []>, #low.param<"B", memref<4xi32>, write, []>],
    low.symbols = []} {
  %c0 = arith.constant 0 : index
  %x = memref.load %A[%c0] : memref<4xf32>
  %n = arith.fptosi %x : f32 to i32
  memref.store %n, %B[%c0] : memref<4xi32>
  func.return
}
