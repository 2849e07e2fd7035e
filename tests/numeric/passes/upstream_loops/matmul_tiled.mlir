// As mlir-opt --affine-loop-tile="tile-sizes=8,8,8" prints a product whose extents are no multiples of the tiles.
#lb = affine_map<(d0) -> (d0)>
#ub12 = affine_map<(d0) -> (d0 + 8, 12)>
#ub20 = affine_map<(d0) -> (d0 + 8, 20)>
#ub18 = affine_map<(d0) -> (d0 + 8, 18)>
func.func @matmul_tiled(%A: memref<12x18xf32>, %B: memref<18x20xf32>, %C: memref<12x20xf32>) {
  affine.for %ii = 0 to 12 step 8 {
    affine.for %jj = 0 to 20 step 8 {
      affine.for %kk = 0 to 18 step 8 {
        affine.for %i = #lb(%ii) to min #ub12(%ii) {
          affine.for %j = #lb(%jj) to min #ub20(%jj) {
            affine.for %k = #lb(%kk) to min #ub18(%kk) {
              %a = affine.load %A[%i, %k] : memref<12x18xf32>
              %b = affine.load %B[%k, %j] : memref<18x20xf32>
              %p = arith.mulf %a, %b : f32
              %c = affine.load %C[%i, %j] : memref<12x20xf32>
              %s = arith.addf %c, %p : f32
              affine.store %s, %C[%i, %j] : memref<12x20xf32>
            }
          }
        }
      }
    }
  }
  return
}
