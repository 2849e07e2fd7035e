// A reduction in two steps.
module attributes {transform.with_named_sequence} {
  func.func @sum(%A: tensor<64xf32>, %o: tensor<f32>) -> tensor<f32> {
    %r = linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> ()>], iterator_types = ["reduction"]} ins(%A : tensor<64xf32>) outs(%o : tensor<f32>) {
    ^bb0(%a: f32, %s: f32):
      %1 = arith.addf %a, %s : f32
      linalg.yield %1 : f32
    } -> tensor<f32>
    return %r : tensor<f32>
  }
  transform.named_sequence @__transform_main(%root: !transform.any_op) {
    %g = transform.structured.match ops{["linalg.generic"]} in %root : (!transform.any_op) -> !transform.any_op
    %init, %fill, %split, %combine = transform.structured.split_reduction %g {split_factor = 4, insert_split_dimension = 0} : (!transform.any_op) -> (!transform.any_op, !transform.any_op, !transform.any_op, !transform.any_op)
    transform.yield
  }
}
