// RUN: weft-opt %s -p 'graph-widen-floats' --split-input-file | filecheck %s

// The weights are read as they are; the result is rounded once.
// CHECK-LABEL: func.func @product
// CHECK-NEXT:    %[[X:.*]] = graph.cast %x {dtype = "float32"}
// CHECK-NEXT:    %h = graph.matmul %[[X]], %w {out_dtype = "float32"} : tensor<8x4xf32>, tensor<4x2xf16>
// CHECK-NEXT:    %y = graph.relu %h : tensor<8x2xf32>
// CHECK-NEXT:    %[[Y:.*]] = graph.cast %y {dtype = "float16"}
// CHECK-NEXT:    func.return %[[Y]]
func.func @product(%x: tensor<8x4xf16>, %w: tensor<4x2xf16>) -> tensor<8x2xf16> {
  %h = graph.matmul %x, %w : tensor<8x4xf16>, tensor<4x2xf16> -> tensor<8x2xf16>
  %y = graph.relu %h : tensor<8x2xf16> -> tensor<8x2xf16>
  func.return %y : tensor<8x2xf16>
}

// -----

// Elements that are only moved keep their type.
// CHECK-LABEL: func.func @moved
// CHECK-NEXT:    %[[X:.*]] = graph.cast %x {dtype = "float32"}
// CHECK-NEXT:    %a = graph.exp %[[X]]
// CHECK-NEXT:    %[[A:.*]] = graph.cast %a {dtype = "float16"}
// CHECK-NEXT:    %y = graph.concatenate %[[A]], %p
// CHECK-NEXT:    %b = graph.isnan %a : tensor<8x4xf32>
// CHECK-NEXT:    func.return %y, %b
func.func @moved(%x: tensor<8x4xf16>, %p: tensor<5x4xf16>) -> (tensor<13x4xf16>, tensor<8x4xi1>) {
  %a = graph.exp %x : tensor<8x4xf16> -> tensor<8x4xf16>
  %y = graph.concatenate %a, %p {axis = 0} : tensor<8x4xf16>, tensor<5x4xf16> -> tensor<13x4xf16>
  %b = graph.isnan %a : tensor<8x4xf16> -> tensor<8x4xi1>
  func.return %y, %b : tensor<13x4xf16>, tensor<8x4xi1>
}

// -----

// Casts to 16 bits round; those of what was computed need not.
// CHECK-LABEL: func.func @casts
// CHECK-NEXT:    %n = graph.cast %x {dtype = "bfloat16"}
// CHECK-NEXT:    %[[N:.*]] = graph.cast %n {dtype = "float32"}
// CHECK-NEXT:    %e = graph.exp %[[N]] : tensor<3xf32>
// CHECK-NEXT:    func.return %e
func.func @casts(%x: tensor<3xf32>) -> tensor<3xf32> {
  %n = graph.cast %x {dtype = "bfloat16"} : tensor<3xf32> -> tensor<3xbf16>
  %e = graph.exp %n : tensor<3xbf16> -> tensor<3xbf16>
  %y = graph.cast %e {dtype = "float32"} : tensor<3xbf16> -> tensor<3xf32>
  func.return %y : tensor<3xf32>
}

// -----

// Constants of convolutions are widened when the program is built, so that scales can be folded into them.
// CHECK-LABEL: func.func @images
// CHECK-NEXT:    %[[X:.*]] = graph.cast %x {dtype = "float32"}
// CHECK-NEXT:    %[[K:.*]] = graph.constant dense<5.000000e-01> : tensor<8x4x3x3xf32>
// CHECK-NEXT:    graph.conv2d %[[X]], %[[K]] : tensor<1x4x9x9xf32>
func.func @images(%x: tensor<1x4x9x9xf16>) -> tensor<1x8x7x7xf16> {
  %k = graph.constant dense<0.5> : tensor<8x4x3x3xf16>
  %y = graph.conv2d %x, %k : tensor<1x4x9x9xf16>, tensor<8x4x3x3xf16> -> tensor<1x8x7x7xf16>
  func.return %y : tensor<1x8x7x7xf16>
}

// -----

// Scales are read as they are, also with data of 16 bits.
// CHECK-LABEL: func.func @scales
// CHECK-NEXT:    %y = graph.dequantized_matmul %x, %w, %s {group_size = 8 : i64} : tensor<1x8xf32>, tensor<16x4xui8>, tensor<16x1xf16>
// CHECK-NEXT:    func.return %y
func.func @scales(%x: tensor<1x8xf32>, %w: tensor<16x4xui8>, %s: tensor<16x1xf16>) -> tensor<1x16xf32> {
  %y = graph.dequantized_matmul %x, %w, %s {group_size = 8} : tensor<1x8xf32>, tensor<16x4xui8>, tensor<16x1xf16> -> tensor<1x16xf32>
  func.return %y : tensor<1x16xf32>
}

// -----

// CHECK-LABEL: func.func @narrow_data
// CHECK-NEXT:    %[[X:.*]] = graph.cast %x {dtype = "float32"}
// CHECK-NEXT:    %y = graph.dequantized_matmul %[[X]], %w, %s {group_size = 8 : i64} : tensor<1x8xf32>, tensor<16x4xui8>, tensor<16x1xbf16>
// CHECK-NEXT:    %[[Y:.*]] = graph.cast %y {dtype = "bfloat16"}
// CHECK-NEXT:    func.return %[[Y]]
func.func @narrow_data(%x: tensor<1x8xbf16>, %w: tensor<16x4xui8>, %s: tensor<16x1xbf16>) -> tensor<1x16xbf16> {
  %y = graph.dequantized_matmul %x, %w, %s {group_size = 8} : tensor<1x8xbf16>, tensor<16x4xui8>, tensor<16x1xbf16> -> tensor<1x16xbf16>
  func.return %y : tensor<1x16xbf16>
}
