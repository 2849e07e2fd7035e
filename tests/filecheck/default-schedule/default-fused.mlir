// RUN: weft-opt %s -p 'lower-graph,default-schedule{target="llvm -mcpu=znver3 -num-threads=4" only-trace=true}' --split-input-file | filecheck %s

// The default schedules of fused groups: what stands before and behind a contraction runs at its tiles.

// Epilogues with a residual, also where the batch is one image.
// CHECK-LABEL: sched.func @default_fused_conv2d_multiply_add_add_relu {
// CHECK-COUNT-3: sched.compute_inline
// CHECK:         %conv2d_local = sched.cache_write %conv2d
// CHECK:         %relu = sched.get_consumers %conv2d_local
// CHECK-NEXT:    sched.reverse_compute_inline %relu
// CHECK:         sched.reverse_compute_at %conv2d_local
// CHECK:         sched.compute_at %conv2d_pad
// CHECK:         sched.parallel
// CHECK-NOT:     sched.parallel
func.func @residual(%x: tensor<1x64x56x56xf32>, %w: tensor<64x64x3x3xf32>, %s: tensor<64x1x1xf32>, %b: tensor<64x1x1xf32>) -> tensor<1x64x56x56xf32> {
  %c = graph.conv2d %x, %w {padding = 1} : tensor<1x64x56x56xf32>, tensor<64x64x3x3xf32>
  %m = graph.multiply %c, %s : tensor<1x64x56x56xf32>, tensor<64x1x1xf32>
  %a = graph.add %m, %b : tensor<1x64x56x56xf32>, tensor<64x1x1xf32>
  %r = graph.add %a, %x : tensor<1x64x56x56xf32>, tensor<1x64x56x56xf32>
  %y = graph.relu %r : tensor<1x64x56x56xf32>
  func.return %y : tensor<1x64x56x56xf32>
}

// -----

// Scale, shift and activation in front of a convolution are computed with the border.
// CHECK-LABEL: sched.func @default_fused_multiply_add_relu_conv2d {
// CHECK-COUNT-3: sched.compute_inline
// CHECK:         sched.compute_at %conv2d_pad
// CHECK:         sched.parallel
// CHECK-NOT:     sched.parallel
func.func @preactivation(%x: tensor<1x64x56x56xf32>, %w: tensor<64x64x3x3xf32>, %s: tensor<64x1x1xf32>, %b: tensor<64x1x1xf32>) -> tensor<1x64x56x56xf32> {
  %m = graph.multiply %x, %s : tensor<1x64x56x56xf32>, tensor<64x1x1xf32>
  %a = graph.add %m, %b : tensor<1x64x56x56xf32>, tensor<64x1x1xf32>
  %r = graph.relu %a : tensor<1x64x56x56xf32>
  %c = graph.conv2d %r, %w {padding = 1} : tensor<1x64x56x56xf32>, tensor<64x64x3x3xf32>
  func.return %c : tensor<1x64x56x56xf32>
}

// -----

// The windows of a packed convolution read each element several times: a function in front of it is not repeated.
// CHECK-LABEL: sched.func @default_fused_tanh_conv2d {
// CHECK:         sched.compute_inline %tanh
// CHECK:         sched.reindex %conv2d {buffer = ["read", 0]}
// CHECK-NOT:     sched.compute_inline %conv2d_pad{{$}}
// CHECK:         sched.rfactor
func.func @function(%x: tensor<1x256x14x14xf32>, %w: tensor<256x256x3x3xf32>) -> tensor<1x256x14x14xf32> {
  %t = graph.tanh %x : tensor<1x256x14x14xf32>
  %c = graph.conv2d %t, %w {padding = 1} : tensor<1x256x14x14xf32>, tensor<256x256x3x3xf32>
  func.return %c : tensor<1x256x14x14xf32>
}

// -----

// Weights are computed while they are packed.
// CHECK-LABEL: sched.func @default_fused_cast_multiply_matmul_gelu {
// CHECK:         sched.compute_inline %cast
// CHECK:         %[[PACKED:\w+]] = sched.cache_read %matmul
// CHECK:         sched.reverse_compute_inline %gelu
// CHECK:         sched.compute_inline %multiply
// CHECK:         sched.compute_at %[[PACKED]]
func.func @quantized(%x: tensor<?x768xf32, #graph.dims<n>>, %w: tensor<768x3072xi8>, %s: tensor<3072xf32>) -> tensor<?x3072xf32, #graph.dims<n>> {
  %c = graph.cast %w {dtype = "float32"} : tensor<768x3072xi8>
  %m = graph.multiply %c, %s : tensor<768x3072xf32>, tensor<3072xf32>
  %p = graph.matmul %x, %m : tensor<?x768xf32, #graph.dims<n>>, tensor<768x3072xf32>
  %y = graph.gelu %p : tensor<?x3072xf32, #graph.dims<n>>
  func.return %y : tensor<?x3072xf32, #graph.dims<n>>
}

// -----

// One row of results reads the weights once.
// CHECK-LABEL: sched.func @default_fused_cast_multiply_matmul {
// CHECK:         sched.compute_inline %cast
// CHECK:         %multiply = sched.get_producers %matmul
// CHECK-NEXT:    sched.compute_inline %multiply
// CHECK:         sched.parallel
// CHECK-NOT:     sched.parallel
func.func @row(%x: tensor<1x768xf32>, %w: tensor<768x3072xi8>, %s: tensor<3072xf32>) -> tensor<1x3072xf32> {
  %c = graph.cast %w {dtype = "float32"} : tensor<768x3072xi8>
  %m = graph.multiply %c, %s : tensor<768x3072xf32>, tensor<3072xf32>
  %p = graph.matmul %x, %m : tensor<1x768xf32>, tensor<768x3072xf32>
  func.return %p : tensor<1x3072xf32>
}

// -----

// Known rows are a tile, because there may be one group of them. Threads share groups and tiles.
// CHECK-LABEL: sched.func @default_matmul {
// CHECK:         %[[TILES:\w+]], %[[ROWS:\w+]] = sched.split %i
// CHECK:         %[[SHARED:\w+]] = sched.fuse %b0, %[[TILES]]
// CHECK:         sched.parallel %[[SHARED]]
func.func @known_rows(%x: tensor<?x10x192xf32, #graph.dims<b>>) -> tensor<?x10x96xf32, #graph.dims<b>> {
  %w = graph.constant dense<1.0> : tensor<192x96xf32>
  %p = graph.matmul %x, %w : tensor<?x10x192xf32, #graph.dims<b>>, tensor<192x96xf32>
  func.return %p : tensor<?x10x96xf32, #graph.dims<b>>
}

// -----

// Two rows leave most of a tile empty.
// CHECK-LABEL: sched.func @default_matmul {
// CHECK:         sched.split %b0
// CHECK-NOT:     sched.split %i
func.func @two_rows(%x: tensor<?x2x192xf32, #graph.dims<b>>) -> tensor<?x2x96xf32, #graph.dims<b>> {
  %w = graph.constant dense<1.0> : tensor<192x96xf32>
  %p = graph.matmul %x, %w : tensor<?x2x192xf32, #graph.dims<b>>, tensor<192x96xf32>
  func.return %p : tensor<?x2x96xf32, #graph.dims<b>>
}
