// RUN: weft-opt %s -p 'graph-rewrite{rules=dequantized}' --split-input-file --validate | filecheck %s

// Groups of rows; the integers are unsigned, 8 of 32 bits, and zero points 8 are the default.
// CHECK-LABEL: func.func @groups
// CHECK-NEXT:    %q = graph.constant dense<249> : tensor<2x8xui8>
// CHECK-NEXT:    %s = graph.constant dense<{{\[\[}}5.{{0*}}e-01, 1.{{0*e\+00}}], [2.{{0*e\+00}}, 4.{{0*e\+00}}]]> : tensor<2x2xf32>
// CHECK-NEXT:    %y = graph.dequantized_matmul %x, %q, %s {group_size = 8 : i64}
func.func @groups(%x: tensor<?x16xf32, #graph.dims<n>>) -> tensor<?x2xf32, #graph.dims<n>> {
  %q = graph.constant dense<[[1, 1], [7, 7], [1, 1], [7, 7], [1, 1], [7, 7], [1, 1], [7, 7], [1, 1], [7, 7], [1, 1], [7, 7], [1, 1], [7, 7], [1, 1], [7, 7]]> : tensor<16x2xi4>
  %s = graph.constant dense<[[0.5, 2.0], [1.0, 4.0]]> : tensor<2x2xf32>
  %w = graph.dequantize %q, %s {axis = 0, group_size = 8} : tensor<16x2xi4>, tensor<2x2xf32>
  %y = graph.matmul %x, %w : tensor<?x16xf32, #graph.dims<n>>, tensor<16x2xf32>
  func.return %y : tensor<?x2xf32, #graph.dims<n>>
}

// -----

// One scale and zero point for each column of transposed weights: a group is a column, up to a whole word.
// CHECK-LABEL: func.func @columns
// CHECK-NEXT:    graph.constant dense<{{\[\[}}3, 4, 0, 0], [5, 6, 0, 0]]> : tensor<2x4xui8>
// CHECK-NEXT:    graph.constant dense<{{\[\[}}5.{{0*}}e-01], [2.{{0*e\+00}}]]> : tensor<2x1xf32>
// CHECK-NEXT:    graph.constant dense<{{\[\[}}1], [2]]> : tensor<2x1xui8>
// CHECK-NEXT:    %y = graph.dequantized_matmul %x, %{{\w+}}, %{{\w+}}, %{{\w+}}, %b {bits = 8 : i64, group_size = 4 : i64}
func.func @columns(%x: tensor<3x2xf32>, %b: tensor<2xf32>) -> tensor<3x2xf32> {
  %q = graph.constant dense<[[3, 5], [4, 6]]> : tensor<2x2xui8>
  %s = graph.constant dense<[0.5, 2.0]> : tensor<2xf32>
  %z = graph.constant dense<[1, 2]> : tensor<2xui8>
  %w = graph.dequantize %q, %s, %z {axis = 1} : tensor<2x2xui8>, tensor<2xf32>, tensor<2xui8>
  %t = graph.transpose %w : tensor<2x2xf32>
  %y = graph.dense %x, %t, %b : tensor<3x2xf32>, tensor<2x2xf32>, tensor<2xf32>
  func.return %y : tensor<3x2xf32>
}

// -----

// A scale for each row, and groups that are no whole words: weights are folded to floats later.
// CHECK-LABEL: func.func @left
// CHECK-NOT:     dequantized_matmul
func.func @left(%x: tensor<3x4xf32>) -> (tensor<3x2xf32>, tensor<3x2xf32>) {
  %q = graph.constant dense<3> : tensor<4x2xi8>
  %s = graph.constant dense<[0.5, 2.0, 1.0, 3.0]> : tensor<4xf32>
  %r = graph.constant dense<0.5> : tensor<2x2xf32>
  %w = graph.dequantize %q, %s {axis = 0} : tensor<4x2xi8>, tensor<4xf32>
  %v = graph.dequantize %q, %r {axis = 0, group_size = 2} : tensor<4x2xi8>, tensor<2x2xf32>
  %y = graph.matmul %x, %w : tensor<3x4xf32>, tensor<4x2xf32>
  %z = graph.matmul %x, %v : tensor<3x4xf32>, tensor<4x2xf32>
  func.return %y, %z : tensor<3x2xf32>, tensor<3x2xf32>
}
