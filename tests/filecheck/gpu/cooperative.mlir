// RUN: weft-opt %s -p apply-schedule | filecheck %s
// Shared memory is computed for all threads of a block, and its loops may be bound to the same threads again.

// CHECK: tir.for %[[I1:\w+]] in 16 thread_binding<"threadIdx.x"> {
// CHECK-NEXT: tir.for %[[AX00:\w+]] in 2 {
// CHECK-NEXT: tir.for %[[AX01:\w+]] in 16 thread_binding<"threadIdx.x"> {
// CHECK-NEXT: tir.block "A_shared" iters(%[[V0:\w+]]: spatial<66>) = [%[[I0:\w+]] * 16 + %[[AX00]] * 16 + %[[AX01]]] where [%[[AX00]] * 16 + %[[AX01]]] < [18] {
func.func @window(%A: memref<66xf32>, %B: memref<64xf32>) {
  tir.for %i in 64 {
    tir.block "B" iters(%vi: spatial<64>) = [%i] {
      %p = affine.apply affine_map<(d0) -> (d0 + 2)>(%vi)
      %a = memref.load %A[%vi] : memref<66xf32>
      %b = memref.load %A[%p] : memref<66xf32>
      %c = arith.addf %a, %b : f32
      memref.store %c, %B[%vi] : memref<64xf32>
    }
  }
  func.return
}

sched.func @shared {
  %b = sched.get_block "B" in @window : block
  %i = sched.get_loops %b : loop
  %i0, %i1 = sched.split %i {factors = [0, 16]} : loop, loop
  sched.bind %i0 {thread_axis = "blockIdx.x"}
  sched.bind %i1 {thread_axis = "threadIdx.x"}
  %s = sched.cache_read %b {index = 0, scope = "shared"} : block
  sched.compute_at %s, %i1
  %l0, %l1, %ax = sched.get_loops %s : loop, loop, loop
  %ax0, %ax1 = sched.split %ax {factors = [0, 16]} : loop, loop
  sched.bind %ax1 {thread_axis = "threadIdx.x"}
}
