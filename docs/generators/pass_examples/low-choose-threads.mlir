// options: target="llvm -mcpu=haswell"
func.func @f(%A: memref<?xf32>, %x: f32, %m: index, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  low.parallel_for %i in %m {
    scf.for %j = %c0 to %n step %c1 {
      %at = arith.muli %i, %n : index
      %p = arith.addi %at, %j : index
      memref.store %x, %A[%p] : memref<?xf32>
    }
  }
  func.return
}
