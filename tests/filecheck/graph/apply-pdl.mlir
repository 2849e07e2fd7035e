// RUN: weft-opt %s -p 'apply-pdl{pdl_file="apply-pdl-rules.pdl"}' --split-input-file --validate | filecheck %s

// Operands that may be left out are told by operandSegmentSizes.
// CHECK-LABEL: func.func @layers
// CHECK-NEXT:    %[[D:\w+]] = graph.dense %x, %w, %b
// CHECK-NEXT:    %[[T:\w+]] = graph.transpose %w
// CHECK-NEXT:    %[[P:\w+]] = graph.matmul %x, %[[T]]
// CHECK-NEXT:    %[[S:\w+]] = graph.add %[[P]], %b
// CHECK-NEXT:    func.return %[[D]], %[[P]], %[[S]]
func.func @layers(%x: tensor<?x3xf32, #graph.dims<n>>, %w: tensor<4x3xf32>, %b: tensor<4xf32>) -> (tensor<?x4xf32, #graph.dims<n>>, tensor<?x4xf32, #graph.dims<n>>, tensor<?x4xf32, #graph.dims<n>>) {
  %t = graph.transpose %w : tensor<4x3xf32>
  %h = graph.matmul %x, %t : tensor<?x3xf32, #graph.dims<n>>, tensor<3x4xf32>
  %s = graph.add %h, %b : tensor<?x4xf32, #graph.dims<n>>, tensor<4xf32>
  %u = graph.transpose %w : tensor<4x3xf32>
  %p = graph.matmul %x, %u : tensor<?x3xf32, #graph.dims<n>>, tensor<3x4xf32>
  %q = graph.add %p, %b : tensor<?x4xf32, #graph.dims<n>>, tensor<4xf32>
  func.return %s, %p, %q : tensor<?x4xf32, #graph.dims<n>>, tensor<?x4xf32, #graph.dims<n>>, tensor<?x4xf32, #graph.dims<n>>
}

// -----

// CHECK-LABEL: func.func @attributes
// CHECK-NEXT:    %c = graph.constant
// CHECK-NEXT:    %[[A:\w+]] = graph.sum %x {axis = -1 : i64}
// CHECK-NEXT:    %[[M:\w+]] = graph.multiply %[[A]], %c
// CHECK-NEXT:    %[[B:\w+]] = graph.sum %x {axis = 0 : i64}
// CHECK-NEXT:    %[[N:\w+]] = graph.multiply %c, %[[B]]
// CHECK-NEXT:    %[[O:\w+]] = graph.multiply %y, %[[A]]
func.func @attributes(%x: tensor<3x3xf32>, %y: tensor<3xf32>) -> (tensor<3xf32>, tensor<3xf32>, tensor<3xf32>) {
  %c = graph.constant dense<2.0> : tensor<f32>
  %s = graph.sum %x {axis = -1} : tensor<3x3xf32>
  %m = graph.multiply %c, %s : tensor<f32>, tensor<3xf32>
  %t = graph.sum %x {axis = 0} : tensor<3x3xf32>
  %n = graph.multiply %c, %t : tensor<f32>, tensor<3xf32>
  %o = graph.multiply %y, %s : tensor<3xf32>, tensor<3xf32>
  func.return %m, %n, %o : tensor<3xf32>, tensor<3xf32>, tensor<3xf32>
}
