func.func @f(%A: memref<128xf32>, %B: memref<128xf32>) {
  tir.for %i in 128 {
    tir.block "B" iters(%vi: spatial<128>) = [%i] {
      %a = memref.load %A[%vi] : memref<128xf32>
      memref.store %a, %B[%vi] : memref<128xf32>
    }
  }
  func.return
}
sched.func @schedule {
  %b = sched.get_block "B" in @f : block
  %i = sched.get_loops %b : loop
  %i0, %i1 = sched.split %i {factors = [0, 8]} : loop, loop
  sched.vectorize %i1
}
