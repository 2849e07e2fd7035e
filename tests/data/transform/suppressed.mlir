// A failure that the sequence suppresses.
module attributes {transform.with_named_sequence} {
  func.func @matmul(%A: tensor<16x32xf32>, %B: tensor<32x24xf32>) -> tensor<16x24xf32> {
    %e = tensor.empty() : tensor<16x24xf32>
    %z = arith.constant 0.0 : f32
    %f = linalg.fill ins(%z : f32) outs(%e : tensor<16x24xf32>) -> tensor<16x24xf32>
    %C = linalg.matmul ins(%A, %B : tensor<16x32xf32>, tensor<32x24xf32>) outs(%f : tensor<16x24xf32>) -> tensor<16x24xf32>
    return %C : tensor<16x24xf32>
  }
  transform.named_sequence @__transform_main(%root: !transform.any_op) {
    transform.sequence %root : !transform.any_op failures(suppress) {
    ^bb0(%r: !transform.any_op):
      %fl = transform.structured.match ops{["linalg.fill"]} in %r : (!transform.any_op) -> !transform.any_op
      %none = transform.get_producer_of_operand %fl[0] : (!transform.any_op) -> !transform.any_op
      %first = transform.get_parent_op %fl {op_name = "scf.for"} : (!transform.any_op) -> !transform.any_op
    }
    %mm = transform.structured.match ops{["linalg.matmul"]} in %root : (!transform.any_op) -> !transform.any_op
    %t, %l:2 = transform.structured.tile_using_for %mm tile_sizes [4, 8] : (!transform.any_op) -> (!transform.any_op, !transform.any_op, !transform.any_op)
    transform.yield
  }
}
