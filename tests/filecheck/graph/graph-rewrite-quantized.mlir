// RUN: weft-opt %s -p 'graph-rewrite{rules=quantized}' --split-input-file --validate | filecheck %s
// RUN: weft-opt %s -p 'graph-rewrite{rules=norms,scales}' --split-input-file | filecheck %s --check-prefix=OFF

// A convolution of dequantized numbers is one of integers less their zero points; the bias is added to the sums, which
// are requantized by one factor for each channel. The limits of the rectifier are those of the type.
// CHECK-LABEL: func.func @convolution
// CHECK:         %[[W:\w+]] = graph.cast %x {dtype = "int16"}
// CHECK-NEXT:    %[[Z:\w+]] = graph.constant dense<3> : tensor<i16>
// CHECK-NEXT:    %[[X:\w+]] = graph.subtract %[[W]], %[[Z]]
// CHECK:         graph.constant dense<{{.*}}> : tensor<2x2x1x1xi16>
// CHECK:         %[[C:\w+]] = graph.conv2d %[[X]], %{{.*}} {padding = 1 : i64, out_dtype = "int32"}
// CHECK:         %[[B:\w+]] = graph.constant dense<{{\[\[\[}}7]], {{\[\[}}-9]]]> : tensor<2x1x1xi32>
// CHECK:         %[[S:\w+]] = graph.add %[[C]], %[[B]]
// CHECK:         %[[F:\w+]] = graph.cast %[[S]] {dtype = "float32"}
// CHECK:         graph.constant dense<{{\[\[\[}}5.{{0*e-01}}]], {{\[\[}}1.{{0*(e\+00)?}}]]]> : tensor<2x1x1xf32>
// CHECK:         %[[Y:\w+]] = graph.multiply %[[F]]
// CHECK-NEXT:    %[[R:\w+]] = graph.round %[[Y]]
// CHECK-NEXT:    %[[I:\w+]] = graph.cast %[[R]] {dtype = "int32"}
// CHECK-NEXT:    %[[L:\w+]] = graph.clip %[[I]] {a_min = 0 : i64, a_max = 255 : i64}
// CHECK-NEXT:    %q = graph.cast %[[L]] {dtype = "uint8"}
// CHECK-NEXT:    func.return %q
// OFF-LABEL:   func.func @convolution
// OFF:           graph.conv2d {{.*}} -> tensor<1x2x5x5xf32>
func.func @convolution(%x: tensor<1x2x3x3xui8>) -> tensor<1x2x5x5xui8> {
  %sx = graph.constant dense<0.5> : tensor<f32>
  %zx = graph.constant dense<3> : tensor<ui8>
  %w = graph.constant dense<[[[[1]], [[-2]]], [[[3]], [[4]]]]> : tensor<2x2x1x1xi8>
  %sw = graph.constant dense<[0.25, 0.5]> : tensor<2xf32>
  %b = graph.constant dense<[7, -9]> : tensor<2xi32>
  %sb = graph.constant dense<[0.125, 0.25]> : tensor<2xf32>
  %sy = graph.constant dense<0.25> : tensor<f32>
  %zero = graph.constant dense<0> : tensor<ui8>
  %dx = graph.dequantize %x, %sx, %zx : tensor<1x2x3x3xui8>, tensor<f32>, tensor<ui8>
  %dw = graph.dequantize %w, %sw {axis = 0} : tensor<2x2x1x1xi8>, tensor<2xf32>
  %db = graph.dequantize %b, %sb {axis = 0} : tensor<2xi32>, tensor<2xf32>
  %eb = graph.expand_dims %db {axis = [1, 2]} : tensor<2xf32>
  %c = graph.conv2d %dx, %dw {padding = 1} : tensor<1x2x3x3xf32>, tensor<2x2x1x1xf32>
  %a = graph.add %c, %eb : tensor<1x2x5x5xf32>, tensor<2x1x1xf32>
  %r = graph.relu %a : tensor<1x2x5x5xf32>
  %q = graph.quantize %r, %sy, %zero {dtype = "uint8"} : tensor<1x2x5x5xf32>, tensor<f32>, tensor<ui8>
  func.return %q : tensor<1x2x5x5xui8>
}

// -----

// Between products numbers are int16 less their zero points.
// CHECK-LABEL: func.func @between
// CHECK:         graph.matmul {{.*}} -> tensor<2x4xi32>
// CHECK:         %[[R:\w+]] = graph.round
// CHECK-NEXT:    %[[I:\w+]] = graph.cast %[[R]] {dtype = "int32"}
// CHECK-NEXT:    %[[L:\w+]] = graph.clip %[[I]] {a_min = -138 : i64, a_max = 117 : i64}
// CHECK-NEXT:    %[[Q:\w+]] = graph.cast %[[L]] {dtype = "int16"}
// CHECK:         graph.matmul %[[Q]], {{.*}} -> tensor<2x4xi32>
// CHECK-NOT:     graph.quantize
// OFF-LABEL:   func.func @between
// OFF:           graph.quantize
func.func @between(%x: tensor<2x4xi8>) -> tensor<2x4xf32> {
  %s = graph.constant dense<0.125> : tensor<f32>
  %z = graph.constant dense<10> : tensor<i8>
  %w = graph.constant dense<[[1, 2, 3, 4], [-1, -2, -3, -4], [5, 6, 7, 8], [0, 1, 0, 1]]> : tensor<4x4xi8>
  %dx = graph.dequantize %x, %s, %z : tensor<2x4xi8>, tensor<f32>, tensor<i8>
  %dw = graph.dequantize %w, %s : tensor<4x4xi8>, tensor<f32>
  %p = graph.matmul %dx, %dw : tensor<2x4xf32>, tensor<4x4xf32>
  %q = graph.quantize %p, %s, %z {dtype = "int8"} : tensor<2x4xf32>, tensor<f32>, tensor<i8>
  %d = graph.dequantize %q, %s, %z : tensor<2x4xi8>, tensor<f32>, tensor<i8>
  %y = graph.matmul %d, %dw : tensor<2x4xf32>, tensor<4x4xf32>
  func.return %y : tensor<2x4xf32>
}

// -----

// Bytes that are quantized as they were are moved.
// CHECK-LABEL: func.func @moved
// CHECK-NEXT:    %q = graph.max_pool2d %x {kernel = 2 : i64}
// CHECK-NEXT:    func.return %q
func.func @moved(%x: tensor<1x2x4x4xui8>) -> tensor<1x2x2x2xui8> {
  %s = graph.constant dense<0.1> : tensor<f32>
  %z = graph.constant dense<5> : tensor<ui8>
  %d = graph.dequantize %x, %s, %z : tensor<1x2x4x4xui8>, tensor<f32>, tensor<ui8>
  %p = graph.max_pool2d %d {kernel = 2} : tensor<1x2x4x4xf32>
  %q = graph.quantize %p, %s, %z {dtype = "uint8"} : tensor<1x2x2x2xf32>, tensor<f32>, tensor<ui8>
  func.return %q : tensor<1x2x2x2xui8>
}

// -----

// Not with a scale for each row that is summed over.
// CHECK-LABEL: func.func @rows
// CHECK:         graph.matmul {{.*}} -> tensor<2x2xf32>
func.func @rows(%x: tensor<2x2xui8>) -> tensor<2x2xf32> {
  %s = graph.constant dense<0.1> : tensor<f32>
  %w = graph.constant dense<[[1, 2], [3, 4]]> : tensor<2x2xi8>
  %sw = graph.constant dense<[0.25, 0.5]> : tensor<2xf32>
  %d = graph.dequantize %x, %s : tensor<2x2xui8>, tensor<f32>
  %dw = graph.dequantize %w, %sw {axis = 0} : tensor<2x2xi8>, tensor<2xf32>
  %y = graph.matmul %d, %dw : tensor<2x2xf32>, tensor<2x2xf32>
  func.return %y : tensor<2x2xf32>
}
