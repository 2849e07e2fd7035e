// Vectors that are longer than the rows.
module attributes {transform.with_named_sequence} {
  func.func @scale(%A: tensor<6x13xf32>, %B: tensor<6x13xf32>, %C: tensor<6x13xf32>) -> tensor<6x13xf32> {
    %r = linalg.add ins(%A, %B : tensor<6x13xf32>, tensor<6x13xf32>) outs(%C : tensor<6x13xf32>) -> tensor<6x13xf32>
    return %r : tensor<6x13xf32>
  }
  transform.named_sequence @__transform_main(%root: !transform.any_op) {
    %m = transform.structured.match ops{["linalg.add"]} in %root : (!transform.any_op) -> !transform.any_op
    transform.structured.vectorize %m vector_sizes [8, 16] : !transform.any_op
    transform.yield
  }
}
