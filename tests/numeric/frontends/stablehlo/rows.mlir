// Rows read and written upwards and downwards, a value that no step changes, and the counter after the loop.

func.func @main(%h: tensor<4xf32>, %xs: tensor<5x4xf32>, %w: tensor<4xf32>)
    -> (tensor<4xf32>, tensor<5x4xf32>, tensor<5x4xf32>, tensor<i32>) {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %n = stablehlo.constant dense<5> : tensor<i32>
  %f = stablehlo.constant dense<0.0> : tensor<f32>
  %e = stablehlo.broadcast_in_dim %f, dims = [] : (tensor<f32>) -> tensor<5x4xf32>
  %0:7 = stablehlo.while(%i = %zero, %s = %h, %o = %e, %r = %e, %k = %w, %a = %xs, %t = %zero)
    : tensor<i32>, tensor<4xf32>, tensor<5x4xf32>, tensor<5x4xf32>, tensor<4xf32>, tensor<5x4xf32>, tensor<i32>
  cond {
    %p = stablehlo.compare LT, %i, %n, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %p : tensor<i1>
  } do {
    %x = func.call @row(%a, %i) : (tensor<5x4xf32>, tensor<i32>) -> tensor<4xf32>
    %back = stablehlo.subtract %n, %i : tensor<i32>
    %last = stablehlo.subtract %back, %one : tensor<i32>
    %y = func.call @row(%a, %last) : (tensor<5x4xf32>, tensor<i32>) -> tensor<4xf32>
    %1 = stablehlo.multiply %s, %k : tensor<4xf32>
    %2 = stablehlo.add %1, %x : tensor<4xf32>
    %3 = stablehlo.subtract %2, %y : tensor<4xf32>
    %up = stablehlo.reshape %2 : (tensor<4xf32>) -> tensor<1x4xf32>
    %4 = stablehlo.dynamic_update_slice %o, %up, %i, %zero : (tensor<5x4xf32>, tensor<1x4xf32>, tensor<i32>, tensor<i32>) -> tensor<5x4xf32>
    %down = stablehlo.broadcast_in_dim %3, dims = [1] : (tensor<4xf32>) -> tensor<1x4xf32>
    %5 = stablehlo.dynamic_update_slice %r, %down, %last, %zero : (tensor<5x4xf32>, tensor<1x4xf32>, tensor<i32>, tensor<i32>) -> tensor<5x4xf32>
    %6 = stablehlo.add %i, %one : tensor<i32>
    %7 = stablehlo.add %t, %i : tensor<i32>
    stablehlo.return %6, %3, %4, %5, %k, %a, %7
      : tensor<i32>, tensor<4xf32>, tensor<5x4xf32>, tensor<5x4xf32>, tensor<4xf32>, tensor<5x4xf32>, tensor<i32>
  }
  %8 = stablehlo.add %0#0, %0#6 : tensor<i32>
  return %0#1, %0#2, %0#3, %8 : tensor<4xf32>, tensor<5x4xf32>, tensor<5x4xf32>, tensor<i32>
}
func.func private @row(%a: tensor<5x4xf32>, %i: tensor<i32>) -> tensor<4xf32> {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %0 = stablehlo.dynamic_slice %a, %i, %zero, sizes = [1, 4] : (tensor<5x4xf32>, tensor<i32>, tensor<i32>) -> tensor<1x4xf32>
  %1 = stablehlo.reshape %0 : (tensor<1x4xf32>) -> tensor<4xf32>
  return %1 : tensor<4xf32>
}
