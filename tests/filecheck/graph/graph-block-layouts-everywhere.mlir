// RUN: weft-opt %s -p 'graph-block-layouts{target="llvm -mcpu=haswell" everywhere=true}' --split-input-file --validate | filecheck %s

// Operators compute in blocks if their expressions read whole blocks, whatever they are called: resizing, borders of
// whole blocks, concatenation, softmax over columns.
// CHECK-LABEL: func.func @inside
// CHECK:         %a = graph.conv2d {{.*}} -> tensor<1x1x4x4x16xf32>
// CHECK-NEXT:    %r = graph.resize2d %a {scales = 2.000000e+00 : f64, layout = "NCHWc"}
// CHECK-NEXT:    %p = graph.pad %r {pad_width = [{{\[}}0 : i64, 0 : i64], [1 : i64, 0 : i64], [0 : i64, 1 : i64], [0 : i64, 0 : i64], [0 : i64, 0 : i64]]}
// CHECK-SAME:      -> tensor<1x2x9x8x16xf32>
// CHECK-NEXT:    %s = graph.softmax %p {axis = 3 : i64}
// CHECK-NEXT:    %c = graph.concatenate %p, %s {axis = 1 : i64} {{.*}} -> tensor<1x4x9x8x16xf32>
// CHECK-NOT:     pack
// CHECK:         graph.conv2d %c
func.func @inside(%x: tensor<1x16x4x4xf32>) -> tensor<1x16x9x8xf32> {
  %w0 = graph.constant dense<0.5> : tensor<16x16x1x1xf32>
  %w1 = graph.constant dense<0.25> : tensor<16x64x1x1xf32>
  %a = graph.conv2d %x, %w0 : tensor<1x16x4x4xf32>, tensor<16x16x1x1xf32>
  %r = graph.resize2d %a {scales = 2.0} : tensor<1x16x4x4xf32>
  %p = graph.pad %r {pad_width = [[0, 0], [16, 0], [0, 1], [0, 0]]} : tensor<1x16x8x8xf32>
  %s = graph.softmax %p : tensor<1x32x9x8xf32>
  %c = graph.concatenate %p, %s {axis = -3} : tensor<1x32x9x8xf32>, tensor<1x32x9x8xf32>
  %y = graph.conv2d %c, %w1 : tensor<1x64x9x8xf32>, tensor<16x64x1x1xf32>
  func.return %y : tensor<1x16x9x8xf32>
}

// -----

// Sums over channels, channels in another order, borders of parts of blocks and axes that no attribute names do not:
// their operands are unpacked.
// CHECK-LABEL: func.func @outside
// CHECK:         %[[A:\w+]] = graph.unpack
// CHECK-NEXT:    graph.softmax %[[A]] {axis = 1
// CHECK-NEXT:    graph.flip %[[A]] {axis = 1
// CHECK-NEXT:    graph.instance_norm %[[A]]
// CHECK-NEXT:    graph.transpose %[[A]]
// CHECK-NEXT:    graph.pad %[[A]]
func.func @outside(%x: tensor<1x16x4x4xf32>) -> (tensor<1x16x4x4xf32>, tensor<1x16x4x4xf32>, tensor<1x16x4x4xf32>, tensor<1x16x4x4xf32>, tensor<1x32x4x4xf32>) {
  %w = graph.constant dense<0.5> : tensor<16x16x1x1xf32>
  %a = graph.conv2d %x, %w : tensor<1x16x4x4xf32>, tensor<16x16x1x1xf32>
  %s = graph.softmax %a {axis = 1} : tensor<1x16x4x4xf32>
  %f = graph.flip %a {axis = 1} : tensor<1x16x4x4xf32>
  %n = graph.instance_norm %a : tensor<1x16x4x4xf32>
  %t = graph.transpose %a {axes = [0, 1, 3, 2]} : tensor<1x16x4x4xf32>
  %p = graph.pad %a {pad_width = [[0, 0], [8, 8], [0, 0], [0, 0]]} : tensor<1x16x4x4xf32>
  func.return %s, %f, %n, %t, %p : tensor<1x16x4x4xf32>, tensor<1x16x4x4xf32>, tensor<1x16x4x4xf32>, tensor<1x16x4x4xf32>, tensor<1x32x4x4xf32>
}
