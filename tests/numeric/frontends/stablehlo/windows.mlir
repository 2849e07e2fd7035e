// Windows of all elements before, and after; the third has other elements, the fourth a region of several ops.
func.func @main(%x: tensor<6x5xf32>) -> (tensor<6x5xf32>, tensor<6x5xf32>, tensor<6x5xf32>, tensor<6x5xf32>) {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %least = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %0 = "stablehlo.reduce_window"(%x, %zero) <{padding = dense<[[5, 0], [0, 0]]> : tensor<2x2xi64>, window_dimensions = array<i64: 6, 1>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %s = stablehlo.add %a, %b : tensor<f32>
    stablehlo.return %s : tensor<f32>
  }) : (tensor<6x5xf32>, tensor<f32>) -> tensor<6x5xf32>
  %1 = "stablehlo.reduce_window"(%x, %least) <{padding = dense<[[0, 0], [0, 4]]> : tensor<2x2xi64>, window_dimensions = array<i64: 1, 5>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %s = stablehlo.maximum %a, %b : tensor<f32>
    stablehlo.return %s : tensor<f32>
  }) : (tensor<6x5xf32>, tensor<f32>) -> tensor<6x5xf32>
  %2 = "stablehlo.reduce_window"(%x, %least) <{padding = dense<[[3, 2], [0, 0]]> : tensor<2x2xi64>, window_dimensions = array<i64: 6, 1>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %s = stablehlo.maximum %a, %b : tensor<f32>
    stablehlo.return %s : tensor<f32>
  }) : (tensor<6x5xf32>, tensor<f32>) -> tensor<6x5xf32>
  %3 = "stablehlo.reduce_window"(%x, %zero) <{padding = dense<[[5, 0], [0, 0]]> : tensor<2x2xi64>, window_dimensions = array<i64: 6, 1>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %m = stablehlo.multiply %a, %b : tensor<f32>
    %n = stablehlo.add %a, %b : tensor<f32>
    %s = stablehlo.subtract %n, %m : tensor<f32>
    stablehlo.return %s : tensor<f32>
  }) : (tensor<6x5xf32>, tensor<f32>) -> tensor<6x5xf32>
  func.return %0, %1, %2, %3 : tensor<6x5xf32>, tensor<6x5xf32>, tensor<6x5xf32>, tensor<6x5xf32>
}
