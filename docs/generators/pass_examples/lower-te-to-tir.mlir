func.func @sums(%A: tensor<8x16xf32>) -> tensor<8xf32> {
  %B = te.compute "B" (%i) : tensor<8xf32> {
    %b = te.reduce sum (%k in 16) : f32 {
      %a = tensor.extract %A[%i, %k] : tensor<8x16xf32>
      te.yield %a : f32
    }
    te.yield %b : f32
  }
  func.return %B : tensor<8xf32>
}
