// RUN: not weft-opt %s -p 'graph-pack-weights' --split-input-file 2>&1 | filecheck %s

// CHECK: error: weights 'w': the scale of column 1, group 0 must be finite, is nan
func.func @scale(%x: tensor<1x8xf32>) -> tensor<1x2xf32> {
  %w = graph.constant dense<1> : tensor<2x4xui8>
  %s = graph.constant dense<[[1.0], [0x7FC00000]]> : tensor<2x1xf32>
  %y = graph.dequantized_matmul %x, %w, %s {group_size = 8} : tensor<1x8xf32>, tensor<2x4xui8>, tensor<2x1xf32>
  func.return %y : tensor<1x2xf32>
}

// -----

// CHECK: error: weights 'w': the zero point of column 0, group 0 must be below 16, is 16
func.func @zero_point(%x: tensor<1x8xf32>) -> tensor<1x2xf32> {
  %w = graph.constant dense<1> : tensor<2x4xui8>
  %s = graph.constant dense<1.0> : tensor<2x1xf32>
  %z = graph.constant dense<16> : tensor<2x1xui8>
  %y = graph.dequantized_matmul %x, %w, %s, %z {group_size = 8} : tensor<1x8xf32>, tensor<2x4xui8>, tensor<2x1xf32>, tensor<2x1xui8>
  func.return %y : tensor<1x2xf32>
}

// -----

// Weights that are not packed, since a column is no number of words.
// CHECK: error: weights 'w': the scale of column 0, group 2 must be finite, is inf
func.func @unpacked(%x: tensor<1x6xf32>) -> tensor<1x1xf32> {
  %w = graph.constant dense<1> : tensor<1x3xui8>
  %s = graph.constant dense<[[1.0, 0.0, 0x7F800000]]> : tensor<1x3xf32>
  %y = graph.dequantized_matmul %x, %w, %s {group_size = 2} : tensor<1x6xf32>, tensor<1x3xui8>, tensor<1x3xf32>
  func.return %y : tensor<1x1xf32>
}

// -----

// CHECK: error: weights 'w': the zero point of column 1, group 0 must be finite, is nan
func.func @float_zero_point(%x: tensor<1x8xf32>) -> tensor<1x2xf32> {
  %w = graph.constant dense<1> : tensor<2x4xui8>
  %s = graph.constant dense<-1.0> : tensor<2x1xf32>
  %z = graph.constant dense<[[1.0], [0x7FC00000]]> : tensor<2x1xf32>
  %y = graph.dequantized_matmul %x, %w, %s, %z {group_size = 8} : tensor<1x8xf32>, tensor<2x4xui8>, tensor<2x1xf32>, tensor<2x1xf32>
  func.return %y : tensor<1x2xf32>
}
