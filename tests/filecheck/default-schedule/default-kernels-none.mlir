// RUN: weft-opt %s -p 'default-schedule{target=opencl only_trace=true}' | filecheck %s
// RUN: not weft-opt %s -p 'default-schedule{target=opencl},lower-tir-to-low{target=opencl}' 2>&1 | filecheck %s --check-prefix=UNBOUND

// UNBOUND: error: loop %[[I:\w+]] of block "P" is bound to no thread axis
// Each result needs the one before: nothing is independent, and nothing is guessed.
// CHECK-LABEL: func.func @prefix(
// CHECK-NOT: sched.func
func.func @prefix(%A: memref<64xf32>) {
  tir.for %i in 63 {
    tir.block "P" iters(%vi: spatial<63>) = [%i] {
      %next = affine.apply affine_map<(d0) -> (d0 + 1)>(%vi)
      %a = memref.load %A[%vi] : memref<64xf32>
      %b = memref.load %A[%next] : memref<64xf32>
      %c = arith.addf %a, %b : f32
      memref.store %c, %A[%next] : memref<64xf32>
    }
  }
  func.return
}
