// Each element is the sum of three neighbours. A thread block fetches the part of A that it needs into shared
// memory, together: the loop that fills it is bound to the threads once more.
//
//   weft-opt examples/gpu/window_sum.mlir -p 'apply-schedule,lower-tir-to-low{target=cuda}'

func.func @main(%A: memref<1026xf32>, %B: memref<1024xf32>) {
  tir.for %i in 1024 {
    tir.block "B" iters(%vi: spatial<1024>) = [%i] {
      %p1 = affine.apply affine_map<(d0) -> (d0 + 1)>(%vi)
      %p2 = affine.apply affine_map<(d0) -> (d0 + 2)>(%vi)
      %a = memref.load %A[%vi] : memref<1026xf32>
      %b = memref.load %A[%p1] : memref<1026xf32>
      %c = memref.load %A[%p2] : memref<1026xf32>
      %d = arith.addf %a, %b : f32
      %e = arith.addf %d, %c : f32
      memref.store %e, %B[%vi] : memref<1024xf32>
    }
  }
  func.return
}

sched.func @shared {
  %b = sched.get_block "B" in @main : block
  %i = sched.get_loops %b : loop
  %i0, %i1 = sched.split %i {factors = [0, 128]} : loop, loop
  sched.bind %i0 {thread_axis = "blockIdx.x"}
  sched.bind %i1 {thread_axis = "threadIdx.x"}
  %s = sched.cache_read %b {index = 0, scope = "shared"} : block
  sched.compute_at %s, %i1
  %l0, %l1, %ax = sched.get_loops %s : loop, loop, loop
  %ax0, %ax1 = sched.split %ax {factors = [0, 128]} : loop, loop
  sched.bind %ax1 {thread_axis = "threadIdx.x"}
}
