// RUN: weft-opt %s -p 'graph-rewrite{rules=tables}' --split-input-file --validate | filecheck %s
// RUN: weft-opt %s -p 'graph-rewrite' --split-input-file | filecheck %s --check-prefix=OFF
// OFF-NOT: graph.take

// A sigmoid and the product with its operand, both rounded, are one table.
// CHECK-LABEL: func.func @silu
// CHECK-NEXT:    %[[T:\w+]] = graph.constant dense<{{.*}}> : tensor<256xui8>
// CHECK-NEXT:    %p = graph.take %[[T]], %x {axis = 0 : i64, mode = "fast"} : tensor<256xui8>, tensor<2x3xui8> -> tensor<2x3xui8>
// CHECK-NEXT:    func.return %p
func.func @silu(%x: tensor<2x3xui8>) -> tensor<2x3xui8> {
  %scale = graph.constant dense<0.0625> : tensor<f32>
  %zero = graph.constant dense<128> : tensor<ui8>
  %step = graph.constant dense<0.00390625> : tensor<f32>
  %d = graph.dequantize %x, %scale, %zero : tensor<2x3xui8>, tensor<f32>, tensor<ui8>
  %s = graph.sigmoid %d : tensor<2x3xf32>
  %q = graph.quantize %s, %step {dtype = "uint8"} : tensor<2x3xf32>, tensor<f32>
  %e = graph.dequantize %q, %step : tensor<2x3xui8>, tensor<f32>
  %m = graph.multiply %d, %e : tensor<2x3xf32>, tensor<2x3xf32>
  %p = graph.quantize %m, %scale, %zero {dtype = "uint8"} : tensor<2x3xf32>, tensor<f32>, tensor<ui8>
  func.return %p : tensor<2x3xui8>
}

// -----

// Signed bytes are counted from the least. Views keep the order, dequantized constants are numbers.
// CHECK-LABEL: func.func @signed
// CHECK:         %[[W:\w+]] = graph.cast %x {dtype = "int16"}
// CHECK:         %[[I:\w+]] = graph.subtract %[[W]], %{{.*}} : tensor<2x3xi16>, tensor<i16>
// CHECK:         %[[L:\w+]] = graph.take %{{.*}}, %[[I]] {axis = 0 : i64, mode = "fast"} : tensor<256xi8>, tensor<2x3xi16> -> tensor<2x3xi8>
// CHECK:         graph.reshape %[[L]] {newshape = #graph.dims<6>}
func.func @signed(%x: tensor<2x3xi8>) -> tensor<6xi8> {
  %scale = graph.constant dense<0.0625> : tensor<f32>
  %two = graph.constant dense<2> : tensor<i8>
  %half = graph.constant dense<0.25> : tensor<f32>
  %c = graph.dequantize %two, %half : tensor<i8>, tensor<f32>
  %v = graph.reshape %x {newshape = #graph.dims<6>} : tensor<2x3xi8> -> tensor<6xi8>
  %d = graph.dequantize %v, %scale : tensor<6xi8>, tensor<f32>
  %t = graph.tanh %d : tensor<6xf32>
  %m = graph.multiply %t, %c : tensor<6xf32>, tensor<f32>
  %q = graph.quantize %m, %scale {dtype = "int8"} : tensor<6xf32>, tensor<f32>
  func.return %q : tensor<6xi8>
}

// -----

// A rectifier is a few instructions; a scale for each channel, and a sum of two tensors, are no functions of one byte.
// CHECK-LABEL: func.func @others
// CHECK-NOT:     graph.take
func.func @others(%x: tensor<2x3xui8>, %y: tensor<2x3xui8>) -> (tensor<2x3xui8>, tensor<2x3xui8>, tensor<2x3xui8>) {
  %scale = graph.constant dense<0.0625> : tensor<f32>
  %double = graph.constant dense<0.125> : tensor<f32>
  %scales = graph.constant dense<[0.25, 0.5, 1.0]> : tensor<3xf32>
  %d = graph.dequantize %x, %scale : tensor<2x3xui8>, tensor<f32>
  %e = graph.dequantize %y, %scale : tensor<2x3xui8>, tensor<f32>
  %r = graph.relu %d : tensor<2x3xf32>
  %a = graph.quantize %r, %double {dtype = "uint8"} : tensor<2x3xf32>, tensor<f32>
  %s = graph.sigmoid %d : tensor<2x3xf32>
  %b = graph.quantize %s, %scales {dtype = "uint8", axis = 1 : i64} : tensor<2x3xf32>, tensor<3xf32>
  %t = graph.add %s, %e : tensor<2x3xf32>, tensor<2x3xf32>
  %c = graph.quantize %t, %scale {dtype = "uint8"} : tensor<2x3xf32>, tensor<f32>
  func.return %a, %b, %c : tensor<2x3xui8>, tensor<2x3xui8>, tensor<2x3xui8>
}
