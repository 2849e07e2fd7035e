// RUN: weft-opt %s --split-input-file -p "convert-stablehlo-to-graph{strict=true}" | filecheck %s

// A loop is graph.while; its test and its body are functions. Functions without loops stay.
// CHECK-LABEL: func.func @plain(%x: tensor<4xf32>) -> tensor<4xf32> {
// CHECK-NEXT:    %0 = stablehlo.add %x, %x : tensor<4xf32>
// CHECK:       func.func private @test
// CHECK:       func.func private @body
// CHECK-LABEL: func.func @main(%x: tensor<4xf32>, %n: tensor<i32>) -> tensor<4xf32> {
// CHECK-NEXT:    %0, %1 = graph.while @test do @body carried(%n, %x) captured(%x)
// CHECK-NEXT:    func.return %1 : tensor<4xf32>
func.func @main(%x: tensor<4xf32>, %n: tensor<i32>) -> tensor<4xf32> {
  %four = stablehlo.constant dense<4> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %i, %r = stablehlo.while(%j = %n, %y = %x) : tensor<i32>, tensor<4xf32>
  cond {
    %p = stablehlo.compare LT, %j, %four : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %p : tensor<i1>
  } do {
    %k = stablehlo.add %j, %one : tensor<i32>
    %z = stablehlo.add %y, %x : tensor<4xf32>
    stablehlo.return %k, %z : tensor<i32>, tensor<4xf32>
  }
  return %r : tensor<4xf32>
}
func.func @plain(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = stablehlo.add %x, %x : tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

// A scan over the first dimension is graph.loop over rows.
// CHECK-LABEL: func.func @scan(%x: tensor<5x2xf32>, %z: tensor<2xf32>)
// CHECK:         graph.loop
func.func @scan(%x: tensor<5x2xf32>, %z: tensor<2xf32>) -> (tensor<5x2xf32>, tensor<2xf32>) {
  %0:2 = chlo.scan(%x) inits (%z) dimension=0 {
  ^bb0(%a: tensor<2xf32>, %c: tensor<2xf32>):
    %s = stablehlo.add %a, %c : tensor<2xf32>
    stablehlo.return %s, %s : tensor<2xf32>, tensor<2xf32>
  } : (tensor<5x2xf32>, tensor<2xf32>) -> (tensor<5x2xf32>, tensor<2xf32>)
  return %0#0, %0#1 : tensor<5x2xf32>, tensor<2xf32>
}
