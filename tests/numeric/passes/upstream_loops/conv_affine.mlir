func.func @conv_affine(%in: memref<10x10x3xf32>, %w: memref<3x3x3x8xf32>, %out: memref<8x8x8xf32>) {
  %zero = arith.constant 0.0 : f32
  affine.for %y = 0 to 8 {
    affine.for %x = 0 to 8 {
      affine.for %f = 0 to 8 {
        %r = affine.for %dy = 0 to 3 iter_args(%a0 = %zero) -> (f32) {
          %r1 = affine.for %dx = 0 to 3 iter_args(%a1 = %a0) -> (f32) {
            %r2 = affine.for %c = 0 to 3 iter_args(%a2 = %a1) -> (f32) {
              %i = affine.load %in[%y + %dy, %x + %dx, %c] : memref<10x10x3xf32>
              %k = affine.load %w[%dy, %dx, %c, %f] : memref<3x3x3x8xf32>
              %p = arith.mulf %i, %k : f32
              %s = arith.addf %a2, %p : f32
              affine.yield %s : f32
            }
            affine.yield %r2 : f32
          }
          affine.yield %r1 : f32
        }
        affine.store %r, %out[%y, %x, %f] : memref<8x8x8xf32>
      }
    }
  }
  return
}
