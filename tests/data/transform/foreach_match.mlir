// Each payload op gets the action of the first sequence that matches it.
module attributes {transform.with_named_sequence} {
  func.func @f(%A: tensor<16x32xf32>, %B: tensor<32x24xf32>) -> tensor<16x24xf32> {
    %e = tensor.empty() : tensor<16x24xf32>
    %z = arith.constant 0.0 : f32
    %f = linalg.fill ins(%z : f32) outs(%e : tensor<16x24xf32>) -> tensor<16x24xf32>
    %C = linalg.matmul ins(%A, %B : tensor<16x32xf32>, tensor<32x24xf32>) outs(%f : tensor<16x24xf32>) -> tensor<16x24xf32>
    %g = tensor.empty() : tensor<16x24xf32>
    %D = linalg.abs ins(%C : tensor<16x24xf32>) outs(%g : tensor<16x24xf32>) -> tensor<16x24xf32>
    return %D : tensor<16x24xf32>
  }
  transform.named_sequence @is_matmul(%op: !transform.any_op {transform.readonly}) -> !transform.any_op {
    transform.match.operation_name %op ["linalg.matmul"] : !transform.any_op
    transform.yield %op : !transform.any_op
  }
  transform.named_sequence @is_elementwise(%op: !transform.any_op {transform.readonly}) -> (!transform.any_op, !transform.param<i64>) {
    transform.match.operation_name %op ["linalg.exp", "linalg.abs"] : !transform.any_op
    %s = transform.param.constant 8 : i64 -> !transform.param<i64>
    %least = transform.param.constant 4 : i64 -> !transform.param<i64>
    transform.match.param.cmpi ge %s, %least : !transform.param<i64>
    transform.yield %op, %s : !transform.any_op, !transform.param<i64>
  }
  transform.named_sequence @tile_matmul(%op: !transform.any_op {transform.consumed}) {
    %t, %l = transform.structured.tile_using_for %op tile_sizes [4] : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
    transform.yield
  }
  transform.named_sequence @tile_elementwise(%op: !transform.any_op {transform.consumed}, %s: !transform.param<i64> {transform.readonly}) {
    %t, %l = transform.structured.tile_using_for %op tile_sizes [0, %s] : (!transform.any_op, !transform.param<i64>) -> (!transform.any_op, !transform.any_op)
    transform.yield
  }
  transform.named_sequence @__transform_main(%root: !transform.any_op {transform.consumed}) {
    %r = transform.foreach_match in %root @is_matmul -> @tile_matmul, @is_elementwise -> @tile_elementwise : (!transform.any_op) -> !transform.any_op
    transform.yield
  }
}
