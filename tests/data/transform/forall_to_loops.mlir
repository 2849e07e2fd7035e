// Tiles of two operations at once, then one after the other, and as iterations of scf.parallel.
module attributes {transform.with_named_sequence} {
  func.func @matmul_add(%A: memref<8x8xf32>, %B: memref<8x8xf32>, %C: memref<8x8xf32> {llvm.noalias}, %D: memref<8x8xf32> {llvm.noalias}) {
    linalg.matmul ins(%A, %B : memref<8x8xf32>, memref<8x8xf32>) outs(%C : memref<8x8xf32>)
    linalg.add ins(%C, %A : memref<8x8xf32>, memref<8x8xf32>) outs(%D : memref<8x8xf32>)
    return
  }
  transform.named_sequence @__transform_main(%root: !transform.any_op) {
    %mm = transform.structured.match ops{["linalg.matmul"]} in %root : (!transform.any_op) -> !transform.any_op
    %t, %forall = transform.structured.tile_using_forall %mm tile_sizes [4, 2] : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
    %i, %j = transform.loop.forall_to_for %forall : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
    transform.loop.unroll %j {factor = 2} : !transform.any_op
    %add = transform.structured.match ops{["linalg.add"]} in %root : (!transform.any_op) -> !transform.any_op
    %u, %other = transform.structured.tile_using_forall %add tile_sizes [2] : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
    %p = transform.loop.forall_to_parallel %other : (!transform.any_op) -> !transform.any_op
    transform.annotate %p "tiles" : !transform.any_op
    transform.yield
  }
}
