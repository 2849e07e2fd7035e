// Two loops over the same rows as one.
module attributes {transform.with_named_sequence} {
  func.func @two(%A: tensor<16x8xf32>, %B: tensor<16x8xf32>, %C: tensor<16x8xf32>, %D: tensor<16x8xf32>) -> (tensor<16x8xf32>, tensor<16x8xf32>) {
    %r = linalg.add ins(%A, %B : tensor<16x8xf32>, tensor<16x8xf32>) outs(%C : tensor<16x8xf32>) -> tensor<16x8xf32>
    %s = linalg.mul ins(%A, %B : tensor<16x8xf32>, tensor<16x8xf32>) outs(%D : tensor<16x8xf32>) -> tensor<16x8xf32>
    return %r, %s : tensor<16x8xf32>, tensor<16x8xf32>
  }
  transform.named_sequence @__transform_main(%root: !transform.any_op) {
    %fn = transform.structured.match ops{["func.func"]} in %root : (!transform.any_op) -> !transform.any_op
    %a = transform.structured.match ops{["linalg.add"]} in %root : (!transform.any_op) -> !transform.any_op
    %m = transform.structured.match ops{["linalg.mul"]} in %root : (!transform.any_op) -> !transform.any_op
    %t, %l = transform.structured.tile_using_for %a tile_sizes [4] : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
    %u, %k = transform.structured.tile_using_for %m tile_sizes [4] : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
    transform.apply_cse to %fn : !transform.any_op
    %f = transform.loop.fuse_sibling %l into %k : (!transform.any_op, !transform.any_op) -> !transform.any_op
    transform.yield
  }
}
