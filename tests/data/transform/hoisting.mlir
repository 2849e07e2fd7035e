// Clean-ups of vectors, subsets of loops, unused operations and empty tensors.
module attributes {transform.with_named_sequence} {
  func.func @matmul(%A: tensor<16x32xf32>, %B: tensor<32x24xf32>) -> tensor<16x24xf32> {
    %e = tensor.empty() : tensor<16x24xf32>
    %z = arith.constant 0.0 : f32
    %f = linalg.fill ins(%z : f32) outs(%e : tensor<16x24xf32>) -> tensor<16x24xf32>
    %C = linalg.matmul ins(%A, %B : tensor<16x32xf32>, tensor<32x24xf32>) outs(%f : tensor<16x24xf32>) -> tensor<16x24xf32>
    return %C : tensor<16x24xf32>
  }
  transform.named_sequence @__transform_main(%root: !transform.any_op) {
    %mm = transform.structured.match ops{["linalg.matmul"]} in %root : (!transform.any_op) -> !transform.any_op
    %t, %l:3 = transform.structured.tile_using_for %mm tile_sizes [4, 8, 2] : (!transform.any_op) -> (!transform.any_op, !transform.any_op, !transform.any_op, !transform.any_op)
    transform.structured.vectorize %t : !transform.any_op
    transform.loop.hoist_loop_invariant_subsets %l#2 : !transform.any_op
    %fn = transform.structured.match ops{["func.func"]} in %root : (!transform.any_op) -> !transform.any_op
    transform.apply_dce to %fn : !transform.any_op
    transform.bufferization.eliminate_empty_tensors %root : !transform.any_op
    %b = transform.bufferization.one_shot_bufferize layout{IdentityLayoutMap} %root {bufferize_function_boundaries = true} : (!transform.any_op) -> !transform.any_op
    %g = transform.structured.match ops{["func.func"]} in %b : (!transform.any_op) -> !transform.any_op
    %h = transform.structured.hoist_redundant_vector_transfers %g : (!transform.any_op) -> !transform.any_op
    %k = transform.structured.hoist_redundant_vector_broadcasts %h : (!transform.any_op) -> !transform.any_op
    transform.yield
  }
}
