// RUN: not weft-opt %s -p 'lower-tir-to-low{target=opencl}' 2>&1 | filecheck %s

// CHECK: error: lower-tir-to-low on @memory_kernel: shared memory fits the target
// CHECK-NEXT: a thread block needs 65536 bytes (%S: 65536), target opencl has at most 32768
func.func @memory(%A: memref<16384xf32>, %B: memref<16384xf32>) {
  %S = memref.alloc() : memref<16384xf32, "shared">
  tir.for %b in 1 thread_binding<"blockIdx.x"> {
  tir.for %t in 128 thread_binding<"threadIdx.x"> {
    tir.for %j in 128 {
      tir.block "S" iters(%vi: spatial<16384>) = [%t * 128 + %j] {
        %a = memref.load %A[%vi] : memref<16384xf32>
        memref.store %a, %S[%vi] : memref<16384xf32, "shared">
      }
    }
  }
  tir.for %t in 128 thread_binding<"threadIdx.x"> {
    tir.for %j in 128 {
      tir.block "B" iters(%vi: spatial<16384>) = [%j * 128 + %t] {
        %s = memref.load %S[%vi] : memref<16384xf32, "shared">
        memref.store %s, %B[%vi] : memref<16384xf32>
      }
    }
  }
  }
  func.return
}
