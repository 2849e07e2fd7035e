// RUN: weft-opt %s -t c | filecheck %s

// Each of 8 lanes under a mask is a branch. The 14 copies of the inner loop have 112, 5 times as many would be too many.
func.func @masked(%A: memref<560xf32>, %C: memref<8xf32>, %M: memref<8xf32>) attributes {low.params = [
    #low.param<"A", memref<560xf32>, read, []>, #low.param<"C", memref<8xf32>, write, []>, #low.param<"M", memref<8xf32>, read, []>], low.symbols = []} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c5 = arith.constant 5 : index
  %c14 = arith.constant 14 : index
  %zero = arith.constant dense<0.0> : vector<8xf32>
  %m = vector.load %M[%c0] : memref<8xf32>, vector<8xf32>
  %mask = low.cmpf ogt, %m, %zero : vector<8xf32>
  scf.for %i = %c0 to %c5 step %c1 {
    scf.for %j = %c0 to %c14 step %c1 {
      %a = vector.maskedload %A[%j], %mask, %zero : memref<560xf32>, vector<8xi1>, vector<8xf32> into vector<8xf32>
      vector.store %a, %C[%c0] : memref<8xf32>, vector<8xf32>
    } {low.unroll}
  } {low.unroll}
  scf.for %k = %c0 to %c5 step %c1 {
    scf.for %l = %c0 to %c14 step %c1 {
      %a = vector.load %A[%l] : memref<560xf32>, vector<8xf32>
      vector.store %a, %C[%c0] : memref<8xf32>, vector<8xf32>
    } {low.unroll}
  } {low.unroll}
  func.return
}
// CHECK-LABEL: void masked({{.*}} {
// CHECK-NOT:     WEFT_UNROLL
// CHECK:         for (int i = 0; i < 5; ++i) {
// CHECK-NEXT:      WEFT_UNROLL(14)
// CHECK-NEXT:      for (int j = 0; j < 14; ++j) {
// CHECK:         WEFT_UNROLL(5)
// CHECK-NEXT:    for (int k = 0; k < 5; ++k) {
// CHECK-NEXT:      WEFT_UNROLL(14)
