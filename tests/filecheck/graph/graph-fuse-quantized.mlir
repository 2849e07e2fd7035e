// RUN: weft-opt %s -p 'graph-fuse' --split-input-file --validate | filecheck %s

// Each reader of a dequantized tensor dequantizes it: memory holds the integers of `q`.
// CHECK-LABEL: func.func @readers
// CHECK-NEXT:    %q = graph.call_tir @fused_round_cast(%x) : (tensor<2x4xf32>) -> tensor<2x4xi16>
// CHECK-NEXT:    %s = graph.call_tir @fused_cast_multiply_sum(%q) : (tensor<2x4xi16>) -> tensor<2xf32>
// CHECK-NEXT:    %t = graph.call_tir @fused_cast_multiply_transpose(%q) : (tensor<2x4xi16>) -> tensor<4x2xf32>
func.func @readers(%x: tensor<2x4xf32>) -> (tensor<2xf32>, tensor<4x2xf32>) {
  %scale = graph.constant dense<0.5> : tensor<f32>
  %r = graph.round %x : tensor<2x4xf32>
  %q = graph.cast %r {dtype = "int16"} : tensor<2x4xf32>
  %f = graph.cast %q {dtype = "float32"} : tensor<2x4xi16>
  %d = graph.multiply %f, %scale : tensor<2x4xf32>, tensor<f32>
  %s = graph.sum %d {axis = 1} : tensor<2x4xf32>
  %t = graph.transpose %d : tensor<2x4xf32>
  func.return %s, %t : tensor<2xf32>, tensor<4x2xf32>
}

// -----

// Windows that overlap dequantize elements several times. A concatenation is computed with the quantization behind it.
// CHECK-LABEL: func.func @windows
// CHECK-NEXT:    %q = graph.call_tir @fused_conv2d_round_cast(%x, %w) {{.*}} -> tensor<1x1x4x4xi16>
// CHECK-NEXT:    %p = graph.call_tir @fused_cast_multiply_avg_pool2d_cast(%q) {{.*}} -> tensor<1x1x2x2xi8>
// CHECK-NEXT:    %o = graph.call_tir @fused_cast_multiply_concatenate_round_cast(%p) {{.*}} -> tensor<1x2x2x2xi8>
// CHECK-NEXT:    %y = graph.conv2d %o, %v
func.func @windows(%x: tensor<1x1x4x4xf32>, %w: tensor<1x1x1x1xf32>, %v: tensor<1x2x1x1xi8>) -> tensor<1x1x2x2xi8> {
  %scale = graph.constant dense<0.5> : tensor<f32>
  %c = graph.conv2d %x, %w : tensor<1x1x4x4xf32>, tensor<1x1x1x1xf32>
  %r = graph.round %c : tensor<1x1x4x4xf32>
  %q = graph.cast %r {dtype = "int16"} : tensor<1x1x4x4xf32>
  %f = graph.cast %q {dtype = "float32"} : tensor<1x1x4x4xi16>
  %d = graph.multiply %f, %scale : tensor<1x1x4x4xf32>, tensor<f32>
  %a = graph.avg_pool2d %d {kernel = 3, strides = 2, padding = 1} : tensor<1x1x4x4xf32>
  %p = graph.cast %a {dtype = "int8"} : tensor<1x1x2x2xf32>
  %g = graph.cast %p {dtype = "float32"} : tensor<1x1x2x2xi8>
  %e = graph.multiply %g, %scale : tensor<1x1x2x2xf32>, tensor<f32>
  %cat = graph.concatenate %e, %e {axis = 1} : tensor<1x1x2x2xf32>, tensor<1x1x2x2xf32>
  %n = graph.round %cat : tensor<1x2x2x2xf32>
  %o = graph.cast %n {dtype = "int8"} : tensor<1x2x2x2xf32>
  %y = graph.conv2d %o, %v : tensor<1x2x2x2xi8>, tensor<1x2x1x1xi8>
  func.return %y : tensor<1x1x2x2xi8>
}

// -----

// A function of exponentials is evaluated once.
// CHECK-LABEL: func.func @exponentials
// CHECK-NEXT:    %d = graph.call_tir @fused_cast_sigmoid(%q)
// CHECK-NEXT:    %s = graph.sum %d
// CHECK-NEXT:    %t = graph.transpose %d
func.func @exponentials(%q: tensor<2x4xi16>) -> (tensor<2xf32>, tensor<4x2xf32>) {
  %f = graph.cast %q {dtype = "float32"} : tensor<2x4xi16>
  %d = graph.sigmoid %f : tensor<2x4xf32>
  %s = graph.sum %d {axis = 1} : tensor<2x4xf32>
  %t = graph.transpose %d : tensor<2x4xf32>
  func.return %s, %t : tensor<2xf32>, tensor<4x2xf32>
}

// -----

// The reader of a rounded sum widens it: memory holds bf16.
// CHECK-LABEL: func.func @rounded
// CHECK-NEXT:    %h = graph.call_tir @fused_matmul_cast(%x, %v) : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xbf16>
// CHECK-NEXT:    %s = graph.call_tir @fused_cast_sum(%h) : (tensor<4x8xbf16>) -> tensor<4xf32>
func.func @rounded(%x: tensor<4x8xf32>, %v: tensor<8x8xf32>) -> tensor<4xf32> {
  %e = graph.matmul %x, %v : tensor<4x8xf32>, tensor<8x8xf32> -> tensor<4x8xf32>
  %h = graph.cast %e {dtype = "bfloat16"} : tensor<4x8xf32> -> tensor<4x8xbf16>
  %w = graph.cast %h {dtype = "float32"} : tensor<4x8xbf16> -> tensor<4x8xf32>
  %s = graph.sum %w {axis = 1} : tensor<4x8xf32> -> tensor<4xf32>
  func.return %s : tensor<4xf32>
}

// -----

// Two products are added. The results of the first are rounded by its own kernel: memory holds 16 bits, not 32.
// CHECK-LABEL: func.func @sum_of_products
// CHECK:         %[[A:\w+]] = graph.call_tir @fused_matmul_cast_multiply_round_cast(%x, %w) : (tensor<4x4xui8>, tensor<4x4xi8>) -> tensor<4x4xi16>
// CHECK-NEXT:    graph.call_tir @fused_matmul_cast_multiply_round_cast_and_3_more(%y, %w, %[[A]])
func.func @sum_of_products(%x: tensor<4x4xui8>, %y: tensor<4x4xui8>, %w: tensor<4x4xi8>) -> tensor<4x4xf32> {
  %scale = graph.constant dense<0.5> : tensor<f32>
  %a = graph.matmul %x, %w {out_dtype = "int32"} : tensor<4x4xui8>, tensor<4x4xi8> -> tensor<4x4xi32>
  %b = graph.matmul %y, %w {out_dtype = "int32"} : tensor<4x4xui8>, tensor<4x4xi8> -> tensor<4x4xi32>
  %c = graph.cast %a {dtype = "float32"} : tensor<4x4xi32>
  %d = graph.cast %b {dtype = "float32"} : tensor<4x4xi32>
  %e = graph.multiply %c, %scale : tensor<4x4xf32>, tensor<f32>
  %f = graph.multiply %d, %scale : tensor<4x4xf32>, tensor<f32>
  %g = graph.round %e : tensor<4x4xf32>
  %h = graph.round %f : tensor<4x4xf32>
  %i = graph.cast %g {dtype = "int16"} : tensor<4x4xf32>
  %j = graph.cast %h {dtype = "int16"} : tensor<4x4xf32>
  %k = graph.cast %i {dtype = "float32"} : tensor<4x4xi16>
  %l = graph.cast %j {dtype = "float32"} : tensor<4x4xi16>
  %s = graph.add %k, %l : tensor<4x4xf32>, tensor<4x4xf32>
  func.return %s : tensor<4x4xf32>
}

// -----

// A lookup in a small table is part of the product that computes its indices.
// CHECK-LABEL: func.func @lookup
// CHECK:         graph.call_tir @fused_matmul_cast_take(
func.func @lookup(%x: tensor<4x4xui8>, %w: tensor<4x4xi8>, %t: tensor<256xui8>) -> tensor<4x4xui8> {
  %a = graph.matmul %x, %w {out_dtype = "int32"} : tensor<4x4xui8>, tensor<4x4xi8> -> tensor<4x4xi32>
  %b = graph.cast %a {dtype = "uint8"} : tensor<4x4xi32>
  %s = graph.take %t, %b {axis = 0 : i64, mode = "fast"} : tensor<256xui8>, tensor<4x4xui8> -> tensor<4x4xui8>
  func.return %s : tensor<4x4xui8>
}
