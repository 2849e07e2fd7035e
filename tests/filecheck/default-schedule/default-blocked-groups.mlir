// RUN: weft-opt %s -p 'graph-fuse,legalize-graph-to-te,lower-te-to-tir,default-schedule{target="llvm -mcpu=znver5 -num-threads=1 -l1-bytes=49152 -l2-bytes=1048576 -l2-ways=16 -l3-bytes=33554432"}' | filecheck %s

// Rows and columns of the transposed image are one axis of square tiles. The transposition is not inlined in the
// padding, whose loads are conditional.
// CHECK-LABEL: func.func private @fused_transpose_conv2d
// CHECK:           tir.for %{{.*}} in 13 {
// CHECK-NEXT:        tir.for %{{.*}} in 2 {
// CHECK-NEXT:          tir.for %{{.*}} in 16 {
// CHECK-NEXT:            tir.for %{{.*}} in 16 vectorized {
// CHECK-NEXT:              tir.block "transpose" {{.*}}floordiv 14

// The channels of a group are padded before its filters are computed.
// CHECK:         tir.for %n in 1 {
// CHECK-NEXT:      tir.for %b in 2 {
// CHECK-NEXT:        tir.for %{{.*}} in 16 {
// CHECK-NEXT:          tir.for %{{.*}} in 16 {
// CHECK-NEXT:            tir.for %{{.*}} in 3 {
// CHECK-NEXT:              tir.for %{{.*}} in 8 vectorized {
// CHECK-NEXT:                tir.block "conv2d_pad"

// A block of 24 filters is one and a half vectors.
// CHECK:         tir.for %rc in 24 {
// CHECK-NEXT:      tir.for %{{.*}} in 14 unrolled {
// CHECK-NEXT:      tir.for %c0 in 2 unrolled {
// CHECK-NEXT:        tir.for %{{.*}} in 16 vectorized {
// CHECK-NEXT:          tir.block "conv2d_update" {{.*}} where [%c0 * 16 + %{{.*}}] < [24]
func.func @groups(%x: tensor<1x2x24x14x14xf32>) -> tensor<1x2x14x14x24xf32> {
  %w = graph.constant dense<0.5> : tensor<2x1x3x3x24x24xf32>
  %d = graph.transpose %x {axes = [0, 1, 3, 4, 2]} : tensor<1x2x24x14x14xf32> -> tensor<1x2x14x14x24xf32>
  %a = graph.conv2d %d, %w {data_layout = "NCHWc", groups = 2 : i64, padding = 1 : i64} : tensor<1x2x14x14x24xf32>, tensor<2x1x3x3x24x24xf32> -> tensor<1x2x14x14x24xf32>
  func.return %a : tensor<1x2x14x14x24xf32>
}

// A block of 12 filters is no multiple of 8: vectors of 4 divide it.
// CHECK-LABEL: func.func private @conv2d
// CHECK:         tir.for %rc in 16 {
// CHECK-NEXT:      tir.for %{{.*}} in 7 unrolled {
// CHECK-NEXT:        tir.for %{{.*}} in 3 unrolled {
// CHECK-NEXT:          tir.for %{{.*}} in 4 vectorized {
// CHECK-NEXT:            tir.block "conv2d_update"
func.func @twelve(%x: tensor<1x2x14x14x16xf32>) -> tensor<1x2x14x14x12xf32> {
  %w = graph.constant dense<0.5> : tensor<2x2x3x3x16x12xf32>
  %a = graph.conv2d %x, %w {data_layout = "NCHWc", padding = 1 : i64} : tensor<1x2x14x14x16xf32>, tensor<2x2x3x3x16x12xf32> -> tensor<1x2x14x14x12xf32>
  func.return %a : tensor<1x2x14x14x12xf32>
}
