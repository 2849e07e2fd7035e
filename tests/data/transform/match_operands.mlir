// Products of 32-bit numbers are recognised by their operands and dimensions, and tiled together with their consumer.
module attributes {transform.with_named_sequence} {
  func.func @layer(%A: tensor<16x32xf32>, %B: tensor<32x24xf32>, %bias: tensor<16x24xf32>) -> tensor<16x24xf32> {
    %e = tensor.empty() : tensor<16x24xf32>
    %z = arith.constant 0.0 : f32
    %f = linalg.fill ins(%z : f32) outs(%e : tensor<16x24xf32>) -> tensor<16x24xf32>
    %C = linalg.matmul ins(%A, %B : tensor<16x32xf32>, tensor<32x24xf32>) outs(%f : tensor<16x24xf32>) -> tensor<16x24xf32>
    %D = linalg.add ins(%C, %bias : tensor<16x24xf32>, tensor<16x24xf32>) outs(%e : tensor<16x24xf32>) -> tensor<16x24xf32>
    return %D : tensor<16x24xf32>
  }
  transform.named_sequence @is_product(%op: !transform.any_op {transform.readonly}) -> (!transform.any_op, !transform.any_op) {
    %r:2 = transform.match.structured %op : (!transform.any_op) -> (!transform.any_op, !transform.any_op) {
    ^bb0(%s: !transform.any_op):
      %batch, %m, %n, %k = transform.match.structured.classify_contraction_dims %s : (!transform.any_op) -> (!transform.param<i64>, !transform.param<i64>, !transform.param<i64>, !transform.param<i64>)
      %c2 = transform.param.constant 2 : i64 -> !transform.param<i64>
      transform.match.param.cmpi eq %k, %c2 : !transform.param<i64>
      transform.match.structured.input %s[all] {projected_permutation} : !transform.any_op
      %a = transform.match.structured.input %s[0] : (!transform.any_op) -> !transform.any_value
      %bits = transform.match.structured.elemental_bitwidth %a : (!transform.any_value) -> !transform.param<i64>
      %c32 = transform.param.constant 32 : i64 -> !transform.param<i64>
      transform.match.param.cmpi eq %bits, %c32 : !transform.param<i64>
      transform.match.structured.init %s[0] {projected_permutation} : !transform.any_op
      %user = transform.match.structured.result %s[0] single : (!transform.any_op) -> !transform.any_op
      transform.match.structured.yield %s, %user : !transform.any_op, !transform.any_op
    }
    transform.yield %r#0, %r#1 : !transform.any_op, !transform.any_op
  }
  transform.named_sequence @tile(%op: !transform.any_op {transform.consumed}, %user: !transform.any_op {transform.consumed}) {
    %t, %l = transform.structured.tile_using_forall %user tile_sizes [4, 8] : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
    %fused, %loop = transform.structured.fuse_into_containing_op %op into %l : (!transform.any_op, !transform.any_op) -> (!transform.any_op, !transform.any_op)
    transform.yield
  }
  transform.named_sequence @__transform_main(%root: !transform.any_op) {
    %found, %user = transform.collect_matching @is_product in %root : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
    transform.include @tile failures(propagate) (%found, %user) : (!transform.any_op, !transform.any_op) -> ()
    %func = transform.structured.match ops{["func.func"]} in %root : (!transform.any_op) -> !transform.any_op
    transform.apply_patterns to %func {
      transform.apply_patterns.linalg.fold_unit_extent_dims_via_slices
      transform.apply_patterns.memref.expand_strided_metadata
      transform.apply_patterns.tensor.reassociative_reshape_folding
      transform.apply_patterns.vector.sink_ops
    } : !transform.any_op
    transform.yield
  }
}
