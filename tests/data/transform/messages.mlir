// Remarks, prints, counts, and handles that are cast and selected.
module attributes {transform.with_named_sequence} {
  func.func @matmul(%A: tensor<16x32xf32>, %B: tensor<32x24xf32>) -> tensor<16x24xf32> {
    %e = tensor.empty() : tensor<16x24xf32>
    %z = arith.constant 0.0 : f32
    %f = linalg.fill ins(%z : f32) outs(%e : tensor<16x24xf32>) -> tensor<16x24xf32>
    %C = linalg.matmul ins(%A, %B : tensor<16x32xf32>, tensor<32x24xf32>) outs(%f : tensor<16x24xf32>) -> tensor<16x24xf32>
    return %C : tensor<16x24xf32>
  }
  transform.named_sequence @__transform_main(%root: !transform.any_op) {
    %all = transform.structured.match interface{LinalgOp} in %root : (!transform.any_op) -> !transform.any_op
    %mm = transform.select "linalg.matmul" in %all : (!transform.any_op) -> !transform.any_op
    %named = transform.cast %mm : !transform.any_op to !transform.op<"linalg.matmul">
    %count = transform.num_associations %all : (!transform.any_op) -> !transform.param<i64>
    transform.debug.emit_remark_at %named, "tiled" : !transform.op<"linalg.matmul">
    transform.print %named {name = "before"} : !transform.op<"linalg.matmul">
    %t, %l = transform.structured.tile_using_for %named tile_sizes [%count] : (!transform.op<"linalg.matmul">, !transform.param<i64>) -> (!transform.any_op, !transform.any_op)
    transform.yield
  }
}
