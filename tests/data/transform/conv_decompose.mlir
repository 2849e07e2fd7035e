// A convolution in tiles of one row, as convolutions of lines.
module attributes {transform.with_named_sequence} {
  func.func @conv(%I: tensor<1x10x10x4xf32>, %K: tensor<3x3x4x8xf32>, %O: tensor<1x8x8x8xf32>) -> tensor<1x8x8x8xf32> {
    %r = linalg.conv_2d_nhwc_hwcf {dilations = dense<1> : tensor<2xi64>, strides = dense<1> : tensor<2xi64>} ins(%I, %K : tensor<1x10x10x4xf32>, tensor<3x3x4x8xf32>) outs(%O : tensor<1x8x8x8xf32>) -> tensor<1x8x8x8xf32>
    return %r : tensor<1x8x8x8xf32>
  }
  transform.named_sequence @__transform_main(%root: !transform.any_op) {
    %c = transform.structured.match ops{["linalg.conv_2d_nhwc_hwcf"]} in %root : (!transform.any_op) -> !transform.any_op
    %t, %l:7 = transform.structured.tile_using_for %c tile_sizes [1, 1, 8, 8, 1, 3, 4] : (!transform.any_op) -> (!transform.any_op, !transform.any_op, !transform.any_op, !transform.any_op, !transform.any_op, !transform.any_op, !transform.any_op, !transform.any_op)
    %d = transform.structured.decompose %t : (!transform.any_op) -> !transform.any_op
    transform.yield
  }
}
