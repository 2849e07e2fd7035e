// RUN: weft-opt %s -p 'graph-lower-packs' --split-input-file --validate | filecheck %s
// RUN: weft-opt %s -p 'graph-simplify' --split-input-file --validate | filecheck %s --check-prefix=SIMPLE

// Weights in blocks of filters and of pairs of channels, as convolutions in blocks of channels read them.
// CHECK-LABEL: func.func @weights
// CHECK-NEXT:    %[[S:\w+]] = graph.reshape %w {newshape = #graph.dims<2, 16, 1, 8, 3, 3>}
// CHECK-NEXT:    %p = graph.transpose %[[S]] {axes = [0 : i64, 2 : i64, 4 : i64, 5 : i64, 3 : i64, 1 : i64]}
// CHECK-NEXT:    %[[T:\w+]] = graph.reshape %p {newshape = #graph.dims<2, 1, 3, 3, 4, 2, 16>}
// CHECK-NEXT:    %q = graph.transpose %[[T]] {axes = [0 : i64, 1 : i64, 2 : i64, 3 : i64, 4 : i64, 6 : i64, 5 : i64]}
func.func @weights(%w: tensor<32x8x3x3xi16>) -> tensor<2x1x3x3x4x16x2xi16> {
  %p = graph.pack %w {inner_dims_pos = [1, 0], inner_tiles = [8, 16]} : tensor<32x8x3x3xi16>
  %q = graph.pack %p {inner_dims_pos = 4, inner_tiles = 2} : tensor<2x1x3x3x8x16xi16>
  func.return %q : tensor<2x1x3x3x4x16x2xi16>
}

// -----

// Images of one pixel keep the order of their elements.
// CHECK-LABEL: func.func @pixel
// CHECK-NEXT:    %p = graph.reshape %x {newshape = #graph.dims<n, 2, 1, 1, 16>}
// CHECK-NEXT:    %e = graph.exp %p
// CHECK-NEXT:    %u = graph.reshape %e {newshape = #graph.dims<n, 32, 1, 1>}
func.func @pixel(%x: tensor<?x32x1x1xf32, #graph.dims<n>>) -> tensor<?x32x1x1xf32, #graph.dims<n>> {
  %p = graph.pack %x {inner_dims_pos = 1, inner_tiles = 16} : tensor<?x32x1x1xf32, #graph.dims<n>>
  %e = graph.exp %p : tensor<?x2x1x1x16xf32, #graph.dims<n>>
  %u = graph.unpack %e {inner_dims_pos = 1, inner_tiles = 16} : tensor<?x2x1x1x16xf32, #graph.dims<n>>
  func.return %u : tensor<?x32x1x1xf32, #graph.dims<n>>
}

// -----

// Rows and columns of tiles, their outer dimensions exchanged, and back; tiles that divide a symbolic extent.
// CHECK-LABEL: func.func @back
// CHECK-NEXT:    %[[S:\w+]] = graph.reshape %x {newshape = #graph.dims<n, 4, 2, 3>}
// CHECK-NEXT:    %p = graph.transpose %[[S]] {axes = [2 : i64, 0 : i64, 3 : i64, 1 : i64]}
// CHECK-NEXT:    %e = graph.exp %p
// CHECK-NEXT:    %[[T:\w+]] = graph.transpose %e {axes = [1 : i64, 3 : i64, 0 : i64, 2 : i64]}
// CHECK-NEXT:    %u = graph.reshape %[[T]] {newshape = #graph.dims<4 * n, 6>}
func.func @back(%x: tensor<?x6xf32, #graph.dims<4 * n>>) -> tensor<?x6xf32, #graph.dims<4 * n>> {
  %p = graph.pack %x {inner_dims_pos = [1, 0], inner_tiles = [3, 4], outer_dims_perm = [1, 0]} : tensor<?x6xf32, #graph.dims<4 * n>>
  %e = graph.exp %p : tensor<2x?x3x4xf32, #graph.dims<n>>
  %u = graph.unpack %e {inner_dims_pos = [1, 0], inner_tiles = [3, 4], outer_dims_perm = [1, 0]} : tensor<2x?x3x4xf32, #graph.dims<n>>
  func.return %u : tensor<?x6xf32, #graph.dims<4 * n>>
}

// -----

// Partial tiles stay. What is unpacked and packed again loses its padding; what is packed and unpacked does not.
// CHECK-LABEL: func.func @partial
// CHECK-NEXT:    %p = graph.pack
// CHECK:         %s = graph.unpack
// SIMPLE-LABEL: func.func @partial
// SIMPLE-NEXT:    %p = graph.pack %x
// SIMPLE-NEXT:    %v = graph.unpack %y {{.*}} -> tensor<?xf32, #graph.dims<n>>
// SIMPLE-NEXT:    %q = graph.pack %v
// SIMPLE-NEXT:    func.return %q, %x, %p
func.func @partial(%x: tensor<?xf32, #graph.dims<n>>, %y: tensor<?x4xf32, #graph.dims<(n + 3) floordiv 4>>)
    -> (tensor<?x4xf32, #graph.dims<(n + 3) floordiv 4>>, tensor<?xf32, #graph.dims<n>>, tensor<?x4xf32, #graph.dims<(n + 3) floordiv 4>>) {
  %p = graph.pack %x {inner_dims_pos = 0, inner_tiles = 4, padding_value = 0.0} : tensor<?xf32, #graph.dims<n>>
  %u = graph.unpack %p {inner_dims_pos = 0, inner_tiles = 4, shape = #graph.dims<n>} : tensor<?x4xf32, #graph.dims<(n + 3) floordiv 4>>
  %v = graph.unpack %y {inner_dims_pos = 0, inner_tiles = 4, shape = #graph.dims<n>} : tensor<?x4xf32, #graph.dims<(n + 3) floordiv 4>>
  %q = graph.pack %v {inner_dims_pos = 0, inner_tiles = 4, padding_value = 0.0} : tensor<?xf32, #graph.dims<n>>
  %s = graph.unpack %p {inner_dims_pos = 0, inner_tiles = 4, shape = #graph.dims<n>} : tensor<?x4xf32, #graph.dims<(n + 3) floordiv 4>>
  func.return %q, %s, %p : tensor<?x4xf32, #graph.dims<(n + 3) floordiv 4>>, tensor<?xf32, #graph.dims<n>>, tensor<?x4xf32, #graph.dims<(n + 3) floordiv 4>>
}

// -----

// What is unpacked from full tiles and packed again is what it was, unless the layout is another one.
// SIMPLE-LABEL: func.func @again
// SIMPLE-NEXT:    %u = graph.unpack %x
// SIMPLE-NEXT:    %q = graph.pack %u {{.*}} inner_tiles = 4
// SIMPLE-NEXT:    func.return %x, %q
func.func @again(%x: tensor<2x3x8xf32>) -> (tensor<2x3x8xf32>, tensor<4x3x4xf32>) {
  %u = graph.unpack %x {inner_dims_pos = 0, inner_tiles = 8} : tensor<2x3x8xf32>
  %p = graph.pack %u {inner_dims_pos = [0], inner_tiles = [8], outer_dims_perm = [0, 1]} : tensor<16x3xf32>
  %q = graph.pack %u {inner_dims_pos = 0, inner_tiles = 4} : tensor<16x3xf32>
  func.return %p, %q : tensor<2x3x8xf32>, tensor<4x3x4xf32>
}
