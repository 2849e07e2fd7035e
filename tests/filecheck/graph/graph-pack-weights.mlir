// RUN: weft-opt %s -p 'graph-pack-weights{target="llvm -mcpu=x86-64"}' --split-input-file --validate | filecheck %s
// RUN: weft-opt %s -p 'graph-pack-weights{target="llvm -mcpu=haswell"}' --split-input-file --validate | filecheck %s --check-prefix=AVX2
// RUN: weft-opt %s -p 'graph-pack-weights{target="llvm -mcpu=skylake-avx512"}' --split-input-file | filecheck %s --check-prefix=WIDE
// RUN: weft-opt %s -p 'graph-pack-weights{target="llvm -mcpu=znver4"}' --split-input-file --validate | filecheck %s --check-prefix=DOT

// 24 columns are six vectors of 4: a panel is two. Bytes of a column become words, the first byte in the low bits.
// CHECK-LABEL: func.func @columns
// CHECK-NEXT:    %w = graph.constant dense<67305985> : tensor<3x1x8xui32>
// CHECK-NEXT:    %s = graph.constant dense<5.{{0*}}e-01> : tensor<3x1x8xf32>
// CHECK-NEXT:    %y = graph.dequantized_matmul %x, %w, %s {group_size = 8 : i64, columns = 24 : i64} : tensor<?x8xf32, #graph.dims<n>>, tensor<3x1x8xui32>, tensor<3x1x8xf32>
// AVX2-LABEL:  func.func @columns
// AVX2:          graph.constant dense<{{.*}}> : tensor<3x1x8x4xui8>
// WIDE-LABEL:  func.func @columns
// WIDE:          graph.constant dense<{{.*}}> : tensor<1x1x32xui32>
// WIDE:          {group_size = 8 : i64, columns = 24 : i64}
// DOT-LABEL:   func.func @columns
// DOT:           graph.constant dense<{{.*}}> : tensor<1x1x32xui32>
func.func @columns(%x: tensor<?x8xf32, #graph.dims<n>>) -> tensor<?x24xf32, #graph.dims<n>> {
  %w = graph.constant dense<[[1, 2, 3, 4], [1, 2, 3, 4], [1, 2, 3, 4], [1, 2, 3, 4], [1, 2, 3, 4], [1, 2, 3, 4], [1, 2, 3, 4], [1, 2, 3, 4], [1, 2, 3, 4], [1, 2, 3, 4], [1, 2, 3, 4], [1, 2, 3, 4], [1, 2, 3, 4], [1, 2, 3, 4], [1, 2, 3, 4], [1, 2, 3, 4], [1, 2, 3, 4], [1, 2, 3, 4], [1, 2, 3, 4], [1, 2, 3, 4], [1, 2, 3, 4], [1, 2, 3, 4], [1, 2, 3, 4], [1, 2, 3, 4]]> : tensor<24x4xui8>
  %s = graph.constant dense<0.5> : tensor<24x1xf32>
  %y = graph.dequantized_matmul %x, %w, %s {group_size = 8} : tensor<?x8xf32, #graph.dims<n>>, tensor<24x4xui8>, tensor<24x1xf32>
  func.return %y : tensor<?x24xf32, #graph.dims<n>>
}

// -----

// The last panel is filled up; so are scales and zero points.
// CHECK-LABEL: func.func @filled
// CHECK-NEXT:    graph.constant dense<{{\[\[\[}}1, 2, 3, 0]]]> : tensor<1x1x4xui32>
// CHECK-NEXT:    graph.constant dense<{{\[\[\[}}1.{{0*e\+00}}, 2.{{0*e\+00}}, 4.{{0*e\+00}}, 0.{{.*}}> : tensor<1x1x4xf16>
// CHECK-NEXT:    graph.constant dense<{{\[\[\[}}7, 8, 9, 0]]]> : tensor<1x1x4xui8>
// CHECK:         graph.dequantized_matmul %x, %{{\w+}}, %{{\w+}}, %{{\w+}}, %b {bits = 8 : i64, group_size = 4 : i64, columns = 3 : i64}
func.func @filled(%x: tensor<2x4xf32>, %b: tensor<3xf32>) -> tensor<2x3xf32> {
  %w = graph.constant dense<[[1, 0, 0, 0], [2, 0, 0, 0], [3, 0, 0, 0]]> : tensor<3x4xui8>
  %s = graph.constant dense<[[1.0], [2.0], [4.0]]> : tensor<3x1xf16>
  %z = graph.constant dense<[[7], [8], [9]]> : tensor<3x1xui8>
  %y = graph.dequantized_matmul %x, %w, %s, %z, %b {bits = 8, group_size = 4} : tensor<2x4xf32>, tensor<3x4xui8>, tensor<3x1xf16>, tensor<3x1xui8>, tensor<3xf32>
  func.return %y : tensor<2x3xf32>
}

// -----

// Weights that calls pass, and columns that are not whole words, stay as they are.
// CHECK-LABEL: func.func @left
// CHECK:         graph.dequantized_matmul %x, %w, %s {group_size = 8 : i64} : tensor<1x8xf32>, tensor<8x4xui8>
// CHECK:         tensor<8x2xui8>
func.func @left(%x: tensor<1x8xf32>, %w: tensor<8x4xui8>, %t: tensor<1x4xf32>) -> (tensor<1x8xf32>, tensor<1x8xf32>) {
  %s = graph.constant dense<0.5> : tensor<8x1xf32>
  %v = graph.constant dense<7> : tensor<8x2xui8>
  %y = graph.dequantized_matmul %x, %w, %s {group_size = 8} : tensor<1x8xf32>, tensor<8x4xui8>, tensor<8x1xf32>
  %z = graph.dequantized_matmul %t, %v, %s {group_size = 4} : tensor<1x4xf32>, tensor<8x2xui8>, tensor<8x1xf32>
  func.return %y, %z : tensor<1x8xf32>, tensor<1x8xf32>
}

// -----

// For dot products of bytes, the low halves of the bytes of a word contain its rows 0 to 3: 1, 2, 3, 4.
// CHECK-LABEL: func.func @bytes
// CHECK-NEXT:    %w = graph.constant dense<2271560481> : tensor<1x1x16xui32>
// DOT-LABEL:   func.func @bytes
// DOT-NEXT:      %w = graph.constant dense<{{\[\[\[\[}}81, 98, 115, 132], [81, 98, 115, 132], {{.*}}> : tensor<1x1x16x4xui8>
// DOT-NEXT:      %s = graph.constant dense<5.{{0*}}e-01> : tensor<1x1x16xf32>
// DOT-NEXT:      graph.dequantized_matmul %x, %w, %s {group_size = 8 : i64, columns = 16 : i64}
func.func @bytes(%x: tensor<2x8xf32>) -> tensor<2x16xf32> {
  %w = graph.constant dense<[[33, 67, 101, 135], [33, 67, 101, 135], [33, 67, 101, 135], [33, 67, 101, 135], [33, 67, 101, 135], [33, 67, 101, 135], [33, 67, 101, 135], [33, 67, 101, 135], [33, 67, 101, 135], [33, 67, 101, 135], [33, 67, 101, 135], [33, 67, 101, 135], [33, 67, 101, 135], [33, 67, 101, 135], [33, 67, 101, 135], [33, 67, 101, 135]]> : tensor<16x4xui8>
  %s = graph.constant dense<0.5> : tensor<16x1xf32>
  %y = graph.dequantized_matmul %x, %w, %s {group_size = 8} : tensor<2x8xf32>, tensor<16x4xui8>, tensor<16x1xf32>
  func.return %y : tensor<2x16xf32>
}
