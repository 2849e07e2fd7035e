// RUN: weft-opt %s -p convert-from-upstream --split-input-file --verify-diagnostics --validate | filecheck %s

// Each function by the pass that takes it; what it promises already stays.
// CHECK-LABEL: func.func @tensors(%A: memref<8xf32>, %B: memref<8xf32>) attributes {tir.promises = ["noalias"]
// CHECK:         tir.block "exp"
func.func @tensors(%A: tensor<8xf32>) -> tensor<8xf32> {
  %empty = tensor.empty() : tensor<8xf32>
  %B = linalg.exp ins(%A : tensor<8xf32>) outs(%empty : tensor<8xf32>) -> tensor<8xf32>
  return %B : tensor<8xf32>
}
// CHECK-LABEL: func.func @loops
// CHECK-SAME:    tir.promises = ["contract"]
// CHECK:         tir.block "A" iters
func.func @loops(%A: memref<8xf32>) attributes {tir.promises = ["contract"]} {
  affine.for %i = 1 to 8 {
    %a = affine.load %A[%i - 1] : memref<8xf32>
    affine.store %a, %A[%i] : memref<8xf32>
  }
  return
}
// CHECK-LABEL: func.func @jax(
// CHECK:         te.compute
func.func @jax(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = stablehlo.tanh %x : tensor<4xf32>
  return %0 : tensor<4xf32>
}
// Of weft's own levels: stays.
// CHECK-LABEL: func.func @own(%A: memref<4xf32>) {
func.func @own(%A: memref<4xf32>) {
  %c = arith.constant 1.0 : f32
  tir.for %i in 4 {
    tir.block "A" iters(%v: spatial<4>) = [%i] {
      memref.store %c, %A[%v] : memref<4xf32>
    }
  }
  func.return
}

// -----

// Vectors are taken as they stand.
// CHECK-LABEL: func.func @vectors(%A: memref<32xf32>) attributes {low.params
// CHECK:         vector.load
func.func @vectors(%A: memref<4x8xf32>) {
  %c0 = arith.constant 0 : index
  %v = vector.load %A[%c0, %c0] : memref<4x8xf32>, vector<8xf32>
  %w = arith.addf %v, %v : vector<8xf32>
  vector.store %w, %A[%c0, %c0] : memref<4x8xf32>, vector<8xf32>
  return
}

// -----

// expected-remark@unknown {{convert-from-upstream: the module has no function of upstream dialects}}
func.func @scalars(%x: f32) -> f32 {
  return %x : f32
}
