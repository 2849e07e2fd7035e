// RUN: not weft-opt %s -p 'convert-upstream-to-low{strict=true}' --split-input-file 2>&1 | filecheck %s

// CHECK: convert-upstream-to-low: no function of scf, memref and vector ops
func.func @numbers(%x: f32) -> f32 {
  return %x : f32
}

// -----

// CHECK: convert-upstream-to-low: @f stays as it is: affine.parallel: results of its reduction 'assign' depend on the order of iterations
func.func @f(%A: memref<8xf32>) {
  %x = affine.parallel (%i) = (0) to (8) reduce ("assign") -> (f32) {
    %y = affine.load %A[%i] : memref<8xf32>
    affine.yield %y : f32
  }
  return
}

// -----

// CHECK: convert-upstream-to-low: @f stays as it is: it has 2 blocks (MLIR's --lift-cf-to-scf makes one)
func.func @f(%A: memref<8xf32>) {
  cf.br ^bb1
^bb1:
  return
}

// -----

// CHECK: convert-upstream-to-low: @f stays as it is: it returns a memref<8xf32>
func.func @f() -> memref<8xf32> {
  %A = memref.alloc() : memref<8xf32>
  return %A : memref<8xf32>
}

// -----

// CHECK: convert-upstream-to-low: @f stays as it is: it has a parameter of type vector<8xf32>
func.func @f(%A: memref<8xf32>, %v: vector<8xf32>) {
  return
}

// -----

// CHECK: convert-upstream-to-low: @f stays as it is: buffers are row-major or strided, got the layout of memref<8xf32, affine_map<(d0) -> ((d0 + 1))>>
func.func @f(%A: memref<8xf32, affine_map<(d0) -> (d0 + 1)>>) {
  return
}

// -----

// CHECK: convert-upstream-to-low: @f stays as it is: vector.load has vectors of other than fixed dimensions, vector<1x[8]xf32>
func.func @f(%A: memref<2x8xf32>, %i: index) {
  %v = vector.load %A[%i, %i] : memref<2x8xf32>, vector<1x[8]xf32>
  return
}

// -----

// CHECK: convert-upstream-to-low: @f stays as it is: scf.if passes a buffer on, memref<8xf32>
func.func @f(%A: memref<8xf32>, %B: memref<8xf32>, %c: i1) {
  %C = scf.if %c -> (memref<8xf32>) {
    scf.yield %A : memref<8xf32>
  } else {
    scf.yield %B : memref<8xf32>
  }
  return
}

// -----

// CHECK: convert-upstream-to-low: @f stays as it is: it passes buffers to @outside, which is not converted
func.func private @outside(memref<8xf32>)
func.func @f(%A: memref<8xf32>) {
  call @outside(%A) : (memref<8xf32>) -> ()
  return
}

// -----

// CHECK: vector.load requires contiguous elements, and those of the last dimension are 2 elements apart
func.func @f(%A: memref<8xf32, strided<[2]>>, %i: index) {
  %v = vector.load %A[%i] : memref<8xf32, strided<[2]>>, vector<4xf32>
  return
}

// -----

// CHECK: @g is given a view that does not start at the first element
func.func private @g(%A: memref<4xf32, strided<[1], offset: ?>>) {
  return
}
func.func @f(%A: memref<8xf32>) {
  %B = memref.subview %A[2] [4] [1] : memref<8xf32> to memref<4xf32, strided<[1], offset: 2>>
  %C = memref.cast %B : memref<4xf32, strided<[1], offset: 2>> to memref<4xf32, strided<[1], offset: ?>>
  call @g(%C) : (memref<4xf32, strided<[1], offset: ?>>) -> ()
  return
}

// -----

// CHECK: the offset of a parameter is not known: a buffer starts anywhere
func.func @f(%A: memref<8xf32, strided<[1], offset: ?>>) {
  %B = memref.reinterpret_cast %A to offset: [0], sizes: [4], strides: [1]
    : memref<8xf32, strided<[1], offset: ?>> to memref<4xf32>
  %c0 = arith.constant 0 : index
  %x = memref.load %B[%c0] : memref<4xf32>
  memref.store %x, %B[%c0] : memref<4xf32>
  return
}

// -----

// CHECK: memref.atomic_rmw in a parallel loop has no low form for CPUs
func.func @f(%A: memref<8xf32>, %x: f32) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  scf.parallel (%i) = (%c0) to (%c8) step (%c1) {
    %old = memref.atomic_rmw addf %x, %A[%c0] : (f32, memref<8xf32>) -> f32
    scf.reduce
  }
  return
}

// -----

// CHECK: 'memref.collapse_shape' makes one dimension of 0 and 1, which are not contiguous: the stride of 0 is 1, not 4 * 6
func.func @f(%A: memref<4x6xf32>, %B: memref<24xf32>) {
  %t = memref.transpose %A (i, j) -> (j, i) : memref<4x6xf32> to memref<6x4xf32, strided<[1, 6]>>
  %c = memref.collapse_shape %t [[0, 1]] : memref<6x4xf32, strided<[1, 6]>> into memref<24xf32>
  memref.copy %c, %B : memref<24xf32> to memref<24xf32>
  func.return
}
