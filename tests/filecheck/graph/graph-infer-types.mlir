// RUN: weft-opt %s -p graph-infer-types --split-input-file --verify-diagnostics | filecheck %s

// What the operands tell replaces what was left open, down to the function's own type.
// CHECK-LABEL: func.func @refine(%x: tensor<?x4xf32, #graph.dims<n>>) -> (tensor<?x4xf32, #graph.dims<n>>, tensor<4x4xf32>)
func.func @refine(%x: tensor<?x4xf32, #graph.dims<n>>) -> (tensor<?x?xf32>, tensor<?x?xf32>) {
  // CHECK-NEXT: %[[Y:\w+]], %[[G:\w+]] = graph.dataflow -> (tensor<?x4xf32, #graph.dims<n>>, tensor<4x4xf32>)
  %y, %g = graph.dataflow -> (tensor<?x?xf32>, tensor<?x?xf32>) {
    // CHECK-NEXT: graph.relu %x : tensor<?x4xf32, #graph.dims<n>> -> tensor<?x4xf32, #graph.dims<n>>
    %r = graph.relu %x : tensor<?x4xf32, #graph.dims<n>> -> tensor<?x?xf32>
    // CHECK-NEXT: graph.transpose %[[R:\w+]] : tensor<?x4xf32, #graph.dims<n>> -> tensor<4x?xf32, #graph.dims<n>>
    %t = graph.transpose %r : tensor<?x?xf32> -> tensor<?x?xf32>
    // CHECK-NEXT: graph.matmul %[[T:\w+]], %[[R]] : tensor<4x?xf32, #graph.dims<n>>, tensor<?x4xf32, #graph.dims<n>> -> tensor<4x4xf32>
    %m = graph.matmul %t, %r : tensor<?x?xf32>, tensor<?x?xf32> -> tensor<?x?xf32>
    // CHECK-NEXT: graph.make_tuple %[[R]], %[[M:\w+]] : tuple<tensor<?x4xf32, #graph.dims<n>>, tensor<4x4xf32>>
    %p = graph.make_tuple %r, %m : tuple<tensor<?x?xf32>, tensor<?x?xf32>>
    // CHECK-NEXT: graph.tuple_get %[[P:\w+]][1] : tuple<tensor<?x4xf32, #graph.dims<n>>, tensor<4x4xf32>>
    %q = graph.tuple_get %p[1] : tuple<tensor<?x?xf32>, tensor<?x?xf32>>
    graph.output %r, %q : tensor<?x?xf32>, tensor<?x?xf32>
  }
  // CHECK: func.return %[[Y]], %[[G]] : tensor<?x4xf32, #graph.dims<n>>, tensor<4x4xf32>
  func.return %y, %g : tensor<?x?xf32>, tensor<?x?xf32>
}

// -----

// Unknown extents of parameters get names that are free.
// CHECK-LABEL: func.func @name(%x: tensor<?x?xf32, #graph.dims<d1, d0>>, %y: tensor<?x?x2xf32, #graph.dims<d0, d2>>) -> tensor<?x?xf32, #graph.dims<d0, d1>>
func.func @name(%x: tensor<?x?xf32, #graph.dims<?, d0>>, %y: tensor<?x?x2xf32, #graph.dims<d0, ?>>) -> tensor<?x?xf32> {
  %t = graph.transpose %x : tensor<?x?xf32, #graph.dims<?, d0>> -> tensor<?x?xf32>
  func.return %t : tensor<?x?xf32>
}

// -----

// Two parameters whose extents are never equal.
func.func @differ(%x: tensor<?xf32, #graph.dims<n>>, %y: tensor<?xf32, #graph.dims<n + 1>>) -> tensor<?xf32> {
  // expected-error@+1 {{graph.add: the shapes (n,) and ((n + 1),) do not broadcast: extents n and (n + 1) in dimension -1 (extents that are always equal carry the same name)}}
  %s = graph.add %x, %y : tensor<?xf32, #graph.dims<n>>, tensor<?xf32, #graph.dims<n + 1>>
  func.return %s : tensor<?xf32>
}

// -----

// What was not in conflict while it was unknown.
func.func @late(%x: tensor<2x3xf32>, %y: tensor<4x3xf32>) -> tensor<?x?xf32> {
  %t = graph.transpose %x : tensor<2x3xf32> -> tensor<?x?xf32>
  // expected-error@+1 {{graph.matmul: tensor_a of shape (3, 2) has 2 elements in axis 1, tensor_b of shape (4, 3) has 4 in axis 0}}
  %s = graph.matmul %t, %y : tensor<?x?xf32>, tensor<4x3xf32> -> tensor<?x?xf32>
  func.return %s : tensor<?x?xf32>
}

// -----

func.func @unbound(%x: tensor<1xf32>, %z: tensor<?xf32, #graph.dims<n>>) -> tensor<?xf32> {
  // expected-error@+1 {{graph.broadcast_to: no parameter has the extent 'm', and no earlier op binds it (known: n)}}
  %y = graph.broadcast_to %x {shape = #graph.dims<m>} : tensor<1xf32> -> tensor<?xf32>
  func.return %y : tensor<?xf32>
}
