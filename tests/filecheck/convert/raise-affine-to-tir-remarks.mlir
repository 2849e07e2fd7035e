// RUN: weft-opt %s --split-input-file --verify-diagnostics -p raise-affine-to-tir | filecheck %s

// What cannot be raised stays as it is; other functions are raised.

// CHECK-LABEL: func.func @buffer
// CHECK: affine.for
// CHECK-LABEL: func.func @other
// CHECK: tir.block "A"

// expected-remark@below {{@buffer returns a buffer: results are in buffers that callers pass}}
func.func @buffer(%x: f32) -> memref<4xf32> {
  %A = memref.alloc() : memref<4xf32>
  affine.for %i = 0 to 4 {
    affine.store %x, %A[%i] : memref<4xf32>
  }
  func.return %A : memref<4xf32>
}
func.func @other(%x: f32, %A: memref<4xf32>) {
  affine.for %i = 0 to 4 {
    affine.store %x, %A[%i] : memref<4xf32>
  }
  func.return
}

// -----

// expected-remark@below {{raise-affine-to-tir finds no function of affine or scf loops over buffers}}
builtin.module {
  func.func @nothing(%x: f32) -> f32 {
    func.return %x : f32
  }
}
