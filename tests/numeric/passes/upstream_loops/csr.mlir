// A sparse matrix by rows times a vector: bounds that data decide.
func.func @csr(%data: memref<30xf32>, %x: memref<6xf32>, %y: memref<5xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0.0 : f32
  %starts = memref.alloca() : memref<6xindex>
  affine.for %i = 0 to 6 {
    affine.store %i, %starts[%i] : memref<6xindex>
  }
  affine.for %i = 0 to 5 {
    %low = affine.load %starts[%i] : memref<6xindex>
    %next = affine.load %starts[%i + 1] : memref<6xindex>
    %high = arith.addi %next, %low : index
    %r = scf.for %p = %low to %high step %c1 iter_args(%acc = %zero) -> (f32) {
      %d = memref.load %data[%p] : memref<30xf32>
      %v = memref.load %x[%i] : memref<6xf32>
      %m = arith.mulf %d, %v : f32
      %n = arith.addf %acc, %m : f32
      scf.yield %n : f32
    }
    affine.store %r, %y[%i] : memref<5xf32>
  }
  return
}
