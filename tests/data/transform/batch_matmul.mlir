// Batches at once, tiles inside.
module attributes {transform.with_named_sequence} {
  func.func @batches(%A: tensor<3x8x16xf32>, %B: tensor<3x16x12xf32>, %C: tensor<3x8x12xf32>) -> tensor<3x8x12xf32> {
    %r = linalg.batch_matmul ins(%A, %B : tensor<3x8x16xf32>, tensor<3x16x12xf32>) outs(%C : tensor<3x8x12xf32>) -> tensor<3x8x12xf32>
    return %r : tensor<3x8x12xf32>
  }
  transform.named_sequence @__transform_main(%root: !transform.any_op) {
    %m = transform.structured.match ops{["linalg.batch_matmul"]} in %root : (!transform.any_op) -> !transform.any_op
    %t, %l = transform.structured.tile_using_forall %m tile_sizes [1] : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
    %u, %k:2 = transform.structured.tile_using_for %t tile_sizes [0, 4, 4] : (!transform.any_op) -> (!transform.any_op, !transform.any_op, !transform.any_op)
    transform.yield
  }
}
