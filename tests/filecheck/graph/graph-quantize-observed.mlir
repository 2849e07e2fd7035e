// RUN: weft-opt %s -p 'graph-quantize-observed' --split-input-file | filecheck %s
// RUN: weft-opt %s -p 'graph-quantize-observed,graph-rewrite{rules=quantized}' --split-input-file | filecheck %s --check-prefix=INTEGERS

// Data are uint8, weights int8 with a scale for each channel, and the bias int32 with the scale of the sums.
// CHECK-LABEL: func.func @layer
// CHECK:         %[[S:\w+]] = graph.constant dense<1.{{0*}}e-02> : tensor<f32>
// CHECK-NEXT:    %[[Z:\w+]] = graph.constant dense<55> : tensor<ui8>
// CHECK-NEXT:    %[[Q:\w+]] = graph.quantize %x, %[[S]], %[[Z]] {dtype = "uint8"}
// CHECK-NEXT:    %[[D:\w+]] = graph.dequantize %[[Q]], %[[S]], %[[Z]]
// CHECK-NEXT:    %w = graph.constant dense<{{\[\[}}127, -64], [-64, 127]]> : tensor<2x2xi8>
// CHECK-NEXT:    %[[SW:\w+]] = graph.constant dense<[1.{{0*}}e-02, 2.{{0*}}e-02]> : tensor<2xf32>
// CHECK-NEXT:    %[[W:\w+]] = graph.dequantize %w, %[[SW]] {axis = 1 : i64}
// CHECK-NEXT:    %[[Y:\w+]] = graph.matmul %[[D]], %[[W]]
// CHECK-NEXT:    %b = graph.constant dense<[10000, -5000]> : tensor<2xi32>
// CHECK:         %[[B:\w+]] = graph.dequantize %b, %{{\w+}} {axis = 0 : i64}
// CHECK-NEXT:    %{{\w+}} = graph.add %[[Y]], %[[B]]
// INTEGERS-LABEL: func.func @layer
// INTEGERS:         graph.matmul {{.*}} {out_dtype = "int32"} : tensor<1x2xi16>, tensor<2x2xi16> -> tensor<1x2xi32>
func.func @layer(%x: tensor<1x2xf32>) -> tensor<1x2xf32> {
  %o = graph.observe %x as "x" in [-0.55, 2.0] : tensor<1x2xf32>
  %w = graph.constant dense<[[1.27, -1.28], [-0.64, 2.54]]> : tensor<2x2xf32>
  %b = graph.constant dense<[1.0, -1.0]> : tensor<2xf32>
  %y = graph.matmul %o, %w : tensor<1x2xf32>, tensor<2x2xf32>
  %z = graph.add %y, %b : tensor<1x2xf32>, tensor<2xf32>
  func.return %z : tensor<1x2xf32>
}

// -----

// Observers without a range are erased; the layer, and one that is kept, stay.
// CHECK-LABEL: func.func @kept
// CHECK-NEXT:    %w = graph.constant dense<5.{{0*}}e-01> : tensor<2x2xf32>
// CHECK-NEXT:    %y = graph.matmul %x, %w {kept_float = "its data are not rounded"}
// CHECK:         %[[D:\w+]] = graph.dequantize
// CHECK-NEXT:    %r = graph.matmul %[[D]], %w {kept_float = "named"}
// INTEGERS-LABEL: func.func @kept
// INTEGERS-NOT:     int32
func.func @kept(%x: tensor<1x2xf32>) -> tensor<1x2xf32> {
  %o = graph.observe %x as "x" : tensor<1x2xf32>
  %w = graph.constant dense<0.5> : tensor<2x2xf32>
  %y = graph.matmul %o, %w : tensor<1x2xf32>, tensor<2x2xf32>
  %z = graph.observe %y as "y" in [-0.55, 2.0] : tensor<1x2xf32>
  %r = graph.matmul %z, %w {kept_float = "named"} : tensor<1x2xf32>, tensor<2x2xf32>
  func.return %r : tensor<1x2xf32>
}

// -----

// Both weights of a recurrent network, and its states, whose range is that of the observed results.
// CHECK-LABEL: func.func @recurrent
// CHECK:         %y, %last, %cell = graph.lstm %{{\w+}}, %{{\w+}}, %{{\w+}} {state_scale = 5.{{0*}}e-01 : f64}
// INTEGERS-LABEL: func.func @recurrent
// INTEGERS:         graph.lstm %{{\w+}}, %{{\w+}}, %{{\w+}}, none, none, none, none, none, %{{\w+}}, %{{\w+}} {state_scale = 5.{{0*}}e-01 : f64} : tensor<3x1x2xi16>, tensor<1x4x2xi16>, tensor<1x4x1xi8>, tensor<1x4xf32>, tensor<1x4xf32>
func.func @recurrent(%x: tensor<3x1x2xf32>) -> tensor<3x1x1x1xf32> {
  %o = graph.observe %x as "x" in [0.0, 2.55] : tensor<3x1x2xf32>
  %w = graph.constant dense<0.5> : tensor<1x4x2xf32>
  %r = graph.constant dense<0.25> : tensor<1x4x1xf32>
  %y, %last, %cell = graph.lstm %o, %w, %r : tensor<3x1x2xf32>, tensor<1x4x2xf32>, tensor<1x4x1xf32>
  %h = graph.observe %y as "y" in [-63.5, 2.0] : tensor<3x1x1x1xf32>
  func.return %h : tensor<3x1x1x1xf32>
}
