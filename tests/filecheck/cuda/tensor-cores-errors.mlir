// RUN: not weft-opt %s -t cuda 2>&1 | filecheck %s

// CHECK: low.ldmatrix: in %S tiles start at multiples of 4 elements, as far as is known, and they must be of 8 (16 bytes): see storage_align
func.func @k() attributes {low.kernel = #low.kernel<[32, 1, 1], source = "C">} {
  %c0 = arith.constant 0 : index
  %c4 = arith.constant 4 : index
  %S = memref.alloca() : memref<1024xf16, "shared">
  %A = memref.alloca() : memref<16xf16, "local">
  %t = low.thread_id "threadIdx.x" extent 32 : index
  %row = arith.muli %t, %c4 : index
  %s = low.access_ptr %S[%row] read : memref<1024xf16, "shared">
  %a = low.access_ptr %A[%c0] write : memref<16xf16, "local">
  low.ldmatrix %s to %a {count = 4, transposed = false, element = f16}
  func.return
}
