// Rows that an array of indices names, and counts of these: subscripts that data decide.
func.func @gather(%table: memref<8x6xf32>, %at: memref<10xi32>, %out: memref<10x6xf32>, %count: memref<8xi32>) {
  %c7 = arith.constant 7 : i32
  %one = arith.constant 1 : i32
  affine.for %i = 0 to 10 {
    %raw = affine.load %at[%i] : memref<10xi32>
    %low = arith.andi %raw, %c7 : i32
    %row = arith.index_cast %low : i32 to index
    affine.for %j = 0 to 6 {
      %v = memref.load %table[%row, %j] : memref<8x6xf32>
      affine.store %v, %out[%i, %j] : memref<10x6xf32>
    }
    %old = memref.load %count[%row] : memref<8xi32>
    %new = arith.addi %old, %one : i32
    memref.store %new, %count[%row] : memref<8xi32>
  }
  return
}
