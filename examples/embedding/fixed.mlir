// A type of acme in buffers of weft: `acme-fixed-to-integers` makes it an integer before weft lowers the function.
func.func @axpy(%X: memref<256x!acme.fixed<8>>, %A: memref<1x!acme.fixed<8>>, %Y: memref<256x!acme.fixed<8>>) {
  %c0 = arith.constant 0 : index
  tir.for %i in 256 {
    tir.block "Y" iters(%vi: spatial<256>) = [%i] {
      %a = memref.load %A[%c0] : memref<1x!acme.fixed<8>>
      %x = memref.load %X[%vi] : memref<256x!acme.fixed<8>>
      %y = memref.load %Y[%vi] : memref<256x!acme.fixed<8>>
      %p = acme.mul %a, %x : !acme.fixed<8>
      %s = acme.add %p, %y : !acme.fixed<8>
      memref.store %s, %Y[%vi] : memref<256x!acme.fixed<8>>
    }
  }
  func.return
}
sched.func @schedule {
  %y = sched.get_block "Y" in @axpy : block
  %i = sched.get_loops %y : loop
  %i0, %i1 = sched.split %i {factors = [0, 16]} : loop, loop
  sched.parallel %i0
  sched.vectorize %i1
}
