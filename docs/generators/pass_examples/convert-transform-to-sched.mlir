func.func @f(%A: tensor<16x32xf32>, %B: tensor<32x24xf32>, %C: tensor<16x24xf32>) -> tensor<16x24xf32> {
  %D = linalg.matmul ins(%A, %B : tensor<16x32xf32>, tensor<32x24xf32>) outs(%C : tensor<16x24xf32>) -> tensor<16x24xf32>
  return %D : tensor<16x24xf32>
}
transform.named_sequence @__transform_main(%root: !transform.any_op) {
  %mm = transform.structured.match ops{["linalg.matmul"]} in %root : (!transform.any_op) -> !transform.any_op
  %t, %l = transform.structured.tile_using_for %mm tile_sizes [0, 8] : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
  transform.yield
}
