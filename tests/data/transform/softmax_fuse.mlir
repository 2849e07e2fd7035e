// A softmax: all steps for a tile of rows.
module attributes {transform.with_named_sequence} {
  func.func @softmax(%x: tensor<6x32xf32>) -> tensor<6x32xf32> {
    %ninf = arith.constant 0xFF800000 : f32
    %z = arith.constant 0.0 : f32
    %e = tensor.empty() : tensor<6x32xf32>
    %r = tensor.empty() : tensor<6xf32>
    %m0 = linalg.fill ins(%ninf : f32) outs(%r : tensor<6xf32>) -> tensor<6xf32>
    %m = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>], iterator_types = ["parallel", "reduction"]} ins(%x : tensor<6x32xf32>) outs(%m0 : tensor<6xf32>) {
    ^bb0(%a: f32, %o: f32):
      %1 = arith.maximumf %a, %o : f32
      linalg.yield %1 : f32
    } -> tensor<6xf32>
    %d = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]} ins(%x, %m : tensor<6x32xf32>, tensor<6xf32>) outs(%e : tensor<6x32xf32>) {
    ^bb0(%a: f32, %b: f32, %o: f32):
      %1 = arith.subf %a, %b : f32
      %2 = math.exp %1 : f32
      linalg.yield %2 : f32
    } -> tensor<6x32xf32>
    %s0 = linalg.fill ins(%z : f32) outs(%r : tensor<6xf32>) -> tensor<6xf32>
    %s = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>], iterator_types = ["parallel", "reduction"]} ins(%d : tensor<6x32xf32>) outs(%s0 : tensor<6xf32>) {
    ^bb0(%a: f32, %o: f32):
      %1 = arith.addf %a, %o : f32
      linalg.yield %1 : f32
    } -> tensor<6xf32>
    %q = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]} ins(%d, %s : tensor<6x32xf32>, tensor<6xf32>) outs(%e : tensor<6x32xf32>) {
    ^bb0(%a: f32, %b: f32, %o: f32):
      %1 = arith.divf %a, %b : f32
      linalg.yield %1 : f32
    } -> tensor<6x32xf32>
    return %q : tensor<6x32xf32>
  }
  transform.named_sequence @__transform_main(%root: !transform.any_op) {
    %g = transform.structured.match ops{["linalg.generic"]} in %root : (!transform.any_op) -> !transform.any_op
    %max, %exp, %sum, %div = transform.split_handle %g : (!transform.any_op) -> (!transform.any_op, !transform.any_op, !transform.any_op, !transform.any_op)
    %t, %loop = transform.structured.tile_using_forall %div tile_sizes [2] : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
    %f1, %l1 = transform.structured.fuse_into_containing_op %sum into %loop : (!transform.any_op, !transform.any_op) -> (!transform.any_op, !transform.any_op)
    transform.yield
  }
}
