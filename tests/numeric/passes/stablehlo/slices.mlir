module @jit_slices attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<6x7xf32>, %arg1: tensor<2x3xf32>, %arg2: tensor<i32>) -> (tensor<2x3xf32> {jax.result_info = "result[0]"}, tensor<3x3xf32> {jax.result_info = "result[1]"}, tensor<6x7xf32> {jax.result_info = "result[2]"}, tensor<6x7xf32> {jax.result_info = "result[3]"}, tensor<6x1xf32> {jax.result_info = "result[4]"}) {
    %c = stablehlo.constant dense<0> : tensor<i32>
    %0 = stablehlo.compare LT, %arg2, %c, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    %c_0 = stablehlo.constant dense<6> : tensor<i32>
    %1 = stablehlo.add %arg2, %c_0 : tensor<i32>
    %2 = stablehlo.select %0, %1, %arg2 : tensor<i1>, tensor<i32>
    %c_1 = stablehlo.constant dense<2> : tensor<i32>
    %3 = stablehlo.dynamic_slice %arg0, %2, %c_1, sizes = [2, 3] : (tensor<6x7xf32>, tensor<i32>, tensor<i32>) -> tensor<2x3xf32>
    %c_2 = stablehlo.constant dense<100> : tensor<i32>
    %4 = stablehlo.add %arg2, %c_2 : tensor<i32>
    %5 = stablehlo.negate %arg2 : tensor<i32>
    %c_3 = stablehlo.constant dense<0> : tensor<i32>
    %6 = stablehlo.compare LT, %4, %c_3, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    %c_4 = stablehlo.constant dense<6> : tensor<i32>
    %7 = stablehlo.add %4, %c_4 : tensor<i32>
    %8 = stablehlo.select %6, %7, %4 : tensor<i1>, tensor<i32>
    %c_5 = stablehlo.constant dense<0> : tensor<i32>
    %9 = stablehlo.compare LT, %5, %c_5, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    %c_6 = stablehlo.constant dense<7> : tensor<i32>
    %10 = stablehlo.add %5, %c_6 : tensor<i32>
    %11 = stablehlo.select %9, %10, %5 : tensor<i1>, tensor<i32>
    %12 = stablehlo.dynamic_slice %arg0, %8, %11, sizes = [3, 3] : (tensor<6x7xf32>, tensor<i32>, tensor<i32>) -> tensor<3x3xf32>
    %c_7 = stablehlo.constant dense<0> : tensor<i32>
    %13 = stablehlo.compare LT, %arg2, %c_7, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    %c_8 = stablehlo.constant dense<6> : tensor<i32>
    %14 = stablehlo.add %arg2, %c_8 : tensor<i32>
    %15 = stablehlo.select %13, %14, %arg2 : tensor<i1>, tensor<i32>
    %c_9 = stablehlo.constant dense<0> : tensor<i32>
    %16 = stablehlo.compare LT, %arg2, %c_9, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    %c_10 = stablehlo.constant dense<7> : tensor<i32>
    %17 = stablehlo.add %arg2, %c_10 : tensor<i32>
    %18 = stablehlo.select %16, %17, %arg2 : tensor<i1>, tensor<i32>
    %19 = stablehlo.dynamic_update_slice %arg0, %arg1, %15, %18 : (tensor<6x7xf32>, tensor<2x3xf32>, tensor<i32>, tensor<i32>) -> tensor<6x7xf32>
    %c_11 = stablehlo.constant dense<100> : tensor<i32>
    %20 = stablehlo.add %arg2, %c_11 : tensor<i32>
    %c_12 = stablehlo.constant dense<0> : tensor<i32>
    %21 = stablehlo.compare LT, %20, %c_12, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    %c_13 = stablehlo.constant dense<6> : tensor<i32>
    %22 = stablehlo.add %20, %c_13 : tensor<i32>
    %23 = stablehlo.select %21, %22, %20 : tensor<i1>, tensor<i32>
    %c_14 = stablehlo.constant dense<0> : tensor<i32>
    %24 = stablehlo.dynamic_update_slice %arg0, %arg1, %23, %c_14 : (tensor<6x7xf32>, tensor<2x3xf32>, tensor<i32>, tensor<i32>) -> tensor<6x7xf32>
    %25 = call @dynamic_index_in_dim(%arg0, %arg2) : (tensor<6x7xf32>, tensor<i32>) -> tensor<6x1xf32>
    return %3, %12, %19, %24, %25 : tensor<2x3xf32>, tensor<3x3xf32>, tensor<6x7xf32>, tensor<6x7xf32>, tensor<6x1xf32>
  }
  func.func private @dynamic_index_in_dim(%arg0: tensor<6x7xf32>, %arg1: tensor<i32>) -> tensor<6x1xf32> {
    %c = stablehlo.constant dense<0> : tensor<i32>
    %0 = stablehlo.compare LT, %arg1, %c, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    %c_0 = stablehlo.constant dense<7> : tensor<i32>
    %1 = stablehlo.add %arg1, %c_0 : tensor<i32>
    %2 = stablehlo.select %0, %1, %arg1 : tensor<i1>, tensor<i32>
    %c_1 = stablehlo.constant dense<0> : tensor<i32>
    %3 = stablehlo.dynamic_slice %arg0, %c_1, %2, sizes = [6, 1] : (tensor<6x7xf32>, tensor<i32>, tensor<i32>) -> tensor<6x1xf32>
    return %3 : tensor<6x1xf32>
  }
}
