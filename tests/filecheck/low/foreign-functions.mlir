// RUN: weft-opt %s -p lower-tir-to-low --split-input-file --validate --verify-diagnostics | filecheck %s

// Functions without an op of the tir level stay as they are: results, scf loops on memrefs of any rank, memory that they
// free themselves, declarations, constants. What they call keeps its signature; what they are called with keeps its
// shape.

func.func private @outside(memref<4x4xf32>)
"memref.global"() <{sym_name = "w", sym_visibility = "private", constant, type = memref<2x2xf32>, initial_value = dense<[[1.0, 2.0], [3.0, 4.0]]> : tensor<2x2xf32>}> : () -> ()
func.func @shift(%A: memref<4x4xf32>, %B: memref<?x4xf32>) {
  %g = memref.get_global @w : memref<2x2xf32>
  tir.for %i in 4 { tir.for %j in 4 {
    tir.block "B" iters(%v: spatial<4>, %w: spatial<4>) = [%i, %j] {
      %one = arith.constant 1 : index
      %x = memref.load %g[%one, %one] : memref<2x2xf32>
      %a = memref.load %A[%v, %w] : memref<4x4xf32>
      %y = arith.addf %x, %a : f32
      memref.store %y, %B[%v, %w] : memref<?x4xf32>
    } } }
  func.return
}
func.func @flat(%A: memref<4xf32>) {
  tir.for %i in 4 {
    tir.block "Z" iters(%v: spatial<4>) = [%i] {
      %zero = arith.constant 0.0 : f32
      memref.store %zero, %A[%v] : memref<4xf32>
    } }
  func.return
}
func.func @main(%A: memref<4x4xf32>, %B: memref<4x4xf32>) {
  tir.for %i in 4 {
    tir.block "A" iters(%v: spatial<4>) = [%i] {
      %zero = arith.constant 0.0 : f32
      memref.store %zero, %A[%v, %v] : memref<4x4xf32>
    } }
  %t = memref.alloc() : memref<4xf32>
  func.call @flat(%t) : (memref<4xf32>) -> ()
  func.call @theirs(%A, %B, %t) : (memref<4x4xf32>, memref<4x4xf32>, memref<4xf32>) -> f32
  func.return
}
func.func @theirs(%A: memref<4x4xf32>, %B: memref<4x4xf32>, %t: memref<4xf32>) -> f32 {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %m = memref.alloc(%c4) : memref<?x4xf32>
  %w = memref.get_global @w : memref<2x2xf32>
  func.call @shift(%A, %m) : (memref<4x4xf32>, memref<?x4xf32>) -> ()
  func.call @flat(%t) : (memref<4xf32>) -> ()
  scf.for %i = %c0 to %c4 step %c1 {
    %x = memref.load %m[%i, %i] : memref<?x4xf32>
    memref.store %x, %B[%i, %c0] : memref<4x4xf32>
  }
  %x = memref.load %w[%c1, %c0] : memref<2x2xf32>
  memref.dealloc %m : memref<?x4xf32>
  func.return %x : f32
}
// CHECK:       func.func private @outside(memref<4x4xf32>) -> ()
// CHECK-NEXT:  sym_name = "w", sym_visibility = "private", constant, type = memref<2x2xf32>
// CHECK-NEXT:  sym_name = "w_flat", sym_visibility = "private", constant, type = memref<4xf32>
// CHECK-NEXT:  func.func @shift(%A: memref<4x4xf32>, %B: memref<?x4xf32>) {
// CHECK-NEXT:    %[[C0:\w+]] = arith.constant 0 : index
// CHECK-NEXT:    %[[n:.*]] = memref.dim %B, %[[C0]] : memref<?x4xf32>
// CHECK-NEXT:    %[[a:.*]] = memref.reinterpret_cast %A to offset: [0], sizes: [16], strides: [1] : memref<4x4xf32> to memref<16xf32>
// CHECK-NEXT:    %[[C4:\w+]] = arith.constant 4 : index
// CHECK-NEXT:    %[[size:.*]] = arith.muli %[[n]], %[[C4]] : index
// CHECK-NEXT:    %[[b:.*]] = memref.reinterpret_cast %B to offset: [0], sizes: [%[[size]]], strides: [1] : memref<?x4xf32> to memref<?xf32>
// CHECK-NEXT:    func.call @shift_flat(%[[a]], %[[b]], %[[n]]) : (memref<16xf32>, memref<?xf32>, index) -> ()
// CHECK-NEXT:    func.return
// CHECK-NEXT:  }
// CHECK-NEXT:  func.func @shift_flat(%A: memref<16xf32>, %B: memref<?xf32>, %B_d0: index)
// CHECK-SAME:  low.assume = ["4 <= B_d0 # block \22B\22 writes B out of bounds otherwise, at {{.*}}foreign-functions.mlir:17:7"]
// CHECK:         memref.get_global @w_flat : memref<4xf32>
// CHECK:       func.func @flat(%A: memref<4xf32>) attributes {low.params
// CHECK:       func.func @main(%A: memref<16xf32>, %B: memref<16xf32>) attributes {low.params
// CHECK:         func.call @flat(%t)
// CHECK-NEXT:    %[[a:.*]] = memref.reinterpret_cast %A to offset: [0], sizes: [4, 4], strides: [4, 1] : memref<16xf32> to memref<4x4xf32>
// CHECK-NEXT:    %[[b:.*]] = memref.reinterpret_cast %B
// CHECK-NEXT:    func.call @theirs(%[[a]], %[[b]], %t) : (memref<4x4xf32>, memref<4x4xf32>, memref<4xf32>) -> f32
// CHECK:       func.func @theirs(%A: memref<4x4xf32>, %B: memref<4x4xf32>, %t: memref<4xf32>) -> f32 {
// CHECK-NEXT:    %[[C0:\w+]] = arith.constant 0 : index
// CHECK-NEXT:    %[[C1:\w+]] = arith.constant 1 : index
// CHECK-NEXT:    %[[C4:\w+]] = arith.constant 4 : index
// CHECK-NEXT:    %m = memref.alloc(%[[C4]]) : memref<?x4xf32>
// CHECK-NEXT:    %[[W:\w+]] = memref.get_global @w : memref<2x2xf32>
// CHECK-NEXT:    func.call @shift(%A, %m) : (memref<4x4xf32>, memref<?x4xf32>) -> ()
// CHECK-NEXT:    func.call @flat(%t) : (memref<4xf32>) -> ()
// CHECK-NEXT:    scf.for %[[I:\w+]] = %[[C0]] to %[[C4]] step %[[C1]] {
// CHECK-NEXT:      %[[X:\w+]] = memref.load %m[%[[I]], %[[I]]] : memref<?x4xf32>
// CHECK-NEXT:      memref.store %[[X]], %B[%[[I]], %[[C0]]] : memref<4x4xf32>
// CHECK-NEXT:    }
// CHECK-NEXT:    %[[X]] = memref.load %[[W]][%[[C1]], %[[C0]]] : memref<2x2xf32>
// CHECK-NEXT:    memref.dealloc %m : memref<?x4xf32>
// CHECK-NEXT:    func.return %[[X]] : f32

// -----

// A view has no flat form that says where it starts.

func.func @view(%X: memref<4x8xf32, strided<[?, 1], offset: ?>>) {
  tir.for %i in 4 {
    tir.block "X" iters(%v: spatial<4>) = [%i] {
      %one = arith.constant 1.0 : f32
      memref.store %one, %X[%v, %v] : memref<4x8xf32, strided<[?, 1], offset: ?>>
    } }
  func.return
}
func.func @caller(%A: memref<4x8xf32, strided<[?, 1], offset: ?>>) {
  // expected-error@+1 {{@view is lowered, and this function, which is not, refers to it: parameter 'X' is a view}}
  func.call @view(%A) : (memref<4x8xf32, strided<[?, 1], offset: ?>>) -> ()
  func.return
}

// -----

func.func private @view(memref<4x8xf32, strided<[?, 1]>>)
func.func @caller(%A: memref<4x8xf32, strided<[?, 1]>>) attributes {tir.function} {
  // expected-error@+1 {{@view is not lowered: it cannot be given a view, memref<4x8xf32, strided<[?, 1]>>}}
  func.call @view(%A) : (memref<4x8xf32, strided<[?, 1]>>) -> ()
  func.return
}

// -----

func.func private @make() -> memref<4xf32>
func.func @caller(%A: memref<4xf32>) attributes {tir.function} {
  // expected-error@+1 {{buffers are parameters, allocated or constants of the module: func.call gives another one}}
  %m = func.call @make() : () -> memref<4xf32>
  func.return
}
