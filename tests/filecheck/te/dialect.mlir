// RUN: weft-opt %s --split-input-file | filecheck %s
// RUN: weft-opt %s --split-input-file | weft-opt --split-input-file | filecheck %s
// RUN: weft-opt %s --split-input-file | xdsl-opt --split-input-file | filecheck %s

// CHECK:       func.func @mm_relu(%A: tensor<4x8xf32>, %B: tensor<8x6xf32>) -> tensor<4x6xf32> {
// CHECK-NEXT:    %[[ZERO:\w+]] = arith.constant 0.000000e+00 : f32
// CHECK-NEXT:    %[[Y:\w+]] = te.compute "Y" (%[[I:\w+]], %[[J:\w+]]) : tensor<4x6xf32> {
// CHECK-NEXT:      %[[S:\w+]] = te.reduce sum (%[[K:\w+]] in 8) : f32 {
// CHECK-NEXT:        %[[A:\w+]] = tensor.extract %A[%[[I]], %[[K]]] : tensor<4x8xf32>
// CHECK-NEXT:        %[[B:\w+]] = tensor.extract %B[%[[K]], %[[J]]] : tensor<8x6xf32>
// CHECK-NEXT:        %[[P:\w+]] = arith.mulf %[[A]], %[[B]] : f32
// CHECK-NEXT:        te.yield %[[P]] : f32
// CHECK-NEXT:      }
// CHECK-NEXT:      te.yield %[[S]] : f32
// CHECK-NEXT:    }
// CHECK-NEXT:    %[[C:\w+]] = te.compute "C" ({{%i(_1)?, %j(_1)?}}) : tensor<4x6xf32> attributes {note = 1 : i64} {
func.func @mm_relu(%A: tensor<4x8xf32>, %B: tensor<8x6xf32>) -> tensor<4x6xf32> {
  %zero = arith.constant 0.000000e+00 : f32
  %Y = te.compute "Y" (%i, %j) : tensor<4x6xf32> {
    %s = te.reduce sum (%k in 8) : f32 {
      %a = tensor.extract %A[%i, %k] : tensor<4x8xf32>
      %b = tensor.extract %B[%k, %j] : tensor<8x6xf32>
      %p = arith.mulf %a, %b : f32
      te.yield %p : f32
    }
    te.yield %s : f32
  }
  %C = te.compute "C" (%i, %j) : tensor<4x6xf32> attributes {note = 1} {
    %y = tensor.extract %Y[%i, %j] : tensor<4x6xf32>
    %r = arith.maximumf %y, %zero : f32
    te.yield %r : f32
  }
  func.return %C : tensor<4x6xf32>
}

// -----

// Dynamic extents stand after `in`; several results have one shape; a scalar has no index.
// CHECK-LABEL: func.func @dynamic
// CHECK:         te.assume_shape %B[%[[M:\w+]], %[[N:\w+]]] : tensor<?x?xf32>
// CHECK-NEXT:    %[[V:\w+]], %[[W:\w+]] = te.compute "top" (%[[I:\w+]] in %[[M]], %[[J:\w+]]) : tensor<?x4xf32>, tensor<?x4xi32> {
// CHECK-NEXT:      %[[B:\w+]], %[[P:\w+]] = te.reduce argmax (%[[K:\w+]] in %[[N]], %[[L:\w+]] in 3) : f32, i32 attributes {note = "n"} {
// CHECK:           te.yield %[[B]], %[[P]] : f32, i32
// CHECK:         %[[T:\w+]] = te.compute "t" () : tensor<f32> {
// CHECK-NEXT:      %[[S:\w+]] = te.reduce custom ({{%k(_1)?}} in %[[N]]) : f32 {
// CHECK-NEXT:        te.yield %[[ONE:\w+]] : f32
// CHECK-NEXT:      } combine (%[[LEFT:\w+]], %[[RIGHT:\w+]]) {
// CHECK-NEXT:        %[[Q:\w+]] = arith.mulf %[[LEFT]], %[[RIGHT]] : f32
// CHECK-NEXT:        te.yield %[[Q]] : f32
// CHECK-NEXT:      } identity {
// CHECK-NEXT:        te.yield %[[ONE]] : f32
// CHECK-NEXT:      }
func.func @dynamic(%A: tensor<?x?xf32>, %B: tensor<?x?xf32>) -> (tensor<?x4xf32>, tensor<?x4xi32>, tensor<f32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %one = arith.constant 1.0 : f32
  %m = tensor.dim %A, %c0 : tensor<?x?xf32>
  %n = tensor.dim %A, %c1 : tensor<?x?xf32>
  te.assume_shape %B[%m, %n] : tensor<?x?xf32>
  %v, %w = te.compute "top" (%i in %m, %j) : tensor<?x4xf32>, tensor<?x4xi32> {
    %b, %p = te.reduce argmax (%k in %n, %l in 3) : f32, i32 attributes {note = "n"} {
      %a = tensor.extract %A[%i, %k] : tensor<?x?xf32>
      %at = arith.index_cast %k : index to i32
      te.yield %a, %at : f32, i32
    }
    te.yield %b, %p : f32, i32
  }
  %t = te.compute "t" () : tensor<f32> {
    %s = te.reduce custom (%k in %n) : f32 {
      te.yield %one : f32
    } combine (%left, %right) {
      %q = arith.mulf %left, %right : f32
      te.yield %q : f32
    } identity {
      te.yield %one : f32
    }
    te.yield %s : f32
  }
  func.return %v, %w, %t : tensor<?x4xf32>, tensor<?x4xi32>, tensor<f32>
}
