module @jit_elementwise attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<3x5xf32>, %arg1: tensor<3x5xf32>, %arg2: tensor<3x5xf32>) -> (tensor<3x5xf32> {jax.result_info = "result[0]"}, tensor<3x5xf32> {jax.result_info = "result[1]"}, tensor<3x5xf32> {jax.result_info = "result[2]"}, tensor<3x5xf32> {jax.result_info = "result[3]"}, tensor<3x5xf32> {jax.result_info = "result[4]"}, tensor<3x5xf32> {jax.result_info = "result[5]"}, tensor<3x5xf32> {jax.result_info = "result[6]"}, tensor<3x5xf32> {jax.result_info = "result[7]"}, tensor<3x5xi1> {jax.result_info = "result[8]"}, tensor<3x5xf32> {jax.result_info = "result[9]"}, tensor<3x5xf32> {jax.result_info = "result[10]"}, tensor<3x5xf32> {jax.result_info = "result[11]"}, tensor<3x5xf32> {jax.result_info = "result[12]"}, tensor<3x5xf32> {jax.result_info = "result[13]"}) {
    %0 = stablehlo.exponential %arg0 : tensor<3x5xf32>
    %1 = stablehlo.log %arg1 : tensor<3x5xf32>
    %2 = stablehlo.add %0, %1 : tensor<3x5xf32>
    %3 = stablehlo.tanh %arg0 : tensor<3x5xf32>
    %4 = stablehlo.negate %arg0 : tensor<3x5xf32>
    %5 = stablehlo.exponential %4 : tensor<3x5xf32>
    %cst = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %6 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<3x5xf32>
    %7 = stablehlo.add %6, %5 : tensor<3x5xf32>
    %cst_0 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %8 = stablehlo.broadcast_in_dim %cst_0, dims = [] : (tensor<f32>) -> tensor<3x5xf32>
    %9 = stablehlo.divide %8, %7 : tensor<3x5xf32>
    %10 = stablehlo.multiply %3, %9 : tensor<3x5xf32>
    %11 = stablehlo.subtract %2, %10 : tensor<3x5xf32>
    %12 = stablehlo.negate %arg0 : tensor<3x5xf32>
    %13 = stablehlo.exponential %12 : tensor<3x5xf32>
    %cst_1 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %14 = stablehlo.broadcast_in_dim %cst_1, dims = [] : (tensor<f32>) -> tensor<3x5xf32>
    %15 = stablehlo.add %14, %13 : tensor<3x5xf32>
    %cst_2 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %16 = stablehlo.broadcast_in_dim %cst_2, dims = [] : (tensor<f32>) -> tensor<3x5xf32>
    %17 = stablehlo.divide %16, %15 : tensor<3x5xf32>
    %18 = stablehlo.sqrt %arg1 : tensor<3x5xf32>
    %19 = stablehlo.rsqrt %arg1 : tensor<3x5xf32>
    %20 = stablehlo.divide %18, %19 : tensor<3x5xf32>
    %21 = stablehlo.sine %arg0 : tensor<3x5xf32>
    %22 = stablehlo.cosine %arg0 : tensor<3x5xf32>
    %23 = stablehlo.add %21, %22 : tensor<3x5xf32>
    %24 = stablehlo.atan2 %arg0, %arg1 : tensor<3x5xf32>
    %25 = stablehlo.add %23, %24 : tensor<3x5xf32>
    %26 = stablehlo.tan %arg2 : tensor<3x5xf32>
    %27 = stablehlo.add %25, %26 : tensor<3x5xf32>
    %28 = stablehlo.abs %arg0 : tensor<3x5xf32>
    %cst_3 = stablehlo.constant dense<1.500000e+00> : tensor<f32>
    %29 = stablehlo.broadcast_in_dim %cst_3, dims = [] : (tensor<f32>) -> tensor<3x5xf32>
    %30 = stablehlo.power %28, %29 : tensor<3x5xf32>
    %31 = stablehlo.exponential_minus_one %arg2 : tensor<3x5xf32>
    %32 = stablehlo.log_plus_one %arg1 : tensor<3x5xf32>
    %33 = stablehlo.add %31, %32 : tensor<3x5xf32>
    %34 = stablehlo.cbrt %arg0 : tensor<3x5xf32>
    %35 = stablehlo.add %33, %34 : tensor<3x5xf32>
    %cst_4 = stablehlo.constant dense<3.000000e+00> : tensor<f32>
    %36 = stablehlo.broadcast_in_dim %cst_4, dims = [] : (tensor<f32>) -> tensor<3x5xf32>
    %37 = stablehlo.multiply %arg0, %36 : tensor<3x5xf32>
    %38 = stablehlo.floor %37 : tensor<3x5xf32>
    %cst_5 = stablehlo.constant dense<3.000000e+00> : tensor<f32>
    %39 = stablehlo.broadcast_in_dim %cst_5, dims = [] : (tensor<f32>) -> tensor<3x5xf32>
    %40 = stablehlo.multiply %arg0, %39 : tensor<3x5xf32>
    %41 = stablehlo.ceil %40 : tensor<3x5xf32>
    %42 = stablehlo.add %38, %41 : tensor<3x5xf32>
    %cst_6 = stablehlo.constant dense<2.000000e+00> : tensor<f32>
    %43 = stablehlo.broadcast_in_dim %cst_6, dims = [] : (tensor<f32>) -> tensor<3x5xf32>
    %44 = stablehlo.multiply %arg0, %43 : tensor<3x5xf32>
    %45 = call @round(%44) : (tensor<3x5xf32>) -> tensor<3x5xf32>
    %46 = stablehlo.add %42, %45 : tensor<3x5xf32>
    %cst_7 = stablehlo.constant dense<2.000000e+00> : tensor<f32>
    %47 = stablehlo.broadcast_in_dim %cst_7, dims = [] : (tensor<f32>) -> tensor<3x5xf32>
    %48 = stablehlo.multiply %arg0, %47 : tensor<3x5xf32>
    %49 = stablehlo.round_nearest_afz %48 : tensor<3x5xf32>
    %50 = stablehlo.add %46, %49 : tensor<3x5xf32>
    %51 = stablehlo.sign %arg0 : tensor<3x5xf32>
    %cst_8 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %52 = stablehlo.broadcast_in_dim %cst_8, dims = [] : (tensor<f32>) -> tensor<3x5xf32>
    %53 = stablehlo.compare GT, %arg0, %52, FLOAT : (tensor<3x5xf32>, tensor<3x5xf32>) -> tensor<3x5xi1>
    %cst_9 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %cst_10 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %54 = call @_where(%53, %cst_9, %cst_10) : (tensor<3x5xi1>, tensor<f32>, tensor<f32>) -> tensor<3x5xf32>
    %55 = stablehlo.convert %54 : tensor<3x5xf32>
    %56 = stablehlo.divide %arg0, %55 : tensor<3x5xf32>
    %57 = stablehlo.is_finite %56 : (tensor<3x5xf32>) -> tensor<3x5xi1>
    %58 = chlo.erf %arg0 : tensor<3x5xf32> -> tensor<3x5xf32>
    %59 = chlo.acos %arg2 : tensor<3x5xf32> -> tensor<3x5xf32>
    %60 = stablehlo.add %58, %59 : tensor<3x5xf32>
    %61 = chlo.asinh %arg0 : tensor<3x5xf32> -> tensor<3x5xf32>
    %62 = stablehlo.add %60, %61 : tensor<3x5xf32>
    %63 = chlo.atanh %arg2 : tensor<3x5xf32> -> tensor<3x5xf32>
    %64 = stablehlo.add %62, %63 : tensor<3x5xf32>
    %65 = chlo.cosh %arg2 : tensor<3x5xf32> -> tensor<3x5xf32>
    %66 = stablehlo.add %64, %65 : tensor<3x5xf32>
    %67 = chlo.sinh %arg2 : tensor<3x5xf32> -> tensor<3x5xf32>
    %68 = stablehlo.add %66, %67 : tensor<3x5xf32>
    %cst_11 = stablehlo.constant dense<-5.000000e-01> : tensor<f32>
    %cst_12 = stablehlo.constant dense<5.000000e-01> : tensor<f32>
    %69 = call @clip(%arg0, %cst_11, %cst_12) : (tensor<3x5xf32>, tensor<f32>, tensor<f32>) -> tensor<3x5xf32>
    %70 = stablehlo.maximum %arg0, %arg2 : tensor<3x5xf32>
    %cst_13 = stablehlo.constant dense<1.000000e-01> : tensor<f32>
    %71 = stablehlo.broadcast_in_dim %cst_13, dims = [] : (tensor<f32>) -> tensor<3x5xf32>
    %72 = stablehlo.minimum %arg0, %71 : tensor<3x5xf32>
    %73 = stablehlo.subtract %70, %72 : tensor<3x5xf32>
    %74 = stablehlo.multiply %arg0, %arg0 : tensor<3x5xf32>
    %75 = stablehlo.multiply %74, %arg0 : tensor<3x5xf32>
    %cst_14 = stablehlo.constant dense<4.471500e-02> : tensor<f32>
    %76 = stablehlo.broadcast_in_dim %cst_14, dims = [] : (tensor<f32>) -> tensor<3x5xf32>
    %77 = stablehlo.multiply %76, %75 : tensor<3x5xf32>
    %78 = stablehlo.add %arg0, %77 : tensor<3x5xf32>
    %cst_15 = stablehlo.constant dense<0.797884583> : tensor<f32>
    %79 = stablehlo.broadcast_in_dim %cst_15, dims = [] : (tensor<f32>) -> tensor<3x5xf32>
    %80 = stablehlo.multiply %79, %78 : tensor<3x5xf32>
    %81 = stablehlo.tanh %80 : tensor<3x5xf32>
    %cst_16 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %82 = stablehlo.broadcast_in_dim %cst_16, dims = [] : (tensor<f32>) -> tensor<3x5xf32>
    %83 = stablehlo.add %82, %81 : tensor<3x5xf32>
    %cst_17 = stablehlo.constant dense<5.000000e-01> : tensor<f32>
    %84 = stablehlo.broadcast_in_dim %cst_17, dims = [] : (tensor<f32>) -> tensor<3x5xf32>
    %85 = stablehlo.multiply %84, %83 : tensor<3x5xf32>
    %86 = stablehlo.multiply %arg0, %85 : tensor<3x5xf32>
    %87 = stablehlo.negate %arg0 : tensor<3x5xf32>
    return %11, %17, %20, %27, %30, %35, %50, %51, %57, %68, %69, %73, %86, %87 : tensor<3x5xf32>, tensor<3x5xf32>, tensor<3x5xf32>, tensor<3x5xf32>, tensor<3x5xf32>, tensor<3x5xf32>, tensor<3x5xf32>, tensor<3x5xf32>, tensor<3x5xi1>, tensor<3x5xf32>, tensor<3x5xf32>, tensor<3x5xf32>, tensor<3x5xf32>, tensor<3x5xf32>
  }
  func.func private @round(%arg0: tensor<3x5xf32>) -> tensor<3x5xf32> {
    %0 = stablehlo.round_nearest_even %arg0 : tensor<3x5xf32>
    return %0 : tensor<3x5xf32>
  }
  func.func private @_where(%arg0: tensor<3x5xi1>, %arg1: tensor<f32>, %arg2: tensor<f32>) -> tensor<3x5xf32> {
    %0 = stablehlo.broadcast_in_dim %arg1, dims = [] : (tensor<f32>) -> tensor<3x5xf32>
    %1 = stablehlo.broadcast_in_dim %arg2, dims = [] : (tensor<f32>) -> tensor<3x5xf32>
    %2 = stablehlo.select %arg0, %0, %1 : tensor<3x5xi1>, tensor<3x5xf32>
    return %2 : tensor<3x5xf32>
  }
  func.func private @clip(%arg0: tensor<3x5xf32>, %arg1: tensor<f32>, %arg2: tensor<f32>) -> tensor<3x5xf32> {
    %0 = stablehlo.convert %arg1 : tensor<f32>
    %1 = stablehlo.broadcast_in_dim %0, dims = [] : (tensor<f32>) -> tensor<3x5xf32>
    %2 = stablehlo.maximum %1, %arg0 : tensor<3x5xf32>
    %3 = stablehlo.convert %arg2 : tensor<f32>
    %4 = stablehlo.broadcast_in_dim %3, dims = [] : (tensor<f32>) -> tensor<3x5xf32>
    %5 = stablehlo.minimum %4, %2 : tensor<3x5xf32>
    return %5 : tensor<3x5xf32>
  }
}
