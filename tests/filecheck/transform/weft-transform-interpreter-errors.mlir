// RUN: weft-opt %s -p weft-transform-interpreter --split-input-file --verify-diagnostics

// A handle that was consumed.
func.func @f(%A: tensor<8x8xf32>, %B: tensor<8x8xf32>, %C: tensor<8x8xf32>) -> tensor<8x8xf32> {
  %D = linalg.matmul ins(%A, %B : tensor<8x8xf32>, tensor<8x8xf32>) outs(%C : tensor<8x8xf32>) -> tensor<8x8xf32>
  %E = linalg.add ins(%D, %A : tensor<8x8xf32>, tensor<8x8xf32>) outs(%C : tensor<8x8xf32>) -> tensor<8x8xf32>
  return %E : tensor<8x8xf32>
}
transform.named_sequence @__transform_main(%root: !transform.any_op) {
  %mm = transform.structured.match ops{["linalg.matmul"]} in %root : (!transform.any_op) -> !transform.any_op
  // expected-note@+1 {{invalidated by this transform.structured.tile_using_for, which consumes its operand #0}}
  %t, %l = transform.structured.tile_using_for %mm tile_sizes [4] : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
  // expected-error@+1 {{transform.structured.generalize uses a handle invalidated by a previously executed transform op: %mm}}
  %g = transform.structured.generalize %mm : (!transform.any_op) -> !transform.any_op
  transform.yield
}

// -----

// A handle to an op inside of what was consumed.
func.func @f(%A: tensor<8x8xf32>, %B: tensor<8x8xf32>, %C: tensor<8x8xf32>) -> tensor<8x8xf32> {
  %D = linalg.matmul ins(%A, %B : tensor<8x8xf32>, tensor<8x8xf32>) outs(%C : tensor<8x8xf32>) -> tensor<8x8xf32>
  %E = linalg.add ins(%D, %A : tensor<8x8xf32>, tensor<8x8xf32>) outs(%C : tensor<8x8xf32>) -> tensor<8x8xf32>
  return %E : tensor<8x8xf32>
}
transform.named_sequence @__transform_main(%root: !transform.any_op) {
  %mm = transform.structured.match ops{["linalg.matmul"]} in %root : (!transform.any_op) -> !transform.any_op
  %t, %l = transform.structured.tile_using_for %mm tile_sizes [4] : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
  // expected-note@+1 {{invalidated by this transform.loop.unroll}}
  transform.loop.unroll %l {factor = 2} : !transform.any_op
  // expected-error@+1 {{transform.structured.vectorize uses a handle invalidated}}
  transform.structured.vectorize %t : !transform.any_op
  transform.yield
}

// -----

// Two handles to the same op.
func.func @f(%A: tensor<8x8xf32>, %B: tensor<8x8xf32>, %C: tensor<8x8xf32>) -> tensor<8x8xf32> {
  %D = linalg.matmul ins(%A, %B : tensor<8x8xf32>, tensor<8x8xf32>) outs(%C : tensor<8x8xf32>) -> tensor<8x8xf32>
  %E = linalg.add ins(%D, %A : tensor<8x8xf32>, tensor<8x8xf32>) outs(%C : tensor<8x8xf32>) -> tensor<8x8xf32>
  return %E : tensor<8x8xf32>
}
transform.named_sequence @__transform_main(%root: !transform.any_op) {
  %mm = transform.structured.match ops{["linalg.matmul"]} in %root : (!transform.any_op) -> !transform.any_op
  %again = transform.structured.match ops{["linalg.matmul"]} in %root : (!transform.any_op) -> !transform.any_op
  // expected-note@+1 {{invalidated by this}}
  %t, %l = transform.structured.tile_using_for %mm tile_sizes [4] : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
  // expected-error@+1 {{transform.annotate uses a handle invalidated by a previously executed transform op: %again}}
  transform.annotate %again "x" : !transform.any_op
  transform.yield
}

// -----

// Too many sizes.
func.func @f(%A: tensor<8x8xf32>, %B: tensor<8x8xf32>, %C: tensor<8x8xf32>) -> tensor<8x8xf32> {
  // expected-note@+1 {{payload op}}
  %D = linalg.matmul ins(%A, %B : tensor<8x8xf32>, tensor<8x8xf32>) outs(%C : tensor<8x8xf32>) -> tensor<8x8xf32>
  %E = linalg.add ins(%D, %A : tensor<8x8xf32>, tensor<8x8xf32>) outs(%C : tensor<8x8xf32>) -> tensor<8x8xf32>
  return %E : tensor<8x8xf32>
}
transform.named_sequence @__transform_main(%root: !transform.any_op) {
  %mm = transform.structured.match ops{["linalg.matmul"]} in %root : (!transform.any_op) -> !transform.any_op
  // expected-error@+1 {{transform.structured.tile_using_for on linalg.matmul: too many tiles provided, expected at most 3 found 4}}
  %t, %l:4 = transform.structured.tile_using_for %mm tile_sizes [2, 2, 2, 2] : (!transform.any_op) -> (!transform.any_op, !transform.any_op, !transform.any_op, !transform.any_op, !transform.any_op)
  transform.yield
}

// -----

// An interchange that is no permutation.
func.func @f(%A: tensor<8x8xf32>, %B: tensor<8x8xf32>, %C: tensor<8x8xf32>) -> tensor<8x8xf32> {
  // expected-note@+1 {{payload op}}
  %D = linalg.matmul ins(%A, %B : tensor<8x8xf32>, tensor<8x8xf32>) outs(%C : tensor<8x8xf32>) -> tensor<8x8xf32>
  %E = linalg.add ins(%D, %A : tensor<8x8xf32>, tensor<8x8xf32>) outs(%C : tensor<8x8xf32>) -> tensor<8x8xf32>
  return %E : tensor<8x8xf32>
}
transform.named_sequence @__transform_main(%root: !transform.any_op) {
  %mm = transform.structured.match ops{["linalg.matmul"]} in %root : (!transform.any_op) -> !transform.any_op
  // expected-error@+1 {{the interchange [1, 1] is no permutation of dimensions}}
  %t, %l:2 = transform.structured.tile_using_for %mm tile_sizes [2, 2] interchange = [1, 1] : (!transform.any_op) -> (!transform.any_op, !transform.any_op, !transform.any_op)
  transform.yield
}

// -----

// A negative size.
func.func @f(%A: tensor<8x8xf32>, %B: tensor<8x8xf32>, %C: tensor<8x8xf32>) -> tensor<8x8xf32> {
  // expected-note@+1 {{payload op}}
  %D = linalg.matmul ins(%A, %B : tensor<8x8xf32>, tensor<8x8xf32>) outs(%C : tensor<8x8xf32>) -> tensor<8x8xf32>
  %E = linalg.add ins(%D, %A : tensor<8x8xf32>, tensor<8x8xf32>) outs(%C : tensor<8x8xf32>) -> tensor<8x8xf32>
  return %E : tensor<8x8xf32>
}
transform.named_sequence @__transform_main(%root: !transform.any_op) {
  %mm = transform.structured.match ops{["linalg.matmul"]} in %root : (!transform.any_op) -> !transform.any_op
  // expected-error@+1 {{the size -2 of dimension 0 is negative}}
  %t, %l = transform.structured.tile_using_for %mm tile_sizes [-2] : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
  transform.yield
}

// -----

// A reduction in tiles that run at once: MLIR takes it, though tiles add to the same elements.
func.func @f(%A: tensor<8x8xf32>, %B: tensor<8x8xf32>, %C: tensor<8x8xf32>) -> tensor<8x8xf32> {
  // expected-note@+1 {{payload op}}
  %D = linalg.matmul ins(%A, %B : tensor<8x8xf32>, tensor<8x8xf32>) outs(%C : tensor<8x8xf32>) -> tensor<8x8xf32>
  %E = linalg.add ins(%D, %A : tensor<8x8xf32>, tensor<8x8xf32>) outs(%C : tensor<8x8xf32>) -> tensor<8x8xf32>
  return %E : tensor<8x8xf32>
}
transform.named_sequence @__transform_main(%root: !transform.any_op) {
  %mm = transform.structured.match ops{["linalg.matmul"]} in %root : (!transform.any_op) -> !transform.any_op
  // expected-error@+1 {{transform.structured.tile_using_forall on linalg.matmul: parallel(%k0): requirement 2, the iterations are independent}}
  %t, %l = transform.structured.tile_using_forall %mm tile_sizes [0, 0, 4] : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
  transform.yield
}

// -----

// A producer that nothing in the loop uses.
func.func @f(%A: tensor<8x8xf32>, %B: tensor<8x8xf32>, %C: tensor<8x8xf32>) -> tensor<8x8xf32> {
  %D = linalg.matmul ins(%A, %B : tensor<8x8xf32>, tensor<8x8xf32>) outs(%C : tensor<8x8xf32>) -> tensor<8x8xf32>
  // expected-note@+1 {{payload op}}
  %E = linalg.add ins(%D, %A : tensor<8x8xf32>, tensor<8x8xf32>) outs(%C : tensor<8x8xf32>) -> tensor<8x8xf32>
  return %E : tensor<8x8xf32>
}
transform.named_sequence @__transform_main(%root: !transform.any_op) {
  %mm = transform.structured.match ops{["linalg.matmul"]} in %root : (!transform.any_op) -> !transform.any_op
  %add = transform.structured.match ops{["linalg.add"]} in %root : (!transform.any_op) -> !transform.any_op
  %t, %l = transform.structured.tile_using_for %mm tile_sizes [4] : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
  // expected-error@+1 {{could not find next producer to fuse into container: nothing there uses its result}}
  %x, %y = transform.structured.fuse_into_containing_op %add into %l : (!transform.any_op, !transform.any_op) -> (!transform.any_op, !transform.any_op)
  transform.yield
}

// -----

// A containing op that is no loop.
func.func @f(%A: tensor<8x8xf32>, %B: tensor<8x8xf32>, %C: tensor<8x8xf32>) -> tensor<8x8xf32> {
  %D = linalg.matmul ins(%A, %B : tensor<8x8xf32>, tensor<8x8xf32>) outs(%C : tensor<8x8xf32>) -> tensor<8x8xf32>
  %E = linalg.add ins(%D, %A : tensor<8x8xf32>, tensor<8x8xf32>) outs(%C : tensor<8x8xf32>) -> tensor<8x8xf32>
  return %E : tensor<8x8xf32>
}
transform.named_sequence @__transform_main(%root: !transform.any_op) {
  %mm = transform.structured.match ops{["linalg.matmul"]} in %root : (!transform.any_op) -> !transform.any_op
  %add = transform.structured.match ops{["linalg.add"]} in %root : (!transform.any_op) -> !transform.any_op
  // expected-error@+1 {{transform.structured.fuse_into_containing_op requires exactly one containing_op handle to a loop (got 1)}}
  %x, %y = transform.structured.fuse_into_containing_op %mm into %add : (!transform.any_op, !transform.any_op) -> (!transform.any_op, !transform.any_op)
  transform.yield
}

// -----

// More payload ops than results.
func.func @f(%A: tensor<8x8xf32>, %B: tensor<8x8xf32>, %C: tensor<8x8xf32>) -> tensor<8x8xf32> {
  %D = linalg.matmul ins(%A, %B : tensor<8x8xf32>, tensor<8x8xf32>) outs(%C : tensor<8x8xf32>) -> tensor<8x8xf32>
  %E = linalg.add ins(%D, %A : tensor<8x8xf32>, tensor<8x8xf32>) outs(%C : tensor<8x8xf32>) -> tensor<8x8xf32>
  return %E : tensor<8x8xf32>
}
transform.named_sequence @__transform_main(%root: !transform.any_op) {
  %all = transform.structured.match interface{LinalgOp} in %root : (!transform.any_op) -> !transform.any_op
  // expected-error@+1 {{transform.split_handle: the handle has 2 payload ops, 3 are expected}}
  %a, %b, %c = transform.split_handle %all : (!transform.any_op) -> (!transform.any_op, !transform.any_op, !transform.any_op)
  transform.yield
}

// -----

// No parent of the name.
func.func @f(%A: tensor<8x8xf32>, %B: tensor<8x8xf32>, %C: tensor<8x8xf32>) -> tensor<8x8xf32> {
  // expected-note@+1 {{payload op}}
  %D = linalg.matmul ins(%A, %B : tensor<8x8xf32>, tensor<8x8xf32>) outs(%C : tensor<8x8xf32>) -> tensor<8x8xf32>
  %E = linalg.add ins(%D, %A : tensor<8x8xf32>, tensor<8x8xf32>) outs(%C : tensor<8x8xf32>) -> tensor<8x8xf32>
  return %E : tensor<8x8xf32>
}
transform.named_sequence @__transform_main(%root: !transform.any_op) {
  %mm = transform.structured.match ops{["linalg.matmul"]} in %root : (!transform.any_op) -> !transform.any_op
  // expected-error@+1 {{transform.get_parent_op on linalg.matmul: could not find a parent op that matches all requirements}}
  %p = transform.get_parent_op %mm {op_name = "scf.for"} : (!transform.any_op) -> !transform.any_op
  transform.yield
}

// -----

// An operand that a parameter of the function gives.
func.func @f(%A: tensor<8x8xf32>, %B: tensor<8x8xf32>, %C: tensor<8x8xf32>) -> tensor<8x8xf32> {
  // expected-note@+1 {{payload op}}
  %D = linalg.matmul ins(%A, %B : tensor<8x8xf32>, tensor<8x8xf32>) outs(%C : tensor<8x8xf32>) -> tensor<8x8xf32>
  %E = linalg.add ins(%D, %A : tensor<8x8xf32>, tensor<8x8xf32>) outs(%C : tensor<8x8xf32>) -> tensor<8x8xf32>
  return %E : tensor<8x8xf32>
}
transform.named_sequence @__transform_main(%root: !transform.any_op) {
  %mm = transform.structured.match ops{["linalg.matmul"]} in %root : (!transform.any_op) -> !transform.any_op
  // expected-error@+1 {{transform.get_producer_of_operand on linalg.matmul: could not find a producer for operand number: 0}}
  %p = transform.get_producer_of_operand %mm[0] : (!transform.any_op) -> !transform.any_op
  transform.yield
}

// -----

// An operand that is not there.
func.func @f(%A: tensor<8x8xf32>, %B: tensor<8x8xf32>, %C: tensor<8x8xf32>) -> tensor<8x8xf32> {
  // expected-note@+1 {{payload op}}
  %D = linalg.matmul ins(%A, %B : tensor<8x8xf32>, tensor<8x8xf32>) outs(%C : tensor<8x8xf32>) -> tensor<8x8xf32>
  %E = linalg.add ins(%D, %A : tensor<8x8xf32>, tensor<8x8xf32>) outs(%C : tensor<8x8xf32>) -> tensor<8x8xf32>
  return %E : tensor<8x8xf32>
}
transform.named_sequence @__transform_main(%root: !transform.any_op) {
  %mm = transform.structured.match ops{["linalg.matmul"]} in %root : (!transform.any_op) -> !transform.any_op
  // expected-error@+1 {{it has 3 operands, there is no operand 7}}
  %p = transform.get_producer_of_operand %mm[7] : (!transform.any_op) -> !transform.any_op
  transform.yield
}

// -----

// A result that is not there.
func.func @f(%A: tensor<8x8xf32>, %B: tensor<8x8xf32>, %C: tensor<8x8xf32>) -> tensor<8x8xf32> {
  // expected-note@+1 {{payload op}}
  %D = linalg.matmul ins(%A, %B : tensor<8x8xf32>, tensor<8x8xf32>) outs(%C : tensor<8x8xf32>) -> tensor<8x8xf32>
  %E = linalg.add ins(%D, %A : tensor<8x8xf32>, tensor<8x8xf32>) outs(%C : tensor<8x8xf32>) -> tensor<8x8xf32>
  return %E : tensor<8x8xf32>
}
transform.named_sequence @__transform_main(%root: !transform.any_op) {
  %mm = transform.structured.match ops{["linalg.matmul"]} in %root : (!transform.any_op) -> !transform.any_op
  // expected-error@+1 {{it has 1 results, there is no result 1}}
  %p = transform.get_consumers_of_result %mm[1] : (!transform.any_op) -> !transform.any_op
  transform.yield
}

// -----

// A handle of another type.
func.func @f(%A: tensor<8x8xf32>, %B: tensor<8x8xf32>, %C: tensor<8x8xf32>) -> tensor<8x8xf32> {
  // expected-note@+1 {{payload op}}
  %D = linalg.matmul ins(%A, %B : tensor<8x8xf32>, tensor<8x8xf32>) outs(%C : tensor<8x8xf32>) -> tensor<8x8xf32>
  %E = linalg.add ins(%D, %A : tensor<8x8xf32>, tensor<8x8xf32>) outs(%C : tensor<8x8xf32>) -> tensor<8x8xf32>
  return %E : tensor<8x8xf32>
}
transform.named_sequence @__transform_main(%root: !transform.any_op) {
  %mm = transform.structured.match ops{["linalg.matmul"]} in %root : (!transform.any_op) -> !transform.any_op
  // expected-error@+1 {{incompatible payload operation name: linalg.matmul is not scf.for}}
  %p = transform.cast %mm : !transform.any_op to !transform.op<"scf.for">
  transform.yield
}

// -----

// A name of no sequence.
func.func @f(%A: tensor<8x8xf32>, %B: tensor<8x8xf32>, %C: tensor<8x8xf32>) -> tensor<8x8xf32> {
  %D = linalg.matmul ins(%A, %B : tensor<8x8xf32>, tensor<8x8xf32>) outs(%C : tensor<8x8xf32>) -> tensor<8x8xf32>
  %E = linalg.add ins(%D, %A : tensor<8x8xf32>, tensor<8x8xf32>) outs(%C : tensor<8x8xf32>) -> tensor<8x8xf32>
  return %E : tensor<8x8xf32>
}
transform.named_sequence @tile(%a: !transform.any_op) {
  transform.yield
}
transform.named_sequence @__transform_main(%root: !transform.any_op) {
  %mm = transform.structured.match ops{["linalg.matmul"]} in %root : (!transform.any_op) -> !transform.any_op
  // expected-error@+1 {{transform.include: unknown sequence '@tyle', did you mean 'tile'?}}
  transform.include @tyle failures(propagate) (%mm) : (!transform.any_op) -> ()
  transform.yield
}

// -----

// A sequence that includes itself.
func.func @f(%A: tensor<8x8xf32>, %B: tensor<8x8xf32>, %C: tensor<8x8xf32>) -> tensor<8x8xf32> {
  %D = linalg.matmul ins(%A, %B : tensor<8x8xf32>, tensor<8x8xf32>) outs(%C : tensor<8x8xf32>) -> tensor<8x8xf32>
  %E = linalg.add ins(%D, %A : tensor<8x8xf32>, tensor<8x8xf32>) outs(%C : tensor<8x8xf32>) -> tensor<8x8xf32>
  return %E : tensor<8x8xf32>
}
transform.named_sequence @tile(%a: !transform.any_op) {
  // expected-error@+1 {{transform.include: '@tile' includes itself}}
  transform.include @tile failures(propagate) (%a) : (!transform.any_op) -> ()
  transform.yield
}
transform.named_sequence @__transform_main(%root: !transform.any_op) {
  transform.include @tile failures(propagate) (%root) : (!transform.any_op) -> ()
  transform.yield
}

// -----

// All alternatives fail.
func.func @f(%A: tensor<8x8xf32>, %B: tensor<8x8xf32>, %C: tensor<8x8xf32>) -> tensor<8x8xf32> {
  %D = linalg.matmul ins(%A, %B : tensor<8x8xf32>, tensor<8x8xf32>) outs(%C : tensor<8x8xf32>) -> tensor<8x8xf32>
  %E = linalg.add ins(%D, %A : tensor<8x8xf32>, tensor<8x8xf32>) outs(%C : tensor<8x8xf32>) -> tensor<8x8xf32>
  return %E : tensor<8x8xf32>
}
transform.named_sequence @__transform_main(%root: !transform.any_op) {
  %fn = transform.structured.match ops{["func.func"]} in %root : (!transform.any_op) -> !transform.any_op
  // expected-error@+1 {{transform.alternatives: all alternatives failed: 0: transform.get_parent_op on func.func: could not find}}
  transform.alternatives %fn : !transform.any_op {
  ^bb0(%a: !transform.any_op):
    %p = transform.get_parent_op %a {op_name = "scf.for"} : (!transform.any_op) -> !transform.any_op
  }
  transform.yield
}

// -----

// An op of MLIR that is not supported.
func.func @f(%A: tensor<8x8xf32>, %B: tensor<8x8xf32>, %C: tensor<8x8xf32>) -> tensor<8x8xf32> {
  %D = linalg.matmul ins(%A, %B : tensor<8x8xf32>, tensor<8x8xf32>) outs(%C : tensor<8x8xf32>) -> tensor<8x8xf32>
  %E = linalg.add ins(%D, %A : tensor<8x8xf32>, tensor<8x8xf32>) outs(%C : tensor<8x8xf32>) -> tensor<8x8xf32>
  return %E : tensor<8x8xf32>
}
transform.named_sequence @__transform_main(%root: !transform.any_op) {
  %mm = transform.structured.match ops{["linalg.matmul"]} in %root : (!transform.any_op) -> !transform.any_op
  // expected-error@+1 {{transform.structured.specialize is not supported}}
  %s = transform.structured.specialize %mm : (!transform.any_op) -> !transform.any_op
  transform.yield
}

// -----

// Handles of targets whose numbers differ.
func.func @f(%A: tensor<8x8xf32>, %B: tensor<8x8xf32>, %C: tensor<8x8xf32>) -> tensor<8x8xf32> {
  %D = linalg.matmul ins(%A, %B : tensor<8x8xf32>, tensor<8x8xf32>) outs(%C : tensor<8x8xf32>) -> tensor<8x8xf32>
  %E = linalg.add ins(%D, %A : tensor<8x8xf32>, tensor<8x8xf32>) outs(%C : tensor<8x8xf32>) -> tensor<8x8xf32>
  return %E : tensor<8x8xf32>
}
transform.named_sequence @__transform_main(%root: !transform.any_op) {
  %mm = transform.structured.match ops{["linalg.matmul"]} in %root : (!transform.any_op) -> !transform.any_op
  %all = transform.structured.match interface{LinalgOp} in %root : (!transform.any_op) -> !transform.any_op
  // expected-error@+1 {{transform.foreach: prior targets' payload size (1, 2) differ}}
  transform.foreach %mm, %all : !transform.any_op, !transform.any_op {
  ^bb0(%a: !transform.any_op, %b: !transform.any_op):
  }
  transform.yield
}

// -----

// A permutation of too few dimensions.
func.func @f(%A: tensor<8x8xf32>, %B: tensor<8x8xf32>, %C: tensor<8x8xf32>) -> tensor<8x8xf32> {
  %D = linalg.matmul ins(%A, %B : tensor<8x8xf32>, tensor<8x8xf32>) outs(%C : tensor<8x8xf32>) -> tensor<8x8xf32>
  %E = linalg.add ins(%D, %A : tensor<8x8xf32>, tensor<8x8xf32>) outs(%C : tensor<8x8xf32>) -> tensor<8x8xf32>
  return %E : tensor<8x8xf32>
}
transform.named_sequence @__transform_main(%root: !transform.any_op) {
  %mm = transform.structured.match ops{["linalg.matmul"]} in %root : (!transform.any_op) -> !transform.any_op
  %g = transform.structured.generalize %mm : (!transform.any_op) -> !transform.any_op
  // expected-error@+1 {{transform.structured.interchange: [1, 0] is no permutation of the 3 dimensions}}
  %p = transform.structured.interchange %g iterator_interchange = [1, 0] : (!transform.any_op) -> !transform.any_op
  transform.yield
}

// -----

// A dimension that is not there.
func.func @f(%A: tensor<8x8xf32>, %B: tensor<8x8xf32>, %C: tensor<8x8xf32>) -> tensor<8x8xf32> {
  // expected-note@+1 {{payload op}}
  %D = linalg.matmul ins(%A, %B : tensor<8x8xf32>, tensor<8x8xf32>) outs(%C : tensor<8x8xf32>) -> tensor<8x8xf32>
  %E = linalg.add ins(%D, %A : tensor<8x8xf32>, tensor<8x8xf32>) outs(%C : tensor<8x8xf32>) -> tensor<8x8xf32>
  return %E : tensor<8x8xf32>
}
transform.named_sequence @__transform_main(%root: !transform.any_op) {
  %mm = transform.structured.match ops{["linalg.matmul"]} in %root : (!transform.any_op) -> !transform.any_op
  // expected-error@+1 {{transform.structured.split on linalg.matmul: dimension 3 does not exist in target op}}
  %p = transform.structured.split %mm after 2 {dimension = 3 : i64} : !transform.any_op
  transform.yield
}

// -----

// A vector that is shorter than the dimension.
func.func @f(%A: tensor<8x8xf32>, %B: tensor<8x8xf32>, %C: tensor<8x8xf32>) -> tensor<8x8xf32> {
  // expected-note@+1 {{payload op}}
  %D = linalg.matmul ins(%A, %B : tensor<8x8xf32>, tensor<8x8xf32>) outs(%C : tensor<8x8xf32>) -> tensor<8x8xf32>
  %E = linalg.add ins(%D, %A : tensor<8x8xf32>, tensor<8x8xf32>) outs(%C : tensor<8x8xf32>) -> tensor<8x8xf32>
  return %E : tensor<8x8xf32>
}
transform.named_sequence @__transform_main(%root: !transform.any_op) {
  %mm = transform.structured.match ops{["linalg.matmul"]} in %root : (!transform.any_op) -> !transform.any_op
  // expected-error@+1 {{the vector size 4 of dimension 0 is less than its extent 8}}
  transform.structured.vectorize %mm vector_sizes [4, 8, 8] : !transform.any_op
  transform.yield
}

// -----

// A factor that does not divide the reduction.
func.func @f(%A: tensor<8x8xf32>, %B: tensor<8x8xf32>, %C: tensor<8x8xf32>) -> tensor<8x8xf32> {
  // expected-note@+1 {{payload op}}
  %D = linalg.matmul ins(%A, %B : tensor<8x8xf32>, tensor<8x8xf32>) outs(%C : tensor<8x8xf32>) -> tensor<8x8xf32>
  %E = linalg.add ins(%D, %A : tensor<8x8xf32>, tensor<8x8xf32>) outs(%C : tensor<8x8xf32>) -> tensor<8x8xf32>
  return %E : tensor<8x8xf32>
}
transform.named_sequence @__transform_main(%root: !transform.any_op) {
  %mm = transform.structured.match ops{["linalg.matmul"]} in %root : (!transform.any_op) -> !transform.any_op
  // expected-error@+1 {{the factor 3 does not divide the extent 8 of the reduction}}
  %a, %b, %c, %d = transform.structured.split_reduction %mm {split_factor = 3 : i64} : (!transform.any_op) -> (!transform.any_op, !transform.any_op, !transform.any_op, !transform.any_op)
  transform.yield
}

// -----

// A tile of a parallel dimension as a partial reduction.
func.func @f(%A: tensor<8x8xf32>, %B: tensor<8x8xf32>, %C: tensor<8x8xf32>) -> tensor<8x8xf32> {
  // expected-note@+1 {{payload op}}
  %D = linalg.matmul ins(%A, %B : tensor<8x8xf32>, tensor<8x8xf32>) outs(%C : tensor<8x8xf32>) -> tensor<8x8xf32>
  %E = linalg.add ins(%D, %A : tensor<8x8xf32>, tensor<8x8xf32>) outs(%C : tensor<8x8xf32>) -> tensor<8x8xf32>
  return %E : tensor<8x8xf32>
}
transform.named_sequence @__transform_main(%root: !transform.any_op) {
  %mm = transform.structured.match ops{["linalg.matmul"]} in %root : (!transform.any_op) -> !transform.any_op
  // expected-error@+1 {{transform.structured.tile_reduction_using_for on linalg.matmul: one dimension is tiled, a reduction}}
  %a, %b, %c, %d = transform.structured.tile_reduction_using_for %mm by tile_sizes = [4] : (!transform.any_op) -> (!transform.any_op, !transform.any_op, !transform.any_op, !transform.any_op)
  transform.yield
}

// -----

// A tile of a dimension that does not exist as a partial reduction.
func.func @f(%A: tensor<8x8xf32>, %B: tensor<8x8xf32>, %C: tensor<8x8xf32>) -> tensor<8x8xf32> {
  // expected-note@+1 {{payload op}}
  %D = linalg.matmul ins(%A, %B : tensor<8x8xf32>, tensor<8x8xf32>) outs(%C : tensor<8x8xf32>) -> tensor<8x8xf32>
  %E = linalg.add ins(%D, %A : tensor<8x8xf32>, tensor<8x8xf32>) outs(%C : tensor<8x8xf32>) -> tensor<8x8xf32>
  return %E : tensor<8x8xf32>
}
transform.named_sequence @__transform_main(%root: !transform.any_op) {
  %mm = transform.structured.match ops{["linalg.matmul"]} in %root : (!transform.any_op) -> !transform.any_op
  // expected-error@+1 {{transform.structured.tile_reduction_using_for on linalg.matmul: one dimension is tiled, a reduction}}
  %a, %b, %c, %d = transform.structured.tile_reduction_using_for %mm by tile_sizes = [0, 0, 0, 4] : (!transform.any_op) -> (!transform.any_op, !transform.any_op, !transform.any_op, !transform.any_op)
  transform.yield
}

// -----

// An op that is no convolution.
func.func @f(%A: tensor<8x8xf32>, %B: tensor<8x8xf32>, %C: tensor<8x8xf32>) -> tensor<8x8xf32> {
  // expected-note@+1 {{payload op}}
  %D = linalg.matmul ins(%A, %B : tensor<8x8xf32>, tensor<8x8xf32>) outs(%C : tensor<8x8xf32>) -> tensor<8x8xf32>
  %E = linalg.add ins(%D, %A : tensor<8x8xf32>, tensor<8x8xf32>) outs(%C : tensor<8x8xf32>) -> tensor<8x8xf32>
  return %E : tensor<8x8xf32>
}
transform.named_sequence @__transform_main(%root: !transform.any_op) {
  %mm = transform.structured.match ops{["linalg.matmul"]} in %root : (!transform.any_op) -> !transform.any_op
  // expected-error@+1 {{it is no convolution over two dimensions}}
  %a, %b = transform.structured.convert_conv2d_to_img2col %mm : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
  transform.yield
}

// -----

// An op without a decomposition.
func.func @f(%A: tensor<8x8xf32>, %B: tensor<8x8xf32>, %C: tensor<8x8xf32>) -> tensor<8x8xf32> {
  // expected-note@+1 {{payload op}}
  %D = linalg.matmul ins(%A, %B : tensor<8x8xf32>, tensor<8x8xf32>) outs(%C : tensor<8x8xf32>) -> tensor<8x8xf32>
  %E = linalg.add ins(%D, %A : tensor<8x8xf32>, tensor<8x8xf32>) outs(%C : tensor<8x8xf32>) -> tensor<8x8xf32>
  return %E : tensor<8x8xf32>
}
transform.named_sequence @__transform_main(%root: !transform.any_op) {
  %mm = transform.structured.match ops{["linalg.matmul"]} in %root : (!transform.any_op) -> !transform.any_op
  // expected-error@+1 {{it has no decomposition into operations of fewer dimensions}}
  %a = transform.structured.decompose %mm : (!transform.any_op) -> !transform.any_op
  transform.yield
}

// -----

// A loop that has no partial iteration.
func.func @f(%A: tensor<8x8xf32>, %B: tensor<8x8xf32>, %C: tensor<8x8xf32>) -> tensor<8x8xf32> {
  // expected-note@+1 {{payload op}}
  %D = linalg.matmul ins(%A, %B : tensor<8x8xf32>, tensor<8x8xf32>) outs(%C : tensor<8x8xf32>) -> tensor<8x8xf32>
  %E = linalg.add ins(%D, %A : tensor<8x8xf32>, tensor<8x8xf32>) outs(%C : tensor<8x8xf32>) -> tensor<8x8xf32>
  return %E : tensor<8x8xf32>
}
transform.named_sequence @__transform_main(%root: !transform.any_op) {
  %mm = transform.structured.match ops{["linalg.matmul"]} in %root : (!transform.any_op) -> !transform.any_op
  %t, %l = transform.structured.tile_using_for %mm tile_sizes [4] : (!transform.any_op) -> (!transform.any_op, !transform.op<"scf.for">)
  // expected-error@+1 {{failed to peel: the step divides the range}}
  %a, %b = transform.loop.peel %l {fail_if_already_divisible = true} : (!transform.op<"scf.for">) -> (!transform.any_op, !transform.any_op)
  transform.yield
}

// -----

// A knob without the value.
func.func @f(%A: tensor<8x8xf32>, %B: tensor<8x8xf32>, %C: tensor<8x8xf32>) -> tensor<8x8xf32> {
  %D = linalg.matmul ins(%A, %B : tensor<8x8xf32>, tensor<8x8xf32>) outs(%C : tensor<8x8xf32>) -> tensor<8x8xf32>
  %E = linalg.add ins(%D, %A : tensor<8x8xf32>, tensor<8x8xf32>) outs(%C : tensor<8x8xf32>) -> tensor<8x8xf32>
  return %E : tensor<8x8xf32>
}
transform.named_sequence @__transform_main(%root: !transform.any_op) {
  // expected-error@+1 {{knob 'k' has options that are no integers, and none is selected}}
  %p = transform.tune.knob<"k"> options = ["a", "b"] -> !transform.any_param
  transform.yield
}

// -----

// Alternatives of a search of which none is selected.
func.func @f(%A: tensor<8x8xf32>, %B: tensor<8x8xf32>, %C: tensor<8x8xf32>) -> tensor<8x8xf32> {
  %D = linalg.matmul ins(%A, %B : tensor<8x8xf32>, tensor<8x8xf32>) outs(%C : tensor<8x8xf32>) -> tensor<8x8xf32>
  %E = linalg.add ins(%D, %A : tensor<8x8xf32>, tensor<8x8xf32>) outs(%C : tensor<8x8xf32>) -> tensor<8x8xf32>
  return %E : tensor<8x8xf32>
}
transform.named_sequence @__transform_main(%root: !transform.any_op) {
  // expected-error@+1 {{no region of 'a' is selected: give selected_region, or the option choices=a=N}}
  transform.tune.alternatives<"a"> {
  }, {
  }
  transform.yield
}

// -----

// A pass that is not there.
func.func @f(%A: tensor<8x8xf32>, %B: tensor<8x8xf32>, %C: tensor<8x8xf32>) -> tensor<8x8xf32> {
  %D = linalg.matmul ins(%A, %B : tensor<8x8xf32>, tensor<8x8xf32>) outs(%C : tensor<8x8xf32>) -> tensor<8x8xf32>
  %E = linalg.add ins(%D, %A : tensor<8x8xf32>, tensor<8x8xf32>) outs(%C : tensor<8x8xf32>) -> tensor<8x8xf32>
  return %E : tensor<8x8xf32>
}
transform.named_sequence @__transform_main(%root: !transform.any_op) {
  %fn = transform.structured.match ops{["func.func"]} in %root : (!transform.any_op) -> !transform.any_op
  // expected-error@+1 {{transform.apply_registered_pass: unknown pass 'no-such-pass'}}
  %p = transform.apply_registered_pass "no-such-pass" to %fn : (!transform.any_op) -> !transform.any_op
  transform.yield
}

// -----

// Loops of which the second reads in an iteration what the first writes in a later one.
func.func @f(%A: memref<8x8xf32>, %C: memref<8x8xf32>) {
  %D = memref.alloc() : memref<8x8xf32>
  linalg.add ins(%A, %A : memref<8x8xf32>, memref<8x8xf32>) outs(%D : memref<8x8xf32>)
  linalg.transpose ins(%D : memref<8x8xf32>) outs(%C : memref<8x8xf32>) permutation = [1, 0]
  return
}
transform.named_sequence @__transform_main(%root: !transform.any_op) {
  %add = transform.structured.match ops{["linalg.add"]} in %root : (!transform.any_op) -> !transform.any_op
  %tr = transform.structured.match ops{["linalg.transpose"]} in %root : (!transform.any_op) -> !transform.any_op
  %t, %l = transform.structured.tile_using_for %add tile_sizes [4] : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
  %u, %k = transform.structured.tile_using_for %tr tile_sizes [4] : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
  // expected-error@+1 {{requirement 4, dependences stay forward}}
  %f = transform.loop.fuse_sibling %l into %k : (!transform.any_op, !transform.any_op) -> !transform.any_op
  transform.yield
}

// -----

// A module without a script.
// expected-error@unknown {{no transform.named_sequence @__transform_main}}
func.func @f() {
  return
}

// -----

// An op that is no loop.
func.func @f(%A: tensor<8x8xf32>, %B: tensor<8x8xf32>, %C: tensor<8x8xf32>) -> tensor<8x8xf32> {
  // expected-note@+1 {{payload op}}
  %D = linalg.matmul ins(%A, %B : tensor<8x8xf32>, tensor<8x8xf32>) outs(%C : tensor<8x8xf32>) -> tensor<8x8xf32>
  return %D : tensor<8x8xf32>
}
transform.named_sequence @__transform_main(%root: !transform.any_op) {
  %mm = transform.structured.match ops{["linalg.matmul"]} in %root : (!transform.any_op) -> !transform.any_op
  // expected-error@+1 {{transform.loop.outline on linalg.matmul: a loop is outlined}}
  %f, %c = transform.loop.outline %mm {func_name = "g"} : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
  transform.yield
}

// -----

// An op that is no loop.
func.func @f(%A: tensor<8x8xf32>, %B: tensor<8x8xf32>, %C: tensor<8x8xf32>) -> tensor<8x8xf32> {
  // expected-note@+1 {{payload op}}
  %D = linalg.matmul ins(%A, %B : tensor<8x8xf32>, tensor<8x8xf32>) outs(%C : tensor<8x8xf32>) -> tensor<8x8xf32>
  return %D : tensor<8x8xf32>
}
transform.named_sequence @__transform_main(%root: !transform.any_op) {
  %mm = transform.structured.match ops{["linalg.matmul"]} in %root : (!transform.any_op) -> !transform.any_op
  // expected-error@+1 {{transform.loop.pipeline on linalg.matmul: a loop is pipelined, scf.for}}
  %p = transform.loop.pipeline %mm : (!transform.any_op) -> !transform.any_op
  transform.yield
}

// -----

// As many sizes as dimensions.
func.func @f(%A: tensor<8x8xf32>, %B: tensor<8x8xf32>, %C: tensor<8x8xf32>) -> tensor<8x8xf32> {
  // expected-note@+1 {{payload op}}
  %D = linalg.matmul ins(%A, %B : tensor<8x8xf32>, tensor<8x8xf32>) outs(%C : tensor<8x8xf32>) -> tensor<8x8xf32>
  return %D : tensor<8x8xf32>
}
transform.named_sequence @__transform_main(%root: !transform.any_op) {
  %mm = transform.structured.match ops{["linalg.matmul"]} in %root : (!transform.any_op) -> !transform.any_op
  // expected-error@+1 {{transform.structured.pack on linalg.matmul: 2 sizes for 3 dimensions}}
  %p = transform.structured.pack %mm packed_sizes = [4, 4] : (!transform.any_op) -> !transform.any_op
  transform.yield
}

// -----

// Negative sizes.
func.func @f(%A: tensor<8x8xf32>, %B: tensor<8x8xf32>, %C: tensor<8x8xf32>) -> tensor<8x8xf32> {
  // expected-note@+1 {{payload op}}
  %D = linalg.matmul ins(%A, %B : tensor<8x8xf32>, tensor<8x8xf32>) outs(%C : tensor<8x8xf32>) -> tensor<8x8xf32>
  return %D : tensor<8x8xf32>
}
transform.named_sequence @__transform_main(%root: !transform.any_op) {
  %mm = transform.structured.match ops{["linalg.matmul"]} in %root : (!transform.any_op) -> !transform.any_op
  // expected-error@+1 {{transform.structured.pack on linalg.matmul: sizes are at least 0, got [4, 4, -2]}}
  %p = transform.structured.pack %mm packed_sizes = [4, 4, -2] : (!transform.any_op) -> !transform.any_op
  transform.yield
}

// -----

// One buffer as two operands.
func.func @f(%A: tensor<8x8xf32>, %B: tensor<8x8xf32>, %C: tensor<8x8xf32>) -> tensor<8x8xf32> {
  // expected-note@+1 {{payload op}}
  %D = linalg.matmul ins(%A, %A : tensor<8x8xf32>, tensor<8x8xf32>) outs(%C : tensor<8x8xf32>) -> tensor<8x8xf32>
  return %D : tensor<8x8xf32>
}
transform.named_sequence @__transform_main(%root: !transform.any_op) {
  %mm = transform.structured.match ops{["linalg.matmul"]} in %root : (!transform.any_op) -> !transform.any_op
  // expected-error@+1 {{transform.structured.pack on linalg.matmul: it reads one buffer by two operands}}
  %p = transform.structured.pack %mm packed_sizes = [4, 4, 4] : (!transform.any_op) -> !transform.any_op
  transform.yield
}

// -----

// An extent that is known at run time.
func.func @f(%A: tensor<?x8xf32>, %B: tensor<8x8xf32>, %C: tensor<?x8xf32>) -> tensor<?x8xf32> {
  // expected-note@+1 {{payload op}}
  %D = linalg.matmul ins(%A, %B : tensor<?x8xf32>, tensor<8x8xf32>) outs(%C : tensor<?x8xf32>) -> tensor<?x8xf32>
  return %D : tensor<?x8xf32>
}
transform.named_sequence @__transform_main(%root: !transform.any_op) {
  %mm = transform.structured.match ops{["linalg.matmul"]} in %root : (!transform.any_op) -> !transform.any_op
  // expected-error@+1 {{transform.structured.pack on linalg.matmul: the extent of a packed dimension is known at run time only}}
  %p = transform.structured.pack %mm packed_sizes = [4, 0, 0] : (!transform.any_op) -> !transform.any_op
  transform.yield
}

// -----

// A permutation of the dimensions.
func.func @f(%A: tensor<8x8xf32>, %B: tensor<8x8xf32>, %C: tensor<8x8xf32>) -> tensor<8x8xf32> {
  %D = linalg.matmul ins(%A, %B : tensor<8x8xf32>, tensor<8x8xf32>) outs(%C : tensor<8x8xf32>) -> tensor<8x8xf32>
  return %D : tensor<8x8xf32>
}
transform.named_sequence @__transform_main(%root: !transform.any_op) {
  %mm = transform.structured.match ops{["linalg.matmul"]} in %root : (!transform.any_op) -> !transform.any_op
  %p = transform.structured.pack %mm packed_sizes = [4, 4, 4] : (!transform.any_op) -> !transform.any_op
  %pack = transform.get_producer_of_operand %p[0] : (!transform.any_op) -> !transform.any_op
  // expected-error@+1 {{invalid outer_perm: [0, 2] is no permutation of 2 dimensions}}
  %n, %q, %u = transform.structured.pack_transpose %pack with_compute_op(%p) outer_perm = [0, 2] : (!transform.any_op, !transform.any_op) -> (!transform.any_op, !transform.any_op, !transform.any_op)
  transform.yield
}

// -----

// An op that packs nothing.
func.func @f(%A: tensor<8x8xf32>, %B: tensor<8x8xf32>, %C: tensor<8x8xf32>) -> tensor<8x8xf32> {
  // expected-note@+1 {{payload op}}
  %D = linalg.matmul ins(%A, %B : tensor<8x8xf32>, tensor<8x8xf32>) outs(%C : tensor<8x8xf32>) -> tensor<8x8xf32>
  return %D : tensor<8x8xf32>
}
transform.named_sequence @__transform_main(%root: !transform.any_op) {
  %mm = transform.structured.match ops{["linalg.matmul"]} in %root : (!transform.any_op) -> !transform.any_op
  %p = transform.structured.pack %mm packed_sizes = [4, 4, 4] : (!transform.any_op) -> !transform.any_op
  %pack = transform.get_producer_of_operand %p[0] : (!transform.any_op) -> !transform.any_op
  // expected-error@+1 {{requires target to map to a linalg.pack or linalg.unpack}}
  %n, %q, %u = transform.structured.pack_transpose %p with_compute_op(%p) outer_perm = [1, 0] : (!transform.any_op, !transform.any_op) -> (!transform.any_op, !transform.any_op, !transform.any_op)
  transform.yield
}

// -----

// A computation of another packed operand.
func.func @f(%A: tensor<8x8xf32>, %B: tensor<8x8xf32>, %C: tensor<8x8xf32>) -> tensor<8x8xf32> {
  %D = linalg.matmul ins(%A, %B : tensor<8x8xf32>, tensor<8x8xf32>) outs(%C : tensor<8x8xf32>) -> tensor<8x8xf32>
  return %D : tensor<8x8xf32>
}
transform.named_sequence @__transform_main(%root: !transform.any_op) {
  %mm = transform.structured.match ops{["linalg.matmul"]} in %root : (!transform.any_op) -> !transform.any_op
  %p = transform.structured.pack %mm packed_sizes = [4, 4, 4] : (!transform.any_op) -> !transform.any_op
  %pack = transform.get_producer_of_operand %p[0] : (!transform.any_op) -> !transform.any_op
  // expected-error@+1 {{requires with_compute_op to be a structured op}}
  %n, %q, %u = transform.structured.pack_transpose %pack with_compute_op(%root) outer_perm = [1, 0] : (!transform.any_op, !transform.any_op) -> (!transform.any_op, !transform.any_op, !transform.any_op)
  transform.yield
}

// -----

// Handles to an op that was packed.
func.func @f(%A: tensor<8x8xf32>, %B: tensor<8x8xf32>, %C: tensor<8x8xf32>) -> tensor<8x8xf32> {
  %D = linalg.matmul ins(%A, %B : tensor<8x8xf32>, tensor<8x8xf32>) outs(%C : tensor<8x8xf32>) -> tensor<8x8xf32>
  return %D : tensor<8x8xf32>
}
transform.named_sequence @__transform_main(%root: !transform.any_op) {
  %mm = transform.structured.match ops{["linalg.matmul"]} in %root : (!transform.any_op) -> !transform.any_op
  // expected-note@+1 {{invalidated by this transform.structured.pack, which consumes its operand #0}}
  %p = transform.structured.pack %mm packed_sizes = [4, 4, 4] : (!transform.any_op) -> !transform.any_op
  // expected-error@+1 {{uses a handle invalidated by a previously executed transform op: %mm}}
  transform.annotate %mm "x" : !transform.any_op
  transform.yield
}

// -----

// A sequence that is not in the module.
func.func @f(%A: tensor<8x8xf32>, %B: tensor<8x8xf32>, %C: tensor<8x8xf32>) -> tensor<8x8xf32> {
  %D = linalg.matmul ins(%A, %B : tensor<8x8xf32>, tensor<8x8xf32>) outs(%C : tensor<8x8xf32>) -> tensor<8x8xf32>
  return %D : tensor<8x8xf32>
}
transform.named_sequence @matches(%op: !transform.any_op {transform.readonly}) {
  transform.yield
}
transform.named_sequence @__transform_main(%root: !transform.any_op) {
  %mm = transform.structured.match ops{["linalg.matmul"]} in %root : (!transform.any_op) -> !transform.any_op
  // expected-error@+1 {{transform.foreach_match: unknown sequence '@matchs', did you mean 'matches'?}}
  %r = transform.foreach_match in %root @matchs -> @act : (!transform.any_op) -> !transform.any_op
  transform.yield
}

// -----

// An action with other arguments than its matcher yields.
func.func @f(%A: tensor<8x8xf32>, %B: tensor<8x8xf32>, %C: tensor<8x8xf32>) -> tensor<8x8xf32> {
  %D = linalg.matmul ins(%A, %B : tensor<8x8xf32>, tensor<8x8xf32>) outs(%C : tensor<8x8xf32>) -> tensor<8x8xf32>
  return %D : tensor<8x8xf32>
}
transform.named_sequence @matches(%op: !transform.any_op {transform.readonly}) -> !transform.any_op {
  transform.match.operation_name %op ["linalg.matmul"] : !transform.any_op
  transform.yield %op : !transform.any_op
}
transform.named_sequence @act(%op: !transform.any_op {transform.readonly}, %n: !transform.param<i64> {transform.readonly}) {
  transform.yield
}
transform.named_sequence @__transform_main(%root: !transform.any_op) {
  %mm = transform.structured.match ops{["linalg.matmul"]} in %root : (!transform.any_op) -> !transform.any_op
  // expected-error@+1 {{@act takes 2 arguments, got 1}}
  %r = transform.foreach_match in %root @matches -> @act : (!transform.any_op) -> !transform.any_op
  transform.yield
}

// -----

// An action that fails.
func.func @f(%A: tensor<8x8xf32>, %B: tensor<8x8xf32>, %C: tensor<8x8xf32>) -> tensor<8x8xf32> {
  // expected-note@+1 {{payload op}}
  %D = linalg.matmul ins(%A, %B : tensor<8x8xf32>, tensor<8x8xf32>) outs(%C : tensor<8x8xf32>) -> tensor<8x8xf32>
  return %D : tensor<8x8xf32>
}
transform.named_sequence @matches(%op: !transform.any_op {transform.readonly}) -> !transform.any_op {
  transform.match.operation_name %op ["linalg.matmul"] : !transform.any_op
  transform.yield %op : !transform.any_op
}
transform.named_sequence @act(%op: !transform.any_op {transform.consumed}) {
  // expected-error@+1 {{the iterations are independent}}
  %t, %l = transform.structured.tile_using_forall %op tile_sizes [0, 0, 4] : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
  transform.yield
}
transform.named_sequence @__transform_main(%root: !transform.any_op) {
  %mm = transform.structured.match ops{["linalg.matmul"]} in %root : (!transform.any_op) -> !transform.any_op
  %r = transform.foreach_match in %root @matches -> @act : (!transform.any_op) -> !transform.any_op
  transform.yield
}

// -----

// An action that yields several payload ops.
func.func @f(%A: tensor<8x8xf32>, %B: tensor<8x8xf32>, %C: tensor<8x8xf32>) -> tensor<8x8xf32> {
  %D = linalg.matmul ins(%A, %B : tensor<8x8xf32>, tensor<8x8xf32>) outs(%C : tensor<8x8xf32>) -> tensor<8x8xf32>
  return %D : tensor<8x8xf32>
}
transform.named_sequence @matches(%op: !transform.any_op {transform.readonly}) -> !transform.any_op {
  transform.match.operation_name %op ["linalg.matmul"] : !transform.any_op
  transform.yield %op : !transform.any_op
}
transform.named_sequence @act(%op: !transform.any_op {transform.readonly}) -> !transform.any_op {
  %two = transform.merge_handles %op, %op : !transform.any_op
  transform.yield %two : !transform.any_op
}
transform.named_sequence @__transform_main(%root: !transform.any_op) {
  %mm = transform.structured.match ops{["linalg.matmul"]} in %root : (!transform.any_op) -> !transform.any_op
  // expected-error@+1 {{the action @act must yield one payload op for each result, got 2}}
  %r, %o = transform.foreach_match in %root @matches -> @act : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
  transform.yield
}

// -----

// Parameters that are no integers.
func.func @f(%A: tensor<8x8xf32>, %B: tensor<8x8xf32>, %C: tensor<8x8xf32>) -> tensor<8x8xf32> {
  %D = linalg.matmul ins(%A, %B : tensor<8x8xf32>, tensor<8x8xf32>) outs(%C : tensor<8x8xf32>) -> tensor<8x8xf32>
  return %D : tensor<8x8xf32>
}
transform.named_sequence @__transform_main(%root: !transform.any_op) {
  %mm = transform.structured.match ops{["linalg.matmul"]} in %root : (!transform.any_op) -> !transform.any_op
  %a = transform.param.constant "x" -> !transform.any_param
  // expected-error@+1 {{transform.match.param.cmpi compares integers, got "x" and "x"}}
  transform.match.param.cmpi eq %a, %a : !transform.any_param
  transform.yield
}

// -----

// A comparison that does not hold, outside of a matcher.
func.func @f(%A: tensor<8x8xf32>, %B: tensor<8x8xf32>, %C: tensor<8x8xf32>) -> tensor<8x8xf32> {
  %D = linalg.matmul ins(%A, %B : tensor<8x8xf32>, tensor<8x8xf32>) outs(%C : tensor<8x8xf32>) -> tensor<8x8xf32>
  return %D : tensor<8x8xf32>
}
transform.named_sequence @__transform_main(%root: !transform.any_op) {
  %mm = transform.structured.match ops{["linalg.matmul"]} in %root : (!transform.any_op) -> !transform.any_op
  %a = transform.param.constant 3 : i64 -> !transform.param<i64>
  // expected-error@+1 {{transform.match.param.cmpi: 3 gt 3 does not hold}}
  transform.match.param.cmpi gt %a, %a : !transform.param<i64>
  transform.yield
}

// -----

// A handle that is not empty.
func.func @f(%A: tensor<8x8xf32>, %B: tensor<8x8xf32>, %C: tensor<8x8xf32>) -> tensor<8x8xf32> {
  // expected-note@+1 {{payload op}}
  %D = linalg.matmul ins(%A, %B : tensor<8x8xf32>, tensor<8x8xf32>) outs(%C : tensor<8x8xf32>) -> tensor<8x8xf32>
  return %D : tensor<8x8xf32>
}
transform.named_sequence @__transform_main(%root: !transform.any_op) {
  %mm = transform.structured.match ops{["linalg.matmul"]} in %root : (!transform.any_op) -> !transform.any_op
  // expected-error@+1 {{transform.match.operation_empty on linalg.matmul: the handle is not empty}}
  transform.match.operation_empty %mm : !transform.any_op
  transform.yield
}

// -----

// A condition on a product that does not hold.
func.func @f(%A: tensor<8x8xf32>, %B: tensor<8x8xf32>, %C: tensor<8x8xf32>) -> tensor<8x8xf32> {
  // expected-note@+1 {{payload op}}
  %D = linalg.matmul ins(%A, %B : tensor<8x8xf32>, tensor<8x8xf32>) outs(%C : tensor<8x8xf32>) -> tensor<8x8xf32>
  return %D : tensor<8x8xf32>
}
transform.named_sequence @__transform_main(%root: !transform.any_op) {
  %mm = transform.structured.match ops{["linalg.matmul"]} in %root : (!transform.any_op) -> !transform.any_op
  // expected-error@+1 {{expects dimension 2 to be parallel}}
  transform.match.structured.dim %mm[2] {parallel} : !transform.any_op
  transform.yield
}

// -----

// A condition on a product that does not hold.
func.func @f(%A: tensor<8x8xf32>, %B: tensor<8x8xf32>, %C: tensor<8x8xf32>) -> tensor<8x8xf32> {
  // expected-note@+1 {{payload op}}
  %D = linalg.matmul ins(%A, %B : tensor<8x8xf32>, tensor<8x8xf32>) outs(%C : tensor<8x8xf32>) -> tensor<8x8xf32>
  return %D : tensor<8x8xf32>
}
transform.named_sequence @__transform_main(%root: !transform.any_op) {
  %mm = transform.structured.match ops{["linalg.matmul"]} in %root : (!transform.any_op) -> !transform.any_op
  // expected-error@+1 {{expects dimension 0 to be reduction}}
  transform.match.structured.dim %mm[all] {reduction} : !transform.any_op
  transform.yield
}

// -----

// A condition on a product that does not hold.
func.func @f(%A: tensor<8x8xf32>, %B: tensor<8x8xf32>, %C: tensor<8x8xf32>) -> tensor<8x8xf32> {
  // expected-note@+1 {{payload op}}
  %D = linalg.matmul ins(%A, %B : tensor<8x8xf32>, tensor<8x8xf32>) outs(%C : tensor<8x8xf32>) -> tensor<8x8xf32>
  return %D : tensor<8x8xf32>
}
transform.named_sequence @__transform_main(%root: !transform.any_op) {
  %mm = transform.structured.match ops{["linalg.matmul"]} in %root : (!transform.any_op) -> !transform.any_op
  // expected-error@+1 {{position overflow 3 (updated from 3) for maximum 3}}
  transform.match.structured.dim %mm[3] {parallel} : !transform.any_op
  transform.yield
}

// -----

// A condition on a product that does not hold.
func.func @f(%A: tensor<8x8xf32>, %B: tensor<8x8xf32>, %C: tensor<8x8xf32>) -> tensor<8x8xf32> {
  // expected-note@+1 {{payload op}}
  %D = linalg.matmul ins(%A, %B : tensor<8x8xf32>, tensor<8x8xf32>) outs(%C : tensor<8x8xf32>) -> tensor<8x8xf32>
  return %D : tensor<8x8xf32>
}
transform.named_sequence @__transform_main(%root: !transform.any_op) {
  %mm = transform.structured.match ops{["linalg.matmul"]} in %root : (!transform.any_op) -> !transform.any_op
  // expected-error@+1 {{it is not passthrough}}
  transform.match.structured.body %mm {passthrough} : !transform.any_op
  transform.yield
}

// -----

// A condition on a product that does not hold.
func.func @f(%A: tensor<8x8xf32>, %B: tensor<8x8xf32>, %C: tensor<8x8xf32>) -> tensor<8x8xf32> {
  // expected-note@+1 {{payload op}}
  %D = linalg.matmul ins(%A, %B : tensor<8x8xf32>, tensor<8x8xf32>) outs(%C : tensor<8x8xf32>) -> tensor<8x8xf32>
  return %D : tensor<8x8xf32>
}
transform.named_sequence @__transform_main(%root: !transform.any_op) {
  %mm = transform.structured.match ops{["linalg.matmul"]} in %root : (!transform.any_op) -> !transform.any_op
  // expected-error@+1 {{output 1 is no reduction}}
  transform.match.structured.body %mm {reduction_position = 1} : !transform.any_op
  transform.yield
}

// -----

// A condition on a product that does not hold.
func.func @f(%A: tensor<8x8xf32>, %B: tensor<8x8xf32>, %C: tensor<8x8xf32>) -> tensor<8x8xf32> {
  // expected-note@+1 {{payload op}}
  %D = linalg.matmul ins(%A, %B : tensor<8x8xf32>, tensor<8x8xf32>) outs(%C : tensor<8x8xf32>) -> tensor<8x8xf32>
  return %D : tensor<8x8xf32>
}
transform.named_sequence @__transform_main(%root: !transform.any_op) {
  %mm = transform.structured.match ops{["linalg.matmul"]} in %root : (!transform.any_op) -> !transform.any_op
  // expected-error@+1 {{it is not a contraction}}
  transform.match.structured.body %mm {contraction = ["arith.mulf", "arith.maximumf"]} : !transform.any_op
  transform.yield
}

// -----

// A condition on an op that is not structured.
func.func @f(%A: tensor<8x8xf32>, %B: tensor<8x8xf32>, %C: tensor<8x8xf32>) -> tensor<8x8xf32> {
  %D = linalg.matmul ins(%A, %B : tensor<8x8xf32>, tensor<8x8xf32>) outs(%C : tensor<8x8xf32>) -> tensor<8x8xf32>
  return %D : tensor<8x8xf32>
}
transform.named_sequence @__transform_main(%root: !transform.any_op) {
  // expected-error@+1 {{expected a structured op}}
  %r = transform.match.structured.rank %root : (!transform.any_op) -> !transform.param<i64>
  transform.yield
}

// -----

// An entry point with more arguments than are given.
func.func @f(%A: tensor<8x8xf32>, %B: tensor<8x8xf32>, %C: tensor<8x8xf32>) -> tensor<8x8xf32> {
  %D = linalg.matmul ins(%A, %B : tensor<8x8xf32>, tensor<8x8xf32>) outs(%C : tensor<8x8xf32>) -> tensor<8x8xf32>
  return %D : tensor<8x8xf32>
}
// expected-error@+1 {{@__transform_main has 2 arguments, and is given the payload and 0 handles (debug-bind-trailing-args)}}
transform.named_sequence @__transform_main(%root: !transform.any_op, %mm: !transform.any_op) {
  transform.yield
}

// -----

// An indexing map that is no permutation.
func.func @f(%A: tensor<8x8xf32>, %B: tensor<8x8xf32>, %C: tensor<8x8xf32>) -> tensor<8x8xf32> {
  // expected-note@+1 {{payload op}}
  %D = linalg.matmul ins(%A, %B : tensor<8x8xf32>, tensor<8x8xf32>) outs(%C : tensor<8x8xf32>) -> tensor<8x8xf32>
  return %D : tensor<8x8xf32>
}
transform.named_sequence @__transform_main(%root: !transform.any_op) {
  %mm = transform.structured.match ops{["linalg.matmul"]} in %root : (!transform.any_op) -> !transform.any_op
  // expected-error@+1 {{the indexing map of operand 0 is no permutation}}
  transform.match.structured.input %mm[all] {permutation} : !transform.any_op
  transform.yield
}

// -----

// An operand that is an argument.
func.func @f(%A: tensor<8x8xf32>, %B: tensor<8x8xf32>, %C: tensor<8x8xf32>) -> tensor<8x8xf32> {
  // expected-note@+1 {{payload op}}
  %D = linalg.matmul ins(%A, %B : tensor<8x8xf32>, tensor<8x8xf32>) outs(%C : tensor<8x8xf32>) -> tensor<8x8xf32>
  return %D : tensor<8x8xf32>
}
transform.named_sequence @__transform_main(%root: !transform.any_op) {
  %mm = transform.structured.match ops{["linalg.matmul"]} in %root : (!transform.any_op) -> !transform.any_op
  // expected-error@+1 {{could not find a producer for operand number: 1}}
  %p = transform.match.structured.input %mm[1] : (!transform.any_op) -> !transform.any_op
  transform.yield
}

// -----

// A result with two users.
func.func @f(%A: tensor<8x8xf32>, %B: tensor<8x8xf32>, %C: tensor<8x8xf32>) -> tensor<8x8xf32> {
  // expected-note@+1 {{payload op}}
  %D = linalg.matmul ins(%A, %B : tensor<8x8xf32>, tensor<8x8xf32>) outs(%C : tensor<8x8xf32>) -> tensor<8x8xf32>
  %E = linalg.add ins(%D, %A : tensor<8x8xf32>, tensor<8x8xf32>) outs(%C : tensor<8x8xf32>) -> tensor<8x8xf32>
  %F = linalg.mul ins(%D, %E : tensor<8x8xf32>, tensor<8x8xf32>) outs(%C : tensor<8x8xf32>) -> tensor<8x8xf32>
  return %F : tensor<8x8xf32>
}
transform.named_sequence @__transform_main(%root: !transform.any_op) {
  %mm = transform.structured.match ops{["linalg.matmul"]} in %root : (!transform.any_op) -> !transform.any_op
  // expected-error@+1 {{the result has 2 users, one is expected}}
  %u = transform.match.structured.result %mm[0] single : (!transform.any_op) -> !transform.any_op
  transform.yield
}

// -----

// A result that does not exist.
func.func @f(%A: tensor<8x8xf32>, %B: tensor<8x8xf32>, %C: tensor<8x8xf32>) -> tensor<8x8xf32> {
  // expected-note@+1 {{payload op}}
  %D = linalg.matmul ins(%A, %B : tensor<8x8xf32>, tensor<8x8xf32>) outs(%C : tensor<8x8xf32>) -> tensor<8x8xf32>
  return %D : tensor<8x8xf32>
}
transform.named_sequence @__transform_main(%root: !transform.any_op) {
  %mm = transform.structured.match ops{["linalg.matmul"]} in %root : (!transform.any_op) -> !transform.any_op
  // expected-error@+1 {{it has 1 results, there is no result 1}}
  %u = transform.match.structured.result %mm[1] any : (!transform.any_op) -> !transform.any_op
  transform.yield
}

// -----

// The width of an op.
func.func @f(%A: tensor<8x8xf32>, %B: tensor<8x8xf32>, %C: tensor<8x8xf32>) -> tensor<8x8xf32> {
  %D = linalg.matmul ins(%A, %B : tensor<8x8xf32>, tensor<8x8xf32>) outs(%C : tensor<8x8xf32>) -> tensor<8x8xf32>
  return %D : tensor<8x8xf32>
}
transform.named_sequence @__transform_main(%root: !transform.any_op) {
  %mm = transform.structured.match ops{["linalg.matmul"]} in %root : (!transform.any_op) -> !transform.any_op
  // expected-error@+1 {{transform.match.structured.elemental_bitwidth needs a handle to one value}}
  %w = transform.match.structured.elemental_bitwidth %mm : (!transform.any_op) -> !transform.param<i64>
  transform.yield
}

// -----

// Dimensions of a contraction.
func.func @f(%A: tensor<8x8xf32>, %C: tensor<8x8xf32>) -> tensor<8x8xf32> {
  // expected-note@+1 {{payload op}}
  %D = linalg.add ins(%A, %A : tensor<8x8xf32>, tensor<8x8xf32>) outs(%C : tensor<8x8xf32>) -> tensor<8x8xf32>
  return %D : tensor<8x8xf32>
}
transform.named_sequence @__transform_main(%root: !transform.any_op) {
  %sum = transform.structured.match ops{["linalg.add"]} in %root : (!transform.any_op) -> !transform.any_op
  // expected-error@+1 {{contraction: no dimension is summed}}
  %b, %m, %n, %k = transform.match.structured.classify_contraction_dims %sum : (!transform.any_op) -> (!transform.param<i64>, !transform.param<i64>, !transform.param<i64>, !transform.param<i64>)
  transform.yield
}

// -----

// A loop that is no forall.
func.func @f(%A: tensor<8x8xf32>, %B: tensor<8x8xf32>, %C: tensor<8x8xf32>) -> tensor<8x8xf32> {
  // expected-note@+1 {{payload op}}
  %D = linalg.matmul ins(%A, %B : tensor<8x8xf32>, tensor<8x8xf32>) outs(%C : tensor<8x8xf32>) -> tensor<8x8xf32>
  return %D : tensor<8x8xf32>
}
transform.named_sequence @__transform_main(%root: !transform.any_op) {
  %mm = transform.structured.match ops{["linalg.matmul"]} in %root : (!transform.any_op) -> !transform.any_op
  %t, %l = transform.structured.tile_using_for %mm tile_sizes [4] : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
  // expected-error@+1 {{transform.loop.forall_to_for on scf.for: expected scf.forall operation target}}
  %i = transform.loop.forall_to_for %l : (!transform.any_op) -> !transform.any_op
  transform.yield
}
