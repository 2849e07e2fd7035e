// Operations of acme in blocks of weft, with a schedule around them.
func.func @activate(%X: memref<64x32xf32>, %K: memref<64x32xi32>, %T: memref<16xf32>, %Y: memref<64x32xf32>) {
  %S = memref.alloc() : memref<64x32xf32>
  tir.for %i in 64 {
    tir.for %j in 32 {
      tir.block "S" iters(%vi: spatial<64>, %vj: spatial<32>) = [%i, %j] {
        %x = memref.load %X[%vi, %vj] : memref<64x32xf32>
        %c = acme.clip %x to 1.0
        memref.store %c, %S[%vi, %vj] : memref<64x32xf32>
      }
    }
  }
  tir.for %i in 64 {
    tir.for %j in 32 {
      tir.block "Y" iters(%vi: spatial<64>, %vj: spatial<32>) = [%i, %j] {
        %k = memref.load %K[%vi, %vj] : memref<64x32xi32>
        %t = acme.lookup %T at %k : memref<16xf32>
        %s = memref.load %S[%vi, %vj] : memref<64x32xf32>
        %p = arith.mulf %s, %t : f32
        memref.store %p, %Y[%vi, %vj] : memref<64x32xf32>
      }
    }
  }
  func.return
}
sched.func @schedule {
  %s = sched.get_block "S" in @activate : block
  %y = sched.get_block "Y" in @activate : block
  %i, %j = sched.get_loops %y : loop, loop
  %i0, %i1 = sched.split %i {factors = [0, 4]} : loop, loop
  %j0, %j1 = sched.split %j {factors = [0, 8]} : loop, loop
  sched.reorder %i0, %j0, %i1, %j1
  sched.compute_at %s, %j0
  sched.parallel %i0
  %a, %b, %m, %n = sched.get_loops %s : loop, loop, loop, loop
  sched.vectorize %n
}
