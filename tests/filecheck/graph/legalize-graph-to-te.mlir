// RUN: weft-opt %s -p legalize-graph-to-te --split-input-file --verify-diagnostics | filecheck %s

// Equal operators share a function, whatever their extents are called; others do not.
// CHECK-LABEL: func.func @share
func.func @share(%x: tensor<?x4xf32, #graph.dims<n>>, %y: tensor<?x4xf32, #graph.dims<m>>, %z: tensor<4x4xf32>) {
  // CHECK-NEXT: graph.call_tir @relu(%x) : (tensor<?x4xf32, #graph.dims<n>>) -> tensor<?x4xf32, #graph.dims<n>>
  %a = graph.relu %x : tensor<?x4xf32, #graph.dims<n>>
  // CHECK-NEXT: graph.call_tir @relu(%y)
  %b = graph.relu %y : tensor<?x4xf32, #graph.dims<m>>
  // CHECK-NEXT: graph.call_tir @relu_1(%z)
  %c = graph.relu %z : tensor<4x4xf32>
  // CHECK-NEXT: graph.call_tir @transpose(%z)
  %d = graph.transpose %z : tensor<4x4xf32>
  // CHECK-NEXT: graph.call_tir @transpose_1(%z)
  %e = graph.transpose %z {axes = array<i64: 0, 1>} : tensor<4x4xf32>
  func.return
}
// CHECK: func.func private @relu(%data: tensor<?x4xf32>) -> tensor<?x4xf32> {
// CHECK:   %[[N:\w+]] = tensor.dim %data, {{.*}} : tensor<?x4xf32>
// CHECK:   %[[RELU:\w+]] = te.compute "relu" (%[[I0:\w+]] in %[[N]], %[[I1:\w+]]) : tensor<?x4xf32> {
// CHECK:     tensor.extract %data[%[[I0]], %[[I1]]] : tensor<?x4xf32>
// CHECK:     arith.maximumf
// CHECK: func.func private @relu_1(%data: tensor<4x4xf32>)
// CHECK-NOT: @relu_2

// -----

// The name of a function of the module is not taken.
// CHECK-LABEL: func.func @main
func.func @main(%x: tensor<4xi1>) -> tensor<4xi1> {
  // CHECK: graph.call_tir @maximum_1(%x, %x)
  %a = graph.maximum %x, %x : tensor<4xi1>, tensor<4xi1>
  func.return %a : tensor<4xi1>
}
func.func private @maximum()
// CHECK: func.func private @maximum_1
// CHECK: arith.ori

// -----

// An extent of 1 is read at 0; a shared name ties the operands; a batch broadcasts.
// CHECK-LABEL: func.func private @add(%lhs: tensor<?x1xf64>, %rhs: tensor<3x?x5xf64>) -> tensor<3x?x5xf64>
// CHECK:   [[ZERO:%.*]] = arith.constant 0 : index
// CHECK:   %[[N:\w+]] = tensor.dim %lhs, %{{.*}} : tensor<?x1xf64>
// CHECK:   te.assume_shape %rhs[%[[N]]] : tensor<3x?x5xf64>
// CHECK:   te.compute "add" (%[[I0:\w+]], %[[I1:\w+]] in %[[N]], %[[I2:\w+]]) : tensor<3x?x5xf64>
// CHECK:     tensor.extract %lhs[%[[I1]], [[ZERO]]]
// CHECK:     tensor.extract %rhs[%[[I0]], %[[I1]], %[[I2]]]
func.func @broadcast(%x: tensor<?x1xf64, #graph.dims<n>>, %y: tensor<3x?x5xf64, #graph.dims<n>>) {
  %a = graph.add %x, %y : tensor<?x1xf64, #graph.dims<n>>, tensor<3x?x5xf64, #graph.dims<n>>
  func.return
}

// -----

// f16 accumulates in f32.
// CHECK-LABEL: func.func private @matmul(%tensor_a: tensor<2x3xf16>, %tensor_b: tensor<3xf16>) -> tensor<2xf16>
// CHECK:   te.compute "matmul" (%[[I:\w+]]) : tensor<2xf16> {
// CHECK:     te.reduce sum (%[[K:\w+]] in 3) : f32 {
// CHECK:       tensor.extract %tensor_a[%[[I]], %[[K]]]
// CHECK:       tensor.extract %tensor_b[%[[K]]]
// CHECK:       arith.extf
// CHECK:     arith.truncf
func.func @half(%x: tensor<2x3xf16>, %y: tensor<3xf16>) {
  %a = graph.matmul %x, %y : tensor<2x3xf16>, tensor<3xf16>
  func.return
}

// -----

func.func @unknown(%x: tensor<?xf32>) -> tensor<?xf32> {
  // expected-error@+1 {{graph.relu: dimension 0 of %data is unknown; name the dynamic extents of its type with #graph.dims<...>}}
  %a = graph.relu %x : tensor<?xf32>
  func.return %a : tensor<?xf32>
}
