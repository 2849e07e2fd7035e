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

// -----

// An extent that no operand has by itself is passed. An expression that is computed with as a whole is an extent as any.
// CHECK-LABEL: func.func @extents
// CHECK-NEXT:    %a = graph.call_tir @reshape(%x) :
// CHECK-NEXT:    %b = graph.call_tir @exp(%a) : (tensor<?xf32, #graph.dims<8 * n>>) -> tensor<?xf32, #graph.dims<8 * n>>
// CHECK-NEXT:    %c = graph.call_tir @reshape_1(%b) extents <n> : (tensor<?xf32, #graph.dims<8 * n>>)
// CHECK-NEXT:    %d = graph.call_tir @exp(%y) :
// CHECK-NEXT:    %e = graph.call_tir @full() extents <n> : () -> tensor<?xf32, #graph.dims<n>>
// CHECK:       func.func private @reshape(%data: tensor<?x8xf32>) -> tensor<?xf32>
// CHECK:       func.func private @exp(%data: tensor<?xf32>) -> tensor<?xf32>
// CHECK:       func.func private @reshape_1(%data: tensor<?xf32>, %s0: index) -> tensor<?x8xf32>
// CHECK:         te.assume_shape %data[%{{.*}}] : tensor<?xf32>
// CHECK:       func.func private @full(%s0: index) -> tensor<?xf32>
func.func @extents(%x: tensor<?x8xf32, #graph.dims<n>>, %y: tensor<?xf32, #graph.dims<n>>) {
  %a = graph.reshape %x {newshape = #graph.dims<8 * n>} : tensor<?x8xf32, #graph.dims<n>>
  %b = graph.exp %a : tensor<?xf32, #graph.dims<8 * n>>
  %c = graph.reshape %b {newshape = #graph.dims<n, 8>} : tensor<?xf32, #graph.dims<8 * n>>
  %d = graph.exp %y : tensor<?xf32, #graph.dims<n>>
  %e = graph.full {shape = #graph.dims<n>, fill_value = 2.0 : f64}
  func.return
}

// -----

// Functions are shared only where their shapes are over the same extents of the operands.
// CHECK-LABEL: func.func @swapped
// CHECK-NEXT:    graph.call_tir @reshape(%x)
// CHECK-NEXT:    graph.call_tir @reshape_1(%y)
// CHECK-NEXT:    graph.call_tir @reshape(%y)
func.func @swapped(%x: tensor<?x?xf32, #graph.dims<m, n>>, %y: tensor<?x?xf32, #graph.dims<n, m>>) {
  %a = graph.reshape %x {newshape = #graph.dims<n, m>} : tensor<?x?xf32, #graph.dims<m, n>>
  %b = graph.reshape %y {newshape = #graph.dims<n, m>} : tensor<?x?xf32, #graph.dims<n, m>>
  %c = graph.reshape %y {newshape = #graph.dims<m, n>} : tensor<?x?xf32, #graph.dims<n, m>>
  func.return
}

// -----

// A fused group becomes one tensor expression: the definitions of its operators, one after the other.
// CHECK-LABEL: func.func @group
// CHECK-NEXT:    graph.call_tir @fused(%x, %x)
// CHECK:       func.func private @fused(%a: tensor<?xf32>, %b: tensor<?xf32>) -> tensor<?xf32> {
// CHECK:         te.assume_shape %b
// CHECK:         %half = te.compute "half"
// CHECK:         %multiply = te.compute "multiply"
// CHECK:           tensor.extract %b
// CHECK:         %add = te.compute "add"
// CHECK-NEXT:      tensor.extract %a
// CHECK-NEXT:      tensor.extract %multiply
// CHECK:         func.return %add
func.func @group(%x: tensor<?xf32, #graph.dims<n>>) -> tensor<?xf32, #graph.dims<n>> {
  %y = graph.call_tir @fused(%x, %x) : (tensor<?xf32, #graph.dims<n>>, tensor<?xf32, #graph.dims<n>>) -> tensor<?xf32, #graph.dims<n>>
  func.return %y : tensor<?xf32, #graph.dims<n>>
}
func.func private @fused(%a: tensor<?xf32, #graph.dims<s0>>, %b: tensor<?xf32, #graph.dims<s0>>) -> tensor<?xf32, #graph.dims<s0>> attributes {graph.fused} {
  %half = graph.constant dense<0.5> : tensor<f32>
  %h = graph.multiply %b, %half : tensor<?xf32, #graph.dims<s0>>, tensor<f32>
  %y = graph.add %a, %h : tensor<?xf32, #graph.dims<s0>>, tensor<?xf32, #graph.dims<s0>>
  func.return %y : tensor<?xf32, #graph.dims<s0>>
}

// -----

func.func private @fused(%a: tensor<2xf32>) -> tensor<2xf32> attributes {graph.fused} {
  // expected-error@+1 {{@fused: graph.call_dps has no place in a function with the attribute graph.fused}}
  %b = graph.call_dps "env.f"(%a) : (tensor<2xf32>) -> tensor<2xf32>
  func.return %b : tensor<2xf32>
}

// -----

func.func private @fused(%a: tensor<2xf32>) -> tensor<2xf32> attributes {graph.fused} {
  // expected-error@+1 {{@fused: graph.constant has no place in a function with the attribute graph.fused}}
  %w = graph.constant dense<[1.0, 2.0]> : tensor<2xf32>
  %b = graph.add %a, %w : tensor<2xf32>, tensor<2xf32>
  func.return %b : tensor<2xf32>
}

// -----

func.func private @fused(%a: tensor<?xf32>) -> tensor<?xf32> attributes {graph.fused} {
  // expected-error@+1 {{graph.exp: dimension 0 of %data is unknown; name the dynamic extents of its type with #graph.dims<...>}}
  %b = graph.exp %a : tensor<?xf32>
  func.return %b : tensor<?xf32>
}
