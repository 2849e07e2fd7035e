// RUN: weft-opt %s --split-input-file --verify-diagnostics -p "convert-stablehlo-to-graph{strict=true}"

// expected-error@+1 {{convert-stablehlo-to-graph: no function of StableHLO holds a loop}}
module {
  func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
    %0 = stablehlo.add %x, %x : tensor<4xf32>
    return %0 : tensor<4xf32>
  }
}

// -----

func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error@+1 {{stablehlo.custom_call: no function is registered as 'nobody'}}
  %0 = stablehlo.custom_call @nobody(%x) : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

func.func @main(%x: tensor<?x2xf32>, %z: tensor<2xf32>) -> tensor<?x2xf32> {
  // expected-error@+1 {{chlo.scan: dynamic extents are not supported}}
  %0:2 = chlo.scan(%x) inits (%z) dimension=0 {
  ^bb0(%a: tensor<2xf32>, %c: tensor<2xf32>):
    %s = stablehlo.add %a, %c : tensor<2xf32>
    stablehlo.return %s, %s : tensor<2xf32>, tensor<2xf32>
  } : (tensor<?x2xf32>, tensor<2xf32>) -> (tensor<?x2xf32>, tensor<2xf32>)
  return %0#0 : tensor<?x2xf32>
}
