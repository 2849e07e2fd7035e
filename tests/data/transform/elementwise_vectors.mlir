// An elementwise operation in tiles of one vector.
module attributes {transform.with_named_sequence} {
  func.func @scale(%A: tensor<24x64xf32>, %B: tensor<24x64xf32>, %C: tensor<24x64xf32>) -> tensor<24x64xf32> {
    %r = linalg.mul ins(%A, %B : tensor<24x64xf32>, tensor<24x64xf32>) outs(%C : tensor<24x64xf32>) -> tensor<24x64xf32>
    return %r : tensor<24x64xf32>
  }
  transform.named_sequence @__transform_main(%root: !transform.any_op) {
    %m = transform.structured.match ops{["linalg.mul"]} in %root : (!transform.any_op) -> !transform.any_op
    %t, %l:2 = transform.structured.tile_using_for %m tile_sizes [1, 16] : (!transform.any_op) -> (!transform.any_op, !transform.any_op, !transform.any_op)
    transform.structured.vectorize %t : !transform.any_op
    transform.yield
  }
}
