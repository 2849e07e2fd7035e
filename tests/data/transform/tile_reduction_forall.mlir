// Partial sums of parts of the reduction that run at once.
module attributes {transform.with_named_sequence} {
  func.func @row_sums(%A: tensor<12x40xf32>, %o: tensor<12xf32>) -> tensor<12xf32> {
    %r = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0)>], iterator_types = ["parallel", "reduction"]} ins(%A : tensor<12x40xf32>) outs(%o : tensor<12xf32>) {
    ^bb0(%a: f32, %s: f32):
      %1 = arith.addf %a, %s : f32
      linalg.yield %1 : f32
    } -> tensor<12xf32>
    return %r : tensor<12xf32>
  }
  transform.named_sequence @__transform_main(%root: !transform.any_op) {
    %g = transform.structured.match ops{["linalg.generic"]} in %root : (!transform.any_op) -> !transform.any_op
    %fill, %split, %combine, %loop = transform.structured.tile_reduction_using_forall %g by num_threads = [0, 5] : (!transform.any_op) -> (!transform.any_op, !transform.any_op, !transform.any_op, !transform.any_op)
    transform.yield
  }
}
