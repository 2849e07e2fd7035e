// The convolution of the Halide chapter: tiles of the last operation, the others fused into their loops.
module attributes {transform.with_named_sequence} {
  func.func @conv_relu(%I: tensor<10x10x2x4xf32>, %K: tensor<4x3x3x8xf32>, %bias: tensor<8xf32>, %O: tensor<8x8x2x8xf32>) -> tensor<8x8x2x8xf32> {
    %e = tensor.empty() : tensor<8x8x2x8xf32>
    %b = linalg.generic {indexing_maps = [affine_map<(w, h, n, c) -> (c)>, affine_map<(w, h, n, c) -> (w, h, n, c)>], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%bias : tensor<8xf32>) outs(%e : tensor<8x8x2x8xf32>) {
    ^bb0(%a: f32, %o: f32):
      linalg.yield %a : f32
    } -> tensor<8x8x2x8xf32>
    %c = linalg.generic {indexing_maps = [affine_map<(w, h, n, f, x, y, k) -> (w + x, h + y, n, k)>, affine_map<(w, h, n, f, x, y, k) -> (k, x, y, f)>, affine_map<(w, h, n, f, x, y, k) -> (w, h, n, f)>], iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction", "reduction", "reduction"]} ins(%I, %K : tensor<10x10x2x4xf32>, tensor<4x3x3x8xf32>) outs(%b : tensor<8x8x2x8xf32>) {
    ^bb0(%a: f32, %w: f32, %o: f32):
      %m = arith.mulf %a, %w : f32
      %s = arith.addf %o, %m : f32
      linalg.yield %s : f32
    } -> tensor<8x8x2x8xf32>
    %r = linalg.generic {indexing_maps = [affine_map<(w, h, n, c) -> (w, h, n, c)>, affine_map<(w, h, n, c) -> (w, h, n, c)>], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%c : tensor<8x8x2x8xf32>) outs(%O : tensor<8x8x2x8xf32>) {
    ^bb0(%a: f32, %o: f32):
      %z = arith.constant 0.0 : f32
      %m = arith.maximumf %a, %z : f32
      linalg.yield %m : f32
    } -> tensor<8x8x2x8xf32>
    return %r : tensor<8x8x2x8xf32>
  }
  transform.named_sequence @__transform_main(%root: !transform.any_op) {
    %g = transform.structured.match ops{["linalg.generic"]} in %root : (!transform.any_op) -> !transform.any_op
    %bias, %conv, %relu = transform.split_handle %g : (!transform.any_op) -> (!transform.any_op, !transform.any_op, !transform.any_op)
    %relu2, %co = transform.structured.tile_using_forall %relu tile_sizes [0, 0, 0, 4] : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
    %relu3, %n_y_xo = transform.structured.tile_using_for %relu2 tile_sizes [0, 2, 0, 0] : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
    %conv2, %co2 = transform.structured.fuse_into_containing_op %conv into %co : (!transform.any_op, !transform.any_op) -> (!transform.any_op, !transform.any_op)
    %conv3, %n0 = transform.structured.fuse_into_containing_op %conv2 into %n_y_xo : (!transform.any_op, !transform.any_op) -> (!transform.any_op, !transform.any_op)
    %bias2, %co3 = transform.structured.fuse_into_containing_op %bias into %co2 : (!transform.any_op, !transform.any_op) -> (!transform.any_op, !transform.any_op)
    %bias3, %n1 = transform.structured.fuse_into_containing_op %bias2 into %n0 : (!transform.any_op, !transform.any_op) -> (!transform.any_op, !transform.any_op)
    transform.yield
  }
}
