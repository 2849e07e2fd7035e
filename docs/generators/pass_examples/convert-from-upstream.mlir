func.func @f(%A: tensor<8xf32>) -> tensor<8xf32> {
  %empty = tensor.empty() : tensor<8xf32>
  %B = linalg.exp ins(%A : tensor<8xf32>) outs(%empty : tensor<8xf32>) -> tensor<8xf32>
  return %B : tensor<8xf32>
}
func.func @g(%A: memref<8xf32>) {
  affine.for %i = 1 to 8 {
    %a = affine.load %A[%i - 1] : memref<8xf32>
    affine.store %a, %A[%i] : memref<8xf32>
  }
  return
}
