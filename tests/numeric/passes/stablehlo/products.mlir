module @jit_products attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<2x3x4xf32>, %arg1: tensor<2x3x4xf32>, %arg2: tensor<4x3x2xf32>, %arg3: tensor<3x5xf32>, %arg4: tensor<5xf32>) -> (tensor<2x3x3xf32> {jax.result_info = "result[0]"}, tensor<3xf32> {jax.result_info = "result[1]"}, tensor<3x3x2xf32> {jax.result_info = "result[2]"}, tensor<2x2xf32> {jax.result_info = "result[3]"}, tensor<3xf32> {jax.result_info = "result[4]"}, tensor<f32> {jax.result_info = "result[5]"}, tensor<5x5xf32> {jax.result_info = "result[6]"}, tensor<2x3xf32> {jax.result_info = "result[7]"}) {
    %0 = stablehlo.dot_general %arg0, %arg1, batching_dims = [0] x [0], contracting_dims = [2] x [2], precision = [DEFAULT, DEFAULT] : (tensor<2x3x4xf32>, tensor<2x3x4xf32>) -> tensor<2x3x3xf32>
    %1 = stablehlo.dot_general %arg0, %arg1, batching_dims = [1] x [1], contracting_dims = [0, 2] x [0, 2], precision = [DEFAULT, DEFAULT] : (tensor<2x3x4xf32>, tensor<2x3x4xf32>) -> tensor<3xf32>
    %2 = stablehlo.dot_general %arg1, %arg0, batching_dims = [0] x [0], contracting_dims = [2] x [2], precision = [DEFAULT, DEFAULT] : (tensor<2x3x4xf32>, tensor<2x3x4xf32>) -> tensor<2x3x3xf32>
    %3 = stablehlo.transpose %2, dims = [1, 2, 0] : (tensor<2x3x3xf32>) -> tensor<3x3x2xf32>
    %4 = stablehlo.dot_general %arg0, %arg2, contracting_dims = [1, 2] x [1, 0], precision = [DEFAULT, DEFAULT] : (tensor<2x3x4xf32>, tensor<4x3x2xf32>) -> tensor<2x2xf32>
    %5 = stablehlo.dot_general %arg3, %arg4, contracting_dims = [1] x [0], precision = [DEFAULT, DEFAULT] : (tensor<3x5xf32>, tensor<5xf32>) -> tensor<3xf32>
    %6 = stablehlo.dot_general %arg4, %arg4, contracting_dims = [0] x [0], precision = [DEFAULT, DEFAULT] : (tensor<5xf32>, tensor<5xf32>) -> tensor<f32>
    %7 = stablehlo.broadcast_in_dim %arg4, dims = [0] : (tensor<5xf32>) -> tensor<5x1xf32>
    %8 = stablehlo.broadcast_in_dim %arg4, dims = [1] : (tensor<5xf32>) -> tensor<1x5xf32>
    %9 = stablehlo.broadcast_in_dim %7, dims = [0, 1] : (tensor<5x1xf32>) -> tensor<5x5xf32>
    %10 = stablehlo.broadcast_in_dim %8, dims = [0, 1] : (tensor<1x5xf32>) -> tensor<5x5xf32>
    %11 = stablehlo.multiply %9, %10 : tensor<5x5xf32>
    %12 = stablehlo.dot_general %arg0, %arg1, batching_dims = [0, 1] x [0, 1], contracting_dims = [2] x [2], precision = [DEFAULT, DEFAULT] : (tensor<2x3x4xf32>, tensor<2x3x4xf32>) -> tensor<2x3xf32>
    return %0, %1, %3, %4, %5, %6, %11, %12 : tensor<2x3x3xf32>, tensor<3xf32>, tensor<3x3x2xf32>, tensor<2x2xf32>, tensor<3xf32>, tensor<f32>, tensor<5x5xf32>, tensor<2x3xf32>
  }
}
