// RUN: not weft-opt %s -p apply-schedule 2>&1 | filecheck %s

// A buffer of another scope belongs to the iteration: the inner loop would leave out what the threads do not share.
// CHECK: bind(%[[AX0:\w+]], 'threadIdx.x'): requirement 4, an axis is bound once
func.func @local(%A: memref<66xf32>, %B: memref<64xf32>) {
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
  %b = sched.get_block "B" in @local : block
  %i = sched.get_loops %b : loop
  sched.bind %i {thread_axis = "threadIdx.x"}
  %s = sched.cache_read %b {index = 0, scope = "local"} : block
  sched.compute_at %s, %i
  %l0, %ax = sched.get_loops %s : loop, loop
  sched.bind %ax {thread_axis = "threadIdx.x"}
}
