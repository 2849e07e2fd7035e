func.func public @main(%x: tensor<4x8xf32>, %w: tensor<8x4xf32>) -> (tensor<4x4xf32> {jax.result_info = "result"}) {
  %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<4x8xf32>, tensor<8x4xf32>) -> tensor<4x4xf32>
  %1 = call @relu(%0) : (tensor<4x4xf32>) -> tensor<4x4xf32>
  return %1 : tensor<4x4xf32>
}
func.func private @relu(%arg0: tensor<4x4xf32>) -> tensor<4x4xf32> {
  %cst = stablehlo.constant dense<0.0> : tensor<f32>
  %0 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<4x4xf32>
  %1 = stablehlo.maximum %arg0, %0 : tensor<4x4xf32>
  return %1 : tensor<4x4xf32>
}
