// RUN: weft-opt %s -p 'graph-fuse,legalize-graph-to-te,lower-te-to-tir,default-schedule{target="llvm -mcpu=haswell -num-threads=1 -l1-bytes=32768 -l2-bytes=65536 -l2-ways=8 -l3-bytes=33554432"}' | filecheck %s
// RUN: weft-opt %s -p 'graph-fuse,legalize-graph-to-te,lower-te-to-tir,default-schedule{target="llvm -mcpu=haswell -num-threads=2 -l1-bytes=32768 -l2-bytes=65536 -l2-ways=8 -l3-bytes=33554432"}' | filecheck %s --check-prefix=THREADS
// RUN: weft-opt %s -p 'graph-fuse,legalize-graph-to-te,lower-te-to-tir,default-schedule{target="llvm -mcpu=haswell -num-threads=1 -l1-bytes=32768 -l2-bytes=1048576 -l2-ways=8 -l3-bytes=33554432"}' | filecheck %s --check-prefix=WHOLE

// Data that the second cache does not hold: all blocks of filters for the pixels of a strip.
// CHECK-LABEL: func.func private @fused_conv2d_relu
// CHECK:         tir.for %{{.*}} in 5 {
// CHECK-NEXT:      tir.for %{{.*}} in 8 {
// CHECK-NEXT:        tir.for %{{.*}} in 10 {
// CHECK:               tir.block "conv2d_update"

// Threads share the blocks of filters, not the strips.
// THREADS-LABEL: func.func private @fused_conv2d_relu
// THREADS:         tir.for %{{.*}} in 2 parallel {
// THREADS-NEXT:      tir.for %{{.*}} in 5 {
// THREADS-NEXT:        tir.for %{{.*}} in 4 {
// THREADS-NEXT:          tir.for %{{.*}} in 10 {
// THREADS:                 tir.block "conv2d_update"

// WHOLE-LABEL: func.func private @fused_conv2d_relu
// WHOLE:         tir.for %{{.*}} in 8 {
// WHOLE-NEXT:      tir.for %{{.*}} in 49 {
// WHOLE:             tir.block "conv2d_update"

func.func @points(%x: tensor<1x8x14x14x16xf32>) -> tensor<1x8x14x14x16xf32> {
  %w = graph.constant dense<0.5> : tensor<8x8x1x1x16x16xf32>
  %a = graph.conv2d %x, %w {data_layout = "NCHWc"} : tensor<1x8x14x14x16xf32>, tensor<8x8x1x1x16x16xf32> -> tensor<1x8x14x14x16xf32>
  %y = graph.relu %a : tensor<1x8x14x14x16xf32> -> tensor<1x8x14x14x16xf32>
  func.return %y : tensor<1x8x14x14x16xf32>
}
