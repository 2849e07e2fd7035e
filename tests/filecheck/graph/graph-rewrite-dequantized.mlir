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
// CHECK-NEXT:    graph.constant dense<{{\[\[}}3, 4, 0, 0], [50, 60, 0, 0]]> : tensor<2x4xui8>
// CHECK-NEXT:    graph.constant dense<{{\[\[}}5.{{0*}}e-01], [2.{{0*e\+00}}]]> : tensor<2x1xf32>
// CHECK-NEXT:    graph.constant dense<{{\[\[}}1], [2]]> : tensor<2x1xui8>
// CHECK-NEXT:    %y = graph.dequantized_matmul %x, %{{\w+}}, %{{\w+}}, %{{\w+}}, %b {bits = 8 : i64, group_size = 4 : i64}
func.func @columns(%x: tensor<3x2xf32>, %b: tensor<2xf32>) -> tensor<3x2xf32> {
  %q = graph.constant dense<[[3, 50], [4, 60]]> : tensor<2x2xui8>
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

// -----

// Products sum the first axis of the data, or read weights of rank 3: the sums are not of rows.
// CHECK-LABEL: func.func @other_sums
// CHECK-NOT:     dequantized_matmul
func.func @other_sums(%x: tensor<4x4xf32>, %b: tensor<1x4x4xf32>) -> (tensor<4x2xf32>, tensor<1x4x2xf32>) {
  %q = graph.constant dense<3> : tensor<4x2xi8>
  %s = graph.constant dense<[0.5, 2.0]> : tensor<2xf32>
  %w = graph.dequantize %q, %s {axis = 1} : tensor<4x2xi8>, tensor<2xf32>
  %v = graph.reshape %w {newshape = [1, 4, 2]} : tensor<4x2xf32> -> tensor<1x4x2xf32>
  %y = graph.matmul %x, %w {transpose_a = true} : tensor<4x4xf32>, tensor<4x2xf32>
  %z = graph.matmul %b, %v : tensor<1x4x4xf32>, tensor<1x4x2xf32>
  func.return %y, %z : tensor<4x2xf32>, tensor<1x4x2xf32>
}

// -----

// Bytes from -8 to 7 are stored in 4 bits, with the zero point 8.
// CHECK-LABEL: func.func @narrow
// CHECK-NEXT:    %q = graph.constant dense<{{\[\[}}33, 67, 101, 128]]> : tensor<1x4xui8>
// CHECK-NEXT:    %s = graph.constant dense<5.{{0*}}e-01> : tensor<1x1xf32>
// CHECK-NEXT:    %y = graph.dequantized_matmul %x, %q, %s {group_size = 8 : i64}
func.func @narrow(%x: tensor<3x8xf32>) -> tensor<3x1xf32> {
  %q = graph.constant dense<[[-7, -6, -5, -4, -3, -2, -8, 0]]> : tensor<1x8xi8>
  %s = graph.constant dense<0.5> : tensor<1xf32>
  %w = graph.dequantize %q, %s {axis = 0} : tensor<1x8xi8>, tensor<1xf32>
  %y = graph.dense %x, %w : tensor<3x8xf32>, tensor<1x8xf32>
  func.return %y : tensor<3x1xf32>
}

// -----

// Bytes from 20 to 35 with a zero point among them; one beyond them leaves 8 bits.
// CHECK-LABEL: func.func @offset
// CHECK-NEXT:    %q = graph.constant dense<{{\[\[}}16, 50, 84, 254]]> : tensor<1x4xui8>
// CHECK-NEXT:    %s = graph.constant
// CHECK-NEXT:    %z = graph.constant dense<5> : tensor<1x1xui8>
// CHECK:         %y = graph.dequantized_matmul %x, %q, %s, %z {group_size = 8 : i64}
// CHECK:         graph.dequantized_matmul %x, %{{.*}} {bits = 8 : i64, group_size = 8 : i64}
func.func @offset(%x: tensor<3x8xf32>) -> (tensor<3x1xf32>, tensor<3x1xf32>) {
  %q = graph.constant dense<[[20, 21, 22, 23, 24, 25, 34, 35]]> : tensor<1x8xui8>
  %s = graph.constant dense<0.5> : tensor<1xf32>
  %z = graph.constant dense<25> : tensor<1xui8>
  %o = graph.constant dense<19> : tensor<1xui8>
  %w = graph.dequantize %q, %s, %z {axis = 0} : tensor<1x8xui8>, tensor<1xf32>, tensor<1xui8>
  %v = graph.dequantize %q, %s, %o {axis = 0} : tensor<1x8xui8>, tensor<1xf32>, tensor<1xui8>
  %y = graph.dense %x, %w : tensor<3x8xf32>, tensor<1x8xf32>
  %r = graph.dense %x, %v : tensor<3x8xf32>, tensor<1x8xf32>
  func.return %y, %r : tensor<3x1xf32>, tensor<3x1xf32>
}

// -----

// Bytes that a cast makes floats have the scale 1.
// CHECK-LABEL: func.func @cast
// CHECK-NEXT:    %t = graph.constant dense<{{\[\[}}228, 28, 129, 128]]> : tensor<1x4xui8>
// CHECK-NEXT:    %{{.*}} = graph.constant dense<1.{{0*e\+00}}> : tensor<1x1xf32>
// CHECK-NEXT:    %y = graph.dequantized_matmul %x, %t, %{{.*}} {bits = 8 : i64, group_size = 4 : i64}
func.func @cast(%x: tensor<3x4xf32>) -> tensor<3x1xf32> {
  %q = graph.constant dense<[[100, -100, 1, 0]]> : tensor<1x4xi8>
  %t = graph.transpose %q : tensor<1x4xi8>
  %w = graph.cast %t {dtype = "float32"} : tensor<4x1xi8>
  %y = graph.matmul %x, %w : tensor<3x4xf32>, tensor<4x1xf32>
  func.return %y : tensor<3x1xf32>
}

// -----

// Rows of a table of 4 bits: two integers share a byte, and the rows alone are dequantized.
// CHECK-LABEL: func.func @rows
// CHECK-NEXT:    %q = graph.constant dense<{{\[\[}}33, 103], [50, 118]]> : tensor<2x2xui8>
// CHECK-NEXT:    [[ROWS:%\w+]] = graph.take %q, %i {axis = 0 : i64, mode = "fast"}
// CHECK:         graph.repeat [[ROWS]] {repeats = 2 : i64, axis = 1 : i64}
// CHECK:         graph.bitwise_and
// CHECK:         graph.take %s, %i
// CHECK:         graph.dequantize {{.*}} {axis = 1 : i64, group_size = 2 : i64}
func.func @rows(%i: tensor<3xi64>) -> tensor<3x4xf32> {
  %q = graph.constant dense<[[1, 2, 7, 6], [2, 3, 6, 7]]> : tensor<2x4xui4>
  %s = graph.constant dense<[[0.5, 2.0], [1.0, 4.0]]> : tensor<2x2xf32>
  %z = graph.constant dense<[[0.5, 1.5], [0.0, 8.0]]> : tensor<2x2xf32>
  %w = graph.dequantize %q, %s, %z {axis = 1, group_size = 2} : tensor<2x4xui4>, tensor<2x2xf32>, tensor<2x2xf32>
  %y = graph.take %w, %i {axis = 0, mode = "fast"} : tensor<2x4xf32>, tensor<3xi64>
  func.return %y : tensor<3x4xf32>
}

// -----

// Rows with a scale each are no groups of a row; they are dequantized as before.
// CHECK-LABEL: func.func @rows_left
// CHECK-NOT:     graph.repeat
// CHECK:         graph.take %w
func.func @rows_left(%i: tensor<3xi64>) -> tensor<3x4xf32> {
  %q = graph.constant dense<3> : tensor<2x4xi8>
  %s = graph.constant dense<[0.5, 2.0, 1.0, 4.0]> : tensor<4xf32>
  %w = graph.dequantize %q, %s {axis = 1} : tensor<2x4xi8>, tensor<4xf32>
  %y = graph.take %w, %i {axis = 0, mode = "fast"} : tensor<2x4xf32>, tensor<3xi64>
  func.return %y : tensor<3x4xf32>
}
