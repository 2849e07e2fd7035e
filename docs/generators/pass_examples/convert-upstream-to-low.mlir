func.func @twice(%A: memref<4x8xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  scf.parallel (%i) = (%c0) to (%c4) step (%c1) {
    %v = vector.load %A[%i, %c0] : memref<4x8xf32>, vector<8xf32>
    %w = arith.addf %v, %v : vector<8xf32>
    vector.store %w, %A[%i, %c0] : memref<4x8xf32>, vector<8xf32>
    scf.reduce
  }
  return
}
