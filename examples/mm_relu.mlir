// Matrix multiplication followed by ReLU over 128x128 matrices, and the schedule that makes it fast.
//
//   weft-opt examples/mm_relu.mlir                                   parse, verify, print
//   weft-opt examples/mm_relu.mlir -p apply-schedule                 run the schedule, show the new loops
//   weft run examples/mm_relu.mlir --func mm_relu --check --time     compile, run, compare with the interpreter, time

func.func @mm_relu(%A: memref<128x128xf32>, %B: memref<128x128xf32>, %C: memref<128x128xf32>) {
  %zero = arith.constant 0.000000e+00 : f32
  %Y = memref.alloc() : memref<128x128xf32>
  tir.for %i in 128 {
    tir.for %j in 128 {
      tir.for %k in 128 {
        tir.block "Y" iters(%vi: spatial<128>, %vj: spatial<128>, %vk: reduce<128>) = [%i, %j, %k] {
          tir.init {
            memref.store %zero, %Y[%vi, %vj] : memref<128x128xf32>
          }
          %a = memref.load %A[%vi, %vk] : memref<128x128xf32>
          %b = memref.load %B[%vk, %vj] : memref<128x128xf32>
          %product = arith.mulf %a, %b : f32
          %y = memref.load %Y[%vi, %vj] : memref<128x128xf32>
          %sum = arith.addf %y, %product : f32
          memref.store %sum, %Y[%vi, %vj] : memref<128x128xf32>
        }
      }
    }
  }
  tir.for %i in 128 {
    tir.for %j in 128 {
      tir.block "C" iters(%vi: spatial<128>, %vj: spatial<128>) = [%i, %j] {
        %y = memref.load %Y[%vi, %vj] : memref<128x128xf32>
        %relu = arith.maximumf %y, %zero : f32
        memref.store %relu, %C[%vi, %vj] : memref<128x128xf32>
      }
    }
  }
  func.return
}

// Tiles of 4x64 results stay in vector registers while k runs; each tile is rectified and written as soon as it is done.
sched.func @schedule {
  %y = sched.get_block "Y" in @mm_relu : block
  %i, %j, %k = sched.get_loops %y : loop, loop, loop
  %i0, %i1 = sched.split %i {factors = [0, 4]} : loop, loop
  %j0, %j1 = sched.split %j {factors = [0, 64]} : loop, loop
  sched.reorder %i0, %j0, %k, %i1, %j1
  %c = sched.get_block "C" in @mm_relu : block
  sched.reverse_compute_at %c, %j0
  %init = sched.decompose_reduction %y, %k : block
  sched.parallel %i0
  sched.unroll %i1
  sched.vectorize %j1
  %ii, %ji, %i1i, %j1i = sched.get_loops %init : loop, loop, loop, loop
  sched.unroll %i1i
  sched.vectorize %j1i
  %ic, %jc, %ax0, %ax1 = sched.get_loops %c : loop, loop, loop, loop
  sched.unroll %ax0
  sched.vectorize %ax1
}
