// RUN: weft-opt %s -p 'graph-fuse,legalize-graph-to-te,lower-te-to-tir,default-schedule{target="llvm -mcpu=haswell -num-threads=1 -l1-bytes=32768 -l2-bytes=262144 -l2-ways=8 -l3-bytes=33554432"}' | filecheck %s
// RUN: weft-opt %s -p 'graph-fuse,legalize-graph-to-te,lower-te-to-tir,default-schedule{target="llvm -mcpu=haswell -num-threads=2 -l1-bytes=32768 -l2-bytes=1048576 -l2-ways=8 -l3-bytes=33554432"}' | filecheck %s --check-prefix=THREADS
// RUN: weft-opt %s -p 'graph-fuse,legalize-graph-to-te,lower-te-to-tir,default-schedule{target="llvm -mcpu=haswell -num-threads=2 -l1-bytes=32768 -l2-bytes=524288 -l2-ways=8 -l3-bytes=33554432"}' | filecheck %s --check-prefix=APART

// Strips of tiles: transformed by vectors of channels, multiplied in registers, and transformed back with the epilogue,
// one operator of the graph with what follows it.
// CHECK-LABEL: func.func private @fused_conv2d_winograd_add_relu
// CHECK:         tir.for %[[S:\w+]] in 2 {
// CHECK:           tir.block "conv2d_winograd_pad"
// CHECK:           tir.for %{{\w+}} in 6 unrolled {
// CHECK-NEXT:        tir.for %{{\w+}} in 6 unrolled {
// CHECK-NEXT:          tir.for %{{\w+}} in 8 vectorized {
// CHECK-NEXT:            tir.block "conv2d_winograd_rows"
// CHECK:           tir.for %{{\w+}} in 6 unrolled {
// CHECK-NEXT:        tir.for %{{\w+}} in 6 unrolled {
// CHECK-NEXT:          tir.for %{{\w+}} in 8 vectorized {
// CHECK-NEXT:            tir.block "conv2d_winograd_data"
// CHECK:           tir.block "conv2d_winograd_products_init"
// CHECK:           tir.for %{{\w+}} in 4 {
// CHECK-NEXT:        tir.for %{{\w+}} in 16 {
// CHECK-NEXT:          tir.for %{{\w+}} in 4 unrolled {
// CHECK-NEXT:            tir.for %{{\w+}} in 2 unrolled {
// CHECK-NEXT:              tir.for %{{\w+}} in 8 vectorized {
// CHECK-NEXT:                tir.block "conv2d_winograd_products_update"
// CHECK:           tir.block "conv2d_winograd_products_local"
// CHECK:           tir.for %{{\w+}} in 4 unrolled {
// CHECK-NEXT:        tir.for %{{\w+}} in 6 unrolled {
// CHECK-NEXT:          tir.for %{{\w+}} in 8 vectorized {
// CHECK-NEXT:            tir.block "conv2d_winograd_sums"
// CHECK:           tir.for %{{\w+}} in 4 unrolled {
// CHECK-NEXT:        tir.for %{{\w+}} in 4 unrolled {
// CHECK-NEXT:          tir.for %{{\w+}} in 8 vectorized {
// CHECK-NEXT:            tir.block "relu"

// Threads take strips where there are some.
// THREADS-LABEL: func.func private @fused_conv2d_winograd_add_relu
// THREADS:         tir.for %{{\w+}} in 2 parallel {
// THREADS:           tir.block "conv2d_winograd_data"
// THREADS-NOT:     parallel
// THREADS:           tir.block "conv2d_winograd_products_update"

// Kernels that exceed the second cache are passed by once: all tiles are transformed first, threads take filters.
// APART-LABEL: func.func private @fused_conv2d_winograd_add_relu
// APART:         tir.for %{{\w+}} in 4 parallel {
// APART:           tir.block "conv2d_winograd_data"
// APART:         tir.for %{{\w+}} in 4 parallel {
// APART-NOT:       parallel
// APART:           tir.block "conv2d_winograd_products_update"
// APART-NOT:       parallel
// APART:           tir.block "relu"

func.func @filtered(%x: tensor<1x4x14x14x16xf32>, %b: tensor<1x4x1x1x16xf32>) -> tensor<1x4x14x14x16xf32> {
  %w = graph.constant dense<0.5> : tensor<4x6x6x4x16x16xf32>
  %a = graph.conv2d_winograd %x, %w {padding = 1 : i64} : tensor<1x4x14x14x16xf32>, tensor<4x6x6x4x16x16xf32> -> tensor<1x4x14x14x16xf32>
  %s = graph.add %a, %b : tensor<1x4x14x14x16xf32>, tensor<1x4x1x1x16xf32> -> tensor<1x4x14x14x16xf32>
  %y = graph.relu %s : tensor<1x4x14x14x16xf32> -> tensor<1x4x14x14x16xf32>
  func.return %y : tensor<1x4x14x14x16xf32>
}
