// RUN: weft-opt %s --split-input-file --verify-diagnostics
// Each error tells the op, both shapes and the extents that do not fit.

func.func @f(%a: tensor<2x3xf32>, %b: tensor<4xf32>) {
  // expected-error@+1 {{graph.add: the shapes (2, 3) and (4,) do not broadcast: extents 3 and 4 in dimension -1}}
  %c = graph.add %a, %b : tensor<2x3xf32>, tensor<4xf32>
  func.return
}

// -----

func.func @f(%a: tensor<?x3xf32, #graph.dims<n>>, %b: tensor<?x3xf32, #graph.dims<n + 1>>) {
  // expected-error@+1 {{graph.multiply: the shapes (n, 3) and ((n + 1), 3) do not broadcast: extents n and (n + 1) in dimension -2 (extents that are always equal carry the same name)}}
  %c = graph.multiply %a, %b : tensor<?x3xf32, #graph.dims<n>>, tensor<?x3xf32, #graph.dims<n + 1>>
  func.return
}

// -----

func.func @f(%a: tensor<?xf32, #graph.dims<n + 9>>, %b: tensor<8xf32>) {
  // expected-error@+1 {{graph.maximum: the shapes ((n + 9),) and (8,) do not broadcast: extents (n + 9) and 8 in dimension -1 (extents that are always equal carry the same name)}}
  %c = graph.maximum %a, %b : tensor<?xf32, #graph.dims<n + 9>>, tensor<8xf32>
  func.return
}

// -----

func.func @f(%a: tensor<1x784xf32>, %b: tensor<128x784xf32>) {
  // expected-error@+1 {{graph.matmul: tensor_a of shape (1, 784) has 784 elements in axis 1, tensor_b of shape (128, 784) has 128 in axis 0}}
  %c = graph.matmul %a, %b : tensor<1x784xf32>, tensor<128x784xf32>
  func.return
}

// -----

func.func @f(%a: tensor<2x?xf32, #graph.dims<k + 5>>, %b: tensor<4xf32>) {
  // expected-error@+1 {{graph.matmul: tensor_a of shape (2, (k + 5)) has (k + 5) elements in axis 1, tensor_b of shape (4,) has 4 in axis 0 (extents that are always equal carry the same name)}}
  %c = graph.matmul %a, %b : tensor<2x?xf32, #graph.dims<k + 5>>, tensor<4xf32>
  func.return
}

// -----

func.func @f(%a: tensor<2x3x3xf32>, %b: tensor<4x3x3xf32>) {
  // expected-error@+1 {{graph.matmul: the shapes (2,) and (4,) do not broadcast: extents 2 and 4 in dimension -1}}
  %c = graph.matmul %a, %b : tensor<2x3x3xf32>, tensor<4x3x3xf32>
  func.return
}

// -----

func.func @f(%a: tensor<f32>, %b: tensor<4xf32>) {
  // expected-error@+1 {{graph.matmul takes vectors and matrices, tensor_a has rank 0}}
  %c = graph.matmul %a, %b : tensor<f32>, tensor<4xf32>
  func.return
}

// -----

func.func @f(%a: tensor<4xf32>, %b: tensor<4xf64>) {
  // expected-error@+1 {{graph.add: `+` mixes element types: `lhs[i0]` is float32 and `rhs[i0]` is float64; cast one, for example with .astype('float32')}}
  %c = graph.add %a, %b : tensor<4xf32>, tensor<4xf64>
  func.return
}

// -----

func.func @f(%a: tensor<4xi32>) {
  // expected-error@+1 {{graph.divide: `/` takes floats, got int32 in `lhs[i0] / rhs[i0]`: use // or te.truncdiv for integers, or cast}}
  %c = graph.divide %a, %a : tensor<4xi32>, tensor<4xi32>
  func.return
}

// -----

func.func @f(%a: tensor<4xi1>) {
  // expected-error@+1 {{graph.add: `+` takes numbers, got bool in `lhs[i0] + rhs[i0]`: cast, or use &, | and ^}}
  %c = graph.add %a, %a : tensor<4xi1>, tensor<4xi1>
  func.return
}

// -----

func.func @f(%a: tensor<4xf32>) {
  // expected-error@+1 {{graph.add takes 2 operands, got 1}}
  %c = graph.add %a : tensor<4xf32>
  func.return
}

// -----

func.func @f(%a: memref<4xf32>) {
  // expected-error@+1 {{graph.relu: operand 0 must be a ranked tensor, got memref<4xf32>}}
  %c = graph.relu %a : memref<4xf32>
  func.return
}

// -----

func.func @f(%a: tensor<2x3xf32>) {
  // expected-error@+1 {{graph.relu: result 0 is declared tensor<2x4xf32>, but the operands give tensor<2x3xf32>}}
  %c = graph.relu %a : tensor<2x3xf32> -> tensor<2x4xf32>
  func.return
}

// -----

// A result may say less than what is inferred, not more.
func.func @f(%a: tensor<?x3xf32>) {
  // expected-error@+1 {{result 0 is declared tensor<?x3xf32, #graph.dims<n>>, but the operands give tensor<?x3xf32>}}
  %c = graph.relu %a : tensor<?x3xf32> -> tensor<?x3xf32, #graph.dims<n>>
  func.return
}

// -----

func.func @f(%a: tensor<2x3xf32>) {
  // expected-error@+1 {{graph.transpose: axis 0 comes twice in [0, 0]}}
  %c = graph.transpose %a {axes = array<i64: 0, 0>} : tensor<2x3xf32>
  func.return
}

// -----

func.func @f(%a: tensor<?x?xf32, #graph.dims<n>>) {
  // expected-error@+1 {{tensor<?x?xf32, #graph.dims<n>> has 2 dynamic extents, but its encoding gives 1}}
  %c = graph.relu %a : tensor<?x?xf32, #graph.dims<n>>
  func.return
}

// -----

func.func @f(%a: tensor<?xf32, #graph.dims<4>>) {
  // expected-error@+1 {{the extent 4 is a number: write it in place of the ?}}
  %c = graph.transpose %a : tensor<?xf32, #graph.dims<4>>
  func.return
}

// -----

// expected-error@+1 {{extent n floordiv 0: division by zero}}
func.func @f(%a: tensor<?xf32, #graph.dims<n floordiv 0>>) {
  func.return
}

// -----

func.func @f(%x: tensor<4xf32>) {
  // expected-error@+1 {{graph.call_tir: there is no function @nobody with a type in this module}}
  %y = graph.call_tir @nobody(%x) : (tensor<4xf32>) -> tensor<4xf32>
  func.return
}

// -----

func.func @f(%x: tensor<4xf32>) {
  // expected-error@+1 {{graph.call_tir @g: the call has 1 operands and 1 results, but the function takes 3 arguments}}
  %y = graph.call_tir @g(%x) : (tensor<4xf32>) -> tensor<4xf32>
  func.return
}
func.func private @g(%A: memref<4xf32>, %B: memref<4xf32>, %C: memref<4xf32>)

// -----

func.func @f(%x: tensor<4xf32>) {
  // expected-error@+1 {{graph.call_tir @g: result 0 is tensor<4xf32>, but the function takes memref<4xf64>}}
  %y = graph.call_tir @g(%x) : (tensor<4xf32>) -> tensor<4xf32>
  func.return
}
func.func private @g(%A: memref<4xf32>, %B: memref<4xf64>)

// -----

func.func @f(%x: tensor<4xf32>) {
  // expected-error@+1 {{graph.call_tir @g: operand 0 is tensor<4xf32> of rank 1, but the function takes memref<2x2xf32> of rank 2}}
  %y = graph.call_tir @g(%x) : (tensor<4xf32>) -> tensor<4xf32>
  func.return
}
func.func private @g(%A: memref<2x2xf32>, %B: memref<4xf32>)

// -----

func.func @f(%x: tensor<?xf32, #graph.dims<n>>) {
  // expected-error@+1 {{but the function takes memref<4xf32>: dimension 0 is n here and 4 there}}
  %y = graph.call_tir @g(%x) : (tensor<?xf32, #graph.dims<n>>) -> tensor<4xf32>
  func.return
}
func.func private @g(%A: memref<4xf32>, %B: memref<4xf32>)

// -----

func.func @f(%x: tensor<4xf32>) {
  // expected-error@+1 {{graph.call_dps needs the name of a registered function, got an empty one}}
  %y = graph.call_dps ""(%x) : (tensor<4xf32>) -> tensor<4xf32>
  func.return
}

// -----

func.func @f(%x: tensor<4xf32>) {
  // expected-error@+1 {{graph.dataflow gives (tensor<4xf32>), but its graph.output holds ()}}
  %y = graph.dataflow -> tensor<4xf32> {
    graph.output
  }
  func.return
}

// -----

func.func @f(%x: tensor<4xf32>, %m: memref<4xf32>, %i: index, %v: f32) {
  // expected-error@+1 {{graph.dataflow holds only pure operations, but memref.store may have effects}}
  %y = graph.dataflow -> tensor<4xf32> {
    memref.store %v, %m[%i] : memref<4xf32>
    graph.output %x : tensor<4xf32>
  }
  func.return
}

// -----

func.func @f(%x: tensor<4xf32>) {
  // expected-error@+1 {{'graph.output' expects parent op 'graph.dataflow'}}
  graph.output %x : tensor<4xf32>
}

// -----

func.func @f() {
  // expected-error@+1 {{graph.constant takes dense<...> or dense_resource<...>}}
  %c = graph.constant 4 : i32
  func.return
}

// -----

func.func @f(%x: tensor<4xf32>) {
  %t = graph.make_tuple %x, %x : tuple<tensor<4xf32>, tensor<4xf32>>
  // expected-error@+1 {{has no value 2}}
  %y = graph.tuple_get %t[2] : tuple<tensor<4xf32>, tensor<4xf32>>
  func.return
}

// -----

func.func private @g(tensor<?xf32>, index) -> tensor<?xf32>
func.func @f(%x: tensor<?xf32, #graph.dims<2 * n>>) {
  // expected-error@+1 {{graph.call_tir @g: the call has 1 operands, 2 extents and 1 results, but the function takes 2 arguments and gives 1}}
  %y = graph.call_tir @g(%x) extents <n, 2 * n> : (tensor<?xf32, #graph.dims<2 * n>>) -> tensor<?xf32, #graph.dims<n>>
  func.return
}

// -----

func.func private @g(tensor<?xf32>, i64) -> tensor<?xf32>
func.func @f(%x: tensor<?xf32, #graph.dims<2 * n>>) {
  // expected-error@+1 {{graph.call_tir @g: extent 0 is of type index, but the function takes i64}}
  %y = graph.call_tir @g(%x) extents <n> : (tensor<?xf32, #graph.dims<2 * n>>) -> tensor<?xf32, #graph.dims<n>>
  func.return
}

// -----

func.func private @g(tensor<?xf32>, index) -> tensor<?xf32>
func.func @f(%x: tensor<?xf32, #graph.dims<2 * n>>) {
  // expected-error@+1 {{graph.call_tir: extents that are passed are known, got #graph.dims<?>}}
  %y = graph.call_tir @g(%x) extents <?> : (tensor<?xf32, #graph.dims<2 * n>>) -> tensor<?xf32, #graph.dims<n>>
  func.return
}
