// RUN: not weft-opt %s -p 'tir-outline-kernels{target=opencl}' 2>&1 | filecheck %s

// CHECK: error: lower-tir-to-low on @f_kernel: shared memory fits the target
// CHECK-NEXT: a thread block needs 40960 bytes (%S: 32768, %T: 8192), target opencl has at most 32768
func.func @f(%A: memref<8xf32>)
    attributes {tir.threads_in_step, low.params = [#low.param<"A", memref<8xf32>, readwrite, []>], low.symbols = []} {
  tir.for %b in 1 thread_binding<"blockIdx.x"> attributes {tir.source = "S"} {
    tir.for %t in 8 thread_binding<"threadIdx.x"> {
      %S = memref.alloca() {alignment = 16 : i64} : memref<8192xf32, "shared">
      %T = memref.alloca() {alignment = 16 : i64} : memref<1024xf64, "shared">
      %a = memref.load %A[%t] : memref<8xf32>
      memref.store %a, %S[%t] : memref<8192xf32, "shared">
    }
  }
  func.return
}
