// RUN: weft-opt %s -p 'graph-precision{precision=bf16 target="llvm -mcpu=znver4"}' --split-input-file | filecheck %s --check-prefixes=CHECK,BF16
// RUN: weft-opt %s -p 'graph-precision{precision=bf16 target="llvm -mcpu=haswell"}' --split-input-file | filecheck %s --check-prefixes=CHECK,PLAIN
// RUN: weft-opt %s -p 'graph-precision{precision=bf16 target="llvm -mcpu=emeraldrapids -mattr=-amx-bf16"}' --split-input-file | filecheck %s --check-prefixes=CHECK,PLAIN
// RUN: weft-opt %s -p 'graph-precision{precision=f16 target="llvm -mcpu=haswell"}' --split-input-file | filecheck %s --check-prefixes=CHECK,F16
// RUN: weft-opt %s -p 'graph-precision{precision=f32 target="llvm -mcpu=znver4"}' --split-input-file | filecheck %s --check-prefixes=CHECK,F32

// Weights are rounded when the program is built; what follows the product is in float32.
// CHECK-LABEL: func.func @product
// BF16-NEXT:     %[[X:.*]] = graph.cast %x {dtype = "bfloat16"}
// BF16-NEXT:     %[[W:.*]] = graph.constant dense<1.000000e+00> : tensor<4x2xbf16>
// BF16-NEXT:     %h = graph.matmul %[[X]], %[[W]] {out_dtype = "float32"}
// BF16-NEXT:     graph.add %h, %b : tensor<8x2xf32>
// PLAIN-NEXT:    %[[X:.*]] = graph.cast %x {dtype = "bfloat16"}
// PLAIN-NEXT:    %[[Y:.*]] = graph.cast %[[X]] {dtype = "float32"}
// PLAIN-NEXT:    %[[W:.*]] = graph.constant dense<1.000000e+00> : tensor<4x2xbf16>
// PLAIN-NEXT:    %h = graph.matmul %[[Y]], %[[W]] {out_dtype = "float32"}
// F16-NEXT:      %[[W:.*]] = graph.constant dense<1.000980e+00> : tensor<4x2xf16>
// F16-NEXT:      %h = graph.matmul %x, %[[W]] {out_dtype = "float32"}
// F32-NEXT:      %w = graph.constant dense<1.001000e+00> : tensor<4x2xf32>
// F32-NEXT:      %h = graph.matmul %x, %w : tensor<8x4xf32>
func.func @product(%x: tensor<8x4xf32>, %b: tensor<2xf32>) -> tensor<8x2xf32> {
  %w = graph.constant dense<1.001> : tensor<4x2xf32>
  %h = graph.matmul %x, %w : tensor<8x4xf32>, tensor<4x2xf32> -> tensor<8x2xf32>
  %y = graph.add %h, %b : tensor<8x2xf32>, tensor<2xf32> -> tensor<8x2xf32>
  func.return %y : tensor<8x2xf32>
}

// -----

// A value is rounded once, where it is computed.
// CHECK-LABEL: func.func @views
// BF16-NEXT:     %[[W:.*]] = graph.cast %w {dtype = "bfloat16"}
// BF16-NEXT:     %e = graph.exp %x
// BF16-NEXT:     %[[E:.*]] = graph.cast %e {dtype = "bfloat16"}
// BF16-NEXT:     %[[R:.*]] = graph.reshape %[[E]]
// BF16-NEXT:     graph.matmul %[[R]], %[[W]] {out_dtype = "float32"}
// BF16-NEXT:     graph.matmul %[[R]], %[[W]] {out_dtype = "float32"}
// F16-NOT:       graph.cast
func.func @views(%x: tensor<2x8x4xf32>, %w: tensor<4x16xf32>) -> tensor<16x16xf32> {
  %e = graph.exp %x : tensor<2x8x4xf32> -> tensor<2x8x4xf32>
  %r = graph.reshape %e {newshape = #graph.dims<16, 4>} : tensor<2x8x4xf32> -> tensor<16x4xf32>
  %y = graph.matmul %r, %w : tensor<16x4xf32>, tensor<4x16xf32> -> tensor<16x16xf32>
  %z = graph.matmul %r, %w : tensor<16x4xf32>, tensor<4x16xf32> -> tensor<16x16xf32>
  %s = graph.add %y, %z : tensor<16x16xf32>, tensor<16x16xf32> -> tensor<16x16xf32>
  func.return %s : tensor<16x16xf32>
}

// -----

// The mask stays as it is.
// CHECK-LABEL: func.func @attention
// BF16-NEXT:     %[[Q:.*]] = graph.cast %q {dtype = "bfloat16"}
// BF16-NEXT:     graph.attention %[[Q]], %[[Q]], %[[Q]], %m {out_dtype = "float32"}
// PLAIN-NEXT:    graph.attention %q, %q, %q, %m :
func.func @attention(%q: tensor<2x8x4xf32>, %m: tensor<8x8xf32>) -> tensor<2x8x4xf32> {
  %y = graph.attention %q, %q, %q, %m : tensor<2x8x4xf32>, tensor<2x8x4xf32>, tensor<2x8x4xf32>, tensor<8x8xf32> -> tensor<2x8x4xf32>
  func.return %y : tensor<2x8x4xf32>
}

// -----

// Pairs of channels; of an odd number a channel of zeros makes pairs, but not of a single one, which stays in float32.
// CHECK-LABEL: func.func @images
// BF16:          %[[V:.*]] = graph.cast %v {dtype = "bfloat16"}
// BF16-NEXT:     %[[P:.*]] = graph.pad %[[V]] {pad_width = {{\[\[}}0 : i64, 0 : i64], [0 : i64, 1 : i64], [0 : i64, 0 : i64], [0 : i64, 0 : i64]]}
// BF16:          %[[X:.*]] = graph.cast %x {dtype = "bfloat16"}
// BF16-NEXT:     %[[K:.*]] = graph.constant dense<5.000000e-01> : tensor<8x4x3x3xbf16>
// BF16-NEXT:     graph.conv2d %[[X]], %[[K]] {out_dtype = "float32"}
// BF16:          %[[L:.*]] = graph.constant dense<{{.*}}> : tensor<1x4x1x1xbf16>
// BF16:          graph.conv2d %[[P]], %[[L]] {out_dtype = "float32"} : tensor<1x4x9x9xbf16>
// BF16:          graph.conv2d %u, %m : tensor<1x1x9x9xf32>
// PLAIN-NOT:     bf16
func.func @images(%x: tensor<1x4x9x9xf32>, %v: tensor<1x3x9x9xf32>, %u: tensor<1x1x9x9xf32>) -> (tensor<1x8x7x7xf32>, tensor<1x1x9x9xf32>, tensor<1x8x7x7xf32>) {
  %k = graph.constant dense<0.5> : tensor<8x4x3x3xf32>
  %y = graph.conv2d %x, %k : tensor<1x4x9x9xf32>, tensor<8x4x3x3xf32> -> tensor<1x8x7x7xf32>
  %l = graph.constant dense<0.5> : tensor<1x3x1x1xf32>
  %z = graph.conv2d %v, %l : tensor<1x3x9x9xf32>, tensor<1x3x1x1xf32> -> tensor<1x1x9x9xf32>
  %m = graph.constant dense<0.5> : tensor<8x1x3x3xf32>
  %w = graph.conv2d %u, %m : tensor<1x1x9x9xf32>, tensor<8x1x3x3xf32> -> tensor<1x8x7x7xf32>
  func.return %y, %z, %w : tensor<1x8x7x7xf32>, tensor<1x1x9x9xf32>, tensor<1x8x7x7xf32>
}

// -----

// Products of bf16 stay, and any number of rows is rounded.
// CHECK-LABEL: func.func @rows
// BF16-NEXT:     %[[X:.*]] = graph.cast %x {dtype = "bfloat16"} : tensor<?x4xf32, #graph.dims<n>>
// BF16-NEXT:     graph.dense %[[X]], %w {out_dtype = "float32"}
func.func @rows(%x: tensor<?x4xf32, #graph.dims<n>>, %w: tensor<2x4xbf16>) -> tensor<?x2xf32, #graph.dims<n>> {
  %y = graph.dense %x, %w {out_dtype = "float32"} : tensor<?x4xf32, #graph.dims<n>>, tensor<2x4xbf16>
  func.return %y : tensor<?x2xf32, #graph.dims<n>>
}

// -----

// All readers of an image that convolutions read widen the rounded one, the pool that computes it among them.
// CHECK-LABEL: func.func @images
// BF16:          %r = graph.relu
// BF16-NEXT:     %[[R:.*]] = graph.cast %r {dtype = "bfloat16"}
// BF16-NEXT:     %[[WIDE:.*]] = graph.cast %[[R]] {dtype = "float32"}
// BF16-NEXT:     %p = graph.max_pool2d %[[WIDE]]
// BF16-NEXT:     %[[P:.*]] = graph.cast %p {dtype = "bfloat16"}
// BF16-NEXT:     %b = graph.conv2d %[[P]],
// BF16-NEXT:     %[[SUMMED:.*]] = graph.cast %[[P]] {dtype = "float32"}
// BF16-NEXT:     %s = graph.add %b, %[[SUMMED]]
// BF16-NEXT:     %[[S:.*]] = graph.cast %s {dtype = "bfloat16"}
// BF16-NEXT:     %c = graph.conv2d %[[S]],
// BF16-NEXT:     func.return %c, %s
// PLAIN-NOT:     graph.cast
// F16-NOT:       graph.cast
func.func @images(%x: tensor<1x2x8x8xf32>) -> (tensor<1x2x4x4xf32>, tensor<1x2x4x4xf32>) {
  %w = graph.constant dense<1.001> : tensor<2x2x1x1xf32>
  %a = graph.conv2d %x, %w : tensor<1x2x8x8xf32>, tensor<2x2x1x1xf32> -> tensor<1x2x8x8xf32>
  %r = graph.relu %a : tensor<1x2x8x8xf32> -> tensor<1x2x8x8xf32>
  %p = graph.max_pool2d %r {kernel = 2} : tensor<1x2x8x8xf32> -> tensor<1x2x4x4xf32>
  %b = graph.conv2d %p, %w : tensor<1x2x4x4xf32>, tensor<2x2x1x1xf32> -> tensor<1x2x4x4xf32>
  %s = graph.add %b, %p : tensor<1x2x4x4xf32>, tensor<1x2x4x4xf32> -> tensor<1x2x4x4xf32>
  %c = graph.conv2d %s, %w : tensor<1x2x4x4xf32>, tensor<2x2x1x1xf32> -> tensor<1x2x4x4xf32>
  func.return %c, %s : tensor<1x2x4x4xf32>, tensor<1x2x4x4xf32>
}

// -----

// Constant weights of states; weights that are not constant stay in float32.
// CHECK-LABEL: func.func @recurrent
// BF16:          %[[R:.*]] = graph.constant dense<1.000000e+00> : tensor<1x8x2xbf16>
// BF16-NEXT:     graph.lstm %x, none, %[[R]] : tensor<3x2x8xf32>, tensor<1x8x2xbf16> -> tensor<3x1x2x2xf32>
// BF16:          graph.lstm %x, none, %given : tensor<3x2x8xf32>, tensor<1x8x2xf32>
// PLAIN:         graph.lstm %x, none, %r : tensor<3x2x8xf32>, tensor<1x8x2xf32>
// F16:           %[[R:.*]] = graph.constant dense<1.000980e+00> : tensor<1x8x2xf16>
// F16-NEXT:      graph.lstm %x, none, %[[R]] : tensor<3x2x8xf32>, tensor<1x8x2xf16>
func.func @recurrent(%x: tensor<3x2x8xf32>, %given: tensor<1x8x2xf32>) -> (tensor<3x1x2x2xf32>, tensor<3x1x2x2xf32>) {
  %r = graph.constant dense<1.001> : tensor<1x8x2xf32>
  %a, %h, %c = graph.lstm %x, none, %r : tensor<3x2x8xf32>, tensor<1x8x2xf32>
  %b, %i, %d = graph.lstm %x, none, %given : tensor<3x2x8xf32>, tensor<1x8x2xf32>
  func.return %a, %b : tensor<3x1x2x2xf32>, tensor<3x1x2x2xf32>
}
