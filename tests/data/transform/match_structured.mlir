// Products are recognised by their dimensions and bodies, and tiled; the fill and the sum of rows stay.
module attributes {transform.with_named_sequence} {
  func.func @layer(%A: tensor<16x32xf32>, %B: tensor<32x24xf32>, %bias: tensor<16x24xf32>) -> tensor<16x24xf32> {
    %e = tensor.empty() : tensor<16x24xf32>
    %z = arith.constant 0.0 : f32
    %f = linalg.fill ins(%z : f32) outs(%e : tensor<16x24xf32>) -> tensor<16x24xf32>
    %C = linalg.matmul ins(%A, %B : tensor<16x32xf32>, tensor<32x24xf32>) outs(%f : tensor<16x24xf32>) -> tensor<16x24xf32>
    %D = linalg.add ins(%C, %bias : tensor<16x24xf32>, tensor<16x24xf32>) outs(%e : tensor<16x24xf32>) -> tensor<16x24xf32>
    return %D : tensor<16x24xf32>
  }
  transform.named_sequence @is_product(%op: !transform.any_op {transform.readonly}) -> (!transform.any_op, !transform.param<i64>) {
    %r:2 = transform.match.structured %op : (!transform.any_op) -> (!transform.any_op, !transform.param<i64>) {
    ^bb0(%s: !transform.any_op):
      %rank = transform.match.structured.rank %s : (!transform.any_op) -> !transform.param<i64>
      %c3 = transform.param.constant 3 : i64 -> !transform.param<i64>
      transform.match.param.cmpi eq %rank, %c3 : !transform.param<i64>
      %inputs = transform.match.structured.num_inputs %s : (!transform.any_op) -> !transform.param<i64>
      %inits = transform.match.structured.num_inits %s : (!transform.any_op) -> !transform.param<i64>
      transform.match.param.cmpi gt %inputs, %inits : !transform.param<i64>
      transform.match.structured.dim %s[except(-1)] {parallel} : !transform.any_op
      transform.match.structured.dim %s[-1] {reduction} : !transform.any_op
      transform.match.structured.body %s {reduction_position = 0} : !transform.any_op
      transform.match.structured.body %s {contraction = ["arith.mulf", "arith.addf"]} : !transform.any_op
      %size = transform.match.structured.dim %s[1] : (!transform.any_op) -> !transform.param<i64>
      transform.match.structured.yield %s, %size : !transform.any_op, !transform.param<i64>
    }
    transform.yield %r#0, %r#1 : !transform.any_op, !transform.param<i64>
  }
  transform.named_sequence @tile(%op: !transform.any_op {transform.consumed}, %size: !transform.param<i64> {transform.readonly}) {
    %t, %l:2 = transform.structured.tile_using_for %op tile_sizes [4, %size] : (!transform.any_op, !transform.param<i64>) -> (!transform.any_op, !transform.any_op, !transform.any_op)
    transform.yield
  }
  transform.named_sequence @is_sum(%op: !transform.any_op {transform.readonly}) -> !transform.any_op {
    transform.match.structured failures(propagate) %op : !transform.any_op {
    ^bb0(%s: !transform.any_op):
      transform.match.structured.body %s {passthrough} : !transform.any_op
      transform.match.structured.dim %s[all] {reduction} : !transform.any_op
      transform.match.structured.yield
    }
    transform.yield %op : !transform.any_op
  }
  transform.named_sequence @ignore(%op: !transform.any_op {transform.readonly}) {
    transform.yield
  }
  transform.named_sequence @__transform_main(%root: !transform.any_op) {
    %r = transform.foreach_match in %root @is_sum -> @ignore, @is_product -> @tile : (!transform.any_op) -> !transform.any_op
    transform.yield
  }
}
