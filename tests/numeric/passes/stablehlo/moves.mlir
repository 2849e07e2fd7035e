module @jit_moves attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<4x6xf32>, %arg1: tensor<2x6xf32>) -> (tensor<6x4xf32> {jax.result_info = "result[0]"}, tensor<6x1x4xf32> {jax.result_info = "result[1]"}, tensor<2x3x4xf32> {jax.result_info = "result[2]"}, tensor<4x6xf32> {jax.result_info = "result[3]"}, tensor<4x6xf32> {jax.result_info = "result[4]"}, tensor<10x6xf32> {jax.result_info = "result[5]"}, tensor<4x2x6xf32> {jax.result_info = "result[6]"}, tensor<2x3xf32> {jax.result_info = "result[7]"}, tensor<4xf32> {jax.result_info = "result[8]"}, tensor<4x6x1xf32> {jax.result_info = "result[9]"}, tensor<4x12xf32> {jax.result_info = "result[10]"}, tensor<3x6xf32> {jax.result_info = "result[11]"}, tensor<6xi32> {jax.result_info = "result[12]"}, tensor<5xf32> {jax.result_info = "result[13]"}, tensor<3x3xf32> {jax.result_info = "result[14]"}, tensor<4x6xf32> {jax.result_info = "result[15]"}, tensor<4x6xf32> {jax.result_info = "result[16]"}, tensor<4x6xf32> {jax.result_info = "result[17]"}) {
    %0 = stablehlo.transpose %arg0, dims = [1, 0] : (tensor<4x6xf32>) -> tensor<6x4xf32>
    %1 = stablehlo.broadcast_in_dim %arg0, dims = [1, 2] : (tensor<4x6xf32>) -> tensor<1x4x6xf32>
    %2 = stablehlo.transpose %1, dims = [2, 0, 1] : (tensor<1x4x6xf32>) -> tensor<6x1x4xf32>
    %3 = stablehlo.reshape %arg0 : (tensor<4x6xf32>) -> tensor<2x3x4xf32>
    %4 = stablehlo.reverse %arg0, dims = [0] : tensor<4x6xf32>
    %5 = call @_flip(%arg0) : (tensor<4x6xf32>) -> tensor<4x6xf32>
    %6 = stablehlo.concatenate %arg0, %arg1, %arg0, dim = 0 : (tensor<4x6xf32>, tensor<2x6xf32>, tensor<4x6xf32>) -> tensor<10x6xf32>
    %7 = stablehlo.broadcast_in_dim %arg0, dims = [0, 2] : (tensor<4x6xf32>) -> tensor<4x1x6xf32>
    %8 = stablehlo.broadcast_in_dim %arg0, dims = [0, 2] : (tensor<4x6xf32>) -> tensor<4x1x6xf32>
    %9 = stablehlo.concatenate %7, %8, dim = 1 : (tensor<4x1x6xf32>, tensor<4x1x6xf32>) -> tensor<4x2x6xf32>
    %10 = stablehlo.slice %arg0 [1:3, 0:6:2] : (tensor<4x6xf32>) -> tensor<2x3xf32>
    %11 = stablehlo.slice %arg0 [0:4, 5:6] : (tensor<4x6xf32>) -> tensor<4x1xf32>
    %12 = stablehlo.reshape %11 : (tensor<4x1xf32>) -> tensor<4xf32>
    %13 = stablehlo.broadcast_in_dim %arg0, dims = [0, 1] : (tensor<4x6xf32>) -> tensor<4x6x1xf32>
    %14 = stablehlo.reshape %arg0 : (tensor<4x6xf32>) -> tensor<1x4x1x6xf32>
    %15 = stablehlo.broadcast_in_dim %14, dims = [0, 1, 2, 3] : (tensor<1x4x1x6xf32>) -> tensor<1x4x2x6xf32>
    %16 = stablehlo.reshape %15 : (tensor<1x4x2x6xf32>) -> tensor<4x12xf32>
    %17 = stablehlo.slice %arg0 [0:1, 0:6] : (tensor<4x6xf32>) -> tensor<1x6xf32>
    %18 = stablehlo.reshape %17 : (tensor<1x6xf32>) -> tensor<6xf32>
    %19 = stablehlo.broadcast_in_dim %18, dims = [1] : (tensor<6xf32>) -> tensor<3x6xf32>
    %20 = stablehlo.iota dim = 0 : tensor<6xi32>
    %c = stablehlo.constant dense<2> : tensor<i32>
    %21 = stablehlo.broadcast_in_dim %c, dims = [] : (tensor<i32>) -> tensor<6xi32>
    %22 = stablehlo.multiply %20, %21 : tensor<6xi32>
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %cst_0 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %23 = call @_linspace(%cst, %cst_0) : (tensor<f32>, tensor<f32>) -> tensor<5xf32>
    %24 = stablehlo.iota dim = 0 : tensor<3x3xi32>
    %25 = stablehlo.iota dim = 1 : tensor<3x3xi32>
    %c_1 = stablehlo.constant dense<0> : tensor<i32>
    %26 = stablehlo.broadcast_in_dim %c_1, dims = [] : (tensor<i32>) -> tensor<3x3xi32>
    %27 = stablehlo.add %24, %26 : tensor<3x3xi32>
    %28 = stablehlo.compare EQ, %27, %25, SIGNED : (tensor<3x3xi32>, tensor<3x3xi32>) -> tensor<3x3xi1>
    %29 = stablehlo.convert %28 : (tensor<3x3xi1>) -> tensor<3x3xf32>
    %30 = call @tril(%arg0) : (tensor<4x6xf32>) -> tensor<4x6xf32>
    %31 = stablehlo.broadcast_in_dim %arg0, dims = [1, 2] : (tensor<4x6xf32>) -> tensor<1x4x6xf32>
    %32 = stablehlo.reshape %31 : (tensor<1x4x6xf32>) -> tensor<4x6xf32>
    %33 = call @_roll_static(%arg0) : (tensor<4x6xf32>) -> tensor<4x6xf32>
    return %0, %2, %3, %4, %5, %6, %9, %10, %12, %13, %16, %19, %22, %23, %29, %30, %32, %33 : tensor<6x4xf32>, tensor<6x1x4xf32>, tensor<2x3x4xf32>, tensor<4x6xf32>, tensor<4x6xf32>, tensor<10x6xf32>, tensor<4x2x6xf32>, tensor<2x3xf32>, tensor<4xf32>, tensor<4x6x1xf32>, tensor<4x12xf32>, tensor<3x6xf32>, tensor<6xi32>, tensor<5xf32>, tensor<3x3xf32>, tensor<4x6xf32>, tensor<4x6xf32>, tensor<4x6xf32>
  }
  func.func private @_flip(%arg0: tensor<4x6xf32>) -> tensor<4x6xf32> {
    %0 = stablehlo.reverse %arg0, dims = [0, 1] : tensor<4x6xf32>
    return %0 : tensor<4x6xf32>
  }
  func.func private @_linspace(%arg0: tensor<f32>, %arg1: tensor<f32>) -> tensor<5xf32> {
    %0 = stablehlo.convert %arg0 : tensor<f32>
    %1 = stablehlo.convert %arg1 : tensor<f32>
    %2 = stablehlo.iota dim = 0 : tensor<4xf32>
    %cst = stablehlo.constant dense<4.000000e+00> : tensor<f32>
    %3 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<4xf32>
    %4 = stablehlo.divide %2, %3 : tensor<4xf32>
    %5 = stablehlo.reshape %0 : (tensor<f32>) -> tensor<1xf32>
    %cst_0 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %6 = stablehlo.broadcast_in_dim %cst_0, dims = [] : (tensor<f32>) -> tensor<4xf32>
    %7 = stablehlo.subtract %6, %4 : tensor<4xf32>
    %8 = stablehlo.broadcast_in_dim %5, dims = [0] : (tensor<1xf32>) -> tensor<4xf32>
    %9 = stablehlo.multiply %8, %7 : tensor<4xf32>
    %10 = stablehlo.reshape %1 : (tensor<f32>) -> tensor<1xf32>
    %11 = stablehlo.broadcast_in_dim %10, dims = [0] : (tensor<1xf32>) -> tensor<4xf32>
    %12 = stablehlo.multiply %11, %4 : tensor<4xf32>
    %13 = stablehlo.add %9, %12 : tensor<4xf32>
    %14 = stablehlo.broadcast_in_dim %1, dims = [] : (tensor<f32>) -> tensor<1xf32>
    %15 = stablehlo.concatenate %13, %14, dim = 0 : (tensor<4xf32>, tensor<1xf32>) -> tensor<5xf32>
    return %15 : tensor<5xf32>
  }
  func.func private @tril(%arg0: tensor<4x6xf32>) -> tensor<4x6xf32> {
    %0 = stablehlo.iota dim = 0 : tensor<4x6xi32>
    %c = stablehlo.constant dense<0> : tensor<i32>
    %1 = stablehlo.broadcast_in_dim %c, dims = [] : (tensor<i32>) -> tensor<4x6xi32>
    %2 = stablehlo.add %0, %1 : tensor<4x6xi32>
    %3 = stablehlo.iota dim = 1 : tensor<4x6xi32>
    %4 = stablehlo.compare GE, %2, %3, SIGNED : (tensor<4x6xi32>, tensor<4x6xi32>) -> tensor<4x6xi1>
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %5 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<4x6xf32>
    %6 = stablehlo.select %4, %arg0, %5 : tensor<4x6xi1>, tensor<4x6xf32>
    return %6 : tensor<4x6xf32>
  }
  func.func private @_roll_static(%arg0: tensor<4x6xf32>) -> tensor<4x6xf32> {
    %0 = stablehlo.slice %arg0 [0:4, 4:6] : (tensor<4x6xf32>) -> tensor<4x2xf32>
    %1 = stablehlo.slice %arg0 [0:4, 0:4] : (tensor<4x6xf32>) -> tensor<4x4xf32>
    %2 = stablehlo.concatenate %0, %1, dim = 1 : (tensor<4x2xf32>, tensor<4x4xf32>) -> tensor<4x6xf32>
    return %2 : tensor<4x6xf32>
  }
}
