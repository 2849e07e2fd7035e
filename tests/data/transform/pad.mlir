// A matmul of odd extents, padded to multiples of 8.
module attributes {transform.with_named_sequence} {
  func.func @matmul(%A: tensor<13x11xf32>, %B: tensor<11x19xf32>, %f: tensor<13x19xf32>) -> tensor<13x19xf32> {
    %C = linalg.matmul ins(%A, %B : tensor<13x11xf32>, tensor<11x19xf32>) outs(%f : tensor<13x19xf32>) -> tensor<13x19xf32>
    return %C : tensor<13x19xf32>
  }
  transform.named_sequence @__transform_main(%root: !transform.any_op) {
    %m = transform.structured.match ops{["linalg.matmul"]} in %root : (!transform.any_op) -> !transform.any_op
    %p, %pad, %copy = transform.structured.pad %m pad_to_multiple_of [8, 8, 4] {padding_values = [0.0 : f32, 0.0 : f32, 0.0 : f32], padding_dimensions = [0, 1, 2], copy_back_op = "none"} : (!transform.any_op) -> (!transform.any_op, !transform.any_op, !transform.any_op)
    transform.yield
  }
}
