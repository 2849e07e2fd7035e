func.func @main(%x: memref<?x8x?x?xf32>) attributes {tir.function} {
  func.call @negate(%x) : (memref<?x8x?x?xf32>) -> ()
  func.return
}
func.func private @negate(%X: memref<?x8x?x?xf32>) {
  %c0 = arith.constant 0 : index
  %c2 = arith.constant 2 : index
  %c3 = arith.constant 3 : index
  %n = memref.dim %X, %c0 : memref<?x8x?x?xf32>
  %h = memref.dim %X, %c2 : memref<?x8x?x?xf32>
  %w = memref.dim %X, %c3 : memref<?x8x?x?xf32>
  tir.for %i in %n { tir.for %c in 8 { tir.for %j in %h { tir.for %k in %w {
    tir.block "X" iters(%vi: spatial<%n>, %vc: spatial<8>, %vj: spatial<%h>, %vk: spatial<%w>) = [%i, %c, %j, %k] {
      %a = memref.load %X[%vi, %vc, %vj, %vk] : memref<?x8x?x?xf32>
      %negative = arith.negf %a : f32
      memref.store %negative, %X[%vi, %vc, %vj, %vk] : memref<?x8x?x?xf32>
    }
  } } } }
  func.return
}
