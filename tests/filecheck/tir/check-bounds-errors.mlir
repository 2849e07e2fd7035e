// RUN: not weft-opt %s -p 'lower-tir-to-low{target=cuda bounds=true}' 2>&1 | filecheck %s --check-prefix=TARGET
// RUN: not weft-opt %s -p tir-check-bounds 2>&1 | filecheck %s

// TARGET: accesses are checked at run time on targets llvm and c, not on 'cuda'
// CHECK: check-bounds-errors.mlir:13:{{[0-9]+}}: error: low.access_ptr takes an index of A that cannot be checked: it is not proved to stay inside

func.func private @fill(!ptr_xdsl.ptr)
func.func @tile(%A: memref<64xf32>, %I: memref<1xindex>) {
  %c0 = arith.constant 0 : index
  tir.block "B" iters() = [] {
    %p = memref.load %I[%c0] : memref<1xindex>
    // The function may write any element of the box.
    %t = low.access_ptr %A[%p] sizes [4] write : memref<64xf32>
    func.call @fill(%t) : (!ptr_xdsl.ptr) -> ()
  }
  func.return
}
