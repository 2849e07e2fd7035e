func.func @f(%A: memref<1000xf32>, %x: f32) attributes {tir.threads_in_step} {
  %c1000 = arith.constant 1000 : index
  tir.for %b in 16 thread_binding<"blockIdx.x"> {
    tir.for %t in 64 thread_binding<"threadIdx.x"> {
      %p = affine.apply affine_map<(d0, d1) -> (d0 * 64 + d1)> (%b, %t)
      %inside = arith.cmpi slt, %p, %c1000 : index
      scf.if %inside {
        memref.store %x, %A[%p] : memref<1000xf32>
      }
    }
  }
  func.return
}
