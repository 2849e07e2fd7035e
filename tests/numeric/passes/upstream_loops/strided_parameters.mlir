func.func @strided_parameters(%A: memref<?x?xf32, strided<[?, 1], offset: ?>>, %B: memref<?x?xf32, strided<[?, ?], offset: ?>>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %m = memref.dim %A, %c0 : memref<?x?xf32, strided<[?, 1], offset: ?>>
  %n = memref.dim %A, %c1 : memref<?x?xf32, strided<[?, 1], offset: ?>>
  affine.for %i = 0 to %m {
    affine.for %j = 0 to %n {
      %a = affine.load %A[%i, %j] : memref<?x?xf32, strided<[?, 1], offset: ?>>
      %e = math.absf %a : f32
      affine.store %e, %B[%i, %j] : memref<?x?xf32, strided<[?, ?], offset: ?>>
    }
  }
  return
}
