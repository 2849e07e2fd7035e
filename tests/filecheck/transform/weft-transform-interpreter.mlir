// RUN: weft-opt %s -p weft-transform-interpreter --split-input-file --validate | filecheck %s

// The signature stays, and no linalg and no script are left.
// CHECK-LABEL: func.func @rows(%A: tensor<8x16xf32>, %B: tensor<8x16xf32>) -> tensor<8x16xf32> {
// CHECK:         %[[B:\w+]] = bufferization.to_buffer %B read_only : tensor<8x16xf32> to memref<8x16xf32>
// CHECK:         "scf.parallel"
// CHECK:           vector.load
// CHECK:           arith.addf {{.*}} : vector<16xf32>
// CHECK:         bufferization.to_tensor {{.*}} restrict writable : memref<8x16xf32> to tensor<8x16xf32>
// CHECK-NOT:     linalg.
// CHECK-NOT:     transform.
module attributes {transform.with_named_sequence} {
func.func @rows(%A: tensor<8x16xf32>, %B: tensor<8x16xf32>) -> tensor<8x16xf32> {
  %e = tensor.empty() : tensor<8x16xf32>
  %C = linalg.add ins(%A, %B : tensor<8x16xf32>, tensor<8x16xf32>) outs(%e : tensor<8x16xf32>) -> tensor<8x16xf32>
  return %C : tensor<8x16xf32>
}
transform.named_sequence @__transform_main(%root: !transform.any_op) {
  %add = transform.structured.match ops{["linalg.add"]} in %root : (!transform.any_op) -> !transform.any_op
  %t, %l = transform.structured.tile_using_forall %add tile_sizes [1] : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
  transform.structured.vectorize %t : !transform.any_op
  transform.yield
}
}

// -----

// A script that bufferizes function boundaries leaves functions over buffers.
// CHECK-LABEL: func.func @buffers(%A: memref<8xf32>, %C: memref<8xf32>) {
module attributes {transform.with_named_sequence} {
func.func @buffers(%A: tensor<8xf32>) -> tensor<8xf32> {
  %e = tensor.empty() : tensor<8xf32>
  %C = linalg.exp ins(%A : tensor<8xf32>) outs(%e : tensor<8xf32>) -> tensor<8xf32>
  return %C : tensor<8xf32>
}
transform.named_sequence @__transform_main(%root: !transform.any_op) {
  %b = transform.bufferization.one_shot_bufferize %root {bufferize_function_boundaries = true} : (!transform.any_op) -> !transform.any_op
  transform.yield
}
}

// -----

// Loops of the program are payload, too.
// CHECK-LABEL: func.func @loops
// CHECK-NOT:     transform.
module attributes {transform.with_named_sequence} {
func.func @loops(%A: memref<32xf32>, %B: memref<32xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c32 = arith.constant 32 : index
  scf.for %i = %c0 to %c32 step %c1 {
    %a = memref.load %A[%i] : memref<32xf32>
    %b = arith.addf %a, %a : f32
    memref.store %b, %B[%i] : memref<32xf32>
  }
  return
}
transform.named_sequence @__transform_main(%root: !transform.any_op) {
  %loop = transform.structured.match ops{["scf.for"]} in %root : (!transform.any_op) -> !transform.any_op
  transform.loop.unroll %loop {factor = 4} : !transform.any_op
  transform.yield
}
}
