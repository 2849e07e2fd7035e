// Tiles that do not divide the extents.
module attributes {transform.with_named_sequence} {
  func.func @matmul(%A: tensor<17x31xf32>, %B: tensor<31x23xf32>) -> tensor<17x23xf32> {
    %e = tensor.empty() : tensor<17x23xf32>
    %z = arith.constant 0.0 : f32
    %f = linalg.fill ins(%z : f32) outs(%e : tensor<17x23xf32>) -> tensor<17x23xf32>
    %C = linalg.matmul ins(%A, %B : tensor<17x31xf32>, tensor<31x23xf32>) outs(%f : tensor<17x23xf32>) -> tensor<17x23xf32>
    return %C : tensor<17x23xf32>
  }
  transform.named_sequence @__transform_main(%root: !transform.any_op) {
    %mm = transform.structured.match ops{["linalg.matmul"]} in %root : (!transform.any_op) -> !transform.any_op
    %t, %l:2 = transform.structured.tile_using_for %mm tile_sizes [5, 0, 7] : (!transform.any_op) -> (!transform.any_op, !transform.any_op, !transform.any_op)
    transform.yield
  }
}
