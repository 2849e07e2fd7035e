func.func @scf_parallel(%A: memref<?x?xf32>, %B: memref<?x?xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %m = memref.dim %A, %c0 : memref<?x?xf32>
  %n = memref.dim %A, %c1 : memref<?x?xf32>
  scf.parallel (%i, %j) = (%c0, %c0) to (%m, %n) step (%c1, %c1) {
    %a = memref.load %A[%i, %j] : memref<?x?xf32>
    %s = arith.mulf %a, %a : f32
    memref.store %s, %B[%i, %j] : memref<?x?xf32>
    scf.reduce
  }
  return
}
