func.func @scf_forall(%A: memref<24x10xf32>, %B: memref<24x10xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %c10 = arith.constant 10 : index
  scf.forall (%t) = (0) to (24) step (4) {
    scf.for %i = %c0 to %c4 step %c1 {
      scf.for %j = %c0 to %c10 step %c1 {
        %r = affine.apply affine_map<(d0, d1) -> (d0 + d1)>(%t, %i)
        %a = memref.load %A[%r, %j] : memref<24x10xf32>
        %s = arith.addf %a, %a : f32
        memref.store %s, %B[%r, %j] : memref<24x10xf32>
      }
    }
  }
  return
}
