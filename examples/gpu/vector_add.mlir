// C = A + B for vectors of any length: 256 elements a thread block, each thread adds one.
//
//   weft-opt examples/gpu/vector_add.mlir -p 'apply-schedule,lower-tir-to-low{target=cuda}'

func.func @main(%A: memref<?xf32>, %B: memref<?xf32>, %C: memref<?xf32>) {
  %c0 = arith.constant 0 : index
  %n = memref.dim %A, %c0 : memref<?xf32>
  tir.assume_shape %B[%n] : memref<?xf32>
  tir.assume_shape %C[%n] : memref<?xf32>
  tir.for %i in %n {
    tir.block "C" iters(%vi: spatial<%n>) = [%i] {
      %a = memref.load %A[%vi] : memref<?xf32>
      %b = memref.load %B[%vi] : memref<?xf32>
      %c = arith.addf %a, %b : f32
      memref.store %c, %C[%vi] : memref<?xf32>
    }
  }
  func.return
}

sched.func @threads {
  %c = sched.get_block "C" in @main : block
  %i = sched.get_loops %c : loop
  %i0, %i1 = sched.split %i {factors = [0, 256]} : loop, loop
  sched.bind %i0 {thread_axis = "blockIdx.x"}
  sched.bind %i1 {thread_axis = "threadIdx.x"}
}
