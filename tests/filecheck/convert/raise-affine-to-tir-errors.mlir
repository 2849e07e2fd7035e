// RUN: not weft-opt %s --split-input-file -p 'raise-affine-to-tir{strict=true}' 2>&1 | filecheck %s
// RUN: weft-opt %s --split-input-file -p 'raise-affine-to-tir' 2>&1 | filecheck %s --check-prefix=REMARK

// CHECK: error: raise-affine-to-tir finds no function of affine or scf loops over buffers
// REMARK: remark: raise-affine-to-tir finds no function of affine or scf loops over buffers
func.func @nothing(%x: f32) -> f32 {
  func.return %x : f32
}

// -----

// CHECK: error: @buffer returns a buffer: results are in buffers that callers pass
// REMARK: remark: @buffer returns a buffer
func.func @buffer(%x: f32) -> memref<4xf32> {
  %A = memref.alloc() : memref<4xf32>
  affine.for %i = 0 to 4 {
    affine.store %x, %A[%i] : memref<4xf32>
  }
  func.return %A : memref<4xf32>
}

// -----

// CHECK: error: scf.for passes buffers on: which one an access touches is not known
// REMARK: remark: scf.for passes buffers on
func.func @swapped(%A: memref<4xf32>, %B: memref<4xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %r:2 = scf.for %i = %c0 to %c4 step %c1 iter_args(%a = %A, %b = %B) -> (memref<4xf32>, memref<4xf32>) {
    %v = memref.load %a[%i] : memref<4xf32>
    memref.store %v, %b[%i] : memref<4xf32>
    scf.yield %b, %a : memref<4xf32>, memref<4xf32>
  }
  func.return
}

// -----

// CHECK: error: memref.reinterpret_cast of a buffer that is not dense
func.func @places(%A: memref<4x4xf32, strided<[8, 1]>>, %x: f32) {
  %v = memref.reinterpret_cast %A to offset: [1], sizes: [3], strides: [2] : memref<4x4xf32, strided<[8, 1]>> to memref<3xf32, strided<[2], offset: 1>>
  affine.for %i = 0 to 3 {
    affine.store %x, %v[%i] : memref<3xf32, strided<[2], offset: 1>>
  }
  func.return
}

// -----

// CHECK: error: affine.parallel: results of reduction 'assign' depend on the order of iterations
func.func @last(%A: memref<4xf32>, %B: memref<f32>) {
  %r = affine.parallel (%i) = (0) to (4) reduce ("assign") -> f32 {
    %a = affine.load %A[%i] : memref<4xf32>
    affine.yield %a : f32
  }
  affine.store %r, %B[] : memref<f32>
  func.return
}

// -----

// CHECK: error: parameter A: buffers are row-major or strided
func.func @tiles(%A: memref<8xf32, affine_map<(d0) -> (d0 floordiv 4, d0 mod 4)>>, %x: f32) {
  affine.for %i = 0 to 8 {
    affine.store %x, %A[%i] : memref<8xf32, affine_map<(d0) -> (d0 floordiv 4, d0 mod 4)>>
  }
  func.return
}

// -----

// CHECK: error: scf.forall shares tensors: bufferize-tensors comes first
func.func @tensors(%A: memref<4xf32>) {
  %t = tensor.empty() : tensor<4xf32>
  %r = scf.forall (%i) in (4) shared_outs(%o = %t) -> (tensor<4xf32>) {
  }
  func.return
}
