// As the tutorial's files are: the script is in a separate module, after the payload.
func.func @fc_relu(%A: tensor<16x32xf32>, %B: tensor<32x24xf32>, %bias: tensor<16x24xf32>, %out: tensor<16x24xf32>) -> tensor<16x24xf32> {
  %e = tensor.empty() : tensor<16x24xf32>
  %z = arith.constant 0.0 : f32
  %f = linalg.fill ins(%z : f32) outs(%e : tensor<16x24xf32>) -> tensor<16x24xf32>
  %C = linalg.matmul ins(%A, %B : tensor<16x32xf32>, tensor<32x24xf32>) outs(%f : tensor<16x24xf32>) -> tensor<16x24xf32>
  %D = linalg.elementwise kind=#linalg.elementwise_kind<add> ins(%C, %bias : tensor<16x24xf32>, tensor<16x24xf32>) outs(%out : tensor<16x24xf32>) -> tensor<16x24xf32>
  %r = linalg.elementwise kind=#linalg.elementwise_kind<max_signed> ins(%D, %f : tensor<16x24xf32>, tensor<16x24xf32>) outs(%out : tensor<16x24xf32>) -> tensor<16x24xf32>
  return %r : tensor<16x24xf32>
}
module attributes {transform.with_named_sequence} {
  transform.named_sequence @__transform_main(%root: !transform.any_op) {
    %ew = transform.structured.match ops{["linalg.elementwise"]} in %root : (!transform.any_op) -> !transform.any_op
    %mm = transform.structured.match ops{["linalg.matmul"]} in %root : (!transform.any_op) -> !transform.any_op
    %add, %max = transform.split_handle %ew : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
    %tiled, %loop = transform.structured.tile_using_forall %max tile_sizes [4, 8] : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
    %add_fused, %loop_0 = transform.structured.fuse_into_containing_op %add into %loop : (!transform.any_op, !transform.any_op) -> (!transform.any_op, !transform.any_op)
    %mm_fused, %loop_1 = transform.structured.fuse_into_containing_op %mm into %loop_0 : (!transform.any_op, !transform.any_op) -> (!transform.any_op, !transform.any_op)
    transform.yield
  }
}
