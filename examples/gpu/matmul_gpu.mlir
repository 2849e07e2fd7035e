// C = A * B, each thread block computes a tile of C. Per step of 16 along k it fetches a stripe of A and of B into
// shared memory, together and four elements at a time; each thread accumulates 8 x 8 elements in registers.
//
//   weft-opt examples/gpu/matmul_gpu.mlir -p 'apply-schedule,lower-tir-to-low{target=cuda}'

func.func @main(%A: memref<1024x1024xf32>, %B: memref<1024x1024xf32>, %C: memref<1024x1024xf32>) {
  %zero = arith.constant 0.0 : f32
  tir.for %i in 1024 { tir.for %j in 1024 { tir.for %k in 1024 {
    tir.block "C" iters(%vi: spatial<1024>, %vj: spatial<1024>, %vk: reduce<1024>) = [%i, %j, %k] {
      tir.init { memref.store %zero, %C[%vi, %vj] : memref<1024x1024xf32> }
      %c = memref.load %C[%vi, %vj] : memref<1024x1024xf32>
      %a = memref.load %A[%vi, %vk] : memref<1024x1024xf32>
      %b = memref.load %B[%vk, %vj] : memref<1024x1024xf32>
      %p = arith.mulf %a, %b : f32
      %s = arith.addf %c, %p : f32
      memref.store %s, %C[%vi, %vj] : memref<1024x1024xf32>
    }
  } } }
  func.return
}

sched.func @shared {
  %c = sched.get_block "C" in @main : block
  %w = sched.cache_write %c {index = 0, scope = "local"} : block
  %i, %j, %k = sched.get_loops %c : loop, loop, loop
  %i0, %i1, %i2 = sched.split %i {factors = [0, 16, 8]} : loop, loop, loop
  %j0, %j1, %j2 = sched.split %j {factors = [0, 16, 8]} : loop, loop, loop
  %k0, %k1 = sched.split %k {factors = [0, 16]} : loop, loop
  sched.reorder %i0, %j0, %i1, %j1, %k0, %k1, %i2, %j2
  sched.reverse_compute_at %w, %j1
  sched.bind %i0 {thread_axis = "blockIdx.y"}
  sched.bind %j0 {thread_axis = "blockIdx.x"}
  %t = sched.fuse %i1, %j1 : loop
  sched.bind %t {thread_axis = "threadIdx.x"}
  %a = sched.cache_read %c {index = 0, scope = "shared"} : block
  sched.compute_at %a, %k0
  %a0, %a1, %a2, %a3, %ay, %ax = sched.get_loops %a : loop, loop, loop, loop, loop, loop
  %af = sched.fuse %ay, %ax : loop
  %ar, %at, %av = sched.split %af {factors = [0, 256, 4]} : loop, loop, loop
  sched.vectorize %av
  sched.bind %at {thread_axis = "threadIdx.x"}
  %b = sched.cache_read %c {index = 1, scope = "shared"} : block
  sched.compute_at %b, %k0
  %b0, %b1, %b2, %b3, %by, %bx = sched.get_loops %b : loop, loop, loop, loop, loop, loop
  %bf = sched.fuse %by, %bx : loop
  %br, %bt, %bv = sched.split %bf {factors = [0, 256, 4]} : loop, loop, loop
  sched.vectorize %bv
  sched.bind %bt {thread_axis = "threadIdx.x"}
  sched.unroll %k1
  sched.unroll %i2
  sched.unroll %j2
  %init = sched.decompose_reduction %c, %k0 : block
}
