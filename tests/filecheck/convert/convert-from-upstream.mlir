// RUN: weft-opt %s -p convert-from-upstream --split-input-file --verify-diagnostics --validate | filecheck %s

// Each function by the pass that takes it; what it promises already stays.
// CHECK-LABEL: func.func @tensors(%A: memref<8xf32>, %B: memref<8xf32>)
// CHECK-SAME:    tir.promises = ["noalias"]
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

// -----

// Elementwise operations of arith on tensors alone, copies, and elements that only arrays have.
// CHECK-LABEL: func.func @alone(%x: memref<4xi8> {tir.element = i4}, %y: memref<4xi8> {tir.element = i4})
// CHECK:         %[[A:.*]] = memref.load %x
// CHECK:         arith.shli %[[A]]
// CHECK:         %[[S:.*]] = arith.addi
// CHECK:         arith.shli %[[S]]
// CHECK:         %[[W:.*]] = arith.shrsi
// CHECK:         %[[M:.*]] = arith.andi %[[W]]
// CHECK:         memref.store %[[M]], %y
func.func @alone(%x: tensor<4xi4>) -> tensor<4xi4> {
  %y = arith.addi %x, %x : tensor<4xi4>
  return %y : tensor<4xi4>
}

// -----

// What calls give: padding that is not negative, and a result of the extent that follows.
// CHECK-LABEL: func.func @pad(
// CHECK:         tir.assume [{{.*}}] <= [%p]
// CHECK:         %[[D:.*]] = memref.dim %y
// CHECK:         %[[N:.*]] = arith.addi %p
// CHECK:         tir.assume [%[[D]]] == [%[[N]]]
func.func @pad(%x: tensor<5xf32>, %p: index) -> tensor<?xf32> {
  %c = arith.constant 3.0 : f32
  %y = tensor.pad %x low[%p] high[1] {
  ^bb0(%i: index):
    tensor.yield %c : f32
  } : tensor<5xf32> to tensor<?xf32>
  return %y : tensor<?xf32>
}

// -----

// A buffer that is a parameter is not returned; calls give the argument.
// CHECK-LABEL: func.func @given(%A: memref<4xf32>, %x: f32) attributes
// CHECK-LABEL: func.func @caller
// CHECK:         func.call @given(%A, %x) : (memref<4xf32>, f32) -> ()
// CHECK:         memref.load %A
func.func @given(%A: memref<4xf32>, %x: f32) -> memref<?xf32> {
  affine.for %i = 0 to 4 {
    affine.store %x, %A[%i] : memref<4xf32>
  }
  %r = memref.cast %A : memref<4xf32> to memref<?xf32>
  return %r : memref<?xf32>
}
func.func @caller(%A: memref<4xf32>, %x: f32, %B: memref<f32>) {
  %c0 = arith.constant 0 : index
  %r = func.call @given(%A, %x) : (memref<4xf32>, f32) -> memref<?xf32>
  %a = memref.load %r[%c0] : memref<?xf32>
  memref.store %a, %B[] : memref<f32>
  return
}

// -----

// The op that is not supported is named, not what other passes make of those beside it.
// expected-remark@+3 {{convert-stablehlo-to-te leaves @poor as it is: chlo.lgamma: elements of type int32 are not supported}}
func.func @poor(%x: tensor<4xi32>) -> tensor<4xi32> {
  %0 = stablehlo.abs %x : tensor<4xi32>
  %1 = chlo.lgamma %0 : tensor<4xi32> -> tensor<4xi32>
  return %1 : tensor<4xi32>
}
