// RUN: not weft-opt %s -p 'tir-lower-thread-reductions{target=cuda}' 2>&1 | filecheck %s

// CHECK: error: block "B" is reduced over threads inside of scf.if, which not all may reach
func.func @condition(%P: memref<8x8xf32>, %B: memref<8xf32>, %some: i1) attributes {tir.threads_in_step} {
  tir.for %i in 8 thread_binding<"blockIdx.x"> attributes {tir.source = "B"} {
    tir.for %t in 8 thread_binding<"threadIdx.x"> {
      scf.if %some {
        tir.block "B" iters(%vi: spatial<8>, %vt: reduce<8>) = [%i, %t] attributes {tir.across_threads = "threadIdx.x"} {
          %0 = memref.load %P[%vi, %vt] : memref<8x8xf32>
          %1 = memref.load %B[%vi] : memref<8xf32>
          %2 = arith.addf %1, %0 : f32
          memref.store %2, %B[%vi] : memref<8xf32>
        }
      }
    }
  }
  func.return
}
