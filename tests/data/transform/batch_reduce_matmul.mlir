// Tiles of a product that is summed over batches.
module attributes {transform.with_named_sequence} {
  func.func @batch_reduce(%A: tensor<4x8x16xf32>, %B: tensor<4x16x12xf32>, %C: tensor<8x12xf32>) -> tensor<8x12xf32> {
    %r = linalg.batch_reduce_matmul ins(%A, %B : tensor<4x8x16xf32>, tensor<4x16x12xf32>) outs(%C : tensor<8x12xf32>) -> tensor<8x12xf32>
    return %r : tensor<8x12xf32>
  }
  transform.named_sequence @__transform_main(%root: !transform.any_op) {
    %m = transform.structured.match ops{["linalg.batch_reduce_matmul"]} in %root : (!transform.any_op) -> !transform.any_op
    %t, %l:4 = transform.structured.tile_using_for %m tile_sizes [1, 4, 4, 8] interchange = [1, 2, 0, 3] : (!transform.any_op) -> (!transform.any_op, !transform.any_op, !transform.any_op, !transform.any_op, !transform.any_op)
    transform.structured.vectorize %t : !transform.any_op
    transform.yield
  }
}
