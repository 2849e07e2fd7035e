// Operations found by an attribute, and one annotated for later.
module attributes {transform.with_named_sequence} {
  func.func @two(%A: tensor<16x32xf32>, %x: tensor<32x16xf32>, %o: tensor<16x16xf32>) -> tensor<16x16xf32> {
    %f = linalg.matmul {first} ins(%A, %x : tensor<16x32xf32>, tensor<32x16xf32>) outs(%o : tensor<16x16xf32>) -> tensor<16x16xf32>
    %g = linalg.matmul ins(%f, %f : tensor<16x16xf32>, tensor<16x16xf32>) outs(%o : tensor<16x16xf32>) -> tensor<16x16xf32>
    return %g : tensor<16x16xf32>
  }
  transform.named_sequence @__transform_main(%root: !transform.any_op) {
    %first = transform.structured.match attributes {first} in %root : (!transform.any_op) -> !transform.any_op
    %t, %l = transform.structured.tile_using_for %first tile_sizes [4] : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
    transform.annotate %t "done" : !transform.any_op
    %done = transform.structured.match attributes {done} in %root : (!transform.any_op) -> !transform.any_op
    %u, %m = transform.structured.tile_using_for %done tile_sizes [0, 8] : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
    transform.yield
  }
}
