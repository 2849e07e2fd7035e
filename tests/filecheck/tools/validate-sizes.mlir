// RUN: weft-opt %s -p graph-simplify --validate 2>&1 | filecheck %s
// RUN: weft-opt %s -p 'graph-simplify,graph-fuse' --validate 2>&1 | filecheck %s

// Elements of %s are sizes: they are drawn so that the reshape has the elements of %x, and none is skipped.

// CHECK-NOT: did not compare
// CHECK: func.func @main(%x: tensor<?x6xf32, #graph.dims<n>>, %s: tensor<3xi64>)
// CHECK-NOT: did not compare
func.func @main(%x: tensor<?x6xf32, #graph.dims<n>>, %s: tensor<3xi64>) -> tensor<?x?x?xf32, #graph.dims<s.0, s.1, s.2>> attributes {graph.preconditions = ["2 <= s.1"]} {
  %y = graph.reshape %x {newshape = #graph.dims<s.0, s.1, s.2>} : tensor<?x6xf32, #graph.dims<n>> -> tensor<?x?x?xf32, #graph.dims<s.0, s.1, s.2>>
  %z = graph.relu %y : tensor<?x?x?xf32, #graph.dims<s.0, s.1, s.2>> -> tensor<?x?x?xf32, #graph.dims<s.0, s.1, s.2>>
  func.return %z : tensor<?x?x?xf32, #graph.dims<s.0, s.1, s.2>>
}
