// Operands that list sizes, which are integer arguments and arithmetic of them.
func.func @main(%x: tensor<?x3xf32>, %n: tensor<i64>, %s: tensor<2xi32>, %y: tensor<1x2x5x4xf32>, %w: tensor<3x2x3x3xf32>) -> (tensor<?xi64>, tensor<?x?xf32>, tensor<?x3xf32>, tensor<?x3xf32>, tensor<?x3xf32>, tensor<?x?xf32>, tensor<i64>, tensor<1x3x?x4xf32>) {
  %one = stablehlo.constant dense<1> : tensor<1xi64>
  %c3 = stablehlo.constant dense<3> : tensor<1xi64>
  %zero = stablehlo.constant dense<0> : tensor<1xi64>
  %zeros = stablehlo.constant dense<0> : tensor<2xi64>
  %ones = stablehlo.constant dense<1> : tensor<2xi64>
  %f = stablehlo.constant dense<0.5> : tensor<f32>
  %v = stablehlo.reshape %n : (tensor<i64>) -> tensor<1xi64>
  %more = stablehlo.add %v, %one : tensor<1xi64>
  %0 = stablehlo.dynamic_iota %more, dim = 0 : (tensor<1xi64>) -> tensor<?xi64>
  %1 = stablehlo.dynamic_broadcast_in_dim %f, %s, dims = [] : (tensor<f32>, tensor<2xi32>) -> tensor<?x?xf32>
  %last = stablehlo.concatenate %v, %c3, dim = 0 : (tensor<1xi64>, tensor<1xi64>) -> tensor<2xi64>
  %2 = stablehlo.real_dynamic_slice %x, %zeros, %last, %ones : (tensor<?x3xf32>, tensor<2xi64>, tensor<2xi64>, tensor<2xi64>) -> tensor<?x3xf32>
  %edge = stablehlo.concatenate %v, %zero, dim = 0 : (tensor<1xi64>, tensor<1xi64>) -> tensor<2xi64>
  %3 = stablehlo.dynamic_pad %x, %f, %edge, %zeros, %zeros : (tensor<?x3xf32>, tensor<f32>, tensor<2xi64>, tensor<2xi64>, tensor<2xi64>) -> tensor<?x3xf32>
  %at = stablehlo.constant dense<1> : tensor<1xi64>
  %4 = "stablehlo.dynamic_gather"(%x, %at, %last) <{dimension_numbers = #stablehlo.gather<offset_dims = [0, 1], start_index_map = [0]>}> : (tensor<?x3xf32>, tensor<1xi64>, tensor<2xi64>) -> tensor<?x3xf32>
  %two = stablehlo.constant dense<2> : tensor<1xi64>
  %half = stablehlo.multiply %v, %two : tensor<1xi64>
  %wide = stablehlo.concatenate %half, %c3, dim = 0 : (tensor<1xi64>, tensor<1xi64>) -> tensor<2xi64>
  %padded = stablehlo.dynamic_pad %2, %f, %edge, %zeros, %zeros : (tensor<?x3xf32>, tensor<f32>, tensor<2xi64>, tensor<2xi64>, tensor<2xi64>) -> tensor<?x3xf32>
  %turned = stablehlo.concatenate %c3, %half, dim = 0 : (tensor<1xi64>, tensor<1xi64>) -> tensor<2xi64>
  %5 = stablehlo.dynamic_reshape %padded, %turned : (tensor<?x3xf32>, tensor<2xi64>) -> tensor<?x?xf32>
  %6 = stablehlo.add %n, %n : tensor<i64>
  %rows = stablehlo.concatenate %v, %zero, dim = 0 : (tensor<1xi64>, tensor<1xi64>) -> tensor<2xi64>
  %row = stablehlo.reshape %rows : (tensor<2xi64>) -> tensor<1x2xi64>
  %same = stablehlo.constant dense<1> : tensor<1x2xi64>
  %pads = stablehlo.concatenate %row, %same, dim = 0 : (tensor<1x2xi64>, tensor<1x2xi64>) -> tensor<2x2xi64>
  %7 = "stablehlo.dynamic_conv"(%y, %w, %pads) <{batch_group_count = 1 : i64, dimension_numbers = #stablehlo.conv<[b, f, 0, 1]x[o, i, 0, 1]->[b, f, 0, 1]>, feature_group_count = 1 : i64, window_strides = array<i64: 1, 1>}> : (tensor<1x2x5x4xf32>, tensor<3x2x3x3xf32>, tensor<2x2xi64>) -> tensor<1x3x?x4xf32>
  func.return %0, %1, %2, %3, %4, %5, %6, %7 : tensor<?xi64>, tensor<?x?xf32>, tensor<?x3xf32>, tensor<?x3xf32>, tensor<?x3xf32>, tensor<?x?xf32>, tensor<i64>, tensor<1x3x?x4xf32>
}
