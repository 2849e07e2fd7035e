func.func @f(%A: tensor<4x8xf32>, %B: tensor<8x6xf32>, %C: tensor<4x6xf32>) -> tensor<4x6xf32> {
  %D = linalg.matmul ins(%A, %B : tensor<4x8xf32>, tensor<8x6xf32>) outs(%C : tensor<4x6xf32>) -> tensor<4x6xf32>
  return %D : tensor<4x6xf32>
}
transform.named_sequence @__transform_main(%root: !transform.any_op) {
  %mm = transform.structured.match ops{["linalg.matmul"]} in %root : (!transform.any_op) -> !transform.any_op
  %t, %l = transform.structured.tile_using_for %mm tile_sizes [2] : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
  transform.yield
}
