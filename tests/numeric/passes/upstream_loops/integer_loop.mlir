// Loops that count by i32.
func.func @integer_loop(%A: memref<12xf32>, %B: memref<12xf32>) {
  %c0 = arith.constant 0 : i32
  %c12 = arith.constant 12 : i32
  %c3 = arith.constant 3 : i32
  scf.for %i = %c0 to %c12 step %c3 : i32 {
    %w = arith.sitofp %i : i32 to f32
    %at = arith.index_cast %i : i32 to index
    %a = memref.load %A[%at] : memref<12xf32>
    %p = arith.mulf %a, %w : f32
    memref.store %p, %B[%at] : memref<12xf32>
    memref.store %w, %A[%at] : memref<12xf32>
  }
  return
}
