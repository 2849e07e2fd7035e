module @jit_integers attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<4x3xi32>, %arg1: tensor<4x3xi32>, %arg2: tensor<4x3xi1>, %arg3: tensor<4x3xi1>) -> (tensor<4x3xi32> {jax.result_info = "result[0]"}, tensor<4x3xi32> {jax.result_info = "result[1]"}, tensor<4x3xi32> {jax.result_info = "result[2]"}, tensor<4x3xi32> {jax.result_info = "result[3]"}, tensor<4x3xi32> {jax.result_info = "result[4]"}, tensor<4x3xi32> {jax.result_info = "result[5]"}, tensor<4x3xi32> {jax.result_info = "result[6]"}, tensor<4x3xi32> {jax.result_info = "result[7]"}, tensor<4x3xi32> {jax.result_info = "result[8]"}, tensor<4x3xi32> {jax.result_info = "result[9]"}, tensor<4x3xi32> {jax.result_info = "result[10]"}, tensor<4x3xi1> {jax.result_info = "result[11]"}, tensor<4x3xf32> {jax.result_info = "result[12]"}, tensor<4x3xi8> {jax.result_info = "result[13]"}, tensor<4x3xi32> {jax.result_info = "result[14]"}, tensor<4x3xi32> {jax.result_info = "result[15]"}) {
    %c = stablehlo.constant dense<0> : tensor<i32>
    %0 = stablehlo.broadcast_in_dim %c, dims = [] : (tensor<i32>) -> tensor<4x3xi32>
    %1 = stablehlo.compare EQ, %arg1, %0, SIGNED : (tensor<4x3xi32>, tensor<4x3xi32>) -> tensor<4x3xi1>
    %c_0 = stablehlo.constant dense<1> : tensor<i32>
    %2 = call @_where(%1, %c_0, %arg1) : (tensor<4x3xi1>, tensor<i32>, tensor<4x3xi32>) -> tensor<4x3xi32>
    %3 = call @floor_divide(%arg0, %2) : (tensor<4x3xi32>, tensor<4x3xi32>) -> tensor<4x3xi32>
    %c_1 = stablehlo.constant dense<3> : tensor<i32>
    %4 = call @remainder(%arg0, %c_1) : (tensor<4x3xi32>, tensor<i32>) -> tensor<4x3xi32>
    %5 = stablehlo.multiply %arg0, %arg1 : tensor<4x3xi32>
    %6 = stablehlo.subtract %arg0, %arg1 : tensor<4x3xi32>
    %7 = stablehlo.add %5, %6 : tensor<4x3xi32>
    %c_2 = stablehlo.constant dense<3> : tensor<i32>
    %8 = stablehlo.broadcast_in_dim %c_2, dims = [] : (tensor<i32>) -> tensor<4x3xi32>
    %9 = stablehlo.divide %arg0, %8 : tensor<4x3xi32>
    %c_3 = stablehlo.constant dense<3> : tensor<i32>
    %10 = stablehlo.broadcast_in_dim %c_3, dims = [] : (tensor<i32>) -> tensor<4x3xi32>
    %11 = stablehlo.remainder %arg0, %10 : tensor<4x3xi32>
    %c_4 = stablehlo.constant dense<2> : tensor<i32>
    %12 = stablehlo.broadcast_in_dim %c_4, dims = [] : (tensor<i32>) -> tensor<4x3xi32>
    %13 = stablehlo.shift_left %arg0, %12 : tensor<4x3xi32>
    %c_5 = stablehlo.constant dense<1> : tensor<i32>
    %14 = stablehlo.broadcast_in_dim %c_5, dims = [] : (tensor<i32>) -> tensor<4x3xi32>
    %15 = stablehlo.shift_right_arithmetic %arg0, %14 : tensor<4x3xi32>
    %c_6 = stablehlo.constant dense<5> : tensor<i32>
    %16 = stablehlo.broadcast_in_dim %c_6, dims = [] : (tensor<i32>) -> tensor<4x3xi32>
    %17 = stablehlo.xor %arg1, %16 : tensor<4x3xi32>
    %18 = stablehlo.and %15, %17 : tensor<4x3xi32>
    %19 = stablehlo.or %13, %18 : tensor<4x3xi32>
    %c_7 = stablehlo.constant dense<3> : tensor<i32>
    %20 = stablehlo.broadcast_in_dim %c_7, dims = [] : (tensor<i32>) -> tensor<4x3xi32>
    %21 = stablehlo.shift_right_logical %arg0, %20 : tensor<4x3xi32>
    %c_8 = stablehlo.constant dense<30> : tensor<i32>
    %22 = stablehlo.broadcast_in_dim %c_8, dims = [] : (tensor<i32>) -> tensor<4x3xi32>
    %23 = stablehlo.add %arg1, %22 : tensor<4x3xi32>
    %24 = stablehlo.shift_left %arg0, %23 : tensor<4x3xi32>
    %25 = stablehlo.popcnt %arg0 : tensor<4x3xi32>
    %26 = stablehlo.count_leading_zeros %arg0 : tensor<4x3xi32>
    %27 = stablehlo.add %25, %26 : tensor<4x3xi32>
    %28 = stablehlo.not %arg3 : tensor<4x3xi1>
    %29 = stablehlo.and %arg2, %28 : tensor<4x3xi1>
    %30 = stablehlo.compare GT, %arg0, %arg1, SIGNED : (tensor<4x3xi32>, tensor<4x3xi32>) -> tensor<4x3xi1>
    %31 = stablehlo.or %29, %30 : tensor<4x3xi1>
    %32 = stablehlo.negate %arg1 : tensor<4x3xi32>
    %33 = call @_where_0(%31, %arg0, %32) : (tensor<4x3xi1>, tensor<4x3xi32>, tensor<4x3xi32>) -> tensor<4x3xi32>
    %34 = stablehlo.sign %arg0 : tensor<4x3xi32>
    %35 = stablehlo.abs %arg1 : tensor<4x3xi32>
    %36 = stablehlo.add %34, %35 : tensor<4x3xi32>
    %37 = stablehlo.xor %arg2, %arg3 : tensor<4x3xi1>
    %38 = stablehlo.convert %arg0 : (tensor<4x3xi32>) -> tensor<4x3xf32>
    %cst = stablehlo.constant dense<5.000000e-01> : tensor<f32>
    %39 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<4x3xf32>
    %40 = stablehlo.multiply %38, %39 : tensor<4x3xf32>
    %41 = stablehlo.convert %arg0 : (tensor<4x3xi32>) -> tensor<4x3xi8>
    %42 = stablehlo.convert %arg2 : (tensor<4x3xi1>) -> tensor<4x3xi32>
    %c_9 = stablehlo.constant dense<0> : tensor<i32>
    %43 = stablehlo.broadcast_in_dim %c_9, dims = [] : (tensor<i32>) -> tensor<4x3xi32>
    %44 = stablehlo.compare NE, %arg0, %43, SIGNED : (tensor<4x3xi32>, tensor<4x3xi32>) -> tensor<4x3xi1>
    %45 = stablehlo.convert %44 : (tensor<4x3xi1>) -> tensor<4x3xi32>
    %46 = stablehlo.add %42, %45 : tensor<4x3xi32>
    %c_10 = stablehlo.constant dense<-4> : tensor<i32>
    %c_11 = stablehlo.constant dense<4> : tensor<i32>
    %47 = stablehlo.broadcast_in_dim %c_10, dims = [] : (tensor<i32>) -> tensor<4x3xi32>
    %48 = stablehlo.broadcast_in_dim %c_11, dims = [] : (tensor<i32>) -> tensor<4x3xi32>
    %49 = stablehlo.clamp %47, %arg0, %48 : tensor<4x3xi32>
    return %3, %4, %7, %9, %11, %19, %21, %24, %27, %33, %36, %37, %40, %41, %46, %49 : tensor<4x3xi32>, tensor<4x3xi32>, tensor<4x3xi32>, tensor<4x3xi32>, tensor<4x3xi32>, tensor<4x3xi32>, tensor<4x3xi32>, tensor<4x3xi32>, tensor<4x3xi32>, tensor<4x3xi32>, tensor<4x3xi32>, tensor<4x3xi1>, tensor<4x3xf32>, tensor<4x3xi8>, tensor<4x3xi32>, tensor<4x3xi32>
  }
  func.func private @_where(%arg0: tensor<4x3xi1>, %arg1: tensor<i32>, %arg2: tensor<4x3xi32>) -> tensor<4x3xi32> {
    %0 = stablehlo.convert %arg1 : tensor<i32>
    %1 = stablehlo.broadcast_in_dim %0, dims = [] : (tensor<i32>) -> tensor<4x3xi32>
    %2 = stablehlo.select %arg0, %1, %arg2 : tensor<4x3xi1>, tensor<4x3xi32>
    return %2 : tensor<4x3xi32>
  }
  func.func private @floor_divide(%arg0: tensor<4x3xi32>, %arg1: tensor<4x3xi32>) -> tensor<4x3xi32> {
    %0 = stablehlo.divide %arg0, %arg1 : tensor<4x3xi32>
    %1 = stablehlo.sign %arg0 : tensor<4x3xi32>
    %2 = stablehlo.sign %arg1 : tensor<4x3xi32>
    %3 = stablehlo.compare NE, %1, %2, SIGNED : (tensor<4x3xi32>, tensor<4x3xi32>) -> tensor<4x3xi1>
    %4 = stablehlo.remainder %arg0, %arg1 : tensor<4x3xi32>
    %c = stablehlo.constant dense<0> : tensor<i32>
    %5 = stablehlo.broadcast_in_dim %c, dims = [] : (tensor<i32>) -> tensor<4x3xi32>
    %6 = stablehlo.compare NE, %4, %5, SIGNED : (tensor<4x3xi32>, tensor<4x3xi32>) -> tensor<4x3xi1>
    %7 = stablehlo.and %3, %6 : tensor<4x3xi1>
    %c_0 = stablehlo.constant dense<1> : tensor<i32>
    %8 = stablehlo.broadcast_in_dim %c_0, dims = [] : (tensor<i32>) -> tensor<4x3xi32>
    %9 = stablehlo.subtract %0, %8 : tensor<4x3xi32>
    %10 = call @_where_0(%7, %9, %0) : (tensor<4x3xi1>, tensor<4x3xi32>, tensor<4x3xi32>) -> tensor<4x3xi32>
    return %10 : tensor<4x3xi32>
  }
  func.func private @_where_0(%arg0: tensor<4x3xi1>, %arg1: tensor<4x3xi32>, %arg2: tensor<4x3xi32>) -> tensor<4x3xi32> {
    %0 = stablehlo.select %arg0, %arg1, %arg2 : tensor<4x3xi1>, tensor<4x3xi32>
    return %0 : tensor<4x3xi32>
  }
  func.func private @remainder(%arg0: tensor<4x3xi32>, %arg1: tensor<i32>) -> tensor<4x3xi32> {
    %0 = stablehlo.convert %arg1 : tensor<i32>
    %c = stablehlo.constant dense<0> : tensor<i32>
    %1 = stablehlo.compare EQ, %0, %c, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    %c_0 = stablehlo.constant dense<1> : tensor<i32>
    %2 = call @_where_1(%1, %c_0, %0) : (tensor<i1>, tensor<i32>, tensor<i32>) -> tensor<i32>
    %3 = stablehlo.broadcast_in_dim %2, dims = [] : (tensor<i32>) -> tensor<4x3xi32>
    %4 = stablehlo.remainder %arg0, %3 : tensor<4x3xi32>
    %c_1 = stablehlo.constant dense<0> : tensor<i32>
    %5 = stablehlo.broadcast_in_dim %c_1, dims = [] : (tensor<i32>) -> tensor<4x3xi32>
    %6 = stablehlo.compare NE, %4, %5, SIGNED : (tensor<4x3xi32>, tensor<4x3xi32>) -> tensor<4x3xi1>
    %c_2 = stablehlo.constant dense<0> : tensor<i32>
    %7 = stablehlo.broadcast_in_dim %c_2, dims = [] : (tensor<i32>) -> tensor<4x3xi32>
    %8 = stablehlo.compare LT, %4, %7, SIGNED : (tensor<4x3xi32>, tensor<4x3xi32>) -> tensor<4x3xi1>
    %c_3 = stablehlo.constant dense<0> : tensor<i32>
    %9 = stablehlo.compare LT, %2, %c_3, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    %10 = stablehlo.broadcast_in_dim %9, dims = [] : (tensor<i1>) -> tensor<4x3xi1>
    %11 = stablehlo.compare NE, %8, %10, UNSIGNED : (tensor<4x3xi1>, tensor<4x3xi1>) -> tensor<4x3xi1>
    %12 = stablehlo.and %11, %6 : tensor<4x3xi1>
    %13 = stablehlo.broadcast_in_dim %2, dims = [] : (tensor<i32>) -> tensor<4x3xi32>
    %14 = stablehlo.add %4, %13 : tensor<4x3xi32>
    %15 = stablehlo.select %12, %14, %4 : tensor<4x3xi1>, tensor<4x3xi32>
    return %15 : tensor<4x3xi32>
  }
  func.func private @_where_1(%arg0: tensor<i1>, %arg1: tensor<i32>, %arg2: tensor<i32>) -> tensor<i32> {
    %0 = stablehlo.select %arg0, %arg1, %arg2 : tensor<i1>, tensor<i32>
    return %0 : tensor<i32>
  }
}
