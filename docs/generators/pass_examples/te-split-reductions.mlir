func.func @means(%A: tensor<8x16xf32>) -> tensor<8xf32> {
  %B = te.compute "B" (%i) : tensor<8xf32> {
    %c = arith.constant 6.250000e-02 : f32
    %b = te.reduce sum (%k in 16) : f32 {
      %a = tensor.extract %A[%i, %k] : tensor<8x16xf32>
      te.yield %a : f32
    }
    %m = arith.mulf %b, %c : f32
    te.yield %m : f32
  }
  func.return %B : tensor<8xf32>
}
