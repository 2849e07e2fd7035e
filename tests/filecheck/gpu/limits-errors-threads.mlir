// RUN: not weft-opt %s -p 'lower-tir-to-low{target=opencl}' 2>&1 | filecheck %s

// CHECK: error: bind on threadIdx.x: the target runs so many threads
// CHECK-NEXT: 128 * 16 = 2048 threads in a block, target opencl allows 1024
func.func @block(%B: memref<2048xf32>) {
  %one = arith.constant 1.0 : f32
  tir.for %y in 16 thread_binding<"threadIdx.y"> {
    tir.for %t in 128 thread_binding<"threadIdx.x"> {
      tir.block "B" iters(%vi: spatial<2048>) = [%y * 128 + %t] { memref.store %one, %B[%vi] : memref<2048xf32> }
    }
  }
  func.return
}
