// RUN: weft-opt %s -p convert-sched-to-transform --split-input-file --verify-diagnostics | filecheck %s

// Loops from the outermost inside: parallel ones as a forall, producers fused into each, vectors last.
// CHECK-LABEL: func.func @layer
// CHECK:         linalg.matmul
// CHECK-NOT:     sched.
// CHECK:       transform.named_sequence @__transform_main(%root: !transform.any_op) {
// CHECK-NEXT:    %0 = transform.structured.match ops{["linalg.matmul"]} in %root : (!transform.any_op) -> !transform.any_op
// CHECK-NEXT:    %1 = transform.structured.match ops{["linalg.add"]} in %root : (!transform.any_op) -> !transform.any_op
// CHECK-NEXT:    %2, %3 = transform.structured.tile_using_forall %1 tile_sizes [4, 8] : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
// CHECK-NEXT:    %4, %5 = transform.structured.fuse_into_containing_op %0 into %3 : (!transform.any_op, !transform.any_op) -> (!transform.any_op, !transform.any_op)
// CHECK-NEXT:    %6, %7 = transform.structured.tile_using_for %4 tile_sizes [0, 0, 8] : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
// CHECK-NEXT:    %8 = transform.param.constant 3 : i64 -> !transform.any_param
// CHECK-NEXT:    transform.annotate %6 "note" = %8 : !transform.any_op, !transform.any_param
// CHECK-NEXT:    transform.loop.unroll %7 {factor = 4 : i64} : !transform.any_op
// CHECK-NEXT:    transform.structured.vectorize %2 : !transform.any_op
// CHECK-NEXT:    transform.yield
func.func @layer(%A: tensor<16x32xf32>, %B: tensor<32x24xf32>, %bias: tensor<16x24xf32>) -> tensor<16x24xf32> {
  %e = tensor.empty() : tensor<16x24xf32>
  %z = arith.constant 0.0 : f32
  %f = linalg.fill ins(%z : f32) outs(%e : tensor<16x24xf32>) -> tensor<16x24xf32>
  %C = linalg.matmul ins(%A, %B : tensor<16x32xf32>, tensor<32x24xf32>) outs(%f : tensor<16x24xf32>) -> tensor<16x24xf32>
  %D = linalg.add ins(%C, %bias : tensor<16x24xf32>, tensor<16x24xf32>) outs(%e : tensor<16x24xf32>) -> tensor<16x24xf32>
  return %D : tensor<16x24xf32>
}
sched.func @s {
  %y = sched.get_block "add" in @layer : block
  %c = sched.get_block "matmul" in @layer : block
  %i, %j = sched.get_loops %y : loop, loop
  %i0, %j0, %i1, %j1 = sched.tile %i, %j {factors = [4, 8]} : loop, loop, loop, loop
  sched.parallel %i0
  sched.parallel %j0
  sched.compute_at %c, %j0
  sched.vectorize %j1
  %a, %b, %m, %n, %k = sched.get_loops %c : loop, loop, loop, loop, loop
  %k0, %k1 = sched.split %k {factors = [0, 8]} : loop, loop
  sched.reorder %k0, %m, %n, %k1
  sched.unroll %k0
  sched.annotate %c {key = "note", value = 3}
}

// -----

// All steps without a form are in one error.
// expected-error@unknown {{no form in the transform dialect: sched.cache_read, sched.rfactor}}
func.func @f(%A: tensor<16x16xf32>, %B: tensor<16x16xf32>, %C: tensor<16x16xf32>) -> tensor<16x16xf32> {
  %D = linalg.matmul ins(%A, %B : tensor<16x16xf32>, tensor<16x16xf32>) outs(%C : tensor<16x16xf32>) -> tensor<16x16xf32>
  return %D : tensor<16x16xf32>
}
sched.func @s {
  %c = sched.get_block "matmul" in @f : block
  // expected-note@+1 {{'sched.cache_read' has no form}}
  %copy = sched.cache_read %c {index = 0, scope = "local"} : block
  %i, %j, %k = sched.get_loops %c : loop, loop, loop
  // expected-note@+1 {{'sched.rfactor' has no form}}
  %rf = sched.rfactor %k {factor_axis = 0} : block
}

// -----

// A block that is no operation of linalg.
func.func @f(%A: memref<16xf32>) {
  %z = arith.constant 0.0 : f32
  tir.for %i in 16 {
    tir.block "A" iters(%v: spatial<16>) = [%i] {
      memref.store %z, %A[%v] : memref<16xf32>
    }
  }
  return
}
sched.func @s {
  // expected-error@+1 {{block 'A' is no operation of linalg}}
  %b = sched.get_block "A" in @f : block
}

// -----

// expected-error@unknown {{the module has no sched.func}}
func.func @f() {
  return
}
