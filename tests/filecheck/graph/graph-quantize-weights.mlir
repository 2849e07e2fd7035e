// RUN: weft-opt %s -p 'graph-quantize-weights{group=16}' --split-input-file | filecheck %s --check-prefixes=CHECK,INT4
// RUN: weft-opt %s -p 'graph-quantize-weights{weights=int8 group=0 symmetric=false scales=float16}' --split-input-file | filecheck %s --check-prefixes=CHECK,INT8

// The scale of a group is the least for which -8 to 7 cover it.
// CHECK-LABEL: func.func @columns
// INT4-NEXT:     %w = graph.constant dense<7> : tensor<32x1xi4>
// INT4-NEXT:     %w_scale = graph.constant dense<0.0714285746> : tensor<2x1xf32>
// INT4-NEXT:     %[[D:\w+]] = graph.dequantize %w, %w_scale {axis = 0 : i64, group_size = 16 : i64} : tensor<32x1xi4>
// INT8-NEXT:     %w = graph.constant dense<255> : tensor<32x1xui8>
// INT8-NEXT:     %w_scale = graph.constant dense<{{.*}}> : tensor<1xf16>
// INT8-NEXT:     %w_zero_point = graph.constant dense<0> : tensor<1xui8>
// INT8-NEXT:     %[[D:\w+]] = graph.dequantize %w, %w_scale, %w_zero_point {axis = 1 : i64}
// CHECK:         graph.matmul %x, %[[D]]
func.func @columns(%x: tensor<2x32xf32>) -> tensor<2x1xf32> {
  %w = graph.constant dense<0.5> : tensor<32x1xf32>
  %y = graph.matmul %x, %w : tensor<2x32xf32>, tensor<32x1xf32>
  func.return %y : tensor<2x1xf32>
}

// -----

// Weights of rows are quantized along their last axis, of other types too. A bias stays as it is.
// CHECK-LABEL: func.func @rows
// INT4:          graph.constant dense<-8> : tensor<3x16xi4>
// INT4:          graph.dequantize %w, %w_scale {axis = 1 : i64, group_size = 16 : i64, dtype = "bfloat16"}
// INT8:          graph.dequantize %w, %w_scale, %w_zero_point {axis = 0 : i64, dtype = "bfloat16"}
// CHECK:         graph.dense %x, %{{\w+}}, %b
func.func @rows(%x: tensor<2x16xbf16>, %b: tensor<3xbf16>) -> tensor<2x3xbf16> {
  %w = graph.constant dense<-1.0> : tensor<3x16xbf16>
  %y = graph.dense %x, %w, %b : tensor<2x16xbf16>, tensor<3x16xbf16>, tensor<3xbf16>
  func.return %y : tensor<2x3xbf16>
}
