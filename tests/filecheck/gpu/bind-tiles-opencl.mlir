// RUN: not weft-opt %s --split-input-file -p 'tir-bind-threads{target=opencl}' 2>&1 | filecheck %s

// CHECK: low.tile_load needs wmma f16, which target opencl does not have: it has no tensor cores
func.func @f(%S: memref<32x32xf16, "shared">) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %A = memref.alloc() : memref<32x32xf16, "wmma.matrix_a">
  tir.for %x in 1 thread_binding<"blockIdx.x"> {
    tir.block "load" iters(%v: spatial<1>) = [%x] {
      %p = low.access_ptr %S[%c0, %c0] sizes [16, 16] read : memref<32x32xf16, "shared">
      %a = low.access_ptr %A[%c0, %c0] sizes [16, 16] write : memref<32x32xf16, "wmma.matrix_a">
      low.tile_load <wmma, a, row, [16, 16, 16], f16> %p, %c0 to %a, %c0
    }
  }
  func.return
}
