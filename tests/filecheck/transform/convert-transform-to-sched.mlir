// RUN: weft-opt %s -p convert-transform-to-sched --split-input-file | filecheck %s
// RUN: weft-opt %s -p 'convert-transform-to-sched,apply-schedule' --split-input-file --validate

// Tiles are splits whose outer loops move outside; producers are computed in the loop over tiles; a fill becomes the
// init of the reduction that it starts.
// CHECK-LABEL: func.func @layer
// CHECK-NOT:     tir.origin
// CHECK:         tir.block "matmul"
// CHECK-NEXT:      tir.init {
// CHECK-NOT:     transform.
// CHECK-LABEL: sched.func @transform {
// CHECK-NEXT:    %matmul = sched.get_block "matmul" in @layer : block
// CHECK-NEXT:    %add = sched.get_block "add" in @layer : block
// CHECK-NEXT:    %d0, %d1 = sched.get_loops %add : loop, loop
// CHECK-NEXT:    %d00, %d01 = sched.split %d0 {factors = [0, 4]} : loop, loop
// CHECK-NEXT:    %d10, %d11 = sched.split %d1 {factors = [0, 8]} : loop, loop
// CHECK-NEXT:    sched.reorder %d00, %d10, %d01, %d11
// CHECK-NEXT:    sched.parallel %d00
// CHECK-NEXT:    sched.parallel %d10
// CHECK-NEXT:    sched.compute_at %matmul, %d10 {preserve_unit_loops = true}
// CHECK-NEXT:    %d00_1, %d10_1, %ax0, %ax1, %ax2 = sched.get_loops %matmul : loop, loop, loop, loop, loop
// CHECK-NEXT:    %ax20, %ax21 = sched.split %ax2 {factors = [0, 8]} : loop, loop
// CHECK-NEXT:    sched.reorder %ax20, %ax0, %ax1, %ax21
// CHECK-NEXT:    sched.reorder %ax0, %ax21, %ax1
// CHECK-NEXT:    sched.vectorize %ax1
// CHECK-NEXT:  }
module attributes {transform.with_named_sequence} {
func.func @layer(%A: tensor<16x32xf32>, %B: tensor<32x24xf32>, %bias: tensor<16x24xf32>) -> tensor<16x24xf32> {
  %e = tensor.empty() : tensor<16x24xf32>
  %z = arith.constant 0.0 : f32
  %f = linalg.fill ins(%z : f32) outs(%e : tensor<16x24xf32>) -> tensor<16x24xf32>
  %C = linalg.matmul ins(%A, %B : tensor<16x32xf32>, tensor<32x24xf32>) outs(%f : tensor<16x24xf32>) -> tensor<16x24xf32>
  %D = linalg.add ins(%C, %bias : tensor<16x24xf32>, tensor<16x24xf32>) outs(%e : tensor<16x24xf32>) -> tensor<16x24xf32>
  return %D : tensor<16x24xf32>
}
transform.named_sequence @__transform_main(%root: !transform.any_op) {
  %add = transform.structured.match ops{["linalg.add"]} in %root : (!transform.any_op) -> !transform.any_op
  %mm = transform.get_producer_of_operand %add[0] : (!transform.any_op) -> !transform.any_op
  %fill = transform.get_producer_of_operand %mm[2] : (!transform.any_op) -> !transform.any_op
  %t, %l = transform.structured.tile_using_forall %add tile_sizes [4, 8] : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
  %m, %l1 = transform.structured.fuse_into_containing_op %mm into %l : (!transform.any_op, !transform.any_op) -> (!transform.any_op, !transform.any_op)
  %g, %l2 = transform.structured.fuse_into_containing_op %fill into %l1 : (!transform.any_op, !transform.any_op) -> (!transform.any_op, !transform.any_op)
  %u, %k = transform.structured.tile_using_for %m tile_sizes [0, 0, 8] : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
  transform.structured.vectorize %u : !transform.any_op
  transform.yield
}
}

// -----

// A knob is a sampling step, and alternatives leave the steps of the one that succeeds.
// CHECK-LABEL: sched.func @transform {
// CHECK-NEXT:    %matmul = sched.get_block "matmul" in @f : block
// CHECK-NEXT:    %m, %n, %k = sched.get_loops %matmul : loop, loop, loop
// CHECK-NEXT:    %t0 = sched.sample_categorical {candidates = [4, 8], probs = [0.5, 0.5], decision = 1} : int
// CHECK-NEXT:    %m0, %m1 = sched.split %m [0, %t0] : loop, loop
// CHECK-NEXT:    sched.reorder %m0, %m1, %n, %k
module attributes {transform.with_named_sequence} {
func.func @f(%A: tensor<16x16xf32>, %B: tensor<16x16xf32>, %C: tensor<16x16xf32>) -> tensor<16x16xf32> {
  %D = linalg.matmul ins(%A, %B : tensor<16x16xf32>, tensor<16x16xf32>) outs(%C : tensor<16x16xf32>) -> tensor<16x16xf32>
  return %D : tensor<16x16xf32>
}
transform.named_sequence @__transform_main(%root: !transform.any_op) {
  %p = transform.tune.knob<"size"> = 8 from options = [4, 8] -> !transform.param<i64>
  %fn = transform.structured.match ops{["func.func"]} in %root : (!transform.any_op) -> !transform.any_op
  transform.alternatives %fn : !transform.any_op {
  ^bb0(%f: !transform.any_op):
    %mm = transform.structured.match ops{["linalg.matmul"]} in %f : (!transform.any_op) -> !transform.any_op
    %t, %l:2 = transform.structured.tile_using_for %mm tile_sizes [4, 4] : (!transform.any_op) -> (!transform.any_op, !transform.any_op, !transform.any_op)
    %no = transform.get_parent_op %t {op_name = "scf.while"} : (!transform.any_op) -> !transform.any_op
  }, {
  ^bb0(%f: !transform.any_op):
  }
  %mm = transform.structured.match ops{["linalg.matmul"]} in %root : (!transform.any_op) -> !transform.any_op
  %t, %l = transform.structured.tile_using_for %mm tile_sizes [%p] : (!transform.any_op, !transform.param<i64>) -> (!transform.any_op, !transform.any_op)
  transform.yield
}
}

// -----

// The loops of a forall become serial.
// CHECK-LABEL: sched.func @transform {
// CHECK:         sched.parallel %m0
// CHECK-NEXT:    sched.parallel %n0
// CHECK-NEXT:    %m0_fused = sched.fuse %m0 : loop
// CHECK-NEXT:    %n0_fused = sched.fuse %n0 : loop
// CHECK-NEXT:    %n0_fused0, %n0_fused1 = sched.split %n0_fused {factors = [0, 2]} : loop, loop
// CHECK-NEXT:    sched.unroll %n0_fused1
module attributes {transform.with_named_sequence} {
func.func @g(%A: tensor<16x16xf32>, %B: tensor<16x16xf32>, %C: tensor<16x16xf32>) -> tensor<16x16xf32> {
  %D = linalg.matmul ins(%A, %B : tensor<16x16xf32>, tensor<16x16xf32>) outs(%C : tensor<16x16xf32>) -> tensor<16x16xf32>
  return %D : tensor<16x16xf32>
}
transform.named_sequence @__transform_main(%root: !transform.any_op) {
  %mm = transform.structured.match ops{["linalg.matmul"]} in %root : (!transform.any_op) -> !transform.any_op
  %t, %forall = transform.structured.tile_using_forall %mm tile_sizes [4, 4] : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
  %i, %j = transform.loop.forall_to_for %forall : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
  transform.loop.unroll %j {factor = 2} : !transform.any_op
  transform.yield
}
}
