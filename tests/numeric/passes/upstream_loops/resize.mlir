func.func @resize(%A: memref<10xf32>, %B: memref<31xf32>) {
  affine.for %i = 0 to 31 {
    %at = affine.apply affine_map<(d0) -> (d0 ceildiv 4)>(%i)
    %in = affine.min affine_map<(d0) -> (d0, 9)>(%at)
    %a = memref.load %A[%in] : memref<10xf32>
    affine.store %a, %B[%i] : memref<31xf32>
  }
  return
}
