// RUN: not weft-opt %s -p 'graph-quantize-weights{group=32}' --split-input-file 2>&1 | filecheck %s
// RUN: not weft-opt %s -p 'graph-quantize-weights{group=0}' --split-input-file 2>&1 | filecheck %s --check-prefix=FINITE
// RUN: not weft-opt %s -p 'graph-quantize-weights{group=20}' --split-input-file 2>&1 | filecheck %s --check-prefix=GROUP
// RUN: not weft-opt %s -p 'graph-quantize-weights{weights=int5}' --split-input-file 2>&1 | filecheck %s --check-prefix=TYPE
// RUN: not weft-opt %s -p 'graph-quantize-weights{scales=float64}' --split-input-file 2>&1 | filecheck %s --check-prefix=SCALES
// RUN: not weft-opt %s -p 'graph-quantize-weights{group=0 skip=v}' --split-input-file 2>&1 | filecheck %s --check-prefix=SKIP
// RUN: not weft-opt %s -p 'graph-quantize-weights{group=0 scales=float16}' --split-input-file 2>&1 | filecheck %s --check-prefix=SMALL

// GROUP: groups have 16 to 256 weights, a multiple of 8, or are whole columns (0): got 20
// TYPE: weights are int4 or int8, got 'int5'
// SCALES: scales are float32, float16 or bfloat16, got 'float64'
// SKIP: there are no weights 'v'
// CHECK: error: weights 'w': groups of 32 do not divide 24 rows of 24 x 2 weights
func.func @groups(%x: tensor<1x24xf32>) -> tensor<1x2xf32> {
  %w = graph.constant dense<1.0> : tensor<24x2xf32>
  %y = graph.matmul %x, %w : tensor<1x24xf32>, tensor<24x2xf32>
  func.return %y : tensor<1x2xf32>
}

// -----

// SMALL: error: weights 'w': a scale of 1.42857e-16 is not a float16 number: give scales of float32
func.func @small(%x: tensor<1x32xf32>) -> tensor<1x2xf32> {
  %w = graph.constant dense<1.0e-15> : tensor<32x2xf32>
  %y = graph.matmul %x, %w : tensor<1x32xf32>, tensor<32x2xf32>
  func.return %y : tensor<1x2xf32>
}

// -----

// FINITE: error: weights 'w': 1 of 1 x 2 weights are not finite
func.func @finite(%x: tensor<1x1xf32>) -> tensor<1x2xf32> {
  %w = graph.constant dense<[[1.0, 0x7F800000]]> : tensor<1x2xf32>
  %y = graph.matmul %x, %w : tensor<1x1xf32>, tensor<1x2xf32>
  func.return %y : tensor<1x2xf32>
}
