// RUN: not weft-opt %s -p 'graph-quantize-observed' --split-input-file 2>&1 | filecheck %s

// CHECK: weights 'w': 2 of 4 weights are not finite
func.func @f(%x: tensor<2x2xf32>) -> tensor<2x2xf32> {
  %o = graph.observe %x as "x" in [-0.5, 2.0] : tensor<2x2xf32>
  %w = graph.constant dense<[[1.0, 0x7FC00000], [0x7F800000, 1.0]]> : tensor<2x2xf32>
  %y = graph.matmul %o, %w : tensor<2x2xf32>, tensor<2x2xf32>
  func.return %y : tensor<2x2xf32>
}

// -----

// CHECK: activation 'x': the range -1e-300 to 0 has no scale that is a float32 number
func.func @f(%x: tensor<2x2xf32>) -> tensor<2x2xf32> {
  %o = graph.observe %x as "x" in [-1.0e-300, 0.0] : tensor<2x2xf32>
  func.return %o : tensor<2x2xf32>
}

// -----

// CHECK: graph.observe: a range is two numbers of f64, the lesser first, got [2.000000e+00 : f64, 1.000000e+00 : f64]
func.func @f(%x: tensor<2x2xf32>) -> tensor<2x2xf32> {
  %o = graph.observe %x as "x" in [2.0, 1.0] : tensor<2x2xf32>
  func.return %o : tensor<2x2xf32>
}

// -----

// CHECK: graph.observe: a range is two numbers of f64, the lesser first, got [2.000000e+00 : f64]
func.func @f(%x: tensor<2x2xf32>) -> tensor<2x2xf32> {
  %o = graph.observe %x as "x" in [2.0] : tensor<2x2xf32>
  func.return %o : tensor<2x2xf32>
}
