// RUN: weft-opt %s -p 'convert-transform-to-sched{debug-bind-trailing-args="linalg.matmul","linalg.add"}' | filecheck %s

// The script is in a separate module, and its further arguments are handles to the ops of these names.
// CHECK:       sched.func @transform {
// CHECK-NEXT:    %{{.*}} = sched.get_block "add" in @f : block
// CHECK:         sched.split %{{.*}} {factors = [0, 4]} : loop, loop
func.func @f(%A: tensor<8x8xf32>, %B: tensor<8x8xf32>, %C: tensor<8x8xf32>) -> tensor<8x8xf32> {
  %D = linalg.matmul ins(%A, %B : tensor<8x8xf32>, tensor<8x8xf32>) outs(%C : tensor<8x8xf32>) -> tensor<8x8xf32>
  %E = linalg.add ins(%D, %B : tensor<8x8xf32>, tensor<8x8xf32>) outs(%C : tensor<8x8xf32>) -> tensor<8x8xf32>
  return %E : tensor<8x8xf32>
}
module attributes {transform.with_named_sequence} {
  transform.named_sequence @__transform_main(%root: !transform.any_op, %mm: !transform.op<"linalg.matmul">, %add: !transform.op<"linalg.add">) {
    %t, %l = transform.structured.tile_using_for %add tile_sizes [4] : (!transform.op<"linalg.add">) -> (!transform.any_op, !transform.any_op)
    transform.yield
  }
}
