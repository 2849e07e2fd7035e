// RUN: weft-opt %s -p 'graph-insert-observers' --split-input-file --validate | filecheck %s
// RUN: weft-opt %s -p "graph-insert-observers{skip=h}" --split-input-file | filecheck %s --check-prefix=SKIP

// Data of layers, of which a kernel computes `h` from the sums; dataflow regions become part of the function.
// CHECK-LABEL: func.func @layers
// CHECK:         %[[X:\w+]] = graph.observe %x as "x" : tensor<2x4xf32>
// CHECK:         %[[P:\w+]] = graph.matmul %[[X]], %first
// CHECK-NEXT:    %[[H:\w+]] = graph.relu %[[P]]
// CHECK-NEXT:    %[[O:\w+]] = graph.observe %[[H]] as "h" : tensor<2x4xf32>
// CHECK-NEXT:    %[[Y:\w+]] = graph.matmul %[[O]], %second
// CHECK-NEXT:    func.return %[[Y]]
// SKIP-LABEL:  func.func @layers
// SKIP:          graph.observe %x as "x"
// SKIP-NOT:      graph.observe
func.func @layers(%x: tensor<2x4xf32>) -> tensor<2x4xf32> {
  %y = graph.dataflow -> tensor<2x4xf32> {
    %first = graph.constant dense<0.5> : tensor<4x4xf32>
    %second = graph.constant dense<0.25> : tensor<4x4xf32>
    %p = graph.matmul %x, %first : tensor<2x4xf32>, tensor<4x4xf32>
    %h = graph.relu %p : tensor<2x4xf32>
    %q = graph.matmul %h, %second : tensor<2x4xf32>, tensor<4x4xf32>
    graph.output %q : tensor<2x4xf32>
  }
  func.return %y : tensor<2x4xf32>
}

// -----

// The result of a kernel between layers, which a pool reads that the last layer needs. The pool takes the greatest
// of its elements, and `z`, a result of the function, is not rounded.
// CHECK-LABEL: func.func @between
// CHECK:         %z = graph.conv2d
// CHECK-NEXT:    %[[Z:\w+]] = graph.observe %z as "z"
// CHECK-NEXT:    %h = graph.max_pool2d %[[Z]]
// CHECK-NEXT:    %[[H:\w+]] = graph.observe %h as "h"
// CHECK-NEXT:    %y = graph.conv2d %[[H]], %second
// CHECK-NEXT:    %r = graph.sigmoid %y
// CHECK-NEXT:    func.return %r, %z
// SKIP-LABEL:  func.func @between
func.func @between(%x: tensor<1x2x4x4xf32>) -> (tensor<1x2x2x2xf32>, tensor<1x2x4x4xf32>) {
  %first = graph.constant dense<0.5> : tensor<2x2x1x1xf32>
  %second = graph.constant dense<0.25> : tensor<2x2x1x1xf32>
  %z = graph.conv2d %x, %first : tensor<1x2x4x4xf32>, tensor<2x2x1x1xf32>
  %h = graph.max_pool2d %z {kernel = 2} : tensor<1x2x4x4xf32>
  %y = graph.conv2d %h, %second : tensor<1x2x2x2xf32>, tensor<2x2x1x1xf32>
  %r = graph.sigmoid %y : tensor<1x2x2x2xf32>
  func.return %r, %z : tensor<1x2x2x2xf32>, tensor<1x2x4x4xf32>
}

// -----

// The weights of a recurrent network with products as data are those of the states, without the bias.
// CHECK-LABEL: func.func @products
// CHECK:         %[[X:\w+]] = graph.observe %x as "x"
// CHECK:         %d = graph.dense %[[X]], %w
// CHECK-NEXT:    %[[D:\w+]] = graph.observe %d as "d"
// CHECK:         graph.lstm %[[D]], none, %r, %b
// SKIP-LABEL:  func.func @products
func.func @products(%x: tensor<3x1x2xf32>) -> tensor<3x1x1x1xf32> {
  %w = graph.constant dense<0.5> : tensor<4x2xf32>
  %r = graph.constant dense<0.25> : tensor<1x4x1xf32>
  %b = graph.constant dense<0.125> : tensor<1x8xf32>
  %d = graph.dense %x, %w : tensor<3x1x2xf32>, tensor<4x2xf32>
  %y, %h, %c = graph.lstm %d, none, %r, %b : tensor<3x1x4xf32>, tensor<1x4x1xf32>, tensor<1x8xf32>
  func.return %y : tensor<3x1x1x1xf32>
}

// -----

// Products of computed operands are no layers, nor is one in float64.
// CHECK-LABEL: func.func @none
// CHECK-NOT:     graph.observe
// SKIP-LABEL:  func.func @none
func.func @none(%h: tensor<2x2xf32>, %d: tensor<2x2xf64>) -> (tensor<2x2xf32>, tensor<2x2xf64>) {
  %second = graph.constant dense<0.5> : tensor<2x2xf64>
  %y = graph.matmul %h, %h : tensor<2x2xf32>, tensor<2x2xf32>
  %e = graph.matmul %d, %second : tensor<2x2xf64>, tensor<2x2xf64>
  func.return %y, %e : tensor<2x2xf32>, tensor<2x2xf64>
}
