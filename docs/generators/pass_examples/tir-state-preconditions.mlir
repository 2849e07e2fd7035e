func.func @shift(%A: memref<?xf32>, %B: memref<?xf32>) {
  %c0 = arith.constant 0 : index
  %n = memref.dim %A, %c0 : memref<?xf32>
  %m = memref.dim %B, %c0 : memref<?xf32>
  tir.for %i in %m {
    tir.block "B" iters(%v: spatial<%m>) = [%i] {
      %next = affine.apply affine_map<(d0) -> (d0 + 5)> (%v)
      %a = memref.load %A[%next] : memref<?xf32>
      memref.store %a, %B[%v] : memref<?xf32>
    }
  }
  func.return
}
