// A number of steps that data decide, and branches that cost something.

func.func @main(%x: tensor<3xf32>, %w: tensor<3x3xf32>, %which: tensor<i32>) -> (tensor<3xf32>, tensor<i32>, tensor<3xf32>) {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %f = stablehlo.constant dense<0.0> : tensor<f32>
  %end = stablehlo.constant dense<50.0> : tensor<f32>
  %abs = stablehlo.abs %x : tensor<3xf32>
  %0:2 = stablehlo.while(%v = %abs, %n = %zero) : tensor<3xf32>, tensor<i32>
  cond {
    %s = stablehlo.reduce(%v init: %f) applies stablehlo.add across dimensions = [0] : (tensor<3xf32>, tensor<f32>) -> tensor<f32>
    %p = stablehlo.compare LT, %s, %end, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
    stablehlo.return %p : tensor<i1>
  } do {
    %d = stablehlo.add %v, %v : tensor<3xf32>
    %m = stablehlo.add %n, %one : tensor<i32>
    stablehlo.return %d, %m : tensor<3xf32>, tensor<i32>
  }
  %1 = "stablehlo.case"(%which) ({
    %a = stablehlo.dot_general %w, %0#0, contracting_dims = [1] x [0] : (tensor<3x3xf32>, tensor<3xf32>) -> tensor<3xf32>
    stablehlo.return %a : tensor<3xf32>
  }, {
    stablehlo.return %x : tensor<3xf32>
  }, {
    %b = stablehlo.subtract %0#0, %x : tensor<3xf32>
    stablehlo.return %b : tensor<3xf32>
  }) : (tensor<i32>) -> tensor<3xf32>
  return %0#0, %0#1, %1 : tensor<3xf32>, tensor<i32>, tensor<3xf32>
}
