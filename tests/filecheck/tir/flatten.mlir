// RUN: weft-opt %s --split-input-file -p tir-flatten | filecheck %s

// Row-major places, symbols for dynamic extents, what callers see in low.params.

func.func @dynamic(%A: memref<?x4xf32>, %B: memref<?x?xf32>, %s: f32) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %m = memref.dim %A, %c0 : memref<?x4xf32>
  %k = memref.dim %B, %c1 : memref<?x?xf32>
  tir.assume_shape %B[%m, %k] : memref<?x?xf32>
  tir.for %i in %m {
    tir.for %j in 4 {
      %a = memref.load %A[%i, %j] : memref<?x4xf32>
      memref.store %a, %B[%i, %c0] : memref<?x?xf32>
    }
  }
  func.return
}
// CHECK-LABEL: func.func @dynamic(%A: memref<?xf32>, %B: memref<?xf32>, %s: f32, %m: index, %k: index)
// CHECK-SAME:    low.params = [#low.param<"A", memref<?x4xf32>, read, ["m"]>, #low.param<"B", memref<?x?xf32>, write, ["m", "k"]>, #low.param<"s", f32, read, []>], low.symbols = ["m", "k"]
// CHECK-NOT:     memref.dim
// CHECK-NOT:     tir.assume_shape
// CHECK:         tir.for %[[I:\w+]] in %m {
// CHECK:           %[[b:.*]] = arith.muli %[[I]], %k : index
// CHECK:           tir.for
// CHECK:             %[[a:.*]] = affine.apply affine_map<(d0, d1) -> ((d0 + (d1 * 4)))> (%[[J:\w+]], %[[I]])
// CHECK:             memref.load %A[%[[a]]] : memref<?xf32>
// CHECK:             memref.store %[[A:\w+]], %B[%[[b]]] : memref<?xf32>

// -----

// A product of two indices is computed once for all accesses, outside of the loops in which it does not change.

func.func @products(%A: memref<?x?xf32>, %B: memref<?x?xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %m = memref.dim %A, %c0 : memref<?x?xf32>
  %n = memref.dim %A, %c1 : memref<?x?xf32>
  tir.assume_shape %B[%m, %n] : memref<?x?xf32>
  tir.for %i in %m {
    tir.for %j in 4 {
      %a = memref.load %A[%i, %j] : memref<?x?xf32>
      memref.store %a, %B[%i, %j] : memref<?x?xf32>
    }
    tir.for %j in %m {
      %a = memref.load %A[%j, %i] : memref<?x?xf32>
      memref.store %a, %B[%j, %i] : memref<?x?xf32>
    }
  }
  func.return
}
// CHECK-LABEL: func.func @products
// CHECK:         tir.for %[[I:\w+]] in %m {
// CHECK-NEXT:      %[[ROW:.*]] = arith.muli %[[I]], %n : index
// CHECK-NEXT:      tir.for %{{\w+}} in 4 {
// CHECK-NOT:         arith.muli
// CHECK:           tir.for %[[J:\w+]] in %m {
// CHECK-NEXT:        %[[OTHER:.*]] = arith.muli %[[J]], %n : index
// CHECK-NOT:         arith.muli
// CHECK:             memref.store

// -----

// Small temporaries stand on the stack, others are freed where their scope ends.

func.func @temporaries(%A: memref<4x4xf32>) attributes {tir.function} {
  %c0 = arith.constant 0 : index
  %S = memref.alloc() : memref<4x4xf32>
  %L = memref.alloc() : memref<128x128xf32>
  %a = memref.load %A[%c0, %c0] : memref<4x4xf32>
  memref.store %a, %S[%c0, %c0] : memref<4x4xf32>
  memref.store %a, %L[%c0, %c0] : memref<128x128xf32>
  %b = memref.load %S[%c0, %c0] : memref<4x4xf32>
  %c = memref.load %L[%c0, %c0] : memref<128x128xf32>
  %d = arith.addf %b, %c : f32
  memref.store %d, %A[%c0, %c0] : memref<4x4xf32>
  func.return
}
// CHECK-LABEL: @temporaries
// CHECK-SAME:    #low.param<"A", memref<4x4xf32>, readwrite, []>
// CHECK:         %S = memref.alloca() {alignment = 64 : i64} : memref<16xf32, "local">
// CHECK:         %L = memref.alloc() {alignment = 64 : i64} : memref<16384xf32>
// CHECK:         memref.dealloc %L : memref<16384xf32>
// CHECK-NEXT:    func.return

// -----

// Calls pass extents on; a parameter is written when the callee writes it.

func.func @callee(%X: memref<?x4xf32>) attributes {tir.function} {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.000000e+00 : f32
  memref.store %zero, %X[%c0, %c0] : memref<?x4xf32>
  func.return
}
func.func @caller(%Y: memref<?x4xf32>) attributes {tir.function} {
  %c9 = arith.constant 9 : index
  %T = memref.alloc(%c9) : memref<?x4xf32>
  func.call @callee(%T) : (memref<?x4xf32>) -> ()
  func.call @callee(%Y) : (memref<?x4xf32>) -> ()
  func.return
}
// CHECK-LABEL: func.func @callee(%X: memref<?xf32>, %X_d0: index)
// CHECK-LABEL: func.func @caller(%Y: memref<?xf32>, %Y_d0: index)
// CHECK-SAME:    #low.param<"Y", memref<?x4xf32>, write, ["Y_d0"]>
// CHECK:         func.call @callee(%T, %[[C9:\w+]]) : (memref<?xf32>, index) -> ()
// CHECK:         func.call @callee(%Y, %Y_d0) : (memref<?xf32>, index) -> ()

// -----

// Constants of the module.

"memref.global"() <{sym_name = "weights", sym_visibility = "private", type = memref<2x2xf32>, initial_value = dense<[[1.0, 2.0], [3.0, 4.0]]> : tensor<2x2xf32>, constant}> : () -> ()
func.func @global(%X: memref<2x2xf32>) attributes {tir.function} {
  %c1 = arith.constant 1 : index
  %w = memref.get_global @weights : memref<2x2xf32>
  %a = memref.load %w[%c1, %c1] : memref<2x2xf32>
  memref.store %a, %X[%c1, %c1] : memref<2x2xf32>
  func.return
}
// CHECK:         "memref.global"() <{{{.*}}type = memref<4xf32>, initial_value = dense<[1.000000e+00, 2.000000e+00, 3.000000e+00, 4.000000e+00]> : tensor<4xf32>
// CHECK:         memref.get_global @weights : memref<4xf32>

// -----

// Aligned rows of dynamic extents: 40 elements apart, and m + (8 - m) mod 32.

func.func @aligned(%A: memref<?x?xf32>, %n: index, %m: index) {
  %T = memref.alloc(%n, %m) {tir.storage_align = [[0, 32, 8]]} : memref<?x?xf32>
  %U = memref.alloc(%n) {tir.storage_align = [[0, 32, 8]]} : memref<?x10xf32>
  tir.for %i in %n {
    tir.for %j in %m {
      %a = memref.load %A[%i, %j] : memref<?x?xf32>
      memref.store %a, %T[%i, %j] : memref<?x?xf32>
      memref.store %a, %U[%i, %j] : memref<?x10xf32>
    }
  }
  func.return
}
// CHECK-LABEL: func.func @aligned
// CHECK:         %[[STRIDE:\w+]] = affine.apply affine_map<(d0) -> ((d0 + (((d0 * -1) + 8) mod 32)))> (%m)
// CHECK:         %[[SIZE:\w+]] = arith.muli %n, %[[STRIDE]] : index
// CHECK:         %T = memref.alloc(%[[SIZE]])
// CHECK:         %[[SIZE_U:\w+]] = affine.apply affine_map<(d0) -> ((d0 * 40))> (%n)
// CHECK:         %U = memref.alloc(%[[SIZE_U]])
// CHECK:         %[[ROW:\w+]] = arith.muli %i, %{{\w+}} : index
// CHECK:         tir.for %j in %m
// CHECK:           affine.apply affine_map<(d0, d1) -> ((d0 + (d1 * 40)))> (%j, %i)
