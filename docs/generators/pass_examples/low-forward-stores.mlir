func.func @k(%B: memref<8xf32>, %i: index, %x: f32) attributes {low.kernel = #low.kernel<[32, 1, 1], source = "B">} {
  %zero = arith.constant 0.0 : f32
  memref.store %zero, %B[%i] : memref<8xf32>
  %b = memref.load %B[%i] : memref<8xf32>
  %sum = arith.addf %b, %x : f32
  memref.store %sum, %B[%i] : memref<8xf32>
  func.return
}
