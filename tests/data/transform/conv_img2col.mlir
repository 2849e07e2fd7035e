// A convolution as a product of a matrix of windows.
module attributes {transform.with_named_sequence} {
  func.func @conv(%I: tensor<1x10x10x4xf32>, %K: tensor<3x3x4x8xf32>, %O: tensor<1x8x8x8xf32>) -> tensor<1x8x8x8xf32> {
    %r = linalg.conv_2d_nhwc_hwcf {dilations = dense<1> : tensor<2xi64>, strides = dense<1> : tensor<2xi64>} ins(%I, %K : tensor<1x10x10x4xf32>, tensor<3x3x4x8xf32>) outs(%O : tensor<1x8x8x8xf32>) -> tensor<1x8x8x8xf32>
    return %r : tensor<1x8x8x8xf32>
  }
  transform.named_sequence @__transform_main(%root: !transform.any_op) {
    %c = transform.structured.match ops{["linalg.conv_2d_nhwc_hwcf"]} in %root : (!transform.any_op) -> !transform.any_op
    %img2col, %mm = transform.structured.convert_conv2d_to_img2col %c : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
    transform.yield
  }
}
