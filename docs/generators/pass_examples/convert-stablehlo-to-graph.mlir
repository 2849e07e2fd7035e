func.func @main(%x: tensor<4xf32>, %n: tensor<i32>) -> tensor<4xf32> {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %i, %r = stablehlo.while(%j = %n, %y = %x) : tensor<i32>, tensor<4xf32>
  cond {
    %p = stablehlo.compare GT, %j, %zero : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %p : tensor<i1>
  } do {
    %k = stablehlo.subtract %j, %one : tensor<i32>
    %z = stablehlo.add %y, %y : tensor<4xf32>
    stablehlo.return %k, %z : tensor<i32>, tensor<4xf32>
  }
  return %r : tensor<4xf32>
}
